"""Linear models at many points: compiled code against the recursion, and when which is taken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from benchmarks.mechanism import chain_of
from fmilin.ground.errors import NumericalError, UsageError
from fmilin.native.batch_graph import batch_graph
from fmilin.native.mechanism import (
    Body,
    Joint,
    JointForce,
    Mechanism,
    MechanismDescription,
    PointSpring,
    Sensor,
    Skate,
    Torque,
    along,
)
from fmilin.native.mechanism.linear import Choice, LocalForm, Matrices, MechanismEquations, matrices_of
from fmilin.native.mechanism.system import Solution
from fmilin.native.systems import double_wishbone, four_bar, slider_crank
from tests.native.mechanism.builders import five_bar_chain
from tests.native.mechanism.test_linear import moving

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
    monkeypatch.setattr(along, "FAR", 0.5)
    counts: list[int] = []

    def recursion(equations: MechanismEquations, solution: Solution, choice: Choice) -> LocalForm:
        counts.append(len(solution.v_dot))
        return LocalForm(equations, solution, choice)

    monkeypatch.setattr(along, "LocalForm", recursion)
    require_same(chain.matrices_along(points, compiled=True), expected)
    assert sum(counts) > 0


def test_a_singular_choice_is_refused_by_both() -> None:
    bar = Mechanism(five_bar_chain())
    point = bar.start
    for compiled in (True, False):
        with pytest.raises((NumericalError, UsageError)):
            bar.matrices_along([point], independent=["q1", "v1"], compiled=compiled)


def test_compiled_from_some_hundred_points_on(monkeypatch: pytest.MonkeyPatch) -> None:
    bar = Mechanism(five_bar_chain())
    monkeypatch.setattr(along, "COMPILED_FROM", 8)
    taken: list[bool] = []

    def recursion(*arguments: Any, **options: Any) -> Matrices:
        taken.append(True)
        return matrices_of(*arguments, **options)

    monkeypatch.setattr(along, "matrices_of", recursion)
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
    bar = Mechanism(five_bar_chain())
    monkeypatch.setattr(along, "COMPILED_FROM", 1)
    assert bar.matrices_along([bar.start] * 3).A.shape == (3, 4, 4)
    with pytest.raises(UsageError, match="no compiled code for 'five_bar'"):
        bar.matrices_along([bar.start], compiled=True)


def test_other_arguments_are_refused() -> None:
    wishbone = double_wishbone()
    with pytest.raises(UsageError, match="no point"):
        wishbone.matrices_along([])
    for threads in (0, 1.5, True):
        with pytest.raises(UsageError, match="threads="):
            wishbone.matrices_along([wishbone.start], threads=threads)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="it from values by name"):
        wishbone.matrices_along([four_bar().start])


def test_a_mechanism_that_does_not_move_has_matrices_of_no_size() -> None:
    still = Mechanism(MechanismDescription("still", [Body("b", 1.0)], [Joint("j", "fixed", "ground", "b")]))
    assert still.matrices_along([still.start] * 2, compiled=False).A.shape == (2, 0, 0)
