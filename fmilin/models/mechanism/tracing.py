"""The equations of a mechanism in symbols, for compiled code: the recursions themselves, written down while they run.

Nothing is derived anew and nothing is expanded. The code of the other modules runs once with numbers that record what
is done with them (:class:`fmilin.codegen.recorder.Number`): products, sums, sines become statements, and what is zero
by the structure of the mechanism leaves none. What is left to solve at each point is (A.8) of Spencer (thesis),

    [ M  G' ] [  vdot  ]   [     F     ]
    [ G  0  ] [ lambda ] = [ -Gdot v   ]

with the independent constraints, as for Lagrange's equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from fmilin.codegen.recorder import Recorder
from fmilin.model.symbolic_system import SymbolicSystem
from fmilin.models.mechanism.engine import MechanismEngine
from fmilin.models.mechanism.kinematics import coordinate_rates, displacement_of
from fmilin.models.mechanism.null_space import NullSpace
from fmilin.models.mechanism.outputs import Outputs
from fmilin.models.mechanism.system import Solution, State, System
from fmilin.models.shell import Quantity
from fmilin.signals import Signals

__all__ = ["symbolic_system"]


def symbolic_system(
    engine: MechanismEngine, outputs: Sequence[Quantity], observed: Sequence[Quantity]
) -> SymbolicSystem:
    """Return the equations of a mechanism in symbols.

    Masses, lengths and stiffnesses are numbers in it: the system has no parameters. Gaps and slips of loops, reactions
    that are determined, and whatever the constraints observe are further named quantities.

    Parameters
    ----------
    engine : MechanismEngine
    outputs, observed : sequence of Quantity
        Those of the model, and what its constraints observe.

    Returns
    -------
    SymbolicSystem
        With all inputs and the constraints of the engine.
    """
    evaluator, used = engine.evaluator(outputs, observed), engine.independence.all
    system = evaluator.system
    recorder = Recorder()
    x = [sympy.Symbol(name, real=True) for name in engine.states.names]
    u = [sympy.Symbol(name, real=True) for name in engine.inputs.names]
    unknowns = _unknowns(engine)
    w = recorder.numbers([sympy.Symbol(name, real=True) for name in unknowns])
    state = evaluator.state(recorder.numbers(x), recorder.numbers(u))
    solution = _solution(system, used, state, w)
    names = _further(engine)
    further = Outputs(system, [engine.available[name] for name in names])  # of kinds that add no markers
    rates = coordinate_rates(system.tree, state.q, state.v)
    seen = recorder.expressions(evaluator.outputs.values(solution))
    named = dict(zip(names, recorder.expressions(further.values(solution)), strict=True))
    watched = recorder.expressions(evaluator.observing.values(solution))
    named |= {quantity.signal.name: e for quantity, e in zip(observed, watched, strict=True)}
    matrix, right = (recorder.expressions(a) for a in _saddle_point(state, used))
    slopes = recorder.expressions(_slopes(system, used, solution))
    derivatives = (*recorder.expressions(rates), *recorder.expressions(solution.v_dot))
    needed = [*matrix.ravel(), *right, *slopes.ravel(), *derivatives, *seen, *named.values()]
    return SymbolicSystem(
        name=engine.info.name,
        time=sympy.Symbol("time", real=True),
        states=tuple(x),
        inputs=tuple(u),
        parameters={},
        derivatives=derivatives,
        outputs=tuple(seen),
        state_signals=engine.states,
        input_signals=engine.inputs,
        output_signals=Signals(quantity.signal for quantity in outputs),
        parameter_signals=Signals(()),
        unknowns=tuple(sympy.Symbol(name, real=True) for name in unknowns),
        matrix=tuple(tuple(row) for row in matrix),
        right_hand_side=tuple(right),
        constraints=tuple(engine.constraints),
        extra_names=named,
        intermediate=recorder.needed_by(needed),
        slopes=tuple(tuple(row) for row in slopes),
        independent=engine.independent,
    )


def _unknowns(engine: MechanismEngine) -> list[str]:
    """Return the names of accelerations and multipliers."""
    n_q, bonds = engine.system.tree.n_q, [engine.system.bonds[i] for i in engine.independence.all]
    return [
        *(f"der({name})" for name in engine.states.names[n_q:]),
        *(f"{bond.of}.reaction[{bond.index}]" for bond in bonds),
    ]


def _solution(system: System, used: Any, state: State, w: Any) -> Solution:
    """Return a solution whose accelerations and multipliers are symbols."""
    n = system.tree.n
    multipliers = np.zeros(len(system.bonds), dtype=object)
    multipliers[used] = w[n:]
    A = state.A + system.tree.above @ (state.at.S * w[:n, None])
    none = np.zeros((n, 0))
    return Solution(state, NullSpace(state.M, none, none, None), used, w[:n], multipliers, A)


def _saddle_point(state: State, used: Any) -> tuple[Any, Any]:
    G = state.G[used]
    zero = np.zeros((len(used), len(used)))
    return np.block([[state.M, G.T], [G, zero]]), np.concatenate((state.F, -state.c[used]))


def _slopes(system: System, used: Any, solution: Solution) -> Any:
    """Return d(r - W w)/d(x, u) by the recursions of section 4.3, shape (n + m, N + nu).

    They take a few operations for each entry, where differentiating the statements takes a few for each statement and
    each column.
    """
    columns, q = system.columns(solution), solution.state.q
    theta = displacement_of(system.tree, q, np.eye(len(q)))
    pushes = np.hstack((columns.rho_q @ theta, columns.rho_v, columns.rho_u))
    bends = np.hstack((columns.c_q[used] @ theta, columns.c_v[used], np.zeros((len(used), columns.rho_u.shape[1]))))
    return -np.vstack((pushes, bends))


def _further(engine: MechanismEngine) -> list[str]:
    """Return the names of what belongs to loops, wheels and skates."""
    lost = engine.independence.undetermined
    names = []
    for bond in engine.system.bonds:
        if bond.level == "position":
            names.append(f"{bond.of}.gap[{bond.index}]")
        names.append(f"{bond.of}.slip[{bond.index}]")
        if (bond.of, bond.index) not in lost:
            names.append(f"{bond.of}.reaction[{bond.index}]")
    return names
