"""A run as a whole: samples, names, counts, and what is said when it cannot be done."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel, SymbolicConstraint
from fmilin.simulation import LocalForm, Method, Underlying
from fmilin.simulation.inputs import input_course
from fmilin.simulation.method import FixedRungeKutta4
from fmilin.simulation.stabilization import Plant
from fmilin.systems import cartesian_pendulum, four_bar, rolling_disk
from tests.by_hand import FunctionModel, Parts, pendulum


def decay() -> OdeModel:
    return OdeModel("decay", {"x": "-2*x + u"}, inputs=["u"], outputs={"twice": "2*x"}, start={"x": 1.0})


def test_samples_and_names() -> None:
    motion = fl.simulate(decay(), stop_time=1.0, step=0.3)
    np.testing.assert_allclose(motion.times, [0.0, 0.3, 0.6, 0.9, 1.0])
    np.testing.assert_allclose(motion["x"], np.exp(-2 * motion.times), rtol=1e-8)
    np.testing.assert_array_equal(motion["twice"], 2 * motion["x"])
    assert (motion.states.shape, motion.inputs.shape, motion.outputs.shape) == ((5, 1), (5, 1), (5, 1))
    assert motion.drift.shape == (5, 0)
    assert motion.energy.shape == (0,)
    assert motion.largest_drift == 0.0
    assert len(motion) == 5
    assert motion.stabilization == "Projection"


def test_a_500th_by_default_and_the_end_exactly() -> None:
    motion = fl.simulate(decay(), start_time=0.1, stop_time=0.7)
    assert len(motion) == 501
    assert (motion.times[0], motion.times[-1]) == (0.1, 0.7)


def test_a_step_that_divides_the_whole_makes_no_extra_sample() -> None:
    assert len(fl.simulate(decay(), stop_time=0.7, step=0.1)) == 8


def test_no_time_at_all_is_one_sample() -> None:
    motion = fl.simulate(decay(), stop_time=0.0)
    np.testing.assert_array_equal(motion.states, [[1.0]])


def test_a_sample_is_an_operating_point() -> None:
    model = cartesian_pendulum(angle=1.0)
    motion = fl.simulate(model, stop_time=0.5, step=0.25)
    point = motion.point()
    assert point.time == 0.5
    lin = fl.linearize(model, point)
    np.testing.assert_allclose(lin.point.states["x"], motion["x"][-1])
    again = fl.simulate(model, motion.point(1), stop_time=0.5, step=0.25)
    np.testing.assert_allclose(again.states[-1], motion.states[-1], atol=1e-8)


def test_changed_parameters_travel_along() -> None:
    motion = fl.simulate(cartesian_pendulum(angle=1.0).with_parameters({"g": 4.0}), stop_time=0.1)
    assert motion.point().parameters == {"g": 4.0}


def test_unknown_quantity() -> None:
    with pytest.raises(fl.UnknownNameError, match=r"'twic' is not .* Did you mean 'twice'"):
        fl.simulate(decay(), stop_time=0.1)["twic"]


def test_progress_and_statistics() -> None:
    told: list[float] = []
    motion = fl.simulate(decay(), stop_time=1.0, step=0.5, method=Method("RK4", longest_step=0.1), progress=told.append)
    np.testing.assert_allclose(told, np.arange(1, 11) / 10)
    assert motion.statistics.steps == 10
    assert motion.statistics.projections == 0
    assert motion.statistics.evaluations >= 41


def test_observed_order_of_rk4() -> None:
    errors = []
    for h in (0.1, 0.05, 0.025):
        motion = fl.simulate(decay(), stop_time=1.0, step=0.37, method=Method("RK4", longest_step=h))
        errors.append(np.abs(motion["x"] - np.exp(-2 * motion.times)).max())  # samples between steps, too
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert (np.abs(orders - 4) < 0.4).all()


def test_dense_output_of_rk4_is_a_cubic() -> None:
    solver = FixedRungeKutta4(lambda t, y: np.array([3 * t**2, 1.0]), 0.0, np.zeros(2), 1.0, step=1.0)
    solver.step()
    dense = solver.dense_output()
    np.testing.assert_allclose(dense(0.3), [0.027, 0.3], atol=1e-15)
    np.testing.assert_allclose(dense(np.array([0.3, 0.6])), [[0.027, 0.216], [0.3, 0.6]], atol=1e-15)


def test_constraints_that_depend_on_time() -> None:
    """x runs along a prescribed circle: x = 2 + cos(t) + ..., held although the model itself drifts off."""
    model = OdeModel(
        "driven",
        {"x": "-sin(time) + 1e-3*(x - cos(time))", "y": "x"},
        constraints=[SymbolicConstraint("x - cos(time)", "prescribed", "velocity")],
        start={"x": 1.0},
    )
    for stabilization in ("projection", "local"):
        motion = fl.simulate(model, stop_time=5.0, step=0.5, stabilization=stabilization)
        np.testing.assert_allclose(motion["x"], np.cos(motion.times), atol=1e-13)
        np.testing.assert_allclose(motion["y"], np.sin(motion.times), atol=1e-8)


def test_no_states_and_no_freedom() -> None:
    gain = OdeModel("gain", {}, inputs=["u"], outputs={"y": "2*u"})
    motion = fl.simulate(gain, stop_time=1.0, step=0.25, inputs={"u": np.cos})
    np.testing.assert_allclose(motion["y"], 2 * np.cos(motion.times))
    assert motion.states.shape == (5, 0)
    led = OdeModel(
        "led",
        {"x": "-sin(time)"},
        constraints=[SymbolicConstraint("x - cos(time)", level="velocity")],
        start={"x": 1.0},
    )
    for stabilization in ("local", "projection", "none"):
        motion = fl.simulate(led, stop_time=2.0, step=0.5, stabilization=stabilization)
        np.testing.assert_allclose(motion["x"], np.cos(motion.times), atol=1e-8)


def test_nonholonomic_constraints() -> None:
    """The disk rolls straight on at constant speed; its contact path is a line."""
    disk = rolling_disk(speed=1.5)
    for stabilization in ("projection", "local", "baumgarte"):
        motion = fl.simulate(disk, stop_time=2.0, step=0.5, stabilization=stabilization)
        np.testing.assert_allclose(motion["q4"], motion["q4"][0] + 1.5 * motion.times, atol=1e-8)
        np.testing.assert_allclose(motion["q2"], 0.0, atol=1e-9)
        assert motion.largest_drift < 1e-10


def test_a_leaning_disk_keeps_its_energy() -> None:
    disk = rolling_disk(speed=1.5, lean=0.1)
    kinetic = "m*(u4^2 + u5^2 + u6^2)/2 + m*r^2/8*(u1^2 + u3^2) + m*r^2/4*u2^2"
    motion = fl.simulate(disk, stop_time=3.0, step=0.1, energy=f"{kinetic} - m*g*q6")
    assert np.ptp(motion.energy) < 1e-7 * abs(motion.energy[0])
    assert motion.largest_drift < 1e-11


def test_heavily_constrained() -> None:
    model = four_bar(loops=4)
    start = fl.operating_point(model, {"phi": 1.7})
    one = fl.simulate(model, start, stop_time=2.0, step=0.1)
    other = fl.simulate(model, start, stop_time=2.0, step=0.1, stabilization="local")
    np.testing.assert_allclose(one.states, other.states, atol=1e-7)
    np.testing.assert_allclose(one["y0"], np.sin(one["phi"]), atol=1e-12)


# -- what cannot be done -----------------------------------------------------------------------------


def test_impossible_times() -> None:
    with pytest.raises(fl.UsageError, match="cannot stop at -1 s: it starts at 0 s"):
        fl.simulate(decay(), stop_time=-1.0)
    with pytest.raises(fl.UsageError, match="cannot stop at inf"):
        fl.simulate(decay(), stop_time=np.inf)
    for step in (0.0, -1.0, np.nan):
        with pytest.raises(fl.UsageError, match=r"positive number of seconds|is not a number \(NaN\)"):
            fl.simulate(decay(), stop_time=1.0, step=step)
    with pytest.raises(fl.UsageError, match="10 million"):
        fl.simulate(decay(), stop_time=1.0, step=1e-9)


def test_the_old_names_are_accepted() -> None:
    motion = fl.simulate(decay(), stop_time=1.0, step=0.5, formulation="local")
    assert motion.stabilization == motion.formulation == "LocalForm"
    points = fl.snapshots(cartesian_pendulum(angle=1.0), times=[0.5], formulation=Underlying())
    assert len(list(points)) == 1
    with pytest.raises(fl.UsageError, match="'magic' is not a stabilization"):
        fl.simulate(decay(), stop_time=1.0, formulation="magic")


def test_unknown_ways() -> None:
    with pytest.raises(fl.UsageError, match="'magic' is not a stabilization: use projection, local, baumgarte, none"):
        fl.simulate(decay(), stop_time=1.0, stabilization="magic")
    with pytest.raises(fl.UsageError, match="'LSODA' is not an integration method"):
        fl.simulate(decay(), stop_time=1.0, method="LSODA")
    with pytest.raises(fl.UsageError, match="cannot be reached"):
        Method(relative=1e-16)
    with pytest.raises(fl.UsageError, match="longest step must be positive, not 0"):
        Method(longest_step=0.0)
    with pytest.raises(fl.UsageError, match="RK4 has no step size control"):
        Method("RK4")


def test_a_start_off_the_manifold() -> None:
    point = fl.OperatingPoint(0.0, np.array([0.1, -1.3, 0.0, 0.0]), np.zeros(1))
    with pytest.raises(fl.ConstraintError, match="start of the simulation is not on the manifold: 'x\\^2") as caught:
        fl.simulate(pendulum(length=1.3), point, stop_time=1.0)
    assert abs(next(iter(caught.value.residuals.values())) - 0.01) < 1e-12


def test_a_constraint_that_the_motion_does_not_keep() -> None:
    free = OdeModel("free", {"x": "v", "v": "-x"}, constraints=["x - 1"], start={"x": 1.0})
    with pytest.raises(fl.ConstraintError, match=r"does not keep these constraints: .*x - 1"):
        fl.simulate(free, stop_time=1.0)
    assert fl.simulate(free, stop_time=1.0, stabilization="none").largest_drift > 0.4


def test_nan_is_named_with_its_time() -> None:
    """h' = -1 - sqrt(h) reaches 0 at 2 - 2 log 2 and has no derivative beyond."""
    tank = OdeModel("tank", {"h": "-1 - sqrt(h)"}, start={"h": 1.0})
    with pytest.raises(
        fl.NumericalError, match=r"cannot continue at t = 0.61370\d+ s. .*derivative of the state 'h'"
    ) as e:
        fl.simulate(tank, stop_time=2.0)
    assert e.value.variable == "h"


def test_nan_at_the_start() -> None:
    broken = OdeModel("broken", {"h": "sqrt(h)"}, start={"h": -1.0})
    with pytest.raises(fl.NumericalError, match=r"cannot continue at t = 0 s\. The model returns NaN"):
        fl.simulate(broken, stop_time=1.0)


def test_a_solution_that_blows_up() -> None:
    runaway = OdeModel("runaway", {"x": "x^2"}, start={"x": 1.0})
    with pytest.raises(fl.NumericalError, match=r"cannot continue at t = (0\.99999|1)"):
        fl.simulate(runaway, stop_time=2.0)
    with pytest.raises(fl.NumericalError, match="overflow within one step"):
        fl.simulate(runaway, stop_time=9.0, method=Method("RK4", longest_step=0.1))


def test_the_local_form_says_where_and_with_which_coordinates_it_cannot_go_on() -> None:
    model = cartesian_pendulum(angle=0.3)
    start = fl.operating_point(model)
    plant = Plant(model, start, input_course(model.inputs, start.inputs, None), {0: 2, 1: 3}, None)
    running = LocalForm(independent=["x"]).start(plant)
    z = running.begin(0.0, start.states)
    assert np.isnan(running.rates(0.5, z + np.array([1.0, 0.0]))).all()  # x = 1.3 is not on a circle of 1 m
    assert "with the requested coordinates" in str(plant.trouble)
    with pytest.raises(fl.NumericalError, match=r"cannot continue at t = 0.5 s with the coordinates x, vx \(condition"):
        running.states(0.5, z + np.array([1.0, 0.0]))


def test_a_model_that_is_singular_on_the_way() -> None:
    def rates(t: float, s: np.ndarray, u: np.ndarray) -> np.ndarray:
        if t > 0.5:
            raise fl.NumericalError("The matrix is singular there.", condition_number=1e17)
        return np.array([1.0])

    model = FunctionModel(Parts(["x"], [0.0], rates))
    with pytest.raises(
        fl.NumericalError, match=r"cannot continue at t = 0\.(49999\d*|5) s. The matrix is singular"
    ) as e:
        fl.simulate(model, stop_time=1.0)
    assert e.value.condition_number == 1e17
