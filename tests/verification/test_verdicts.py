"""Right linear models pass, wrong ones fail, whatever the coordinates and wherever the point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import fmilin as fl
from fmilin import LinearModel
from fmilin.models import OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar, rolling_disk
from tests.by_hand import FunctionModel, Parts, pendulum
from tests.linearization.test_nonlinear_coordinates import cart
from tests.random_systems import Family, Recipe, hidden_system

ANGLE = "theta=atan2(x, -y)"


def kinds(verification: fl.Verification) -> set[str]:
    return {channel.kind for channel in verification.channels}


def scaled(linear: LinearModel, name: str, place: tuple[int, ...], factor: float) -> LinearModel:
    """The same linear model with one entry of a matrix wrong."""
    matrix = getattr(linear, name).copy()
    matrix[place] = matrix[place] * factor if matrix[place] else factor - 1.0
    return replace(linear, **{name: matrix})


def test_the_hanging_pendulum_passes_with_second_order() -> None:
    model = cartesian_pendulum()
    found = fl.linearize(model).verify(model)
    assert found.passed
    assert found.failed == ()
    assert kinds(found) == {"point", "offset", "step", "sine"}
    for channel in found.channels[1:]:
        assert channel.slope_error < 1e-7
        assert channel.order == pytest.approx(2.0, abs=0.05)
        assert channel.validity is not None
        assert channel.trace is not None
    frequencies = [c.frequency for c in found.channels if c.kind == "sine"]
    assert frequencies == pytest.approx(np.sqrt(9.81) * np.array([0.5, 1.0, 2.0]))
    assert found.horizon == pytest.approx(4 * np.pi / np.sqrt(9.81))


@pytest.mark.parametrize(
    ("name", "place", "channel"),
    [
        ("A", (1, 0), "offset"),
        ("B", (1, 0), "step"),
        ("C", (0, 0), "offset"),
        ("C", (2, 1), "offset"),
        ("D", (1, 0), "step"),
        ("T", (1, 0), "offset"),
    ],
)
def test_one_wrong_entry_fails_with_first_order(name: str, place: tuple[int, int], channel: str) -> None:
    """One percent in A, B or an output, or a coupling that is not there."""
    model = cartesian_pendulum()
    found = fl.verify(model, scaled(fl.linearize(model), name, place, 1.01), horizon=1.0)
    assert not found.passed
    wrong = [c for c in found.failed if c.kind == channel]
    assert wrong
    for c in wrong:
        assert 5e-4 < c.slope_error < 1.01
        assert c.order == pytest.approx(1.0, abs=0.2)
        assert c.validity is None


def test_a_small_output_that_is_wrong_fails_by_its_own_response() -> None:
    """It responds with 1/300 of the other one: beside that its error of 3 per cent is 1e-4."""
    model = OdeModel("two sizes", {"x": "-x + u", "z": "-3*z + 1e-2*u"}, inputs=["u"], outputs={"x": "x", "z": "z"})
    linear = fl.linearize(model)
    assert linear.verify(model).passed
    assert not scaled(linear, "B", (1, 0), 1.03).verify(model).passed


def test_a_sign_error_fails_in_every_channel() -> None:
    model = cartesian_pendulum()
    found = fl.verify(model, scaled(fl.linearize(model), "A", (1, 0), -1.0), horizon=1.0)
    assert {c.kind for c in found.failed} == {"offset", "step", "sine"}
    assert min(c.slope_error for c in found.failed) > 0.3


def test_rows_of_the_naive_jacobian_fail() -> None:
    """A = (df/dx)_ii of the independent states alone, dependent ones frozen: what naive tools do."""
    model = pendulum(angle=0.6, exact=True)
    linear = fl.linearize(model, independent=["x"])
    J, _ = model.parts.jacobians(0.0, model.start.states, model.start.inputs)  # type: ignore[misc]
    naive = replace(linear, A=J[np.ix_([0, 2], [0, 2])])
    assert np.abs(naive.A - linear.A).max() > 0.1
    assert fl.verify(model, linear, horizon=1.0).passed
    found = fl.verify(model, naive, horizon=1.0)
    assert {c.kind for c in found.failed} >= {"offset", "step"}


def test_a_linear_model_with_spurious_states_fails() -> None:
    model = four_bar()
    naive = fl.linearize(model.with_constraints([]))
    with pytest.raises(fl.NumericalError, match=r"treats 10 states as independent, .* only 2 at this point"):
        fl.verify(model, naive)


@pytest.mark.parametrize("coordinates", ["partition", "tangent", ANGLE])
def test_a_swinging_pendulum_in_any_coordinates(coordinates: str) -> None:
    """Away from equilibria A depends on the coordinates; the verification finds those that the model was made in."""
    model = cartesian_pendulum(angle=0.5, rate=0.8)
    if coordinates == ANGLE:
        linear = fl.linearize(model, independent=[ANGLE])
    else:
        linear = fl.linearize(model, coordinates=coordinates)
    found = linear.verify(model, horizon=0.7)
    assert found.passed, found.table()
    assert "drift" in kinds(found)
    in_others = replace(linear, A=fl.linearize(model, independent=["y"]).A)
    assert not in_others.verify(model, horizon=0.7).passed


@pytest.mark.parametrize("entry", [0, 1])
def test_a_wrong_rate_at_the_point_fails(entry: int) -> None:
    model = cartesian_pendulum(angle=0.5, rate=0.8)
    linear = fl.linearize(model)
    found = scaled(linear, "f0", (entry,), 1.01).verify(model, horizon=0.6)
    assert {c.kind for c in found.failed} == {"point", "drift"}
    wrong_path = scaled(linear, "A", (1, 0), 1.1).verify(model, horizon=0.6)
    assert "drift" in {c.kind for c in wrong_path.failed}


def test_wrong_values_at_the_point_fail() -> None:
    model = cartesian_pendulum(angle=0.3)
    linear = fl.linearize(model, independent=[ANGLE])
    outputs = {**linear.point.outputs, "ay": 1.01 * linear.point.outputs["ay"]}
    found = fl.verify(model, replace(linear, point=replace(linear.point, outputs=outputs)), horizon=0.5)
    assert [(c.kind, c.worst) for c in found.failed] == [("point", "ay")]
    assert found.failed[0].label == "the point itself"


def test_an_unstable_equilibrium_is_followed_for_a_short_while() -> None:
    model = pendulum(angle=np.pi, exact=True)
    linear = fl.linearize(model)
    found = linear.verify(model)
    assert found.passed
    assert found.horizon == pytest.approx(np.log(20) / np.sqrt(9.81 / 1.3), rel=1e-6)
    assert not scaled(linear, "A", (1, 0), 1.01).verify(model).passed


def test_the_rolling_disk_in_a_steady_turn() -> None:
    """No equilibrium of its twelve states; 6 of 8 eigenvalues are zero."""
    model = rolling_disk(speed=1.2, lean=0.15)
    linear = fl.linearize(model, inputs=[], outputs=["lean", "yaw_rate"])
    found = linear.verify(model, horizon=1.0)
    assert found.passed, found.table()
    assert len([c for c in found.channels if c.kind == "offset"]) == 8
    by_name = {c.signal: c for c in found.channels}
    for ignorable in ("q4", "q5"):  # the disk does not know where on the plane it is
        assert np.isnan(by_name[ignorable].order)
        assert by_name[ignorable].validity is not None
        assert by_name[ignorable].validity.at_least  # type: ignore[union-attr]


def test_a_driven_pivot() -> None:
    """Inputs that prescribe a motion move the dependent states: T_u takes part."""
    model = cart(exact=True)
    linear = fl.linearize(model)
    found = linear.verify(model, horizon=0.6)
    assert found.passed, found.table()
    wrong = replace(linear, T_u=np.zeros_like(linear.T_u))
    assert any(c.signal == "s" for c in wrong.verify(model, horizon=0.6).failed)
    with pytest.raises(fl.UsageError, match="has the prescribed motion 's' among its states"):
        linear.with_prescribed_states().verify(model)


@pytest.mark.parametrize("seed", range(2))
def test_random_hidden_systems(seed: int) -> None:
    """The known answer passes; the same with one entry of A wrong by a tenth of the largest does not."""
    family: Family = ("first order", "second order")[seed % 2]
    recipe = Recipe(family=family, p=2, m=1 + seed % 2, seed=seed, at_rest=seed != 1)
    _, model = hidden_system(recipe)
    linear = fl.linearize(model)
    found = linear.verify(model, horizon=0.2)
    assert found.passed, found.table()
    A = linear.A.copy()
    A[np.unravel_index(np.argmax(np.abs(A)), A.shape)] *= 1.1
    assert not replace(linear, A=A).verify(model, horizon=0.2).passed


# -- small and strange models ------------------------------------------------------------------------


def test_no_inputs_no_outputs_no_states() -> None:
    no_inputs = fl.linearize(cartesian_pendulum(), inputs=[], outputs=[])
    assert kinds(no_inputs.verify(cartesian_pendulum())) == {"point", "offset"}
    gain = FunctionModel(
        Parts([], [], lambda *_: np.empty(0), inputs=["u"], outputs=["y"], output=lambda t, x, u: np.sin(2 * u))
    )
    found = fl.linearize(gain).verify(gain)
    assert found.passed
    (step,) = [c for c in found.channels if c.kind == "step"]
    # 2 a - sin(2 a) = 5 % of 2 a
    assert step.validity is not None
    assert 0.9 * 0.2753 < step.validity.limit <= 0.2753
    wrong = replace(fl.linearize(gain), D=np.array([[1.9]]))
    assert [c.kind for c in wrong.verify(gain).failed] == ["step"]
    nothing = FunctionModel(Parts([], [], lambda *_: np.empty(0)))
    assert fl.linearize(nothing).verify(nothing).passed


def test_a_model_that_is_linear_has_no_limit() -> None:
    model = OdeModel("linear", {"x": "v", "v": "-4*x - 0.4*v + u"}, inputs=["u"], outputs={"y": "x"})
    found = fl.linearize(model).verify(model)
    assert found.passed
    for channel in found.channels[1:]:
        assert np.isnan(channel.order)
        assert channel.validity is not None
        assert channel.validity.at_least


def test_stiff_and_slow_together() -> None:
    """A decay 10,000 times faster than the oscillation: an implicit method takes over."""
    model = OdeModel(
        "stiff",
        {"x": "v", "v": "-x - 0.1*x^2 + z", "z": "-1e4*(z - u - 0.1*x^2)"},
        inputs=["u"],
        outputs={"y": "x + z"},
    )
    linear = fl.linearize(model)
    found = linear.verify(model)
    assert found.horizon == pytest.approx(4 * np.pi)
    assert found.passed, found.table()
    assert not scaled(linear, "A", (1, 0), 1.01).verify(model).passed


@pytest.mark.parametrize("beside", [1e-4, 1e-6])
def test_a_pendulum_that_is_nearly_horizontal_is_right_and_a_wrong_one_is_not(beside: float) -> None:
    """A is 2 g ``beside`` and changes by as much over ``beside``: only tiny amplitudes are small; rounding shows."""
    model = cartesian_pendulum(angle=np.pi / 2 - beside)
    linear = fl.linearize(model)
    found = linear.verify(model)
    assert found.passed, found.table()
    assert not scaled(linear, "A", (1, 0), 1.05).verify(model).passed
    if beside > 1e-5:  # an input that moves next to nothing counts in natural sizes
        assert not scaled(linear, "B", (1, 0), 1.05).verify(model).passed


def test_a_horizon_over_which_rounding_hides_everything_is_refused() -> None:
    model = cartesian_pendulum(angle=np.pi / 2 - 1e-6)
    with pytest.raises(
        fl.UsageError, match=r"rounding of the model hides the response of the linear model.*shorter time, horizon="
    ):
        fl.linearize(model).verify(model, horizon=3e4)


def test_noise_is_not_taken_for_an_error() -> None:
    parts = pendulum().parts

    def noisy(t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        noise = 1e-9 * float(np.sin(1e9 * np.sum(x)))
        rates: FloatArray = parts.rates(t, x, u) + np.array([0.0, 0.0, noise, -noise])
        return rates

    model = FunctionModel(Parts(**{**vars(parts), "rates": noisy, "output": None, "outputs": ()}))
    linear = fl.linearize(model, independent=["x"])
    found = linear.verify(model, horizon=0.8)
    assert found.passed, found.table()
    assert not scaled(linear, "A", (1, 0), 1.05).verify(model, horizon=0.8).passed


def test_a_model_that_depends_on_time_is_frozen_at_its_point() -> None:
    model = OdeModel("driven", {"x": "v", "v": "-(1 + 0.5*sin(time))*sin(x) + cos(time)"}, start={"x": 0.3, "v": 0.2})
    linear = fl.linearize(model, fl.operating_point(model, time=0.7))
    assert linear.verify(model).passed
    assert not scaled(linear, "A", (1, 0), 1.02).verify(model).passed


def test_a_model_that_ends_limits_the_amplitude() -> None:
    """sqrt(1 + x) ends at x = -1; up to there the response to the input stays within 5 %."""
    model = OdeModel("edge", {"x": "-x + u + 1e-3*(sqrt(1 + x) - 1 - x/2)"}, inputs=["u"], outputs={"y": "x"})
    found = fl.linearize(model).verify(model)
    assert found.passed
    (step,) = [c for c in found.channels if c.kind == "step"]
    assert step.validity is not None
    assert 0.95 < step.validity.limit < 1.1
    assert "not a number" in step.validity.limited_by


def test_parameters_of_the_point_are_set() -> None:
    model = four_bar()
    point = fl.trim(model, fixed={"phi": 1.9}, free=["k"])
    assert fl.linearize(model, point).verify(model, horizon=0.6).passed


def test_progress_is_told() -> None:
    told: list[float] = []
    model = OdeModel("decay", {"x": "-x"})
    fl.verify(model, fl.linearize(model), progress=told.append)
    assert told == [1.0]


# -- what cannot be compared ---------------------------------------------------------------------------

Change = Callable[[LinearModel], LinearModel]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lin: replace(lin, sample_time=0.1), "'cartesian_pendulum' is continuous: verify it before"),
        (lambda lin: replace(lin, method=replace(lin.method, coordinates="enlarged")), "singular configuration"),
        (lambda lin: fl.linearize(four_bar()), "not a linear model of 'cartesian_pendulum': 'x0' is not a state"),
        (lambda lin: fl.linearize(OdeModel("half", {"x": "-x"})), "it has fewer states"),
        (
            lambda lin: replace(lin, full_states=lin.full_states.select([1, 0, 2, 3])),
            "states of 'cartesian_pendulum' in another order",
        ),
    ],
)
def test_linear_models_that_cannot_be_verified(change: Change, message: str) -> None:
    model = cartesian_pendulum()
    with pytest.raises(fl.UsageError, match=message):
        fl.verify(model, change(fl.linearize(model)))


def test_forgotten_constraints_are_asked_for() -> None:
    model = cartesian_pendulum()
    with pytest.raises(fl.UsageError, match=r"has 2 independent states, the model 4: .* Declare them again"):
        fl.verify(model.with_constraints([]), fl.linearize(model))


def test_a_point_off_the_manifold_is_a_wrong_constraint() -> None:
    linear = fl.linearize(cartesian_pendulum(length=1.0))
    with pytest.raises(fl.ConstraintError, match="not on the manifold: 'rod length'"):
        fl.verify(cartesian_pendulum(length=1.1), linear)


@pytest.mark.parametrize("horizon", [0.0, -1.0, float("nan")])
def test_a_horizon_is_positive(horizon: float) -> None:
    model = cartesian_pendulum()
    with pytest.raises(fl.UsageError, match=r"horizon must be a positive number|'horizon' is not a number \(NaN\)"):
        fl.verify(model, fl.linearize(model), horizon=horizon)
