"""The equations of a mechanism as a graph, for compiled code: the recursions themselves, written down while they run.

Nothing is derived anew and nothing is expanded. The code of the other modules runs once with numbers that are nodes of
a graph (:mod:`fmilin.numerics.codegen.scalars`): products, sums, sines become nodes, and what is zero by the structure
of the mechanism leaves none. What is left to solve at each point is (A.8) of Spencer (thesis),

    [ M  G' ] [  vdot  ]   [     F     ]
    [ G  0  ] [ lambda ] = [ -Gdot v   ]

with the independent constraints, as for Lagrange's equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from fmilin.ground.signals import Signals
from fmilin.native.mechanism.evaluator import MechanismEvaluator
from fmilin.native.mechanism.independence import Independence
from fmilin.native.mechanism.outputs import Outputs
from fmilin.native.mechanism.quantities import available, input_signals, state_signals
from fmilin.native.mechanism.recursions import displacement_of
from fmilin.native.mechanism.system import Solution, State, System, rates_of
from fmilin.native.native_engine import Quantity
from fmilin.numerics.codegen.implicit import ImplicitSystem
from fmilin.numerics.codegen.scalars import column_of, matrix_of, scalars


def in_graph(
    evaluator: MechanismEvaluator, independence: Independence, outputs: Sequence[Quantity], observed: Sequence[Quantity]
) -> ImplicitSystem:
    """Return the equations as a graph with numbers for parameters; gaps, slips and reactions are named quantities."""
    system = evaluator.system
    states, inputs = state_signals(system), input_signals(system)
    unknowns = _unknowns(system, independence, states)
    x, u, w = (ca.SX.sym(*of) for of in (("x", len(states)), ("u", len(inputs)), ("w", len(unknowns))))
    state = evaluator.state(scalars(x), scalars(u))
    solution = _solution(system, independence, state, scalars(w))
    names, every = _further(system, independence), available(system, states, inputs)
    further = Outputs(system, [every[name] for name in names])  # of kinds that add no markers
    named = dict(zip(names, column_of(further.values(solution)).elements(), strict=True))
    seen = column_of(evaluator.observing.values(solution)).elements()
    named |= {quantity.signal.name: e for quantity, e in zip(observed, seen, strict=True)}
    matrix, right = _saddle_point(state, independence.all)
    return ImplicitSystem(
        name=system.description.name,
        time=ca.SX.sym("time"),
        states=x,
        inputs=u,
        parameters=ca.SX(0, 1),
        unknowns=w,
        unknown_names=tuple(unknowns),
        matrix=matrix_of(matrix),
        right_hand_side=column_of(right),
        derivatives=column_of(rates_of(system, solution)),
        outputs=column_of(evaluator.outputs.values(solution)),
        further=named,
        slopes=matrix_of(_slopes(system, independence, solution)),
        state_signals=states,
        input_signals=inputs,
        output_signals=Signals(quantity.signal for quantity in outputs),
        parameter_signals=Signals(()),
        parameter_values=np.empty(0),
    )


def _unknowns(system: System, independence: Independence, states: Signals) -> list[str]:
    """Return the names of accelerations and multipliers."""
    n_q, loop_constraints = system.tree.n_q, [system.loop_constraints[i] for i in independence.all]
    return [
        *(f"der({name})" for name in states.names[n_q : n_q + system.tree.n]),
        *(f"{loop.of}.reaction[{loop.index}]" for loop in loop_constraints),
    ]


def _solution(system: System, independence: Independence, state: State, w: Any) -> Solution:
    """Return a solution whose accelerations and multipliers are symbols."""
    used = independence.all
    n = system.tree.n
    multipliers = np.zeros(len(system.loop_constraints), dtype=object)
    multipliers[used] = w[n:]
    A = state.A + system.tree.above @ (state.at.S * w[:n, None])
    return Solution(state, used, w[:n], multipliers, A)


def _saddle_point(state: State, used: Any) -> tuple[Any, Any]:
    G = state.G[used]
    zero = np.zeros((len(used), len(used)))
    return np.block([[state.M, G.T], [G, zero]]), np.concatenate((state.F, -state.c[used]))


def _slopes(system: System, independence: Independence, solution: Solution) -> Any:
    """Return d(r - W w)/d(x, u), (n + m, N + nu), by section 4.3: cheaper than differentiating every statement."""
    used = independence.all
    columns, q = system.columns(solution), solution.state.q
    theta = displacement_of(system.tree, q, np.eye(len(q)))
    inputs = len(system.description.inputs)
    by_u = np.hstack((columns.rho_u[:, inputs:], columns.rho_u[:, :inputs]))  # activations are states
    pushes = np.hstack((columns.rho_q @ theta, columns.rho_v, by_u))
    bends = np.hstack((columns.c_q[used] @ theta, columns.c_v[used], np.zeros((len(used), columns.rho_u.shape[1]))))
    return -np.vstack((pushes, bends))


def _further(system: System, independence: Independence) -> list[str]:
    """Return the names of what belongs to loops, wheels and skates."""
    lost = independence.undetermined
    names = []
    for loop in system.loop_constraints:
        if loop.level == "position":
            names.append(f"{loop.of}.gap[{loop.index}]")
        names.append(f"{loop.of}.slip[{loop.index}]")
        if (loop.of, loop.index) not in lost:
            names.append(f"{loop.of}.reaction[{loop.index}]")
    return names
