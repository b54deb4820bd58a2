"""What becomes of a linear model when communication steps are dear: a first answer that says so, or a refusal.

Time is what the runs and steps that were taken cost, not a clock's.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import LinearModel, OperatingPoint, Stepping
from fmilin.cli.duration import how_far
from fmilin.errors import NumericalError, UsageError
from fmilin.fmi.read.stepped_model import SteppedFmu
from fmilin.identification import experiments
from fmilin.model.stepping import Response
from fmilin.signals import FloatArray
from tests.cosimulation_table import CASES, judged
from tests.fmus.stepped.make import Kind, build
from tests.identification.test_procedure import assert_same_transfer
from tests.identification.toys import Toy, oscillators

PLANT = oscillators((1.0, 2.3, 4.1))


class Dear(Toy):
    """A toy whose runs and steps cost so many seconds each."""

    def __init__(self, patch: pytest.MonkeyPatch, *, run: float = 0.0, step: float = 0.0) -> None:
        super().__init__(PLANT)
        self.seconds, self.prices, self.told = 0.0, (run, step), ""
        patch.setattr(experiments, "clock", lambda: self.seconds)

    def respond(self, point: OperatingPoint, inputs: FloatArray, step: float) -> Response:
        run, each = self.prices
        self.seconds += run + len(inputs) * each
        self.told = how_far(sys._getframe()) or self.told
        return super().respond(point, inputs, step)


def first_answer(linear: LinearModel) -> str:
    return " ".join(str(w) for w in linear.warnings if "first result" in str(w))


def budget_in(text: str) -> float:
    (number,) = re.findall(r"\(budget=(\d+)\)", text)
    return float(number)


@pytest.mark.parametrize("prices", [{"step": 6e-3}, {"run": 0.05, "step": 4e-3}, {"run": 0.12, "step": 3e-3}], ids=str)
def test_a_first_answer_is_right_and_says_what_it_lacks(
    prices: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = Dear(monkeypatch, **prices)
    linear = fl.linearize(toy)
    assert toy.seconds <= 20.0
    assert_same_transfer(linear, PLANT, 1e-7)
    assert "Experiments may take 20 s of processor time, which left out: " in first_answer(linear)
    full = Dear(monkeypatch, **prices)
    assert first_answer(fl.linearize(full, stepping=Stepping(budget=budget_in(first_answer(linear))))) == ""
    assert full.seconds <= budget_in(first_answer(linear))


def test_what_is_cheap_lacks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert first_answer(fl.linearize(Dear(monkeypatch, step=1e-3))) == ""


def test_what_takes_too_long_is_refused_at_once_with_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Dear(monkeypatch, run=0.1, step=0.05)
    with pytest.raises(
        NumericalError, match=r"would take about \d+ s more, for 2100 communication steps of 0\.05 s"
    ) as e:
        fl.linearize(toy)
    assert toy.steps < 30
    assert "or choose fewer inputs" in str(e.value)
    enough = Dear(monkeypatch, run=0.1, step=0.05)
    budget = float(re.findall(r"budget=(\d+)", str(e.value))[0])
    assert_same_transfer(fl.linearize(enough, stepping=Stepping(budget=budget)), PLANT, 1e-7)
    assert enough.seconds <= budget


def test_a_refusal_for_another_reason_says_what_was_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """In steps of 0.05 s an oscillation of 100 rad/s passes for a slow one; there is no time for other steps."""
    toy = Dear(monkeypatch, step=7e-3)
    toy.plant = oscillators((1.0, 100.0))
    with pytest.raises(NumericalError, match=r"which left out: steps of 0\.0125 s.*budget="):
        fl.linearize(toy)


@pytest.mark.parametrize("seconds", [5e-3, 7.5e-3, 1e-2])
def test_no_first_answer_is_wrong_without_a_word(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The FMUs of the table, each step of which takes so many seconds."""
    taken, respond = [0], SteppedFmu._response

    def counted(self: SteppedFmu, point: OperatingPoint, inputs: FloatArray, step: float) -> Response:
        taken[0] += len(inputs)
        return respond(self, point, inputs, step)

    monkeypatch.setattr(SteppedFmu, "_response", counted)
    monkeypatch.setattr(experiments, "clock", lambda: seconds * taken[0])
    for case in CASES:
        taken[0] = 0
        assert not judged(case, tmp_path).silent, case.name
        assert seconds * taken[0] <= 30.0, case.name


def test_states_that_can_be_set_are_displaced_in_the_first_step_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = fl.linearize(fl.load(build("order12", tmp_path, Kind(interface="ModelExchange"))))
    with fl.load(build("order12", tmp_path / "cs", Kind(flags=("-DSTALE_RATES",)))) as model:
        monkeypatch.setattr(experiments, "clock", lambda: 8e-3 * getattr(model, "steps"))  # noqa: B009
        linear = fl.linearize(model)
    assert "which left out" in first_answer(linear)
    np.testing.assert_allclose(linear.A, truth.A, atol=10 * np.max(linear.errors.A))
    assert np.max(linear.errors.A) < 1e-3


def test_the_terminal_can_tell_the_time_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Dear(monkeypatch, step=6e-3)
    fl.linearize(toy)
    assert re.fullmatch(r", about \d s to go", toy.told)


def test_a_budget_is_positive() -> None:
    with pytest.raises(UsageError, match="The budget must be a positive time, not 0 s"):
        Stepping(budget=0.0)
