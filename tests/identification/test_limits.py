"""What is just not believed of responses any more, and what just is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg

import fmilin as fl
from fmilin import Stepping
from fmilin.errors import NumericalError
from fmilin.identification.discrete_models import Sampled, find_continuous_model
from fmilin.identification.experiments import Experiments
from fmilin.identification.findings import Findings
from fmilin.identification.realization import align_realization, choose_named_states
from fmilin.identification.sampled_model import _pattern
from fmilin.identification.step_size import confirm_at_half_step
from fmilin.identification.validation import HeldOut
from fmilin.model.stepping import Cadence
from fmilin.signals import FloatArray
from tests.identification.toys import Linear, Toy, oscillators


def sampled(A: FloatArray, *, T: FloatArray | None = None) -> Sampled:
    """A discrete model over 0.1 s with every state an output."""
    n = len(A)
    states = np.empty((0, n)) if T is None else T
    return Sampled(A, np.ones((n, 1)), np.eye(n), np.zeros((n, 1)), 0.1, "at once", states, np.zeros(n))


def decaying(*rates: float, gains: tuple[float, ...] | None = None) -> Linear:
    """First-order lags beside each other, with one input and one output: their sum."""
    n = len(rates)
    return Linear(-np.diag(rates), np.ones((n, 1)), np.array([gains or (1.0,) * n]), np.zeros((1, 1)))


def test_a_model_that_misses_responses_is_none() -> None:
    with pytest.raises(NumericalError, match="No linear model reproduces the responses"):
        fl.linearize(Toy(oscillators((1.0, 2.3, 4.1))), stepping=Stepping(lifted=True, step=0.2, order=1))


@pytest.mark.parametrize(("off", "holds"), [(0.3, False), (0.06, False), (1e-3, True), (0.0, True)])
def test_a_model_that_half_the_step_contradicts_is_not_continuous(off: float, *, holds: bool) -> None:
    """The outputs of the model are too large by a part."""
    plant = oscillators((1.0, 2.0))
    A, B = plant.over(0.2)
    model = Sampled(A, B, (1 + off) * plant.C, plant.D, 0.2, "at once", np.empty((0, 4)), np.zeros(4))
    toy = Toy(plant)
    if holds:
        assert confirm_at_half_step(model, Experiments(toy, toy.start), 0.0).error == pytest.approx(off, abs=1e-9)
    else:
        with pytest.raises(NumericalError, match="have no common continuous model"):
            confirm_at_half_step(model, Experiments(toy, toy.start), 0.0)


@pytest.mark.parametrize(("gain", "order"), [(1.0, 2), (1e-4, 2), (3e-6, 2), (1e-11, 1)])
def test_a_weak_mode_is_in_the_model_as_long_as_responses_show_it(gain: float, order: int) -> None:
    linear = fl.linearize(Toy(decaying(1.0, 4.0, gains=(1.0, gain))))
    assert len(linear.states) == order
    np.testing.assert_allclose(np.sort(-linear.eigenvalues().real)[0], 1.0, rtol=1e-5)


@pytest.mark.parametrize(("size", "error"), [(1.0, 1.0), (1e-4, 1.0), (3e-8, 1.0), (1e-11, 0.0), (0.0, 0.0)])
def test_a_quiet_output_is_verified_like_a_loud_one(size: float, error: float) -> None:
    """The model says that the second output is silent, and predicts the first."""
    loud = Sampled(np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((2, 0)), np.array([[1.0], [0.0]]), 0.1, "at once",
                   np.empty((0, 0)), np.zeros(0))  # fmt: skip
    inputs = np.array([[1.0], [-0.5], [0.25]])
    held = HeldOut(inputs, inputs * [1.0, size], inputs * [1.0, size], 0.1, np.zeros(2))
    np.testing.assert_allclose(held.errors(loud), [0.0, error])


@pytest.mark.parametrize(("rate", "moves"), [(1.0, True), (1e-3, True), (1e-5, True), (1e-9, False), (0.0, False)])
def test_a_slow_motion_is_measured(rate: float, *, moves: bool) -> None:
    linear = fl.linearize(Toy(decaying(1.0), offset=np.array([rate])))
    if moves:
        np.testing.assert_allclose(linear.C @ linear.f0, [rate], rtol=1e-6)
    else:
        assert not linear.f0.any()


@pytest.mark.parametrize("value", [0.0, 1e-15, 3e-11])
def test_what_leaves_no_trace_over_a_step_has_no_rate(value: float) -> None:
    with pytest.raises(NumericalError, match=r"1 of the 2 eigenvalues over one step of 0\.1 s are zero"):
        find_continuous_model(sampled(np.diag([0.5, value])))


def test_what_leaves_a_trace_over_a_step_has_a_rate() -> None:
    np.testing.assert_allclose(
        np.diag(find_continuous_model(sampled(np.diag([0.5, 3e-8]))).A), np.log([0.5, 3e-8]) / 0.1
    )


@pytest.mark.parametrize(("angle", "identified"), [(0.5, True), (0.88, True), (0.92, False), (0.99, False)])
def test_a_motion_that_may_be_its_alias_is_refused(angle: float, *, identified: bool) -> None:
    c, s = np.cos(np.pi * angle), np.sin(np.pi * angle)
    model = sampled(np.array([[c, s], [-s, c]]))
    if identified:
        assert find_continuous_model(model).A[0, 1] == pytest.approx(np.pi * angle / 0.1)
    else:
        with pytest.raises(NumericalError, match="of half the sampling frequency"):
            find_continuous_model(model)


@pytest.mark.parametrize("off", [1e-1, 1e-3, 3e-5, 3e-5j])
def test_a_logarithm_that_is_none_is_not_believed(off: complex, monkeypatch: pytest.MonkeyPatch) -> None:
    logm = linalg.logm
    monkeypatch.setattr(linalg, "logm", lambda M: logm(M) + off * np.eye(len(M)))
    with pytest.raises(NumericalError, match="no real logarithm that can be trusted"):
        find_continuous_model(sampled(np.diag([0.5, 0.9])))


@pytest.mark.parametrize(("part", "regular"), [(1.0, True), (1e-3, True), (1e-7, False), (0.0, False)])
def test_states_that_hardly_differ_are_no_coordinates(part: float, *, regular: bool) -> None:
    T = np.array([[1.0, 1.0], [1.0, 1.0 + part]])
    chosen = choose_named_states(sampled(np.diag([0.5, 0.6]), T=T), np.ones(2), ())
    assert chosen == ([0, 1] if regular else None)


@pytest.mark.parametrize(("part", "chosen"), [(1.0, [0, 1]), (1e-3, [0, 1]), (3e-6, [0, 2]), (0.0, [0, 2])])
def test_preferred_coordinates_are_taken_while_they_tell_the_others(part: float, chosen: list[int]) -> None:
    T = np.array([[1.0, 0.0], [0.9, part], [0.1, 1.0]])
    assert choose_named_states(sampled(np.diag([0.5, 0.6]), T=T), np.ones(3), [0, 1]) == chosen


@pytest.mark.parametrize(("condition", "turned"), [(1e2, True), (1e6, True), (1e10, False)])
def test_coordinates_that_cannot_be_turned_are_left(condition: float, *, turned: bool) -> None:
    model = sampled(np.diag([0.5, 0.6]))
    other = model.in_coordinates(np.diag([1.0, condition]))
    assert (align_realization(other, model) is not other) == turned


@pytest.mark.parametrize(("jitter", "regular"), [(0.1, False), (1e-3, False), (3e-5, False), (1e-9, True), (0.0, True)])
def test_ticks_that_jitter_have_no_period(jitter: float, *, regular: bool) -> None:
    gaps = np.full(12, 0.01)
    gaps[5] *= 1 + jitter
    assert (_pattern(gaps) is not None) == regular


def remarks_of(**values: float) -> str:
    findings = Findings("response", Cadence(), ("u",), ("y",), step=0.1, error=1e-12, order=2)
    for name, value in values.items():
        setattr(findings, name, value)
    return " ".join(f"[{remark.kind}] {remark}" for remark in findings.remarks())


@pytest.mark.parametrize(
    ("finding", "much", "little", "words"),
    [
        ("noise", 0.03, 0.003, "[noise]"),
        ("noise", 1e-8, 1e-11, "equal runs differ by"),
        ("excess", 0.1, 0.02, "[poor-fit]"),
        ("nyquist", 0.7, 0.3, "of half the sampling frequency"),
    ],
)
def test_what_makes_a_measured_model_doubtful_is_remarked(finding: str, much: float, little: float, words: str) -> None:
    assert words in remarks_of(**{finding: much})
    assert words not in remarks_of(**{finding: little})


@pytest.mark.parametrize(("order", "told"), [(3, True), (4, False)])
def test_slow_motions_that_runs_show_but_the_beginning_of_are_told_where_the_model_errs(
    order: int, *, told: bool
) -> None:
    """Runs of 4 s, a lag of 50 s: of four lags all are found to rounding, or three that predict to a hundredth."""
    toy = Toy(decaying(0.02, 1.0, 8.0, 40.0))
    linear = fl.linearize(toy, stepping=Stepping(order=order, step=0.02))
    slowest = float(np.min(np.abs(linear.eigenvalues())))
    assert (abs(slowest - 0.02) > 0.02) == told
    assert (["short-record"] if told else []) == [
        w.kind for w in linear.warnings if "only the beginning of 1" in str(w)
    ]
