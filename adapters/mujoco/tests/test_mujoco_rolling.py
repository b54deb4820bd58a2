"""Bodies of MJCF files that roll on the ground: as a wheel that is added to the same mechanism."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.models.mechanism import Mechanism, Wheel

ROLLER = """
<mujoco><compiler inertiafromgeom="false"/><option gravity="0 0 -9.81"/><worldbody>
  <body name="chassis" pos="0 0 0.2"><freejoint name="base"/>
    <inertial pos="0.02 0 -0.1" mass="2" diaginertia="0.05 0.04 0.05"/>
    <body name="tyre"><joint name="axle" type="hinge" axis="0 1 0"/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.01 0.02 0.01"/>
      <geom type="cylinder" size="0.2 0.5" pos="0 0.01 0" euler="90 0 0"/></body></body>
</worldbody></mujoco>
"""


def test_a_body_rolls_as_a_wheel_that_is_added(tmp_path: Path) -> None:
    (tmp_path / "roller.xml").write_text(ROLLER)
    free = fl.load(tmp_path / "roller.xml", options={"roll": []})
    assert isinstance(free, Mechanism)
    wheel = Wheel("tyre.wheel", "tyre", center=(0.0, 0.01, 0.0), radius=0.2)
    expected = fl.linearize(Mechanism(replace(free.description, wheels=[wheel])))
    for roll in ("tyre", "tyre:0.2"):
        lin = fl.linearize(fl.load(tmp_path / "roller.xml", options={"roll": [roll]}))
        assert lin.states.names == expected.states.names
        assert len(lin.states) == 10
        np.testing.assert_allclose(lin.A, expected.A, atol=1e-9)


def test_a_body_without_a_round_shape_needs_a_radius(tmp_path: Path) -> None:
    (tmp_path / "roller.xml").write_text(ROLLER)
    with pytest.raises(fl.UsageError, match="radius as a wheel is unknown"):
        fl.load(tmp_path / "roller.xml", options={"roll": ["chassis"]})


CART = """
<mujoco><compiler inertiafromgeom="false"/><option gravity="0 0 -9.81"/><worldbody>
  <body name="chassis" pos="0 0 0.1"><freejoint name="base"/>
    <inertial pos="0 0 0.05" mass="8" diaginertia="0.2 0.3 0.4"/>
    <body name="left" pos="0 0.2 0"><joint name="l" axis="0 1 0" armature="0.01" damping="0.02"/>
      <inertial pos="0 0 0" mass="0.5" diaginertia="0.0015 0.0025 0.0015"/>
      <geom type="cylinder" size="0.1 0.02" euler="90 0 0"/></body>
    <body name="right" pos="0 -0.2 0"><joint name="r" axis="0 1 0" armature="0.01" damping="0.02"/>
      <inertial pos="0 0 0" mass="0.5" diaginertia="0.0015 0.0025 0.0015"/>
      <geom type="cylinder" size="0.1 0.02" euler="90 0 0"/></body>
    <body name="caster" pos="-0.3 0 -0.06"><joint name="ball" type="ball"/>
      <inertial pos="0 0 0" mass="0.1" diaginertia="0.0001 0.0001 0.0001"/>
      <geom type="sphere" size="0.04"/></body></body>
</worldbody><actuator><motor name="drive" joint="l"/><motor name="other" joint="r"/></actuator></mujoco>
"""


def test_a_cart_on_two_wheels_and_a_ball_has_the_rates_of_its_closed_form(tmp_path: Path) -> None:
    """Dampers of both wheels slow the cart down, and its turn about the middle of the axle. The ball rolls with it.

    Along: 9.1 kg, spins 2 (0.0025 + 0.01)/0.1^2 and 0.0001/0.04^2. Turn: 0.4 kg m^2, wheels and ball at their
    places, of which the ball does not turn with the cart.
    """
    (tmp_path / "cart.xml").write_text(CART)
    model = fl.load(tmp_path / "cart.xml", options={"roll": ["left", "right", "caster"]})
    lin = fl.linearize(model)
    spin, ball = (0.0025 + 0.01) / 0.1**2, 0.0001 / 0.04**2
    along = 2 * 0.02 / 0.1**2 / (9.1 + 2 * spin + ball)
    turned = 0.4 + 2 * (0.0015 + 0.5 * 0.2**2 + spin * 0.2**2) + (0.1 + ball) * 0.3**2
    turn = 2 * 0.02 / 0.1**2 * 0.2**2 / turned
    found = np.sort(lin.eigenvalues().real)
    assert lin.inputs.names == ("drive", "other")
    np.testing.assert_allclose(found[:2], np.sort([-along, -turn]), rtol=1e-7)
    assert np.abs(found[2:]).max() < 1e-6


def test_a_mechanism_file_names_the_robot_and_adds_a_wheel_and_a_spring(tmp_path: Path) -> None:
    (tmp_path / "roller.xml").write_text(ROLLER)
    (tmp_path / "roller.toml").write_text(
        'mjcf = "roller.xml"\n'
        '[[wheel]]\nname = "tyre.wheel"\nbody = "tyre"\ncenter = [0, 0.01, 0]\nradius = 0.2\n'
        '[[joint_setting]]\njoint = "axle"\ndamping = 0.3\n'
        '[[input]]\nname = "torque"\nkind = "joint_force"\njoint = "axle"\n'
    )
    lin = fl.linearize(fl.load(tmp_path / "roller.toml"))
    rolling = fl.load(tmp_path / "roller.xml", options={"roll": ["tyre"]})
    assert isinstance(rolling, Mechanism)
    description = rolling.description
    joints = [replace(joint, damping=(0.3,)) if joint.name == "axle" else joint for joint in description.joints]
    expected = fl.linearize(Mechanism(replace(description, joints=joints)))
    assert lin.inputs.names == ("torque",)
    assert lin.states.names == expected.states.names
    np.testing.assert_allclose(lin.A, expected.A, atol=1e-9)


def test_a_base_that_floats_is_written_into_the_mjcf_file(tmp_path: Path) -> None:
    (tmp_path / "roller.xml").write_text(ROLLER)
    (tmp_path / "roller.toml").write_text('mjcf = "roller.xml"\nfloating_base = true\n')
    with pytest.raises(fl.UsageError, match="a <freejoint> in it lets its base move"):
        fl.load(tmp_path / "roller.toml")
