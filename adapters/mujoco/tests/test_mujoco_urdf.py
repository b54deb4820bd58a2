"""URDF files through MuJoCo: meshes that are not there do not matter."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import fmilin as fl

ARM = """<robot name="arm"><link name="base"/><link name="one">
  <inertial><origin xyz="0 0 -0.3"/><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>
  <!-- <visual><geometry><mesh filename="old.stl"/></geometry></visual> -->
  <visual><geometry><mesh filename="package://nowhere/arm.dae"/></geometry></visual>
  <collision name="c"><geometry><mesh filename="arm.stl" scale="1 1 1"/></geometry></collision>
  <collision><geometry><sphere radius="0.1"/></geometry></collision></link>
<joint name="swing" type="continuous"><parent link="base"/><child link="one"/><axis xyz="0 1 0"/></joint></robot>"""


def test_meshes_of_a_urdf_file_are_left_out_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(ARM)
    model = fl.load(f"mujoco:{path}")
    assert "2 meshes of the URDF file are left out: they do not affect the dynamics." in model.notes
    omega = np.sqrt(2 * 9.81 * 0.3 / (0.1 + 2 * 0.3**2))
    assert np.allclose(np.sort(fl.linearize(model).eigenvalues().imag), [-omega, omega], rtol=1e-9)
