"""Linear models of a mechanism at many points: by the recursion, and by compiled code where that pays.

The compiled code is the recursion written down as a graph while it runs, once, with numbers that are nodes of a graph
(:mod:`fmilin.numerics.codegen.scalars`): what is zero by the structure of the mechanism leaves none. What is left to
solve at each point is (A.8) of Spencer (thesis) with the independent constraints, as for Lagrange's equations:

    [M G'; G 0] (vdot; lambda) = (F; -Gdot v).

Where the configuration is close to singular the recursion has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any

import casadi as ca
import numpy as np

from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.signals import FloatArray, Signals
from fmilin.model.interface import Model, OperatingPoint, TangentStack
from fmilin.native.batch_graph import StatePartition, batch_graph
from fmilin.native.mechanism.evaluator import MechanismEvaluator
from fmilin.native.mechanism.independence import Independence
from fmilin.native.mechanism.linear import Choice
from fmilin.native.mechanism.outputs import Outputs
from fmilin.native.mechanism.quantities import available, input_signals, state_signals
from fmilin.native.mechanism.recursions import displacement_of
from fmilin.native.mechanism.system import Solution, State, System, rates_of
from fmilin.native.native_engine import Quantity
from fmilin.numerics.codegen.compiler import CompilationBudget
from fmilin.numerics.codegen.implicit import ImplicitSystem
from fmilin.numerics.codegen.scalars import column_of, matrix_of, scalars

POINT = 6e-6  # seconds that the recursion takes for a point among many, about, for each state
AT_ONCE = 256  # points that the recursion takes together
BLOCK = 32  # points whose slopes on all states are held at a time: what fits into the processor's cache
FAR = 1e6  # slopes of dependent states beyond this are looked at by the recursion


class ManyPoints:
    """The linear models of a mechanism, which counts its points; ``recursion`` takes states (k, N), inputs (k, nu)."""

    def __init__(self, model: Model, recursion: Callable[[FloatArray, FloatArray, Choice], TangentStack]) -> None:
        self._model, self._recursion = model, recursion
        n = max(len(model.states), 1)
        self._budget = CompilationBudget.of_equations(POINT * n, n)
        self._prices = self._further_prices()

    def __call__(
        self,
        x: FloatArray,
        u: FloatArray,
        choice: Choice,
        *,
        parameters: Mapping[str, float] = MappingProxyType({}),
        threads: int = 1,
        compiled: bool | None = None,
    ) -> TangentStack:
        """Return values, constraints and slopes along the states of a choice at points x (k, N) and u (k, nu)."""
        pays = self._pays(len(x)) if compiled is None else compiled
        partition = self._partition(OperatingPoint(0.0, x[0], u[0], parameters), choice) if pays else None
        if partition is None and compiled:
            raise UsageError(
                f"There is no compiled code for '{self._model.info.name}': it takes a C compiler (cc, gcc or clang on "
                "the PATH, or named by the environment variable CC) and the mechanism's own constraints. Leave out "
                "compiled=True."
            )
        if partition is not None and not partition.others:
            return self._compiled(partition, x, u, choice, threads)
        size = AT_ONCE if partition is None else BLOCK

        def work(first: int) -> TangentStack:
            some = slice(first, first + size)
            if partition is None:
                return self._recursion(x[some], u[some], choice)
            return self._compiled(partition, x[some], u[some], choice)

        with ThreadPoolExecutor(threads) as pool:
            return TangentStack.joined(list(pool.map(work, range(0, len(x), size))))

    def _pays(self, points: int) -> bool:
        """Count points; return whether compiled code is to be taken, for which is done what pays."""
        spent = self._budget.is_spent_by(points)
        while spent and (price := next(self._prices, None)) is not None:
            self._budget.add(price)
            spent = self._budget.is_spent_by(0)
        return spent

    def _further_prices(self) -> Iterator[float]:
        """Write the equations down, then yield what is to be paid for their code."""
        graph = batch_graph(self._model, ())
        yield from () if graph is None else graph.stacks.prices()

    def _partition(self, first: OperatingPoint, choice: Choice) -> StatePartition | None:
        """Return the compiled slopes; None where the recursion is to be taken."""
        graph = batch_graph(self._model, ())
        if graph is None or not graph.stacks.compile():
            return None
        try:
            return StatePartition(graph, self._model, choice.states, first)
        except NumericalError:  # the first point is singular: the recursion says how
            return None

    def _compiled(
        self, partition: StatePartition, x: FloatArray, u: FloatArray, choice: Choice, threads: int = 1
    ) -> TangentStack:
        along = partition.at(0.0, x, u, threads=threads)
        doubtful = np.flatnonzero(~(along.size <= FAR) | ~np.isfinite(along.stack.f).all(axis=1))
        if not len(doubtful):
            return along.tangents
        return along.tangents.corrected(doubtful, self._recursion(x[doubtful], u[doubtful], choice))


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
    used = independence.all
    G = state.G[used]
    matrix, right = np.block([[state.M, G.T], [G, np.zeros((len(used), len(used)))]]), (*state.F, *-state.c[used])
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
