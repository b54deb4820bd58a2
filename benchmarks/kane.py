"""Kane's equations: set-up and operating points against sympy's own linearizer, on the same objects in one run.

Set-up is everything from the ``KanesMethod`` object to the first numeric A and B: for sympy ``to_linearizer()`` and
its first ``linearize(op_point=..., A_and_B=True)``, for fmilin the conversion and the derivatives. A further point is,
for sympy, another such call of the same linearizer, with all rates given; for fmilin one for CasADi's virtual machine,
and one of many for it and for compiled C, which takes over by itself after some ten thousand points. Both have
linearized another system before, so that imports do not count. For the bicycle sympy needs Cramer's rule (with its
default, LU, the matrices hold NaN), and is spared M x' = A x, which it would solve for half an hour: NumPy does it.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sympy import symbols
from sympy.physics.mechanics import dynamicsymbols
from sympy.physics.mechanics.models import n_link_pendulum_on_cart

from benchmarks.tables import show
from fmilin.codegen.compiler import Compiler
from fmilin.model.interface import OperatingPoint
from fmilin.models.kane import Backend, KaneModel, Numerics
from fmilin.signals import FloatArray
from fmilin.systems.bicycle_model import BENCHMARK, whipple_equations
from tests.systems.torus import torus_equations

AT_ONCE = Numerics(Backend("casadi"))
COMPILED = Numerics(Backend("c", Compiler(use_cache=False)))
LINKS = (2, 3, 5, 8, 12, 16, 20)
SYMPY_LINKS = 3
"""The largest pendulum that sympy linearizes here; its time grows with the fourth power of n or so."""

SPEEDS = 100


def main() -> None:
    warm_up()
    against_sympy()
    bicycle_over_speed()
    scaling()


# ---------------------------------------------------------------------- against sympy


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[], Any]
    parameters: Mapping[str, float]
    start: Mapping[str, float]
    points: int
    """How many further points sympy is given the time for."""
    solver: str = "LU"


def pendulum_values(links: int) -> dict[str, float]:
    values = {f"l{i}": 1.0 - 0.02 * i for i in range(links)} | {f"m{i}": 1.0 + 0.1 * i for i in range(links + 1)}
    return values | {"g": 9.81}


def cases() -> list[Case]:
    torus = {"m": 1.0, "a": 1.0, "b": 0.2, "g": 9.81}
    return [
        Case("rolling torus", torus_equations, torus, {"q6": -1.2, "u2": -1.0, "u4": 1.2}, 3),
        *(
            Case(f"cart, {n} links", partial(n_link_pendulum_on_cart, n), pendulum_values(n), {"q1": 0.3}, 3)
            for n in (2, SYMPY_LINKS)
        ),
        Case(
            "Whipple bicycle",
            whipple_equations,
            BENCHMARK,
            {"rear_rate": -5 / 0.3, "front_rate": -5 / 0.35},
            1,
            "CRAMER",
        ),
    ]


def warm_up() -> None:
    kane = n_link_pendulum_on_cart(1)
    model = KaneModel.from_sympy(kane, parameters=pendulum_values(1), numerics=AT_ONCE)
    model.matrices()
    sympys_A(kane.to_linearizer(), point_for_sympy(kane, model, pendulum_values(1)))


def against_sympy() -> None:
    rows = []
    for case in cases():
        kane = case.make()
        begin = time.perf_counter()
        model = KaneModel.from_sympy(kane, parameters=case.parameters, start=case.start, numerics=AT_ONCE)
        A = model.matrices().A
        ours = time.perf_counter() - begin
        alone = median_of(model.matrices, 50)
        compiled = KaneModel.from_sympy(kane, parameters=case.parameters, start=case.start, numerics=COMPILED)
        each, each_compiled = (
            median_of(partial(m.matrices_along, [m.start] * SPEEDS), 15) / SPEEDS for m in (model, compiled)
        )
        theirs, further, B = sympy_times(case, kane, model)
        rows.append(
            [
                case.name,
                f"{len(model.states)}",
                f"{ours:.2f} s",
                f"{theirs:.2f} s",
                f"{theirs / ours:.1f}",
                f"{1e6 * alone:.0f} us",
                f"{1e6 * each:.0f} us",
                f"{1e6 * each_compiled:.0f} us",
                f"{further:.3f} s",
                f"{further / each_compiled:,.0f}",
                f"{np.max(np.abs(A - B)):.0e}",
            ]
        )
    show(
        "Kane's equations against sympy's linearizer",
        ["system", "states", "set-up", "sympy", "ratio", "point", "of 100", "in C", "sympy", "ratio", "difference"],
        rows,
        "set-up: from the KanesMethod object to the first numeric A. point: a further operating point, alone, and as "
        f"one of {SPEEDS} together, by the virtual machine and in compiled C. ratio: sympy's time over ours; targets: "
        "1 for the set-up, 1,000 for one of many in C. "
        "difference: largest between both A.",
    )


def sympy_times(case: Case, kane: Any, model: KaneModel) -> tuple[float, float, FloatArray]:
    """Return sympy's set-up, its time for a further point, and its A."""
    point = point_for_sympy(kane, model, case.parameters)
    begin = time.perf_counter()
    linearizer = kane.to_linearizer(linear_solver=case.solver)
    A = sympys_A(linearizer, point, case.solver)
    theirs = time.perf_counter() - begin
    return theirs, median_of(partial(sympys_A, linearizer, point, case.solver), case.points), A


def sympys_A(linearizer: Any, point: Mapping[Any, float], solver: str = "LU") -> FloatArray:
    if solver == "CRAMER":
        M, A, _ = (np.array(matrix, dtype=np.float64) for matrix in linearizer.linearize(op_point=point))
        return np.asarray(np.array(linearizer.perm_mat, dtype=np.float64).T @ np.linalg.solve(M, A))
    A, _ = linearizer.linearize(op_point=point, A_and_B=True)
    return np.array(A, dtype=np.float64)


def point_for_sympy(kane: Any, model: KaneModel, given: Mapping[str, float]) -> dict[Any, float]:
    t = dynamicsymbols._t
    states = [*kane.q, *kane.u]
    rates = model.evaluate(0.0, model.start.states, model.start.inputs).derivatives
    point: dict[Any, float] = {s.diff(t): rate for s, rate in zip(states, rates.tolist(), strict=True)}
    point |= dict(zip(states, model.start.states.tolist(), strict=True))
    for name, value in given.items():
        point[symbols(name)] = point[symbols(name, real=True)] = float(value)
    return point | {dynamicsymbols(name): 0.0 for name in model.inputs.names}


def median_of(work: Callable[[], object], rounds: int) -> float:
    samples = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        samples.append(time.perf_counter() - begin)
    return statistics.median(samples)


# ---------------------------------------------------------------------- the bicycle over speed


def bicycle_over_speed() -> None:
    kane = whipple_equations()
    model, first, cpu = first_matrices(kane, AT_ONCE)
    compiled, _, cpu_compiled = first_matrices(kane, COMPILED)
    points = []
    for speed in np.linspace(0.0, 10.0, SPEEDS):
        values = {"rear_rate": -speed / 0.3, "front_rate": -speed / 0.35}
        points.append(OperatingPoint(0.0, model.with_start(values).start.states, np.zeros(3)))
    together, in_c = (median_of(lambda m=m: m.matrices_along(points), 15) for m in (model, compiled))  # type: ignore[misc]
    alone = median_of(lambda: [model.matrices(point) for point in points], 5)
    rows = [
        ["from the KanesMethod object to the first A", f"{first:.2f} s", ""],
        ["CPU time of that", f"{cpu:.2f} s", verdict(cpu, 1.5, "s")],
        ["the same with C, CPU time of the compiler included", f"{cpu_compiled:.2f} s", ""],
        [f"{SPEEDS} speeds together", f"{1e3 * together:.1f} ms", verdict(1e3 * together, 30.0, "ms")],
        [f"{SPEEDS} speeds together in C", f"{1e3 * in_c:.1f} ms", ""],
        [f"{SPEEDS} speeds one by one", f"{1e3 * alone:.1f} ms", ""],
    ]
    show("Whipple bicycle", ["", "time", "target"], rows, "Nonlinear, 14 states; compiled anew.")


def first_matrices(kane: Any, numerics: Numerics) -> tuple[KaneModel, float, float]:
    """Return the bicycle, and what it took to its first matrices: seconds, and seconds of CPU."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    model = KaneModel.from_sympy(kane, name="bicycle", parameters=BENCHMARK, numerics=numerics)
    model.matrices()
    return model, time.perf_counter() - wall, cpu_seconds() - cpu


def cpu_seconds() -> float:
    """Return what this process and its finished children have used."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def verdict(value: float, limit: float, unit: str) -> str:
    return f"< {limit:g} {unit}: {'kept' if value < limit else 'MISSED'}"


# ---------------------------------------------------------------------- scaling


def scaling() -> None:
    rows = []
    for n in LINKS:
        begin = time.perf_counter()
        kane = n_link_pendulum_on_cart(n)
        derived = time.perf_counter() - begin
        begin = time.perf_counter()
        model = KaneModel.from_sympy(kane, parameters=pendulum_values(n), start={"q1": 0.3}, numerics=AT_ONCE)
        model.matrices()
        ready = time.perf_counter() - begin
        along = median_of(partial(model.matrices_along, [model.start] * SPEEDS), 5) / SPEEDS
        at_once = median_of(partial(model.evaluate, 0.0, model.start.states, model.start.inputs), 50)
        instructions = model.engine.form_functions._gradients.function.n_instructions()
        rows.append(
            [
                f"{n}",
                f"{2 * (n + 1)}",
                f"{derived:.2f} s",
                f"{ready:.2f} s",
                f"{ready / derived:.2f}",
                f"{instructions:,}",
                f"{1e6 * along:.0f} us",
                f"{1e6 * at_once:.0f} us",
            ]
        )
    show(
        "Pendulum of n links on a cart",
        ["n", "states", "sympy derives", "set-up", "ratio", "instructions", "A and B", "x'"],
        rows,
        "set-up: from the KanesMethod object to the first A, and as a ratio to sympy's derivation of it. A and "
        f"B: a further point, of {SPEEDS} together. x': one evaluation of the nonlinear model.",
    )
