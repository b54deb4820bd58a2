"""Descriptions refuse what cannot be built, in one sentence with the part's name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fmilin.errors import ModelError
from fmilin.models.mechanism import Body, Joint, JointForce, Loop, MechanismDescription, Placement, Sensor, Wheel


def rod(name: str = "rod") -> Body:
    return Body(name, 1.0, (0.5, 0, 0), (0, 1 / 12, 1 / 12))


def pendulum() -> MechanismDescription:
    return MechanismDescription("pendulum", [rod()], [Joint("pin", "revolute", "ground", "rod")])


@pytest.mark.parametrize("mass", [0.0, -1.0, float("nan"), float("inf")])
def test_a_mass_must_be_positive(mass: float) -> None:
    with pytest.raises(ModelError, match=r"'rod' has a mass of .* must be positive"):
        Body("rod", mass)


@pytest.mark.parametrize("inertia", [(1, 1, 2.1), (-0.1, 1, 1), (0, 0, 1)])
def test_an_inertia_obeys_the_triangle_inequality(inertia: tuple[float, float, float]) -> None:
    with pytest.raises(ModelError, match="'plate' cannot have this inertia: its principal moments"):
        Body("plate", 1.0, inertia=inertia)


@pytest.mark.parametrize("inertia", [(1, 1, 2), (0, 1, 1), (0, 0, 0)])
def test_flat_and_slender_bodies_are_at_the_border(inertia: tuple[float, float, float]) -> None:
    assert np.diag(Body("plate", 1.0, inertia=inertia).J).tolist() == list(inertia)


def test_six_numbers_of_inertia_are_elements_of_the_matrix() -> None:
    J = Body("b", 1.0, inertia=(3, 4, 5, 0.1, 0.2, 0.3)).J
    assert J.tolist() == [[3, 0.1, 0.2], [0.1, 4, 0.3], [0.2, 0.3, 5]]


def test_an_inertia_matrix_must_be_symmetric() -> None:
    with pytest.raises(ModelError, match="not symmetric"):
        Body("b", 1.0, inertia=[[3, 0.1, 0], [0, 4, 0], [0, 0, 5]])


def test_a_massless_frame_has_no_inertia() -> None:
    assert Body("tool", None).mass is None
    with pytest.raises(ModelError, match="inertia but no mass"):
        Body("tool", None, inertia=(1, 1, 1))


def test_a_joint_name_used_twice() -> None:
    joints = [Joint("pin", "revolute", "ground", "a"), Joint("pin", "revolute", "a", "b")]
    with pytest.raises(ModelError, match="'pin' is used for 2 joints"):
        MechanismDescription("m", [rod("a"), rod("b")], joints)


def test_a_disconnected_body() -> None:
    with pytest.raises(ModelError, match="'lost' is disconnected: no joint has it as its child"):
        MechanismDescription("m", [rod(), rod("lost")], [Joint("pin", "revolute", "ground", "rod")])


def test_two_joints_to_one_body_close_a_circle() -> None:
    joints = [
        Joint("a", "revolute", "ground", "first"),
        Joint("b", "revolute", "first", "second"),
        Joint("c", "revolute", "ground", "second"),
    ]
    with pytest.raises(ModelError, match=r"'second' has two joints to a parent, 'b' and 'c'.*make one of them a loop"):
        MechanismDescription("m", [rod("first"), rod("second")], joints)


def test_a_circle_of_joints_hangs_on_nothing() -> None:
    joints = [Joint("a", "revolute", "second", "first"), Joint("b", "revolute", "first", "second")]
    with pytest.raises(ModelError, match="'a', 'b' form a cycle that is not connected to the ground"):
        MechanismDescription("m", [rod("first"), rod("second")], joints)


def test_all_problems_are_listed_at_once_with_the_nearest_names() -> None:
    with pytest.raises(ModelError, match="Did you mean 'rod'") as caught:
        MechanismDescription(
            "m",
            [rod()],
            [Joint("pin", "revolute", "ground", "rodd")],
            [Loop("loop", "revolute", "rod", "grund")],
            inputs=[JointForce("torque", "pim")],
            sensors=[Sensor("s", "joint_velocity", "pin", coordinate=1)],
        )
    assert all(
        part in str(caught.value)
        for part in ("joint 'pin'", "loop 'loop'", "joint force 'torque'", "1 degrees of freedom")
    )


def test_a_loop_from_a_body_to_itself() -> None:
    with pytest.raises(ModelError, match="loop 'l' connects 'rod' with itself"):
        replace(pendulum(), loops=[Loop("l", "revolute", "rod", "rod")])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"type": "hinge"}, "'hinge' of the joint 'pin' is not a type of joint. Known: revolute"),
        ({"axis": (0, 0, 0)}, "axis of the joint 'pin' must not be zero"),
        ({"axis": (0, 0, 1), "second_axis": (0, 1, 1)}, "must be perpendicular"),
        ({"position": (1, 2)}, "position of the joint 'pin' must be 1 finite numbers"),
        ({"type": "spherical", "stiffness": (1, 1, 1)}, "cannot have a stiffness"),
        ({"type": "spherical", "position": (0, 0, 0, 0)}, "quaternion of the joint 'pin' is zero"),
        ({"names": ("a", "b", "c")}, "must be 2 names"),
        ({"pitch": float("nan")}, "pitch of the joint 'pin' must be a finite number"),
    ],
)
def test_joints_check_themselves(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Joint(**({"name": "pin", "type": "revolute", "parent": "ground", "child": "rod"} | arguments))  # type: ignore[arg-type]


def test_a_wheel_needs_a_size() -> None:
    with pytest.raises(ModelError, match="wheel 'w' must not be negative, and"):
        Wheel("w", "rod")


def test_a_matrix_that_is_no_rotation() -> None:
    with pytest.raises(ModelError, match="is not a rotation"):
        Placement((0, 0, 0), ((1, 0, 0), (0, 1, 0), (0, 0, -1)))


def test_placements_agree_with_each_other() -> None:
    about_z = Placement.from_axis((1, 2, 3), (0, 0, 2), 0.3)
    assert np.allclose(about_z.matrix, Placement.from_rpy((1, 2, 3), (0, 0, 0.3)).matrix, atol=1e-15)
    e = (np.cos(0.15), 0, 0, np.sin(0.15))
    assert np.allclose(about_z.matrix, Placement.from_quaternion((1, 2, 3), e).matrix, atol=1e-15)
    assert np.allclose(about_z.then(about_z).matrix, about_z.matrix @ about_z.matrix, atol=1e-15)


def test_joints_are_put_in_the_order_of_the_tree() -> None:
    joints = [
        Joint("outer", "revolute", "inner_body", "outer_body"),
        Joint("inner", "revolute", "ground", "inner_body"),
    ]
    d = MechanismDescription("m", [rod("outer_body"), rod("inner_body")], joints)
    assert [j.name for j in d.ordered_joints] == ["inner", "outer"]
