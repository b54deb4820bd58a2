"""Joints that follow others are constraints in Pinocchio, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl

LIMIT = '<limit lower="-3" upper="3" effort="1" velocity="1"/>'


def gripper(path: Path, kind: str = "revolute", extra: str = "") -> Path:
    """Two fingers, the right one at -0.5 times the left one's angle plus 0.25, swinging about the y axis."""
    inertia = '<inertia ixx="0.02" iyy="0.03" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
    links = "".join(
        f'<link name="{n}"><inertial><mass value="{m}"/><origin xyz="0.1 0 -0.2"/>{inertia}</inertial></link>'
        for n, m in (("left", 1.0), ("right", 2.0), ("tip", 0.5))
    )
    path.write_text(
        f'<robot name="gripper"><link name="base"/>{links}'
        f'<joint name="l" type="{kind}"><parent link="base"/><child link="left"/><axis xyz="0 1 0"/>{LIMIT}</joint>'
        f'<joint name="r" type="{kind}"><parent link="base"/><child link="right"/><axis xyz="0 1 0"/>{LIMIT}'
        '<mimic joint="l" multiplier="-0.5" offset="0.25"/></joint>'
        f'<joint name="t" type="fixed"><parent link="right"/><child link="tip"/><mimic joint="l"/></joint>{extra}'
        "</robot>"
    )
    return path


@pytest.mark.parametrize("kind", ["revolute", "continuous"])
def test_a_mimicking_joint_is_a_constraint_and_the_same_as_in_our_own_reader(tmp_path: Path, kind: str) -> None:
    path = gripper(tmp_path / "gripper.urdf", kind)
    own, foreign = fl.load(path), fl.load(f"pinocchio:{path}")
    assert own.inputs.names == foreign.inputs.names == ("l.torque",)
    one, other = fl.linearize(own), fl.linearize(foreign)
    assert other.A.shape == (2, 2)
    assert np.allclose(np.sort_complex(one.eigenvalues()), np.sort_complex(other.eigenvalues()), rtol=1e-9)
    if kind == "revolute":
        point = fl.operating_point(foreign, {"l.q": 0.8, "l.v": 0.6})
        there = dict(zip(foreign.states.names, point.states, strict=True))
        assert (there["r.q"], there["r.v"]) == pytest.approx((-0.15, -0.3))
        same = fl.linearize(own, fl.operating_point(own, {"l.q": 0.8, "l.v": 0.6}), independent=["l.q"])
        moving = fl.linearize(foreign, point, independent=["l.q"])
        assert np.allclose(same.A, moving.A, rtol=1e-10, atol=1e-10)
        assert np.allclose(same.B, moving.B, rtol=1e-10)


def test_a_joint_that_mimics_none_that_moves_is_free_and_that_is_said(tmp_path: Path) -> None:
    text = gripper(tmp_path / "gripper.urdf").read_text().replace('mimic joint="l" mult', 'mimic joint="t" mult')
    path = tmp_path / "astray.urdf"
    path.write_text(text)
    model = fl.load(f"pinocchio:{path}")
    assert "The joint 'r' mimics 't', which does not move: it moves freely." in model.notes
    assert fl.linearize(model).A.shape == (4, 4)
