"""Calls in a loop: a later point of an FMU is a batch of one, in few messages, and says what a first call says."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

import fmilin as fl
from fmilin import Evaluation
from fmilin.fmi.write import build_fmu
from fmilin.linearization import algorithm
from fmilin.systems import four_bar, furuta_pendulum
from tests.fmi.read.recorded import Recorded
from tests.shared import shared

MAX_FUNCTIONS = 180  # of fmilin, in one call at a point in motion

Build = Callable[[], fl.Model]


def written(build: Build) -> Path:
    return shared(f"loop_{build.__name__}.fmu", lambda path: build_fmu(build(), path))


@pytest.mark.parametrize(
    ("build", "name", "messages"),
    [
        (furuta_pendulum, "arm.q", 3),  # derivatives; a difference, and the same later; the point once more
        (four_bar, "phi", 5),  # besides, the points of the difference are solved for
    ],
)
def test_a_later_call_takes_few_messages_and_says_what_a_first_call_says(
    build: Build, name: str, messages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fl.load(written(build)) as model, fl.load(written(build)) as another:
        fl.linearize(model)
        fl.linearize(model)
        for value in (0.2, 0.4, 0.7):
            point = fl.operating_point(model, {name: value})
            recorded = Recorded(monkeypatch)
            again = fl.linearize(model, point)
            assert recorded.messages <= messages
            alone = fl.linearize(another.with_constraints(another.constraints.declared), point)
            assert again.states.names == alone.states.names
            assert again.warnings == alone.warnings
            assert again.point == alone.point
            assert again.method.derivatives == alone.method.derivatives == "exact"
            for matrix in ("A", "B", "C", "D", "T", "f0"):
                expected = getattr(alone, matrix)
                largest = np.abs(expected).max(initial=1e-12)
                np.testing.assert_allclose(getattr(again, matrix), expected, rtol=0, atol=1e-12 * largest)
            assert 0 < again.accuracy.A < 1e-9


def test_a_later_call_enters_few_functions() -> None:
    """Most of its time is that of Python: each function that is entered, with its few operations, takes some 2 us."""
    folder, entered = str(Path(fl.__file__).parent), [0]

    def count(frame: FrameType, event: str, _argument: object) -> None:
        entered[0] += event == "call" and frame.f_code.co_filename.startswith(folder)

    with fl.load(written(furuta_pendulum)) as model:
        points = [fl.operating_point(model, {"arm.q": 0.1 * i, "pendulum.v": 0.2}) for i in range(3)]
        for point in points:
            fl.linearize(model, point)
        sys.setprofile(count)
        try:
            fl.linearize(model, points[0])
        finally:
            sys.setprofile(None)
    assert entered[0] <= MAX_FUNCTIONS


def test_discrete_states_are_named_at_later_points_too_in_few_messages(
    zoo: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with fl.load(zoo("sectors")) as model:
        fl.linearize(model)
        fl.linearize(model)
        point = fl.operating_point(model, {"x": 0.7})
        recorded = Recorded(monkeypatch)
        linear = fl.linearize(model, point)
        assert recorded.messages <= 5  # derivatives, a difference, and the point once more, with the discrete states
        assert recorded.names.count("fmi2GetDirectionalDerivative") == 3
        recorded.clear()
        family = fl.sweep(model, {"x": np.linspace(0.1, 0.9, 200)})
        assert recorded.messages < 80
    assert [w.message for w in linear.warnings if w.kind == "held"] == [held_in(0)]
    np.testing.assert_allclose(linear.A, [[0, 1], [-2 * np.cos(0.7), -0.1]], rtol=1e-12)
    np.testing.assert_allclose(family.A[:, 1, 0], -2 * np.cos(np.linspace(0.1, 0.9, 200)), rtol=1e-12)
    for k in (0, 60, 199):
        assert [w.message for w in family[k].warnings if w.kind == "held"] == [held_in(0)]


@pytest.mark.parametrize("checks", ["standard", "none"])
def test_discrete_states_that_have_changed_since_are_named_as_they_are(checks: str, zoo: Callable[[str], Path]) -> None:
    with fl.load(zoo("sectors")) as model:
        points = [fl.operating_point(model, {"x": x}) for x in (0.2, 0.3, 1.5, 0.7, 2.5, 2.6, 2.7, -0.5)]
        for point in (*points, *points):
            linear = fl.linearize(model, point, checks=checks)
            sector = int(np.floor(point.states[0]))
            assert [w.message for w in linear.warnings if w.kind == "held"] == [held_in(sector)]
        family = fl.sweep(model, {"x": np.linspace(0.05, 2.95, 59)}, checks=checks)
        for one in family:
            sector = int(np.floor(one.y0[0]))
            assert [w.message for w in one.warnings if w.kind == "held"] == [held_in(sector)]


def held_in(sector: int) -> str:
    return f"Discrete variables keep their values at the point, as between two events: gear = 2, sector = {sector}."


def test_batches_of_one_that_are_in_vain_are_tried_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """An output drifts from call to call, which is noticed at each of them."""
    drifts, tries = [0], [0]

    def drift(evaluation: Evaluation) -> Evaluation:
        drifts[0] += 1
        return Evaluation(evaluation.derivatives, evaluation.outputs + 1e-9 * drifts[0], evaluation.residuals)

    def linearize_batch(*arguments: object) -> object:
        tries[0] += 1
        return original_batch(*arguments)  # type: ignore[arg-type]

    with fl.load(written(furuta_pendulum)) as model:
        for _ in range(2):
            fl.linearize(model)
        kind = type(model)
        evaluate, evaluate_points, original_batch = kind.evaluate, kind.evaluate_points, algorithm.linearize_batch
        monkeypatch.setattr(kind, "evaluate", lambda *arguments: drift(evaluate(*arguments)))
        monkeypatch.setattr(kind, "evaluate_points", lambda *arguments: drift(evaluate_points(*arguments)))
        monkeypatch.setattr(algorithm, "linearize_batch", linearize_batch)
        remarks = [{warning.kind for warning in fl.linearize(model).warnings} for _ in range(40)]
        assert all("memory" in kinds for kinds in remarks)
        assert 1 <= tries[0] <= 6
        monkeypatch.undo()
        for _ in range(80):
            linear = fl.linearize(model)
        assert linear.method.evaluations < 8
        assert not linear.warnings
