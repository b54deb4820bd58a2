"""Linear models at many points: compiled code against the recursion, and when which is taken.

The same code computes with any numbers: a recorder of operations turns a mechanism into straight-line code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from benchmarks.mechanism import chain_of
from fmilin.codegen import compiler, system_functions
from fmilin.codegen.compiler import CompilationBudget
from fmilin.errors import NumericalError, UsageError
from fmilin.model.interface import TangentBatch
from fmilin.models import batch_graph as batch_graph_module
from fmilin.models.batch_graph import batch_graph
from fmilin.models.mechanism import (
    Body,
    Joint,
    JointForce,
    Mechanism,
    MechanismDescription,
    PointSpring,
    Sensor,
    Skate,
    Torque,
)
from fmilin.models.mechanism import (
    mechanism_evaluator as evaluator,
)
from fmilin.models.mechanism.local_form import Choice
from fmilin.models.mechanism.multibody_system import System
from fmilin.models.mechanism.recursions import coordinate_rates
from fmilin.signals import FloatArray
from fmilin.systems import double_wishbone, four_bar, slider_crank
from tests.models.mechanism.builders import Floats, everything, five_bar_chain
from tests.models.mechanism.recursion import newton_euler
from tests.models.mechanism.test_linear import moving

MATRICES = ("A", "B", "C", "D", "T", "f0", "derivatives", "outputs", "rates", "values")


def at_random(mechanism: Mechanism, count: int) -> list[fl.OperatingPoint]:
    return [moving(mechanism, seed) for seed in range(count)]


def require_same(mine: Any, theirs: Any, rtol: float = 1e-10) -> None:
    for name in MATRICES:
        a, b = getattr(mine, name), getattr(theirs, name)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * max(1.0, np.abs(b).max(initial=0.0)), err_msg=name)


def five_bar() -> Mechanism:
    return Mechanism(five_bar_chain())


def rolling() -> Mechanism:
    """A ball joint, a skate that must not slip, a spring, forces and sensors."""
    bodies = [Body("sled", 2.0, (0.1, 0, 0.05), (0.1, 0.2, 0.3)), Body("mast", 1.0, (0, 0.1, 0.4), (0.2, 0.2, 0.1))]
    joints = [Joint("ice", "planar", "ground", "sled"), Joint("ball", "spherical", "sled", "mast")]
    return Mechanism(
        MechanismDescription(
            "rolling",
            bodies,
            joints,
            skates=[Skate("blade", "sled", (0.2, 0, 0), (0, 1, 0))],
            springs=[PointSpring("stay", "sled", "mast", (0.3, 0, 0), (0, 0, 0.5), 40.0, 0.2, 1.5)],
            inputs=[JointForce("push", "ice", 0, start=0.5), Torque("turn", "mast", (0, 0, 1), "body", start=0.2)],
            sensors=[
                Sensor("tip", "accelerometer", "mast", (0, 0, 0.7), (1, 0, 0)),
                Sensor("held", "reaction", "blade", coordinate=0),
                Sensor("stretch", "distance", "stay"),
            ],
            gravity=(0, 0, -9.81),
        )
    )


@pytest.mark.parametrize("make", [double_wishbone, five_bar, rolling])
def test_compiled_code_is_the_recursion(make: Callable[[], Mechanism]) -> None:
    whole = make()
    points = at_random(whole, 11)
    recursion = whole.matrices_along(points, compiled=False)
    require_same(whole.matrices_along(points, compiled=True), recursion)
    require_same(whole.matrices_along(points, compiled=True, threads=2), recursion)
    require_same(whole.matrices_along(points, compiled=False, threads=2), recursion)


def test_many_points_are_evaluated_by_compiled_code_as_soon_as_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    crank = slider_crank()
    points = at_random(crank, 11)
    states, inputs = (np.array([getattr(point, name) for point in points]) for name in ("states", "inputs"))
    times = np.zeros(len(points))
    recursion = crank.evaluate_points(times, states, inputs)
    monkeypatch.setattr(CompilationBudget, "count_toward_compilation", lambda *_, **__: True)
    slopes = crank.matrices_along(points)
    compiled = crank.evaluate_points(times, states, inputs)
    for name in ("derivatives", "outputs", "residuals"):
        mine, theirs = getattr(compiled, name), getattr(recursion, name)
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max(initial=1e-3))
    assert compiled.derivatives.tobytes() == slopes.rates.tobytes()


def test_a_point_of_a_compiled_chain_has_the_linear_model_of_the_recursion(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = Mechanism(chain_of(4))
    (point,) = at_random(chain, 1)
    order = chain.states.names[::-1]
    recursion, reordered = fl.linearize(chain, point), fl.linearize(chain, point, independent=order)
    monkeypatch.setattr(CompilationBudget, "count_toward_compilation", lambda *_, **__: True)
    slopes = chain.matrices_along([point])
    assert chain.is_compiled_for_many_points
    alone = chain.evaluate(0.0, point.states, point.inputs)
    assert alone.derivatives.tobytes() == slopes.rates[0].tobytes()
    for expected, found in (
        (recursion, fl.linearize(chain, point)),
        (reordered, fl.linearize(chain, point, independent=order)),
    ):
        assert found.states.names == expected.states.names
        assert found.warnings == expected.warnings
        for name in "ABCDT":
            mine, theirs = getattr(found, name), getattr(expected, name)
            np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-11 * np.abs(theirs).max(initial=1e-3))
        assert found.accuracy.A <= 1e-8


def test_named_coordinates_and_a_choice_of_inputs_and_outputs() -> None:
    crank = slider_crank()
    some = crank.with_interface([], ["energy", "der(slider.v)"])
    points = [replace(p, inputs=some.start.inputs) for p in at_random(crank, 3)]
    mine, theirs = (some.matrices_along(points, independent=["w", "phi"], compiled=way) for way in (True, False))
    assert mine.B.shape == (3, 2, 0)
    require_same(mine, theirs)


def test_open_chains_keep_all_states() -> None:
    chain = Mechanism(chain_of(5))
    points = at_random(chain, 5)
    require_same(chain.matrices_along(points, compiled=True), chain.matrices_along(points, compiled=False))


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
def test_a_point_that_is_lost_leaves_the_others_of_an_open_chain() -> None:
    """The compiled numbers of such a point are the recursion's; T is the same array for all points there."""
    chain = Mechanism(chain_of(3))
    x = chain.start.states.copy()
    x[-1] = 1e200
    found = chain.matrices_along([chain.start, chain.start.with_states(x)], compiled=True)
    require_same(found[:1], chain.matrices_along([chain.start], compiled=False))
    assert not np.isfinite(found.f0[1]).all()


def test_every_point_is_that_of_linearize() -> None:
    crank = slider_crank()
    points = fl.operating_points(crank, {"phi": np.linspace(0.3, 1.2, 4), "w": 0.7})
    names = fl.linearize(crank, points[0]).states.names
    found = crank.matrices_along(points, independent=names, compiled=True)
    for i, point in enumerate(points):
        lin = fl.linearize(crank, point, independent=names)
        np.testing.assert_allclose(found.A[i], lin.A, rtol=1e-9, atol=1e-9 * np.abs(lin.A).max())
        np.testing.assert_allclose(found.f0[i], lin.f0, rtol=1e-9, atol=1e-9)


def test_the_recursion_has_the_last_word_close_to_a_singular_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = Mechanism(five_bar_chain())
    points = at_random(chain, 40)
    expected = chain.matrices_along(points, compiled=False)
    monkeypatch.setattr(batch_graph_module, "MAX_DEPENDENT_DERIVATIVE", 0.5)
    counts: list[int] = []
    recursion = chain._many_points._recursion

    def counted(x: FloatArray, u: FloatArray, choice: Choice) -> TangentBatch:
        counts.append(len(x))
        return recursion(x, u, choice)

    monkeypatch.setattr(chain._many_points, "_recursion", counted)
    require_same(chain.matrices_along(points, compiled=True), expected)
    assert sum(counts) > 0


def test_a_singular_choice_is_refused_by_both() -> None:
    bar = Mechanism(five_bar_chain())
    point = bar.start
    for compiled in (True, False):
        with pytest.raises((NumericalError, UsageError)):
            bar.matrices_along([point], independent=["q1", "v1"], compiled=compiled)


def for_nothing(monkeypatch: pytest.MonkeyPatch, points: int) -> None:
    """Let compiled code cost no more than so many points by the recursion."""
    for price in ("PRINT_SECONDS_PER_INSTRUCTION", "COMPILER_START_SECONDS", "COMPILE_SECONDS_PER_INSTRUCTION"):
        monkeypatch.setattr(compiler, price, 0.0)
    monkeypatch.setattr(system_functions, "PRINT_SECONDS_PER_INSTRUCTION", 0.0)
    monkeypatch.setattr(compiler, "TRACE_SECONDS_PER_PAIR", 1.0)
    monkeypatch.setattr(evaluator, "SECONDS_PER_STATE", len(five_bar().states) / (points - 0.5))


def test_a_few_hundred_points_do_not_outweigh_the_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bar = Mechanism(five_bar_chain())
    graph = batch_graph(bar, ())
    assert graph is not None
    assert not any(bar._many_points.compilation.pays(300) for _ in range(10))
    assert bar._many_points.compilation.pays(100_000)
    assert graph.stacks.kind == "casadi", "counted, but nothing was computed"
    graph.stacks.compile()
    again = Mechanism(five_bar_chain())  # as in another process, where it is known to be compiled already
    assert again._many_points.compilation.pays(10_000)


def test_compiled_from_so_many_points_on_that_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    for_nothing(monkeypatch, 8)
    bar = Mechanism(five_bar_chain())
    taken: list[bool] = []

    recursion = bar._many_points._recursion

    def noted(x: FloatArray, u: FloatArray, choice: Choice) -> TangentBatch:
        taken.append(True)
        return recursion(x, u, choice)

    monkeypatch.setattr(bar._many_points, "_recursion", noted)
    points = at_random(bar, 5)
    first = bar.matrices_along(points)
    assert taken == [True]
    second = bar.matrices_along(points)
    assert taken == [True]
    require_same(second, first)
    graph = batch_graph(bar, ())
    assert graph is not None
    assert graph.stacks.kind == "c"
    assert batch_graph(bar, ()) is graph


def test_without_a_compiler_the_recursion_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    for_nothing(monkeypatch, 1)
    bar = Mechanism(five_bar_chain())
    assert bar.matrices_along([bar.start] * 3).A.shape == (3, 4, 4)
    with pytest.raises(UsageError, match="no compiled code for 'five_bar'"):
        bar.matrices_along([bar.start], compiled=True)


def test_other_arguments_are_refused() -> None:
    wishbone = double_wishbone()
    with pytest.raises(UsageError, match="No operating point was given"):
        wishbone.matrices_along([])
    for threads in (0, 1.5, True):
        with pytest.raises(UsageError, match="threads="):
            wishbone.matrices_along([wishbone.start], threads=threads)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="from values by name"):
        wishbone.matrices_along([four_bar().start])


def test_a_mechanism_that_does_not_move_has_matrices_of_no_size() -> None:
    still = Mechanism(MechanismDescription("still", [Body("b", 1.0)], [Joint("j", "fixed", "ground", "b")]))
    assert still.matrices_along([still.start] * 2, compiled=False).A.shape == (2, 0, 0)


class Tape:
    """Statements ``a[i] = a[j] op a[k]``, in their order."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, tuple[int | float, ...]]] = []

    def add(self, operation: str, *operands: int | float) -> Number:
        self.statements.append((operation, operands))
        return Number(self, len(self.statements) - 1)

    def run(self, values: Floats) -> list[float]:
        """Execute the statements; the first ones read the arguments."""
        a: list[float] = []
        for operation, operands in self.statements:
            if operation == "argument":
                a.append(float(values[int(operands[0])]))
                continue
            x = [a[o] if isinstance(o, int) else o for o in operands]
            match operation:
                case "+":
                    a.append(x[0] + x[1])
                case "-":
                    a.append(x[0] - x[1])
                case "*":
                    a.append(x[0] * x[1])
                case "/":
                    a.append(x[0] / x[1])
                case _:
                    a.append(getattr(math, operation)(x[0]))
        return a


class Number:
    """A value on a tape; zeros and ones leave no statement."""

    def __init__(self, tape: Tape, place: int) -> None:
        self.tape, self.place = tape, place

    def _with(self, operation: str, other: Any, *, swapped: bool = False) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        there = other.place if isinstance(other, Number) else float(other)
        pair = (there, self.place) if swapped else (self.place, there)
        return self.tape.add(operation, *pair)

    def __add__(self, other: Any) -> Any:
        return self if not isinstance(other, Number | np.ndarray) and other == 0 else self._with("+", other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Number | np.ndarray) and other in (0, 1):
            return self if other == 1 else 0.0
        return self._with("*", other)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Any:
        return self if not isinstance(other, Number | np.ndarray) and other == 0 else self._with("-", other)

    def __rsub__(self, other: Any) -> Any:
        return self._with("-", other, swapped=True)

    def __truediv__(self, other: Any) -> Any:
        return self._with("/", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with("/", other, swapped=True)

    def __neg__(self) -> Any:
        return self._with("-", 0.0, swapped=True)

    def __pow__(self, power: int) -> Any:
        assert power in (2, 3)
        return self * self if power == 2 else self * self * self

    def sin(self) -> Number:
        return self.tape.add("sin", self.place)

    def cos(self) -> Number:
        return self.tape.add("cos", self.place)

    def sqrt(self) -> Number:
        return self.tape.add("sqrt", self.place)


def recorded(sizes: tuple[int, ...]) -> tuple[Tape, list[Any]]:
    """Return a tape and arrays of its arguments."""
    tape = Tape()
    everything_in = np.array([tape.add("argument", i) for i in range(sum(sizes))], dtype=object)
    return tape, np.split(everything_in, np.cumsum(sizes)[:-1])


def replayed(tape: Tape, array: Any, values: Floats) -> Floats:
    a = tape.run(values)
    flat = [a[x.place] if isinstance(x, Number) else float(x) for x in np.asarray(array).ravel()]
    return np.array(flat).reshape(np.shape(array))


@pytest.mark.parametrize("make", [five_bar_chain, everything])
def test_the_equations_become_straight_line_code(make: Any) -> None:
    system = System(make())
    n_q, n, nu = system.tree.n_q, system.tree.n, len(system.description.inputs)
    tape, (q, v, u) = recorded((n_q, n, nu))
    symbolic = system.state(q, v, u)
    rates, gaps = coordinate_rates(system.tree, q, v), system.gaps(symbolic)
    values = np.random.default_rng(1).normal(size=n_q + n + nu)
    state = system.state(values[:n_q], values[n_q : n_q + n], values[n_q + n :])
    for name in ("M", "G", "F", "c"):
        expected = getattr(state, name)
        assert np.abs(replayed(tape, getattr(symbolic, name), values) - expected).max() < 1e-11 * np.abs(expected).max()
    assert np.abs(replayed(tape, gaps, values) - system.gaps(state)).max() < 1e-12
    assert (
        np.abs(replayed(tape, rates, values)[system.tree.screw_coordinates] - state.v[system.tree.screw_speeds]).max()
        == 0
    )


def test_newton_euler_from_link_to_link_becomes_straight_line_code() -> None:
    system = System(everything(closed=False))
    n_q, n = system.tree.n_q, system.tree.n
    tape, (q, v, a) = recorded((n_q, n, n))
    tau = newton_euler(system.tree, q, v, a, system.gravity)
    values = np.random.default_rng(1).normal(size=n_q + 2 * n)
    parts = np.split(values, [n_q, n_q + n])
    expected = newton_euler(system.tree, parts[0], parts[1], parts[2], system.gravity)
    assert np.abs(replayed(tape, tau, values) - expected).max() < 1e-11 * np.abs(expected).max()
