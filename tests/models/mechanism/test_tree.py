"""Screws of joints with several freedoms: S v is the relative velocity, and Sdot the rate of S (A.2.7)."""

from __future__ import annotations

import numpy as np
import pytest

from fmilin.models.mechanism import Joint
from fmilin.models.mechanism.parts import COORDINATES, SPEEDS
from tests.models.mechanism.builders import Floats, Random
from tests.models.mechanism.joint_screws import joint_screw, joint_transformation, quaternion_rate, rotation


def rates(joint: Joint, q: Floats, v: Floats) -> Floats:
    """Return q': the speeds, and for quaternions what the angular velocity makes of them."""
    if joint.type not in ("free", "spherical"):
        return v
    return np.concatenate((v[:-3], quaternion_rate(q[-4:]) @ v[-3:]))


@pytest.mark.parametrize("kind", [kind for kind in COORDINATES if kind != "fixed"])
def test_screw_and_its_rate(kind: str) -> None:
    r = Random(5)
    joint = Joint("j", kind, "a", "b", axis=r.vector(), pitch=0.4)  # type: ignore[arg-type]
    q = r.numbers.uniform(-1, 1, len(COORDINATES[kind]))
    if kind in ("free", "spherical"):
        q[-4:] /= np.linalg.norm(q[-4:])
    v = r.numbers.normal(size=len(SPEEDS[kind]))
    h, q_dot = 1e-6, rates(joint, q, v)
    f = joint_transformation(joint, q)
    twist = (
        np.linalg.inv(f)
        @ (joint_transformation(joint, q + h * q_dot) - joint_transformation(joint, q - h * q_dot))
        / (2 * h)
    )
    S, S_dot = joint_screw(joint, q, v)
    velocity = np.array([twist[2, 1], twist[0, 2], twist[1, 0], *twist[:3, 3]])
    assert np.abs(velocity - S @ v).max() < 1e-9
    ahead, behind = (joint_screw(joint, q + s * q_dot, v)[0] for s in (h, -h))
    assert np.abs((ahead - behind) / (2 * h) - S_dot).max() < 1e-9


def test_the_screw_of_a_cylindrical_joint_is_that_of_the_thesis() -> None:
    S, S_dot = joint_screw(Joint("j", "cylindrical", "a", "b"), (0.3, 0.7), (1.0, 2.0))
    assert S.T.tolist() == [[0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1]]
    assert not S_dot.any()


def test_the_screw_of_a_universal_joint_depends_on_its_second_angle() -> None:
    joint = Joint("j", "universal", "a", "b", axis=(1, 0, 0), second_axis=(0, 1, 0))
    S, S_dot = joint_screw(joint, (0.9, 0.4), (1.0, 2.0))
    assert np.allclose(S[:3, 0], [np.cos(0.4), 0, np.sin(0.4)], atol=1e-15)
    assert np.allclose(S_dot[:3, 0], 2 * np.array([-np.sin(0.4), 0, np.cos(0.4)]), atol=1e-15)


def test_quaternions_of_any_length_turn() -> None:
    e = np.array([0.3, -1.2, 0.7, 2.0])
    R = rotation(e)
    assert np.allclose(R.T @ R, np.eye(3), atol=1e-15)
    assert np.allclose(R, rotation(e / np.linalg.norm(e)), atol=1e-15)
    assert abs(e @ quaternion_rate(e)).max() < 1e-16
