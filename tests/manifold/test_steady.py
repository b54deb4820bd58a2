"""Steady motions: coordinates in which A stays the same along them, against closed forms and moving frames."""

from __future__ import annotations

from math import sqrt
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import Constraint
from fmilin.fmi.write import build_fmu
from fmilin.linearization.evaluation import evaluate
from fmilin.manifold.differentiation import differentiate
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.point_motion import find_motion
from fmilin.manifold.verified_frame import verify_frame
from fmilin.model.evaluator import PointEvaluator
from fmilin.models.mechanism import Body, Joint, Mechanism, MechanismDescription
from fmilin.numerics.balanced import is_equilibrium
from fmilin.systems import bicycle, furuta_pendulum, rolling_disk
from tests.by_hand import FunctionModel, Parts, pendulum
from tests.motions import conical
from tests.systems.turns import steady_yaw_rates

RADIUS, GRAVITY = 0.35, 9.81
WELL = ("q1", "q2", "q3", "q4", "q5", "u1", "u2", "u3")
LOOPS = [
    Constraint.from_text("residual[1]"),
    *(Constraint.from_text(f"residual[{i}]", level="velocity") for i in (2, 3, 4)),
]


def disk(speed: float, lean: float = 0.0, yaw_rate: float | None = None) -> fl.Model:
    """The disk of Peterson et al., which its author recommends no coordinates for."""
    model = rolling_disk(speed, lean=lean, yaw_rate=yaw_rate, radius=RADIUS, gravity=GRAVITY)
    model.independent = ()
    return model


def pair(speed: float, lean: float = 0.0, yaw_rate: float = 0.0) -> float:
    """lambda^2 of the disk in a steady turn (math.md, section 8)."""
    spin = -speed / RADIUS
    turning = yaw_rate**2 + 14 / 5 * np.sin(lean) * yaw_rate * spin + 12 / 5 * spin**2
    return float(4 / 5 * GRAVITY / RADIUS * np.cos(lean) - turning)


def kinds(linear: fl.LinearModel) -> list[str]:
    return [w.kind for w in linear.warnings]


def is_that_of_the_disk(linear: fl.LinearModel, square: float) -> None:
    s = np.sort_complex(linear.eigenvalues() ** 2)
    np.testing.assert_allclose(s[:2] if square < 0 else s[-2:], square, rtol=1e-7)
    others = s[2:] if square < 0 else s[:-2]
    np.testing.assert_allclose(others, 0.0, atol=1e-4 * abs(square))  # six zeros, defective


@pytest.fixture(scope="module")
def as_fmu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_fmu(rolling_disk(2.5, radius=RADIUS, gravity=GRAVITY), tmp_path_factory.mktemp("fmu") / "disk.fmu")


@pytest.mark.parametrize("derivatives", ["auto", "differences"])
def test_the_rolling_disk_as_an_fmu_without_a_recommendation(as_fmu: Path, derivatives: str) -> None:
    model = fl.load(as_fmu, constraints=LOOPS)
    assert not model.independent
    linear = fl.linearize(model, derivatives=derivatives)
    assert linear.states.names == WELL
    assert np.max(linear.eigenvalues().imag) == pytest.approx(sqrt(-pair(2.5)), rel=1e-7)
    assert sqrt(-pair(2.5)) == pytest.approx(10.0013, abs=1e-4)
    is_that_of_the_disk(linear, pair(2.5))
    assert "steady" in kinds(linear)
    assert "off-equilibrium" not in kinds(linear)


@pytest.mark.parametrize("speed", [0.4, 2.5, -6.0])
@pytest.mark.parametrize("derivatives", ["auto", "differences"])
def test_the_disk_rolls_straight_on(speed: float, derivatives: str) -> None:
    linear = fl.linearize(disk(speed), derivatives=derivatives)
    is_that_of_the_disk(linear, pair(speed))
    assert kinds(linear) == ["steady"]
    assert "carried" not in str(linear.warnings[0])


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(("speed", "lean"), [(2.5, 0.3), (3.0, 0.5), (2.0, -0.1)])
def test_the_disk_in_a_steady_turn(speed: float, lean: float, which: int) -> None:
    """Where it touches the ground goes round, and nothing depends on that: no two such states move uniformly."""
    rate = steady_yaw_rates(speed, lean, radius=RADIUS, gravity=GRAVITY)[which]
    linear = fl.linearize(disk(speed, lean, rate))
    assert linear.states.names == WELL
    is_that_of_the_disk(linear, pair(speed, lean, rate))
    assert kinds(linear) == ["steady"]
    assert "No state depends on q4, q5" in str(linear.warnings[0])


def test_a_turn_that_was_trimmed(as_fmu: Path) -> None:
    """A trim leaves a trace of rates where there is rest, and they are none of a motion."""
    lean, speed = 0.3, 2.5
    rate = steady_yaw_rates(speed, lean, radius=RADIUS, gravity=GRAVITY)[0]
    spin = np.sin(lean) * rate - speed / RADIUS
    model = fl.load(as_fmu, constraints=LOOPS)
    guess = {"u3": 1.05 * np.cos(lean) * rate, "u1": 0.02, "u4": -RADIUS * spin, "u6": 0.1}
    point = fl.trim(model, fixed={"q2": lean, "u2": spin}, guess=guess, steady=["q1", "q3", "q4", "q5"])
    for derivatives in ("auto", "differences"):
        linear = fl.linearize(model, point, derivatives=derivatives)
        is_that_of_the_disk(linear, pair(speed, lean, rate))
        assert [kind for kind in kinds(linear) if kind in ("steady", "off-equilibrium")] == ["steady"]


@pytest.mark.parametrize("off", [1e-1, 1e-3, 1e-5])
def test_a_turn_that_is_nearly_steady_is_not(off: float) -> None:
    rate = steady_yaw_rates(2.5, 0.3, radius=RADIUS, gravity=GRAVITY)[0] * (1 + off)
    linear = fl.linearize(disk(2.5, 0.3, rate))
    assert kinds(linear) == ["off-equilibrium", "periodic"]
    assert "depend on the choice of coordinates" in str(linear.warnings[0])


def test_coordinates_that_turn_with_the_wheel_are_remarked() -> None:
    linear = fl.linearize(disk(2.5), independent=["q1", "q2", "q3", "q4", "q5", "u1", "u3", "u4"])
    assert np.min(np.abs(linear.eigenvalues() - 2.5 / RADIUS * 1j)) < 1e-6  # the wheel's own rate
    assert kinds(linear) == ["off-equilibrium"]
    assert f"in {', '.join(WELL)} A stays the same" in str(linear.warnings[0])


@pytest.mark.parametrize("recommended", [True, False])
def test_the_bicycle_at_a_speed(recommended: bool) -> None:
    model = bicycle(speed=4.6)
    expected = fl.linearize(model).eigenvalues()
    if not recommended:
        model.independent = ()
    linear = fl.linearize(model)
    assert "off-equilibrium" not in kinds(linear)
    np.testing.assert_allclose(np.sort_complex(linear.eigenvalues())[:4], np.sort_complex(expected)[:4], rtol=1e-9)


def test_a_falling_pendulum_has_no_coordinates_of_that_kind() -> None:
    linear = fl.linearize(pendulum(angle=0.7))
    assert kinds(linear) == ["off-equilibrium"]
    assert str(linear.warnings[0]).endswith("A and its eigenvalues depend on the choice of coordinates.")


def test_without_constraints_there_is_no_choice_of_coordinates() -> None:
    """A Furuta pendulum whose arm turns, and a stone that falls."""
    model = furuta_pendulum()
    linear = fl.linearize(model, fl.operating_point(model, {"arm.v": 3.0, "pendulum.q": 0.4}))
    stone = fl.linearize(FunctionModel(Parts(["h", "v"], [1.0, 2.0], lambda t, x, u: np.array([x[1], -9.81]))))
    for moving in (linear, stone):
        messages = [str(w) for w in moving.warnings if w.kind == "off-equilibrium"]
        assert len(messages) == 1
        assert "choice of coordinates" not in messages[0]


def test_a_conical_pendulum_is_steady_in_cylinder_coordinates_only() -> None:
    """In x and y it goes round; z, the azimuth and its rate are steady: lambda^2 = -g/l (4 cos^2 + sin^2)/cos."""
    cylinder = ["phi = atan2(y, x)", "z", "turning = (x*vy - y*vx)/(x^2 + y^2)", "vz"]
    linear = fl.linearize(conical(0.3), independent=cylinder)
    assert kinds(linear) == ["steady"]
    c, s = np.cos(0.5), np.sin(0.5)
    expected = sqrt(9.81 * (4 * c**2 + s**2) / c)
    assert np.max(linear.eigenvalues().imag) == pytest.approx(expected, rel=1e-6)
    assert kinds(fl.linearize(conical(0.3))) == ["off-equilibrium"]


def carousel(uneven: float = 0.0, *, bend: float = 0.0) -> FunctionModel:
    """A horse on a carousel, x = 3 sin(phi), with a lid that closes at a rate which may depend on the angle."""

    def rates(_t: float, s: np.ndarray, _u: np.ndarray) -> np.ndarray:
        phi, _, lid = s
        turning = 2.0 + bend * np.sin(phi)
        return np.array([turning, 3.0 * np.cos(phi) * turning, -(1.0 + uneven * np.sin(phi)) * lid])

    return FunctionModel(Parts(["phi", "x", "lid"], [0.0, 0.0, 0.0], rates, constraints=["x - 3*sin(phi)"]))


def test_a_state_that_only_seems_to_move_uniformly_betrays_itself_further_on() -> None:
    """x'' = 0 at phi = 0, and x moves more than phi does: pivoting takes x."""
    plain = fl.linearize(carousel())
    assert plain.states.names == ("phi", "lid")
    assert kinds(plain) == ["steady"]
    assert kinds(fl.linearize(carousel(), independent=["x", "lid"])) == ["off-equilibrium"]


@pytest.mark.parametrize("slow", [1.0, 0.05])
@pytest.mark.parametrize("angle", [0.0, 0.4])
def test_a_slow_turn_beside_a_fast_wheel(slow: float, angle: float) -> None:
    """What turns with the wheel betrays itself at once, what turns with the carriage later."""

    def rates(_t: float, s: np.ndarray, _u: np.ndarray) -> np.ndarray:
        wheel, turn = s[:2]
        return np.array([40.0, slow, 120.0 * np.cos(wheel), 3.0 * slow * np.cos(turn)])

    start = [angle, angle, 3 * np.sin(angle), 3 * np.sin(angle)]
    ties = ["spoke - 3*sin(wheel)", "x - 3*sin(turn)"]
    model = FunctionModel(Parts(["wheel", "turn", "spoke", "x"], start, rates, constraints=ties))
    linear = fl.linearize(model)
    assert linear.states.names == ("wheel", "turn")
    assert kinds(linear) == ["steady"]
    for named in (["wheel", "x"], ["spoke", "turn"]):
        assert kinds(fl.linearize(model, independent=named)) == ["off-equilibrium"]


@pytest.mark.parametrize(("uneven", "bend", "steady"), [(0.0, 0.0, True), (3e-3, 0.0, False), (0.0, 3e-5, False)])
def test_rates_and_slopes_must_stay_the_same(uneven: float, bend: float, steady: bool) -> None:
    said = kinds(fl.linearize(carousel(uneven, bend=bend)))
    assert said == (["steady"] if steady else ["off-equilibrium", "periodic"] if uneven else ["off-equilibrium"])


def test_a_rate_that_is_rounding_is_no_motion() -> None:
    """0.1 + 0.2 - 0.3 of a small state: 5.6e-17 per second, in a nominal of 1e-9."""
    states = [fl.Signal("small", nominal=1e-9), fl.Signal("twice", nominal=1e-9)]

    def rates(_t: float, s: np.ndarray, _u: np.ndarray) -> np.ndarray:
        rate = (1e9 * s[0] + 0.1 + 0.2) - 0.3
        return np.array([-rate, -2 * rate])

    model = FunctionModel(Parts(states, [0.0, 0.0], rates, constraints=["twice - 2*small"]))
    assert abs(model.evaluate(0.0, np.zeros(2), np.zeros(0)).derivatives[0]) > 1e-9 * 1e-9
    assert not kinds(fl.linearize(model))


def visits(model: fl.Model) -> int:
    """How many points the search visits, beyond those that the slopes took."""
    evaluator, point = PointEvaluator(model), fl.operating_point(model)
    base, frame = evaluate(evaluator, point), verify_frame(evaluator, point)
    slopes = differentiate(Neighbourhood(evaluator, frame, point, base), "auto")
    before = evaluator.evaluations
    find_motion(evaluator, point, base, frame, slopes)
    return evaluator.evaluations - before


def test_what_it_costs() -> None:
    """Two points at an equilibrium, of which time changes nothing, nothing where nothing is uniform, five points along
    a motion, two more aside.

    Where a constraint on positions has a rate that only the model knows, Newton's steps to them are visits, too.
    """
    assert visits(pendulum()) == 2
    assert visits(pendulum(angle=0.7)) == 0
    assert visits(disk(0.0)) == 0
    assert 0 < visits(disk(2.5)) <= 24
    assert 0 < visits(bicycle(speed=4.6)) <= 7


def test_along_a_path_the_steady_coordinates_are_kept() -> None:
    model = disk(2.5)
    points = [fl.operating_point(model, {"q1": angle}) for angle in (0.0, 0.1, 0.2)]
    path = fl.linearize_along(model, points)
    assert [linear.states.names for linear in path] == [WELL] * 3
    assert all(kinds(linear) == ["steady"] for linear in path)


def test_a_fall_is_no_steady_motion() -> None:
    """Its velocity changes uniformly and A stays the same, but it moves faster and faster."""
    body = Body("body", 2.0, inertia=(0.1, 0.2, 0.3))
    free = Joint("base", "free", "ground", "body")
    lin = fl.linearize(Mechanism(MechanismDescription("falling", [body], [free], gravity=(0, 0, -9.81))))
    assert kinds(lin) == ["off-equilibrium"]
    assert "'base.vz' changes at -9.81 per second" in lin.warnings[0].message
    assert not lin.eigenvalues().any()


def pressed(force: float, off: float) -> FunctionModel:
    """A force balances another but for ``off``, relative, on a mass on a spring."""

    def rates(_t: float, s: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.array([s[2], 2 * s[2], force * (1 + u[0]) - force * (1 - off) - s[0]])

    return FunctionModel(Parts(["x", "twice", "v"], [0.0] * 3, rates, inputs=["F"], constraints=["twice - 2*x"]))


@pytest.mark.parametrize(("force", "off", "moves"), [(3e6, 1e-12, False), (3e6, 1e-9, True), (1.0, 1e-8, True)])
def test_forces_that_are_known_to_rounding_balance(force: float, off: float, moves: bool) -> None:
    """3 MN that are a part in 1e12 off leave 3e-6 per second: an equilibrium is there, a part in 1e12 away."""
    lin = fl.linearize(pressed(force, off))
    assert lin.f0[-1] == pytest.approx(force * off, rel=1e-3)
    assert kinds(lin) == (["off-equilibrium"] if moves else [])


def test_a_force_in_one_place_balances_none_in_another() -> None:
    """The size of a row is no excuse: what falls is stiff in another direction, along which no step stops it."""
    stiff = np.array([[-1e12, 1e12], [1e12, -1e12]])
    for rates, at_rest in ((np.array([1e-3, -1e-3]), True), (np.array([-9.81, -9.81]), False)):
        assert is_equilibrium(rates, np.ones(2), stiff, np.zeros((2, 2)), 2) is at_rest


def drifting(aside: float) -> FunctionModel:
    """x' = 1 + aside s^2 and y = 2 x; s = t moves A = dx'/ds = 2 aside s, which is zero at s = 0 only."""

    def rates(_t: float, s: np.ndarray, _u: np.ndarray) -> np.ndarray:
        speed = 1.0 + aside * s[2] ** 2
        return np.array([speed, 2 * speed, 1.0])

    return FunctionModel(Parts(["x", "y", "s"], [0.0, 0.0, 0.0], rates, constraints=["y - 2*x"]))


@pytest.mark.parametrize(("aside", "kind"), [(0.0, "steady"), (1.0, "off-equilibrium")])
def test_what_nothing_depends_on_to_first_order_may_matter_further_on(aside: float, kind: str) -> None:
    assert kinds(fl.linearize(drifting(aside))) == [kind]


class Switching(FunctionModel):
    """A model with an event where its first state passes a threshold, though nothing changes there."""

    threshold = np.inf

    def event_indicators(self, t: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        return np.array([x[0] - self.threshold])


@pytest.mark.parametrize(("threshold", "kind"), [(-1.0, "steady"), (100.0, "steady"), (0.01, "off-equilibrium")])
def test_nothing_is_confirmed_beyond_an_event(threshold: float, kind: str) -> None:
    model = Switching(drifting(0.0).parts)
    model.threshold = threshold
    assert kinds(fl.linearize(model)) == [kind]


@pytest.mark.parametrize(("threshold", "expected"), [(1e9, ["steady"]), (0.01, [])])
def test_a_trimmed_motion_that_could_not_be_followed_is_not_said_to_go_on(
    threshold: float, expected: list[str]
) -> None:
    model = Switching(drifting(1.0).parts)
    model.threshold = threshold
    point = fl.trim(model, fixed={"x": 0.0, "s": 0.0}, steady=["x", "s"])
    assert point.report.moving
    assert [remark.kind for remark in point.report.remarks] == expected
