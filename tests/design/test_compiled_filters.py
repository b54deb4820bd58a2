"""Compiled filters give the numbers, the errors and the diagnostics of the Python, with less work."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import fmilin as fl
from fmilin.design.estimation.compiled import CompiledFilter
from fmilin.design.estimation.slopes import GraphEvaluator
from fmilin.models import Labels, OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum
from tests.design.filters_of_records import CASES, SAMPLES, Case, pendulum

KINDS = ("ekf", "iekf", "ukf")
# Every model, and every kind with what it does by other code; tests/export/test_estimator_c.py has the others.
PAIRS = [(name, "ekf") for name in sorted(CASES)]
PAIRS += [("pendulum", "iekf"), ("pendulum", "ukf"), ("angle", "iekf"), ("angle", "ukf"), ("DAE", "ukf")]


def by_python(case: Case) -> fl.design.Estimator:
    """Return the filter without compiled code."""
    case.kf.method = case.kf.settings.filter
    return case.kf


def by_c(case: Case) -> fl.design.Estimator:
    """Return the filter by compiled code."""
    assert case.kf.compile()
    return case.kf


def with_gaps(measured: FloatArray, seed: int) -> FloatArray:
    """Return measurements at irregular times: two of five have not come, and no sensor has for some samples."""
    y, random = measured.copy(), np.random.default_rng(seed)
    y[random.uniform(size=y.shape) < 0.4] = np.nan
    y[5:8] = np.nan
    return y


def assert_same(first: fl.design.Estimator, second: fl.design.Estimator) -> None:
    """Compare estimates, covariances and what is said of them."""
    np.testing.assert_allclose(first.x, second.x, rtol=1e-12, atol=1e-12)
    assert first.states.names == second.states.names
    size = float(np.abs(second.covariance).max())
    np.testing.assert_allclose(first.covariance, second.covariance, rtol=1e-12, atol=1e-12 * size)
    assert [r.message for r in first.remarks] == [r.message for r in second.remarks]
    assert first.motion.switches == second.motion.switches


@contextmanager
def counting() -> Iterator[list[str]]:
    """Count where Python evaluates a model."""
    calls: list[str] = []
    original = GraphEvaluator._compute

    def counted(self: Any, *point: Any) -> Any:
        calls.append("evaluation")
        return original(self, *point)

    with patch.object(GraphEvaluator, "_compute", counted):
        yield calls


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_compiled_code_gives_the_numbers_of_python(name: str, kind: str) -> None:
    for seed in (1, 2):
        compiled, python = by_c(CASES[name](kind, seed)), by_python(CASES[name](kind, seed))
        case = CASES[name](kind, seed)
        u, y = case.inputs, with_gaps(case.measured, seed)
        answers = compiled.run(u, y)
        for part, expected in zip(answers, python.run(u, y), strict=True):
            size = float(np.nanmax(np.abs(expected)))
            np.testing.assert_allclose(part, expected, rtol=1e-12, atol=2e-12 * size)
        assert_same(compiled, python)
        assert compiled.log_likelihood == pytest.approx(python.log_likelihood, rel=1e-11)
        compiled.reset()
        for k in range(SAMPLES):  # sample by sample, as the record
            compiled.step(u[k], [None if np.isnan(value) else value for value in y[k]])
        np.testing.assert_array_equal(compiled.x, answers.states[-1])
        np.testing.assert_array_equal(compiled.whitened, answers.whitened[np.isfinite(answers.whitened).any(axis=1)])


def test_coordinates_change_in_compiled_code() -> None:
    compiled = by_c(pendulum("ekf", 1))
    case = pendulum("ekf", 1)
    compiled.run(case.inputs, case.measured)
    assert compiled.motion.switches > 0
    assert any(remark.kind == "skipped" for remark in compiled.remarks)


def test_a_record_is_one_call_and_few_evaluations_by_python() -> None:
    case = pendulum("ekf", 3)
    kf = by_c(case)
    assert isinstance(kf.method, CompiledFilter)
    code = kf.method.code(0, kf.motion)
    assert code is not None
    records: list[int] = []
    library = code._library

    def counted(*arguments: Any) -> int:
        records.append(arguments[2])
        return int(library.record(*arguments))

    code._library = library._replace(record=counted)
    with counting() as evaluations:
        kf.run(case.inputs, case.measured)
    assert records == [SAMPLES - 1]  # the last step is remembered, and goes by itself
    assert len(evaluations) <= 1  # for the standard deviations at its end
    with counting() as evaluations:
        kf.reset()
        for u, y in zip(case.inputs, case.measured, strict=True):
            kf.step(u, y)
    assert not evaluations
    by_python(case).reset()
    with counting() as evaluations:
        kf.run(case.inputs, case.measured)
    assert len(evaluations) > 6 * SAMPLES


def test_a_filter_goes_over_to_compiled_code_once_that_pays() -> None:
    case = pendulum("ekf", 4)
    kf = case.kf
    assert isinstance(kf.method, CompiledFilter)
    kf.step(case.inputs[0], case.measured[0])
    assert not kf.method.is_compiled
    kf.run(np.tile(case.inputs, (400, 1)), np.full((400 * SAMPLES, 2), np.nan))
    assert kf.method.is_compiled


def test_measurements_far_off_lead_to_the_error_of_python() -> None:
    messages = []
    for prepare in (by_python, by_c):
        kf = fl.design.estimator(
            cartesian_pendulum(angle=1.2), outputs=["x"], process_noise={"F": 1e-3}, measurement_noise={"x": 1e-4},
            sample_time=0.05, initial_covariance={"y": 1e-2, "vy": 1e-2},
        )  # fmt: skip
        case = Case(kf, np.zeros((20, 1)), np.full((20, 1), 0.93))
        prepare(case)
        y = case.measured.copy()
        y[10] = 1e3
        with pytest.raises(fl.NumericalError, match=r"No point of the manifold was found for the estimate") as error:
            kf.run(case.inputs, y)
        messages.append((str(error.value), kf.time))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_leaves_its_domain_leads_to_the_error_of_python(kind: str) -> None:
    messages = []
    for prepare in (by_python, by_c):
        model = OdeModel("tank", {"h": "q - sqrt(h)"}, inputs=["q"], start={"h": 0.05}, outputs={"level": "h"})
        kf = fl.design.estimator(
            model, process_noise={"q": 1e-4}, measurement_noise={"level": 1e-4}, sample_time=0.05, kind=kind,
            initial_covariance={"h": 1e-6}, point=fl.OperatingPoint(0.0, np.array([0.05]), np.array([0.2])),
        )  # fmt: skip
        case = Case(kf, np.full((20, 1), -1.0), np.full((20, 1), 0.01))
        with pytest.raises(fl.FmilinError) as error:
            prepare(case).run(case.inputs, case.measured)
        messages.append((type(error.value), str(error.value), kf.time))
    assert messages[0] == messages[1]


def test_a_filter_that_diverges_says_so_by_compiled_code() -> None:
    said = []
    for prepare in (by_python, by_c):
        case = pendulum("ekf", 1)
        kf = prepare(case)
        kf.run(case.inputs, case.measured + 0.15)
        said.append([remark.message for remark in kf.remarks])
    assert said[0] == said[1]
    assert any("The filter diverges" in message for message in said[1])


def test_a_record_with_an_input_that_is_not_a_number_is_rejected_at_its_sample() -> None:
    case = pendulum("ekf", 1)
    kf = by_c(case)
    u = case.inputs.copy()
    u[7] = np.nan
    with pytest.raises(fl.UsageError, match="must be finite numbers"):
        kf.run(u, case.measured)
    assert kf.time == pytest.approx(7 * 0.05)


def test_late_measurements_and_a_repeated_point_are_those_of_python() -> None:
    answers = []
    for prepare in (by_python, by_c):
        kf = fl.design.estimator(
            cartesian_pendulum(angle=1.2), outputs=["x", "y"], process_noise={"F": 1e-3},
            measurement_noise={"x": 1e-4, "y": 1e-4}, sample_time=0.05, initial_covariance={"y": 1e-2, "vy": 1e-2},
            lag=3,
        )  # fmt: skip
        case = Case(kf, np.zeros((20, 1)), np.column_stack((0.9 - 0.01 * np.arange(20), np.full(20, np.nan))))
        prepare(case).run(case.inputs, case.measured)
        kf.late(2, {"y": -0.6})
        answers.append(kf)
    assert_same(answers[1], answers[0])


def test_an_angle_that_is_seen_to_wrap_wraps_in_a_record() -> None:
    """The model's output goes on; the sensor, in rad, starts again: the observer sees it in both ways alike."""
    answers = []
    for prepare in (by_python, by_c):
        model = OdeModel(
            "rotor", {"theta": "w", "w": "torque"}, inputs=["torque"], outputs={"angle": "theta"},
            start={"theta": 0.0, "w": 2.0}, labels=Labels(units={"angle": "rad"}),
        )  # fmt: skip
        kf = fl.design.estimator(
            model, process_noise={"torque": 1e-3}, measurement_noise={"angle": 1e-4}, sample_time=0.1,
            initial_covariance={"theta": 1e-2, "w": 1e-2},
        )  # fmt: skip
        angle = 0.2 * np.arange(1, 61)
        case = Case(kf, np.zeros((60, 1)), (np.mod(angle + np.pi, 2 * np.pi) - np.pi)[:, None])
        prepare(case).run(case.inputs, case.measured)
        answers.append(kf)
    assert_same(answers[1], answers[0])
    assert any(remark.kind == "wrapped" for remark in answers[1].remarks)


def test_threads_share_compiled_code_with_noise_of_their_own() -> None:
    def filtered(noise: float) -> FloatArray:
        case = pendulum("ekf", 1)
        kf = fl.design.estimator(
            cartesian_pendulum(angle=1.2), outputs=["x", "vy"], process_noise={"F": noise},
            measurement_noise={"x": noise, "vy": noise}, sample_time=0.05,
            initial_covariance={"y": 1e-2, "vy": 1e-2},
        )  # fmt: skip
        kf.compile()
        repeated = 50
        return kf.run(np.zeros((repeated, 1)), np.tile(case.measured[:1], (repeated, 1))).deviations

    noises = [1e-4, 1e-3, 1e-2, 1e-1]
    one_after_another = [filtered(noise) for noise in noises]
    with ThreadPoolExecutor(4) as pool:
        for expected, answer in zip(one_after_another, pool.map(filtered, noises), strict=True):
            np.testing.assert_array_equal(answer, expected)


def test_a_copy_goes_its_own_way() -> None:
    for prepare in (by_python, by_c):
        case = pendulum("ekf", 1)
        kf = prepare(case)
        kf.run(case.inputs[:10], case.measured[:10])
        fork = copy(kf)
        before = kf.x.copy(), kf.covariance.copy(), len(kf.innovations), kf.motion.chart
        fork.run(case.inputs[10:], case.measured[10:])
        assert fork.time == pytest.approx(SAMPLES * 0.05)
        np.testing.assert_array_equal(kf.x, before[0])
        np.testing.assert_array_equal(kf.covariance, before[1])
        assert (len(kf.innovations), kf.motion.chart) == before[2:]
        kf.run(case.inputs[10:], case.measured[10:])
        assert_same(fork, kf)


def test_copies_run_in_threads() -> None:
    for prepare in (by_python, by_c):
        case = pendulum("ekf", 1)
        kf = prepare(case)
        measured = [case.measured + 0.01 * k for k in range(4)]
        expected = [copy(kf).run(case.inputs, y).states for y in measured]
        forks = [copy(kf) for _ in measured]

        def run(fork: fl.design.Estimator, y: FloatArray, u: FloatArray = case.inputs) -> FloatArray:
            return np.array(
                [fork.step(u_k, [None if np.isnan(v) else v for v in y_k]) for u_k, y_k in zip(u, y, strict=True)]
            )

        with ThreadPoolExecutor(4) as pool:
            for states, answer in zip(expected, pool.map(run, forks, measured), strict=True):
                np.testing.assert_array_equal(answer, states)


def test_without_a_compiler_the_python_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    case = pendulum("ekf", 5)
    expected = by_c(pendulum("ekf", 5))
    expected.run(case.inputs, case.measured)
    monkeypatch.setenv("CC", "no-such-compiler")
    with_none = fl.design.estimator(
        cartesian_pendulum(angle=1.2).with_parameters({"m": 1.5}), outputs=["x"], process_noise={"F": 1e-3},
        measurement_noise={"x": 1e-4}, sample_time=0.05, initial_covariance={"y": 1e-2, "vy": 1e-2}, kind="iekf",
    )  # fmt: skip
    assert not with_none.compile()
    assert np.isfinite(with_none.run(case.inputs, case.measured[:, :1]).states).all()
