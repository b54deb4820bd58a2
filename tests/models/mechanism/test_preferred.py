"""Coordinates of mechanisms for which nobody recommends any: driven joints, positions with their speeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import fmilin as fl
from fmilin.models.mechanism import JointForce, Mechanism
from fmilin.systems import slider_crank, stewart_platform
from tests.models.mechanism.builders import five_bar_chain


def test_a_stewart_platform_keeps_its_legs_and_a_has_its_identity() -> None:
    named = stewart_platform()
    model = Mechanism(replace(named.description, independent=()))
    linear = fl.linearize(model)
    legs = [f"leg{i}" for i in range(1, 7)]
    assert linear.states.names == (*(f"{leg}.q" for leg in legs), *(f"{leg}.v" for leg in legs))
    np.testing.assert_array_equal(linear.A[:6], np.hstack([np.zeros((6, 6)), np.eye(6)]))
    np.testing.assert_array_equal(linear.A, fl.linearize(named, independent=linear.states.names).A)


def test_a_platform_without_drives_has_the_positions_and_the_speeds_of_the_same_joints() -> None:
    """Quaternions are among its states: pivoting alone may keep the position of one joint, the speed of another."""
    named = stewart_platform()
    model = Mechanism(replace(named.description, independent=(), inputs=()))
    linear = fl.linearize(model)
    assert [name[:-2] for name in linear.states.names[:6]] == [name[:-2] for name in linear.states.names[6:]]
    np.testing.assert_array_equal(linear.A[:6], np.hstack([np.zeros((6, 6)), np.eye(6)]))


def test_driven_joints_are_kept_as_long_as_they_determine_the_others() -> None:
    description = five_bar_chain()
    for name in ("q4", "q1"):
        joint = next(j.name for j in description.joints if name in j.state_names[0])
        model = Mechanism(replace(description, independent=(), inputs=[JointForce("motor", joint)]))
        assert name in fl.linearize(model).states.names


def test_where_the_drive_is_at_its_dead_centre_others_are_taken_with_a_remark() -> None:
    description = slider_crank().description
    slider = next(j.name for j in description.joints if j.type == "prismatic")
    model = Mechanism(replace(description, independent=(), inputs=[JointForce("piston", slider)]))
    crank = next(j for j in description.joints if j.type == "revolute")
    assert f"{slider}.q" in fl.linearize(model).states.names
    dead = fl.operating_point(model, {crank.state_names[0][0]: 0.0}, project=True)
    linear = fl.linearize(model, dead, keep_inaccurate=True)  # at its dead centre the piston moves nothing
    assert f"{slider}.q" not in linear.states.names
    assert any(r.kind == "conditioning" and "recommended" in r.message for r in linear.warnings)
