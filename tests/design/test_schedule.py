"""Gain schedules: interpolation, what the report promises, hidden coupling, estimators, holes and ranges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

import fmilin as fl
from fmilin.design import KalmanRegulator, Schedule
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.signals import FloatArray
from tests.design.scheduled import (
    AXES,
    DAMPING,
    SAMPLE,
    G,
    answers,
    every_kind,
    family_over,
    filtered,
    holed,
    lqr,
    pendulum,
    steps,
)


@pytest.fixture(scope="module")
def one() -> Schedule:
    return fl.design.schedule(family_over("theta"), lqr, over=["theta"])


def test_at_a_point_of_the_grid_it_is_the_regulator_of_that_point(one: Schedule) -> None:
    family = family_over("theta")
    for number, theta in enumerate(AXES["theta"]):
        linear, law = family[number], one.linear_model({"theta": theta})
        assert pytest.approx(-lqr(linear)) == law.D
        assert law.point.inputs["theta"] == pytest.approx(theta)
        assert law.point.outputs["torque"] == pytest.approx(G * np.sin(theta))
        assert one.step([theta], [theta, 0.0]) == pytest.approx(G * np.sin(theta))


def test_between_the_points_it_is_linear_in_every_variable() -> None:
    made = fl.design.schedule(family_over("theta", "L", "m"), lqr, ["m", "theta", "L"])
    axes, rng = [AXES["m"], AXES["theta"][::4], AXES["L"]], np.random.default_rng(2)
    grid = made.table.rows[made.table.numbers].reshape(2, 3, 3, -1)
    oracle = RegularGridInterpolator(axes, grid)
    for _ in range(30):
        at = np.array([rng.uniform(a[0], a[-1]) for a in axes])
        assert made.table.row(at) == pytest.approx(oracle(at)[0], rel=1e-12, abs=1e-12)
        y = rng.standard_normal(2)
        p = made.parts.of(oracle(at)[0])
        assert made.step(dict(zip(("m", "theta", "L"), at, strict=True)), y) == pytest.approx(
            p["u0"] - p["K"] @ (y - p["y0"]), rel=1e-12
        )


def test_axes_may_descend() -> None:
    trim = fl.TrimRequest(fixed={"w": 0.0}, free=["torque"])
    down = fl.design.schedule(fl.sweep(pendulum(), {"theta": AXES["theta"][::-1]}, trim=trim), lqr)
    for theta in (-1.9, 0.3, 1.99):
        assert down.step([theta], [theta, 1.0]) == pytest.approx(
            fl.design.schedule(family_over("theta"), lqr).step([theta], [theta, 1.0])
        )


def decay(theta: float, K: FloatArray) -> float:
    """Of the true pendulum under a gain."""
    A = np.array([[0.0, 1.0], [-G * np.cos(theta), -DAMPING]]) - np.array([[0.0], [1.0]]) @ K
    return float(-np.linalg.eigvals(A).real.max())


def test_the_true_loop_is_stable_where_the_report_says_so_and_as_far_off_as_it_says(one: Schedule) -> None:
    rng = np.random.default_rng(5)
    for theta in rng.uniform(-2, 2, 500):
        verdict = one.verdict([theta])
        true = decay(theta, -one.linear_model([theta]).D)
        assert verdict.kind == "stable"
        assert true > 0
        assert abs(true - verdict.decay) <= verdict.uncertainty + 1e-9


def test_a_coarse_grid_is_uncertain_and_a_bad_gain_unstable() -> None:
    trim = fl.TrimRequest(fixed={"w": 0.0}, free=["torque"])
    coarse = fl.sweep(pendulum(), {"theta": np.array([-2.0, 0.0, 2.0])}, trim=trim)

    def barely(linear: fl.LinearModel) -> FloatArray:
        return np.array([[max(0.0, 0.5 + linear.A[1, 0]), 0.0]])

    made = fl.design.schedule(coarse, barely)
    assert made.verdict([1.0]).kind == "uncertain"
    assert any("the interpolation's own error may make the loop unstable" in text for text in made.report.remarks)
    bad = fl.design.schedule(family_over("theta"), lambda _: np.array([[0.0, 1.0]]))
    assert bad.verdict([2.0]).kind == "unstable"
    assert bad.verdict([0.0]).kind == "stable"
    assert bad.report.weakest[0] in {0, len(bad.report.points) - 1}
    two = fl.design.schedule(fl.sweep(pendulum(), {"theta": np.array([0.0, 0.5])}, trim=trim), lqr)
    assert two.verdict([0.25]).kind == "uncertain"
    assert np.isnan(two.verdict([0.25]).uncertainty)
    assert any("three values in a row" in text for text in two.report.remarks)


def test_hidden_coupling_is_told_and_right() -> None:
    """With exact trim values one eigenvalue is zero, and the other the trace: -(d + K_w)."""
    trim = fl.TrimRequest(fixed={"w": 0.0}, free=["torque"])
    fine = fl.design.schedule(fl.sweep(pendulum(), {"theta": np.linspace(0.4, 0.6, 21)}, trim=trim), lqr)
    K = -fine.linear_model([0.505]).D
    assert fine.verdict([0.505]).measured_decay == pytest.approx(DAMPING + K[0, 1], rel=1e-3)
    assert any("hidden coupling" in text for text in fine.report.remarks)
    assert not any("hidden coupling" in t for t in fl.design.schedule(family_over("L"), lqr).report.remarks)
    assert not any("hidden" in t for t in fl.design.schedule(family_over("theta"), lqr, form="velocity").report.remarks)


def test_the_pendulum_follows_its_reference_over_the_range() -> None:
    made = fl.design.schedule(family_over("theta"), lqr, sample_time=0.05)
    start = fl.operating_point(pendulum(), {"theta": -1.5})
    ran = fl.closed_loop(pendulum(), made.along({"theta": lambda t: min(-1.5 + t, 1.5)}), start, stop_time=8.0)
    assert ran["theta"][-1] == pytest.approx(1.5, abs=1e-2)
    assert np.abs(ran["theta"] - np.minimum(-1.5 + ran.times, 1.5)).max() < 0.7


def test_read_from_the_plant_it_damps_and_holds_nothing() -> None:
    made = fl.design.schedule(family_over("theta"), lqr, sample_time=0.05)
    start = fl.operating_point(pendulum(), {"theta": 0.25, "w": 0.3})
    ran = fl.closed_loop(pendulum(), made, start, stop_time=3.0)
    assert made.reads == ("theta", "w")
    assert abs(ran["w"][-1]) < 0.1
    assert ran["theta"][-1] > 0.3


def test_the_velocity_form_goes_on_from_the_last_input() -> None:
    made = fl.design.schedule(family_over("theta"), lqr, form="velocity")
    theta, w = 0.7, 0.1
    first = made.step([theta], [theta, w])
    K = -made.linear_model([0.75]).D
    second = made.step([0.75], [0.75, 0.3])
    assert second == pytest.approx(first - K @ [0.05, 0.2])
    made.update_states(np.array([1.0]))
    assert made.step([0.75], [0.75, 0.3]) == pytest.approx([1.0])
    made.restart()
    assert made.step([theta], [theta, w]) == pytest.approx(first)
    assert any("it does not return" in text for text in made.report.remarks)


def test_at_one_point_the_scheduled_estimator_is_the_lqg_regulator() -> None:
    made = fl.design.schedule(family_over("theta"), lqr, estimator=filtered)
    linear = family_over("theta")[5]
    law = KalmanRegulator(filtered(linear), lqr(linear))
    frozen = made.linear_model({"theta": 0.5})
    assert made.sample_time == frozen.sample_time == SAMPLE
    rng, state = np.random.default_rng(1), frozen.y0
    for _ in range(50):
        m = 0.5 + 0.1 * rng.standard_normal(1)
        expected = law.answer(0.0, m)
        law.update_states(expected)
        e = m - frozen.point.inputs["angle"]
        u = frozen.point.outputs["torque"] + frozen.C @ (state - frozen.y0) + frozen.D @ e
        state = frozen.y0 + frozen.f0 + frozen.A @ (state - frozen.y0) + frozen.B @ e
        assert made.step([0.5], m) == pytest.approx(expected, rel=1e-10)
        assert u == pytest.approx(expected, rel=1e-10)
    closed = np.linalg.eigvals(np.block([[frozen.A]]))
    assert made.verdict([0.5]).decay > 0
    assert np.abs(closed).max() < 1


def test_the_verdict_of_an_estimator_is_that_of_the_whole_loop() -> None:
    made = fl.design.schedule(family_over("theta"), lqr, estimator=filtered)
    p = made.parts.of(made.table.row(np.array([0.8])))
    regulator, observer = p["A"] - p["B"] @ p["K"], p["A"] @ (np.eye(2) - p["L"] @ p["C"])
    every = np.concatenate(
        [np.linalg.eigvals(M) for M in (regulator, observer)]
    )  # separation: the model is the plant's
    assert made.verdict([0.8]).decay == pytest.approx(-np.log(np.abs(every)).max() / SAMPLE)
    assert made.verdict([0.8]).uncertainty > 0


def test_holes_are_named_and_never_answered() -> None:
    made = fl.design.schedule(family_over("theta", "L"), holed)
    with pytest.raises(
        NumericalError, match=r"a hole at theta = 0\.9, L = 0\.9: it has no gain at theta = 1, L = 1\. "
    ):
        made.step([0.9, 0.9], [0.0, 0.0])
    made.step([0.9, 0.8], [0.0, 0.0])  # on the side of the cell that has both its ends
    made.step([-0.5, 1.0], [0.0, 0.0])
    assert dict(made.report.holes) == {"The rule failed there: one cannot be used here": 1}
    assert "1 points of the grid; the first: The rule failed there: one cannot" in " ".join(repr(made).split())
    assert all(tuple(p) != (1.0, 1.0) for p in made.report.points)


def test_outside_the_range_it_refuses_or_takes_the_nearest() -> None:
    made = fl.design.schedule(family_over("theta"), lqr)
    for at in (2.1, np.inf):
        with pytest.raises(
            UsageError, match=r"theta = .*, outside its range: theta from -2 to 2\. Sweep a larger range"
        ):
            made.step([at], [0.0, 0.0])
    near = fl.design.schedule(family_over("theta"), lqr, outside="nearest")
    assert near.step([2.1], [0.3, 0.0]) == pytest.approx(made.step([2.0], [0.3, 0.0]))
    assert near.steps_outside == 1
    kept = fl.design.schedule(family_over("theta", "L"), holed, outside="nearest")
    inside = kept.step([-0.2, 0.9], [0.3, 0.1])
    assert kept.step([0.9, 0.9], [0.3, 0.1]) == pytest.approx(inside)
    assert kept.steps_outside == 1
    kept.restart()
    assert kept.step([0.9, 0.9], [0.3, 0.1]) == pytest.approx(kept.step([-2.0, 0.8], [0.3, 0.1]))


def test_a_sampled_loop_is_judged_as_it_runs() -> None:
    hard = fl.design.schedule(family_over("theta"), lambda _: np.array([[0.0, 10.0]]))
    assert hard.verdict([0.0]).kind == "stable"
    slow = fl.design.schedule(family_over("theta"), lambda _: np.array([[0.0, 10.0]]), sample_time=0.5)
    assert slow.verdict([0.0]).kind == "unstable"


def test_bad_input_is_told() -> None:
    family = family_over("theta")
    with pytest.raises(UnknownNameError, match="thet"):
        fl.design.schedule(family, lqr, ["thet"])
    with pytest.raises(UsageError, match=r"gain of the shape \(1, 3\); .* it needs \(1, 2\)"):
        fl.design.schedule(family, lambda _: np.ones((1, 3)))
    with pytest.raises(
        UsageError, match=r"runs over theta, L, the schedule over theta: it needs all of them, at most 3"
    ):
        fl.design.schedule(family_over("theta", "L"), lqr, ["theta"])
    with pytest.raises(
        NumericalError, match=r"no gain at any point of the family\. At the first point: The gains are inf"
    ):
        fl.design.schedule(family, lambda _: np.full((1, 2), np.nan))
    with pytest.raises(UsageError, match=r"failed at point 0: KeyError: 'none'"):
        fl.design.schedule(family, lambda _: {"gains": np.zeros((1, 2))}["none"])
    with pytest.raises(UsageError, match=r"finite value of each measured variable .*, not \[nan, 0"):
        fl.design.schedule(family, lqr).step([0.0], [np.nan, 0.0])
    with pytest.raises(UsageError, match="one value in the family"):
        fl.design.schedule(family[3:4], lqr)
    for wrong in ({"form": "fast"}, {"outside": "far"}):
        with pytest.raises(UsageError, match="use 'trim' or 'velocity', and 'refuse' or 'nearest'"):
            fl.design.schedule(family, lqr, **wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'rule' is of the type 'str', and should be of the type Callable"):
        fl.design.schedule(family, "lqr")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="velocity form reads coordinates"):
        fl.design.schedule(family, lqr, form="velocity", estimator=filtered)
    with pytest.raises(UsageError, match=r"filter runs every 0\.01 s and the schedule every 0\.02 s"):
        fl.design.schedule(family, lqr, estimator=filtered, sample_time=0.02)
    made = fl.design.schedule(family, lqr)
    with pytest.raises(UsageError, match=r"measured variable \(2: theta, w\), not"):
        made.step([0.0], [1.0, 2.0, 3.0])
    with pytest.raises(UsageError, match="runs over theta: give a value of each"):
        made.step({}, [1.0, 2.0])
    with pytest.raises(UnknownNameError):
        made.step({"L": 1.0}, [1.0, 2.0])
    with pytest.raises(UsageError, match="belongs to one point: give theta"):
        made.linear_model()
    with pytest.raises(UsageError, match=r"sample time must be positive and finite, not 0 s"):
        fl.closed_loop(pendulum(), made, stop_time=1.0)


def test_every_kind_answers_with_numbers() -> None:
    for made in every_kind().values():
        assert np.isfinite(answers(made, steps(made, 20))).all()
        assert len(repr(made).splitlines()) <= 40
        assert "Closed loop" in repr(made.report)
