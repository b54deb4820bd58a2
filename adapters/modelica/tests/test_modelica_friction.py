"""Brakes, gears with losses and one-way clutches of the Standard Library in the mode of the start, by closed forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rumoca", reason="the Modelica compiler rumoca has no wheel for this platform")

import fmilin as fl
from fmilin.errors import ConstraintError, UsageError

FILE = Path(__file__).parent / "models" / "friction.mo"
MODES = FILE.with_name("modes.mo")


def load(name: str, library: Path, modes: tuple[str, ...] = (), **parameters: float) -> fl.Model:
    options = {"library": [str(library)], "friction_modes": modes}
    return fl.load(f"{FILE}:Friction.{name}", options=options, parameters=parameters)


def test_a_brake_that_is_stuck_holds_its_drum(standard_library):
    model = load("Drum", standard_library)
    linear = fl.linearize(model, independent=["wheel.phi", "wheel.w", "drum.phi"])
    expected = [[0, 1, 0], [-8 / 2, 0, 8 / 2], [0, 0, 0]]
    np.testing.assert_allclose(linear.A, expected, atol=1e-12)
    assert "'brake' is stuck" in " ".join(model.notes)


def test_a_brake_whose_static_friction_is_too_small_begins_to_slide(standard_library):
    """The spring pulls with 0.8, the brake holds with 0.5; its friction grows by 0.2 with the speed."""
    linear = fl.linearize(
        load("Drum", standard_library, F=1.0), independent=["wheel.phi", "wheel.w", "drum.phi", "drum.w"]
    )
    expected = [[0, 1, 0, 0], [-4, 0, 4, 0], [0, 0, 0, 1], [8, 0, -8, -0.2]]
    np.testing.assert_allclose(linear.A, expected, atol=1e-12)
    np.testing.assert_allclose(linear.f0, [0, -0.4, 0, 0.8 - 0.5], atol=1e-12)


@pytest.mark.parametrize("speed", [0.5, -0.5])
def test_a_brake_that_slides_damps_in_both_directions(standard_library, speed):
    model = load("Drum", standard_library, speed=speed)
    linear = fl.linearize(model, independent=["wheel.phi", "wheel.w", "drum.phi", "drum.w"])
    assert linear.A[3, 3] == pytest.approx(-10 * 0.2)
    assert linear.f0[3] == pytest.approx(0.8 - np.sign(speed) * 10 * (0.5 + 0.2 * abs(speed)))
    assert f"'brake' slides {'forward' if speed > 0 else 'backward'}" in " ".join(model.notes)


def test_the_mode_follows_a_parameter(standard_library):
    model = load("Drum", standard_library)
    assert len(fl.linearize(model).states) == 3
    assert len(fl.linearize(model.with_parameters({"F": 1.0})).states) == 4


def test_a_gear_with_losses_drives_or_is_driven(standard_library):
    """The side whose damper brakes is driven: what arrives there is 0.9 of what the other side gives."""
    driving = load("Gear", standard_library, d_load=0.4)
    rate = -(0.4 / 4) / (0.9 + 3 / 4)  # 3 w/2 = 0.9 * 2 tau - 0.4 w / 2 with tau = -1 w
    np.testing.assert_allclose(
        fl.linearize(driving, independent=["motor.phi", "motor.w"]).A, [[0, 1], [0, rate]], atol=1e-12
    )
    driven = load("Gear", standard_library, d_motor=0.4)
    rate = -0.4 / (1 + 0.9 * 3 / 4)  # 1 w = tau - 0.4 w with 3 w/2 = -2 tau / 0.9
    np.testing.assert_allclose(
        fl.linearize(driven, independent=["motor.phi", "motor.w"]).A, [[0, 1], [0, rate]], atol=1e-12
    )


def test_a_one_way_clutch_that_slides_brakes_the_faster_side(standard_library):
    linear = fl.linearize(load("OneWay", standard_library), independent=["drive.phi", "drive.w", "load.phi", "load.w"])
    expected = [[0, 1, 0, 0], [0, -0.1, 0, 0.1], [0, 0, 0, 1], [0, 0.02, 0, -0.02]]
    np.testing.assert_allclose(linear.A, expected, atol=1e-12)
    np.testing.assert_allclose(linear.f0, [1, 0.6, 2, -0.12], atol=1e-12)


def test_a_one_way_clutch_that_is_driven_is_stuck(standard_library):
    """Both inertias turn as one: (1 + 5) w' = 3 - 2 w, with w = 1 at the start."""
    model = load("OneWay", standard_library, speed=1, torque=3, d=2)
    linear = fl.linearize(model, independent=["drive.phi", "drive.w", "load.phi"])
    np.testing.assert_allclose(linear.A, [[0, 1, 0], [0, -1 / 3, 0], [0, 1, 0]], atol=1e-12)
    np.testing.assert_allclose(linear.f0, [1, 1 / 6, 1], atol=1e-12)
    assert "'clutch' is stuck" in " ".join(model.notes)


def test_a_one_way_clutch_is_overrun_when_its_drive_brakes(standard_library):
    linear = fl.linearize(
        load("OneWay", standard_library, speed=1, torque=-3, d=2),
        independent=["drive.phi", "drive.w", "load.phi", "load.w"],
    )
    np.testing.assert_allclose(linear.f0, [1, -3 + 0.5, 1, (-0.5 - 2) / 5], atol=1e-12)


@pytest.mark.parametrize("speed", [1, -1])
def test_friction_that_falls_with_the_speed_has_the_slope_of_its_motion(standard_library, speed):
    """2 v' = -3 v - (5 + 10 exp(-2 |v|)) sign(v), not the 15 at which sliding begins."""
    linear = fl.linearize(load("Stribeck", standard_library, speed=speed), independent=["mass.s", "mass.v"])
    np.testing.assert_allclose(linear.A, [[0, 1], [0, -(3 - 20 * np.exp(-2)) / 2]], atol=1e-12)
    np.testing.assert_allclose(linear.f0, [speed, -speed * (8 + 10 * np.exp(-2)) / 2], atol=1e-12)


@pytest.mark.parametrize(
    ("mode", "damping", "torque"), [("forward", 2, -5), ("backward", 2, 5), ("free", 0, 0), ("locked", None, None)]
)
def test_a_brake_is_held_in_the_mode_that_a_user_names(standard_library, mode, damping, torque):
    """Of itself it is stuck with a force of 10, and slides with a force of 1."""
    model = load("Drum", standard_library, (f"brake={mode}",), F=1.0 if mode == "locked" else 10.0)
    assert f"'brake' is held {'sliding ' * mode.endswith('ward')}{mode}" in " ".join(model.notes)
    if mode == "locked":
        assert fl.linearize(model).states.names == ("wheel.phi", "wheel.w", "drum.phi")
        assert "though its static friction is too small" in " ".join(model.notes)
        return
    linear = fl.linearize(model, independent=["wheel.phi", "wheel.w", "drum.phi", "drum.w"])
    expected = [[0, 1, 0, 0], [-4, 0, 4, 0], [0, 0, 0, 1], [8, 0, -8, -damping]]
    np.testing.assert_allclose(linear.A, expected, atol=1e-12)
    np.testing.assert_allclose(linear.f0, [0, -0.4, 0, 0.8 + torque], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "mode", "words"),
    [
        ("Drum", "brake=locked", r"cannot be held in the mode 'locked'.*'brake\.w_relfric' is 2 at the start"),
        ("Drum", "brake=backward", r"in which it slides backward: .* is 2 at the start"),
        ("Drum", "break=locked", r"'break' is not a friction element of the model. Did you mean 'brake'\?"),
        ("Drum", "brake=stuck", r"not of the form ELEMENT=MODE.*locked, forward, backward, free"),
        ("OneWay", "clutch=backward", r"'clutch' has no mode 'backward': it does not declare 'startBackward'"),
    ],
)
def test_a_mode_that_cannot_be_is_an_error_that_says_why(standard_library, name, mode, words):
    with pytest.raises(UsageError, match=words):
        load(name, standard_library, (mode,), speed=2)


@pytest.mark.parametrize(("force", "acceleration"), [(3e-12, (2 - 1.5) / 1), (1e-11, None)])
def test_forces_of_a_micro_mechanism_are_not_taken_for_rounding(standard_library, force, acceleration):
    """A torque of 2e-12 begins to turn a drum that is held with 1.5e-12, and not one that is held with 5e-12."""
    linear = fl.linearize(load("Micro", standard_library, F=force))
    if acceleration is None:
        assert len(linear.states) == 1
    else:
        np.testing.assert_allclose(linear.f0, [0, acceleration], atol=1e-9)


def test_a_small_speed_of_a_micro_mechanism_is_a_motion(standard_library):
    """With 1e-9 rad/s, a thousandth of the nominal speed, the drum slides: 2 - 5 * 0.5 of its torque remain."""
    model = load("Micro", standard_library, speed=1e-9)
    assert "'brake' slides forward" in " ".join(model.notes)
    np.testing.assert_allclose(fl.linearize(model).f0, [1e-9, 2 - 10 * 0.5], rtol=1e-9)


def test_an_element_without_a_mode_that_agrees_with_its_motion_is_an_error():
    with pytest.raises(ConstraintError, match=r"friction elements 'element' of 'Modes\.Contradiction' have no mode"):
        fl.load(f"{MODES}:Modes.Contradiction")


def test_a_velocity_that_is_not_a_state_is_not_constrained_and_the_note_says_so():
    """The relative acceleration is zero: f = 1/2 on both sides."""
    model = fl.load(f"{MODES}:Modes.Unmeasured")
    linear = fl.linearize(model)
    np.testing.assert_allclose(linear.f0, [0.5, 0.5])
    assert (
        "'element' is stuck (its relative acceleration is zero; its relative velocity is not a state" in model.notes[0]
    )


def test_a_factor_before_the_acceleration_of_a_stuck_element_counts_for_nothing():
    model = fl.load(f"{MODES}:Modes.Heavy")
    assert len(fl.linearize(model).states) == 0
    assert "'element' is stuck (its relative velocity is held at zero)" in model.notes[0]
