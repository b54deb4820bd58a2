"""Closed loops with converters, disturbances, rare readings, anti-windup, estimators inside, and many runs of them."""

from __future__ import annotations

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin import design
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.models import OdeModel
from fmilin.signals import FloatArray
from tests.design.scheduled import family_over, lqr, pendulum

H = 0.1


def integrator() -> OdeModel:
    return OdeModel("i", {"x": "u + d"}, inputs=["u", "d"], start={"x": 1.0})


def law(seen: list[float]) -> design.FunctionRegulator:
    """u = -x, with a note of what is read."""

    def answer(_: float, y: FloatArray) -> FloatArray:
        seen.append(float(y[0]))
        return -y

    return design.FunctionRegulator(answer, ["x"], ["u"], H)


def run(**options: object) -> tuple[fl.Trajectory, list[float]]:
    seen: list[float] = []
    model = integrator()
    origin = fl.operating_point(model, {"x": 0.0})
    start = fl.operating_point(model)
    return fl.closed_loop(model, law(seen), origin, start=start, stop_time=1.0, **options), seen  # type: ignore[arg-type]


def test_readings_and_answers_come_in_steps() -> None:
    ran, seen = run(quantization={"x": 0.25, "u": 0.5})
    assert seen[0] == 1.0
    assert all(value % 0.25 == 0 for value in seen)
    assert set(np.unique(ran["u"])) <= {-1.0, -0.5, 0.0}
    assert len(set(seen)) > 2


def test_rare_readings_are_held() -> None:
    _, seen = run(sample_times={"x": 0.3})
    assert seen[0] == seen[1] == seen[2] != seen[3]
    assert seen[3] == seen[4] == seen[5] != seen[6]


def test_disturbances_enter_where_they_are_named() -> None:
    """x' = -x_k + w, w = 0.5: x_(k+1) = x_k + h (0.5 - x_k); a bias of the sensor shifts where it ends."""
    ran, _ = run(disturbances={"u": lambda t: 0.5})
    assert ran["x"][-1] == pytest.approx(0.5 + 0.5 * (1 - H) ** 10, abs=1e-6)
    assert ran["u"][-1] == pytest.approx(0.5 - (0.5 + 0.5 * (1 - H) ** 9), abs=1e-6)
    both, _ = run(disturbances={"u": lambda t: 0.5}, inputs={"d": -0.5})
    plain, _ = run()
    assert both["x"][-1] == pytest.approx(plain["x"][-1], abs=1e-6)
    biased, seen = run(disturbances={"x": 0.2})
    assert seen[0] == 1.2
    assert biased["x"][-1] == pytest.approx(-0.2 + 1.2 * (1 - H) ** 10, abs=1e-6)


def test_an_integrator_behind_limits_does_not_wind_up() -> None:
    """A PI regulator asked for more than the actuator gives overshoots less than without conditioning."""
    plant = OdeModel("lag", {"x": "u - 0.2*x"}, inputs=["u"])
    origin = fl.operating_point(plant)
    pi = control.ss([[1.0]], [[-H]], [[2.0]], [[-3.0]], H, inputs=["x"], outputs=["u"])
    start = fl.operating_point(plant, {"x": -10.0})
    ran = fl.closed_loop(plant, pi, origin, start=start, stop_time=20.0, limits={"u": (-1.0, 1.5)})

    memory = [0.0]

    def winding(_: float, y: FloatArray) -> FloatArray:
        u = 2.0 * memory[0] - 3.0 * y
        memory[0] -= H * float(y[0])
        return u

    wound = fl.closed_loop(
        plant, design.FunctionRegulator(winding, ["x"], ["u"], H), origin, start=start, stop_time=20.0,
        limits={"u": (-1.0, 1.5)},
    )  # fmt: skip
    assert ran["x"].max() < 0.5 < 3.0 < wound["x"].max()
    assert abs(ran["x"][-1]) < 1e-2


def test_an_estimator_and_a_schedule_inside() -> None:
    model = pendulum().with_interface(None, ["angle"])
    point = fl.operating_point(model, {"theta": 0.4})
    kalman = design.estimator(
        model, process_noise={"torque": 1e-2}, measurement_noise={"angle": 1e-4}, sample_time=0.05, point=point
    )
    made = design.schedule(family_over("theta"), lqr, sample_time=0.05)
    inside = design.EstimatorRegulator(kalman, made.along({"theta": lambda t: min(0.4 + 0.3 * t, 1.0)}))
    ran = fl.closed_loop(model, inside, point, stop_time=5.0, noise={"angle": 0.01}, quantization={"angle": 0.001})
    assert ran["theta"][-1] == pytest.approx(1.0, abs=0.05)
    assert kalman.x == pytest.approx(ran.states[-1], abs=0.05)
    again = fl.closed_loop(model, inside, point, stop_time=5.0, noise={"angle": 0.01}, quantization={"angle": 0.001})
    assert (again.states == ran.states).all()
    with pytest.raises(UsageError, match="The law runs every"):
        design.EstimatorRegulator(kalman, design.schedule(family_over("theta"), lqr, sample_time=0.1))


def decayed(values: dict[str, float], number: int) -> fl.Trajectory:
    """x' = -a x from 1; beyond a = 3 there is no answer."""
    if values["a"] > 3:
        raise NumericalError("too fast")
    model = OdeModel("decay", {"x": "-a*x"}, parameters={"a": values["a"]}, start={"x": 1.0 + 0 * number})
    return fl.simulate(model, stop_time=1.0, step=0.1)


def last(ran: fl.Trajectory) -> float:
    return float(ran["x"][-1])


def test_many_runs_have_statistics_and_bands() -> None:
    study = design.monte_carlo(decayed, {"a": (1.0, 3.2)}, runs=40, measures={"last": last}, signals=["x"], seed=3)
    good = study.samples["a"] <= 3
    assert study.measures["last"][good] == pytest.approx(np.exp(-study.samples["a"][good]), rel=1e-6)
    assert np.isnan(study.measures["last"][~good]).all()
    assert study.failures == {"too fast": int((~good).sum())}
    assert 0 < (~good).sum() < 20
    assert study.courses["x"].shape == (40, 200)
    assert f"{(~good).sum()} failed" in repr(study)
    figure = study.plot()
    assert len(figure.axes) == 1
    assert f"of 40 runs, {(~good).sum()} of them failed" in getattr(figure, "_suptitle").get_text()  # noqa: B009
    spread = design.monte_carlo(decayed, {"a": lambda r: 2.0 + 0.1 * r.standard_normal()}, runs=5, measures={"l": last})
    assert np.ptp(spread.samples["a"]) > 0
    listed = design.monte_carlo(decayed, {"a": [1.0, 2.0, 2.5]}, runs=5, signals=["x"])
    assert set(listed.samples["a"]) <= {1.0, 2.0, 2.5}


def test_courses_of_many_runs_keep_their_units() -> None:
    pendulum = fl.systems.cartesian_pendulum(angle=0.2)
    study = design.monte_carlo(
        lambda _values, _number: fl.simulate(pendulum, stop_time=0.05), {"a": (0.0, 1.0)}, runs=2, signals=["vx"]
    )
    assert study.units == {"vx": "m/s"}
    assert study.plot().axes[0].get_ylabel() == "vx [m/s]"


def test_processes_give_the_same_numbers() -> None:
    one, two = (
        design.monte_carlo(decayed, {"a": (1.0, 2.0)}, runs=4, measures={"last": last}, jobs=jobs) for jobs in (1, 2)
    )
    assert (one.measures["last"] == two.measures["last"]).all()
    with pytest.raises(UsageError, match="Use functions of a module, or jobs=1"):
        design.monte_carlo(decayed, {"a": (1.0, 2.0)}, runs=2, measures={"l": lambda ran: last(ran)}, jobs=2)  # noqa: PLW0108


def test_bad_input_is_told() -> None:
    with pytest.raises(UnknownNameError, match="reads or drives"):
        run(disturbances={"y": 1.0})
    with pytest.raises(UnknownNameError, match="reads or drives"):
        run(quantization={"y": 1.0})
    with pytest.raises(UsageError, match=r"step in which 'x' comes must be positive and finite, not 0"):
        run(quantization={"x": 0.0})
    with pytest.raises(UsageError, match=r"sample time at which 'x' comes must be positive and finite, not -1"):
        run(sample_times={"x": -1.0})
    for text, words in (({"delay": "1"}, "'delay' is '1'"), ({"noise": {"x": "1"}}, "'x' is '1'")):
        with pytest.raises(UsageError, match=f"{words}: a number is needed"):
            run(**text)
    with pytest.raises(UsageError, match="give the other inputs by name"):
        run(disturbances={"u": 1.0}, inputs=lambda t: np.zeros(2))
    with pytest.raises(UsageError, match="measures= or signals="):
        design.monte_carlo(decayed, {"a": (1.0, 2.0)})
    with pytest.raises(NumericalError, match=r"All 2 runs of the study failed\. The first: too fast"):
        design.monte_carlo(decayed, {"a": (4.0, 5.0)}, runs=2, measures={"l": last})
