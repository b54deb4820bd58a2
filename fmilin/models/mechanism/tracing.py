"""The equations of a mechanism as a graph, for compiled code: the recursions themselves, written down while they run.

Nothing is derived anew and nothing is expanded. The code of the other modules runs once with numbers that are nodes of
a graph (:mod:`fmilin.codegen.scalars`): products, sums, sines become nodes, and what is zero by the structure of the
mechanism leaves none. What is left to solve at each point is (A.8) of Spencer (thesis),

    [ M  G' ] [  vdot  ]   [     F     ]
    [ G  0  ] [ lambda ] = [ -Gdot v   ]

with the independent constraints, as for Lagrange's equations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from fmilin.codegen.implicit import ImplicitSystem
from fmilin.codegen.scalars import column_of, matrix_of, scalars
from fmilin.models.mechanism.kinematics import coordinate_rates, displacement_of
from fmilin.models.mechanism.null_space import NullSpace
from fmilin.models.mechanism.outputs import Outputs
from fmilin.models.mechanism.system import Solution, State
from fmilin.signals import Signals

if TYPE_CHECKING:
    from fmilin.models.mechanism.model import Mechanism

__all__ = ["in_graph"]


def in_graph(model: Mechanism) -> ImplicitSystem:
    """Return the equations of a mechanism as a graph.

    Masses, lengths and stiffnesses are numbers in it: the system has no parameters. Gaps and slips of loops, reactions
    that are determined, and whatever the constraints observe are further named quantities.

    Parameters
    ----------
    model : Mechanism
    """
    system, unknowns = model.system, _unknowns(model)
    x, u, w = (ca.SX.sym(*of) for of in (("x", len(model.states)), ("u", len(model.inputs)), ("w", len(unknowns))))
    state = model.state(scalars(x), scalars(u))
    solution = _solution(model, state, scalars(w))
    names = _further(model)
    further = Outputs(system, [model.available[name] for name in names])  # of kinds that add no markers
    named = dict(zip(names, column_of(further.values(solution)).elements(), strict=True))
    observed = column_of(model.observed_values(solution)).elements()
    named |= dict(zip(model.constraints.observed, observed, strict=True))
    matrix, right = _saddle_point(state, model.independence.all)
    rates = coordinate_rates(system.tree, state.q, state.v)
    return ImplicitSystem(
        name=model.info.name,
        time=ca.SX.sym("time"),
        states=x,
        inputs=u,
        parameters=ca.SX(0, 1),
        unknowns=w,
        unknown_names=tuple(unknowns),
        matrix=matrix_of(matrix),
        right_hand_side=column_of(right),
        derivatives=ca.vertcat(column_of(rates), column_of(solution.v_dot)),
        outputs=column_of(model.output_values(solution)),
        further=named,
        slopes=matrix_of(_slopes(model, solution)),
        state_signals=model.states,
        input_signals=model.inputs,
        output_signals=model.outputs,
        parameter_signals=Signals(()),
        parameter_values=np.empty(0),
    )


def _unknowns(model: Mechanism) -> list[str]:
    """Return the names of accelerations and multipliers."""
    n_q, bonds = model.system.tree.n_q, [model.system.bonds[i] for i in model.independence.all]
    return [
        *(f"der({name})" for name in model.states.names[n_q:]),
        *(f"{bond.of}.reaction[{bond.index}]" for bond in bonds),
    ]


def _solution(model: Mechanism, state: State, w: Any) -> Solution:
    """Return a solution whose accelerations and multipliers are symbols."""
    system, used = model.system, model.independence.all
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


def _slopes(model: Mechanism, solution: Solution) -> Any:
    """Return d(r - W w)/d(x, u) by the recursions of section 4.3, shape (n + m, N + nu).

    They take a few operations for each entry, where differentiating the statements takes a few for each statement and
    each column.
    """
    system, used = model.system, model.independence.all
    columns, q = system.columns(solution), solution.state.q
    theta = displacement_of(system.tree, q, np.eye(len(q)))
    pushes = np.hstack((columns.rho_q @ theta, columns.rho_v, columns.rho_u[:, model.kept_inputs]))
    bends = np.hstack((columns.c_q[used] @ theta, columns.c_v[used], np.zeros((len(used), len(model.kept_inputs)))))
    return -np.vstack((pushes, bends))


def _further(model: Mechanism) -> list[str]:
    """Return the names of what belongs to loops, wheels and skates."""
    lost = model.independence.undetermined
    names = []
    for bond in model.system.bonds:
        if bond.level == "position":
            names.append(f"{bond.of}.gap[{bond.index}]")
        names.append(f"{bond.of}.slip[{bond.index}]")
        if (bond.of, bond.index) not in lost:
            names.append(f"{bond.of}.reaction[{bond.index}]")
    return names
