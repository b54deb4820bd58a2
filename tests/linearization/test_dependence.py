"""States that are taken for independent but look as if they were not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.linearization.dependence import dependent_combinations, find_unmovable
from fmilin.models import KaneEquations, KaneModel, LagrangeModel, OdeModel, der
from fmilin.models import function as functions
from fmilin.models.mechanism import Body, Joint, JointForce, Mechanism, MechanismDescription
from fmilin.systems import cartesian_pendulum, four_bar, rolling_disk
from tests.by_hand import FunctionModel, Parts, Rates
from tests.hand_made import sized


def count_unmovable(linear: fl.LinearModel) -> int:
    """Return how many combinations of the states cannot change, to first order, whatever the inputs do."""
    errors, sizes = (linear.errors.A, linear.errors.B), linear.states.scales(linear.y0)
    return int(find_unmovable((linear.A, linear.B), errors, linear.f0, sizes, linear.inputs.scales()).shape[1])


@pytest.mark.parametrize("columns", [(), (0, 1), (1, 2)])
@pytest.mark.parametrize(("force", "count"), [(1.0, 0), (0.0, 1)])
def test_columns_that_are_said_to_be_regular_do_not_change_the_answer(
    columns: tuple[int, ...], force: float, count: int
) -> None:
    """The second state moves by the input only; columns that were regular elsewhere are not, or have a row of zeros."""
    matrices = np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [force]])
    errors = np.zeros((2, 2)), np.zeros((2, 1))
    unmovable = find_unmovable(matrices, errors, np.zeros(2), np.ones(2), np.ones(1), columns)
    assert unmovable.shape == (2, count)


@pytest.mark.parametrize("model", [cartesian_pendulum(), four_bar(), four_bar(loops=2), rolling_disk(speed=2.0)])
@pytest.mark.parametrize("derivatives", ["exact", "differences"])
def test_reference_systems_without_their_constraints_are_found_out(model: fl.Model, derivatives: str) -> None:
    free = fl.linearize(model.with_constraints([]), derivatives=derivatives)
    assert len(free.states) == len(model.states)
    assert [w.kind for w in free.warnings].count("dependent-states") == 1
    true = fl.linearize(model, derivatives=derivatives)
    assert "dependent-states" not in [w.kind for w in true.warnings]


def test_the_momentum_of_a_satellite_is_no_dependence() -> None:
    """A wheel that turns in a body that turns freely, and a motor between them."""
    bodies = [Body("bus", 50.0, inertia=(5.0, 6.0, 7.0)), Body("wheel", 2.0, inertia=(0.01, 0.01, 0.02))]
    joints = [Joint("yaw", "revolute", "ground", "bus"), Joint("spin", "revolute", "bus", "wheel")]
    motor = [JointForce("motor", "spin")]
    satellite = Mechanism(MechanismDescription("satellite", bodies, joints, inputs=motor, gravity=(0, 0, 0)))
    (remark,) = fl.linearize(satellite).warnings
    assert remark.kind == "conserved-quantity"
    assert "(yaw.v, spin.v take part): momentum" in remark.message


def free_drives() -> dict[str, fl.Model]:
    """Two wheels on a shaft in no bearing, a motor between them: their momentum stays, as equations of three kinds."""
    torque = ["-100*(a - b) - 0.1*(u - v) + motor", "100*(a - b) + 0.1*(u - v) - motor"]
    given: dict[str, Any] = {"inputs": ["motor"], "start": {"u": 2.0, "v": 2.0}}
    equations = {"a": "u", "b": "v", "u": torque[0], "v": f"({torque[1]})/3"}
    kane = KaneEquations(
        q=["a", "b"],
        u=["u", "v"],
        f_0=[-der("a"), -der("b")],
        f_1=["u", "v"],
        f_2=[-der("u"), -3 * der("v")],
        f_3=torque,
    )
    return {
        "Lagrange": LagrangeModel("drive", {"a": "u", "b": "v"}, [[1, 0], [0, 3]], torque, **given),
        "Kane": KaneModel("drive", kane, **given),
        "equations": OdeModel("drive", equations, **given),
    }


@pytest.mark.parametrize("kind", ["Lagrange", "Kane", "equations"])
def test_the_momentum_of_a_free_drive(kind: str) -> None:
    """What gives its freedoms away is told that momentum is conserved, what does not that it may be."""
    linear = fl.linearize(free_drives()[kind])
    stiffness, damping = 100 * (1 + 1 / 3), 0.1 * (1 + 1 / 3)
    assert np.abs(linear.eigenvalues()).max() == pytest.approx(np.sqrt(stiffness))
    assert linear.eigenvalues().real.min() == pytest.approx(-damping / 2)
    (remark,) = [w for w in linear.warnings if w.kind in ("conserved-quantity", "dependent-states")]
    assert remark.kind == ("dependent-states" if kind == "equations" else "conserved-quantity")
    assert "momentum" in remark.message
    assert "(u, v take part)" in remark.message


def test_with_other_parameters_its_freedoms_are_known_all_the_same() -> None:
    pins = [Joint("yaw", "revolute", "ground", "bus"), Joint("spin", "revolute", "bus", "wheel")]
    bodies = [Body("bus", 50.0, inertia=(5.0, 6.0, 7.0)), Body("wheel", 2.0, inertia=(0.01, 0.01, 0.02))]
    satellite = Mechanism(MechanismDescription("satellite", bodies, pins, gravity=(0, 0, 0)))
    for model in (satellite.with_parameters({"bus.mass": 60.0}), satellite.with_interface(outputs=["yaw.q"])):
        assert model.freedoms_known
    assert not four_bar().with_constraints([]).freedoms_known


def test_one_combination_for_each_constraint_on_the_velocities() -> None:
    free = fl.linearize(four_bar(loops=3).with_constraints([]))
    assert count_unmovable(free) == 8  # 4 N + 6 = 18 states: 8 positions' and 8 velocities' constraints


def test_a_free_mass_that_is_pushed_is_no_suspect() -> None:
    cart = replace(sized(2, 0, 1, 0), A=np.array([[0.0, 1.0], [0.0, 0.0]]), B=np.array([[0.0], [1.0]]))
    assert count_unmovable(cart) == 0
    coasting = replace(sized(2, 0, 0, 0), A=np.array([[0.0, 1.0], [0.0, 0.0]]), f0=np.array([0.3, 0.0]))
    assert count_unmovable(coasting) == 1
    assert count_unmovable(replace(coasting, f0=np.array([0.0, -9.81]))) == 0  # it falls


def test_states_of_very_different_size_are_no_suspects() -> None:
    sizes = np.array([1e-9, 1.0, 1e9])
    base = sized(3, 0, 0, 0)
    linear = replace(base, A=np.diag([-1.0, -2.0, -3.0]) + 0.1 * sizes[:, None] / sizes, y0=sizes)
    assert count_unmovable(linear) == 0


def test_fast_and_slow_states_together_are_no_suspects() -> None:
    exact = sized(3, 0, 0, 0)
    errors = replace(exact.errors, A=np.zeros((3, 3)), B=np.zeros((3, 0)))
    linear = replace(exact, A=np.diag([-1e9, -1.0, -1e-3]), errors=errors)
    assert count_unmovable(linear) == 0


def exactly(A: list[list[float]], f0: list[float] | None = None) -> fl.LinearModel:
    """A linear model without inputs whose entries have no error."""
    n = len(A)
    base = sized(n, 0, 0, 0)
    errors = replace(base.errors, A=np.zeros((n, n)), B=np.zeros((n, 0)))
    return replace(base, A=np.array(A), errors=errors, f0=np.array(f0 or [0.0] * n), y0=np.zeros(n))


@pytest.mark.parametrize(("part", "count"), [(1.0, 0), (1e-4, 0), (4e-7, 0), (1e-9, 1), (0.0, 1)])
def test_rows_that_are_nearly_parallel_are_two_or_one(part: float, count: int) -> None:
    """The smaller singular value over the larger is a quarter of ``part``."""
    assert count_unmovable(exactly([[-1.0, -1.0], [-1.0, -1.0 - part]])) == count


@pytest.mark.parametrize(("coupling", "count"), [(1.0, 0), (1e-12, 0), (1e-16, 1), (0.0, 1)])
def test_a_weak_coupling_is_one_and_rounding_is_none(coupling: float, count: int) -> None:
    assert count_unmovable(exactly([[-1.0, 0.0], [-1.0, coupling]])) == count


@pytest.mark.parametrize(("rate", "count"), [(-9.81, 0), (1e-4, 0), (3e-8, 0), (1e-11, 1), (0.0, 1)])
def test_a_rate_is_a_motion_and_what_a_trim_leaves_of_it_is_none(rate: float, count: int) -> None:
    assert count_unmovable(exactly([[0.0, 1.0], [0.0, 0.0]], [0.0, rate])) == count


@pytest.mark.parametrize(("rate", "count"), [(1.0, 0), (1e-4, 0), (3e-7, 0), (1e-10, 1), (0.0, 1)])
def test_a_slow_rate_beside_a_fast_one_is_a_motion(rate: float, count: int) -> None:
    assert count_unmovable(exactly([[0.0, 1.0], [0.0, 0.0]], [1.0, rate])) == count


def test_no_states_no_suspects() -> None:
    assert count_unmovable(sized(0, 0, 1, 1)) == 0


@pytest.mark.parametrize("size", [1e-9, 1e-6, 1e9])
def test_states_of_any_size_without_nominals_are_no_reason_for_a_remark(size: float) -> None:
    model = FunctionModel(
        Parts(["small", "one"], [size, 1.0], lambda t, x, u: np.array([-x[0] + size * x[1], -2 * x[1] + u[0]]), ["u"])
    )
    assert "dependent-states" not in [w.kind for w in fl.linearize(model).warnings]


def test_a_falling_ball_depends_on_nothing() -> None:
    ball = functions.FunctionModel("ball", {"h": 1.0, "v": 0.0}, lambda _t, x, _u: np.array([x[1], -9.81]))
    assert "dependent-states" not in [w.kind for w in fl.linearize(ball).warnings]


def a_function(name: str, start: dict[str, float], rates: functions.Function, inputs: tuple[str, ...] = ()) -> fl.Model:
    return functions.FunctionModel(name, start, rates, inputs=list(inputs))


INDEPENDENT = {
    "a pump at rest, where A = 0": a_function(
        "pump",
        {"p": 0.0, "w": 0.0, "q": 0.0},
        lambda _t, x, _u: np.array([x[1] ** 2 - x[0] * x[2], x[1] * x[2] - x[1] ** 3, x[1] * x[0]]),
    ),
    "a valve that is shut": a_function(
        "valve",
        {"p": 1.0, "m": 2.0},
        lambda _t, x, _u: np.array([3.0, -2.0]) * max(x[0] - 1.2, 0.0),
    ),
    "stiff kinetics": a_function(
        "robertson",
        {"a": 1.0, "b": 0.0, "c": 0.0},
        lambda _t, x, _u: np.array(
            [
                -0.04 * x[0] + 1e4 * x[1] * x[2],
                0.04 * x[0] - 1e4 * x[1] * x[2] - 3e7 * x[1] ** 2,
                3e7 * x[1] ** 2,
            ]
        ),
    ),
    "kinetics": a_function(
        "reaction",
        {"a": 1.0, "b": 2.0, "c": 0.0},
        lambda _t, x, _u: np.array([-1.0, -1.0, 1.0]) * (x[0] * x[1] - x[2]),
    ),
    "an oscillator with a parameter for a state": a_function(
        "oscillator",
        {"x": 2.0, "v": 0.0, "mu": 1.0},
        lambda _t, x, _u: np.array([x[1], x[2] * (1 - x[0] ** 2) * x[1] - x[0], 0.0]),
    ),
    "a motor that runs out": a_function(
        "motor", {"phi": 0.0, "w": 1.0}, lambda _t, x, _u: np.array([x[1], -0.5 * x[1]])
    ),
}


@pytest.mark.parametrize("name", INDEPENDENT)
def test_a_rate_that_happens_to_be_zero_is_no_dependence(name: str) -> None:
    linear = fl.linearize(INDEPENDENT[name])
    assert count_unmovable(linear) > 0
    assert "dependent-states" not in [w.kind for w in linear.warnings]


def test_a_gear_is_one_and_its_states_are_named() -> None:
    def rates(_t: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        pull = u[0] - x[0] - 0.1 * x[2]
        return np.array([x[2], x[3], pull, 2 * pull, -x[4]])

    gear = a_function("gear", {"x": 0.0, "y": 0.0, "vx": 0.0, "vy": 0.0, "other": 0.0}, rates, ("u",))
    (remark,) = [w for w in fl.linearize(gear).warnings if w.kind == "dependent-states"]
    assert "1 combination of them cannot" in str(remark)
    assert "(vx, vy take part)" in str(remark)
    assert "fl.discover(model)" in str(remark)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_true_combination_survives_the_second_look(count: int) -> None:
    free = four_bar(loops=count).with_constraints([])
    linear = fl.linearize(free)
    assert dependent_combinations(linear, free, free.start).shape[1] == count_unmovable(linear) == 2 * count + 2


def _pump(t: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    return 0.0 * x


def _reaction(t: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    rate = x[0] * x[1] - 2.0 * x[2]
    return np.array([-rate, -rate, rate])


def _oscillator(t: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    return np.array([x[1], (1.0 - x[0] ** 2) * x[1] - x[0], 0.0])


@pytest.mark.parametrize("rates", [_pump, _reaction, _oscillator])
@pytest.mark.parametrize("start", [(1.0, 1.0, 0.5), (1.0, 2.0, 3.0), (0.0, 0.0, 0.0)])
def test_conserved_sums_and_constants_are_no_constraints(rates: Rates, start: tuple[float, ...]) -> None:
    """Mass in a reaction, what a pump holds, a parameter beside an oscillator."""
    linear = fl.linearize(FunctionModel(Parts(("a", "b", "c"), start, rates)))
    assert count_unmovable(linear) > 0
    assert "dependent-states" not in [w.kind for w in linear.warnings]
