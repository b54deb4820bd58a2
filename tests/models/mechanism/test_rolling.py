"""Bodies of robots' files that roll on the ground: as the same mechanism with ``[[wheel]]`` tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.cli.main import main
from fmilin.models.mechanism import Mechanism

CONTACT = (
    "<collision><origin xyz='0 0.01 0' rpy='1.5707963267948966 0 0'/><geometry><cylinder radius='0.2' length='1'/>"
)
URDF = f"""
<robot name="roller">
  <link name="chassis"><inertial><origin xyz="0.02 0 -0.1"/><mass value="2"/>
    <inertia ixx="0.05" iyy="0.04" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tyre"><inertial><mass value="1"/>
    <inertia ixx="0.01" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    {CONTACT}</geometry></collision></link>
  <joint name="base" type="floating"><parent link="world"/><child link="chassis"/></joint>
  <joint name="axle" type="continuous"><parent link="chassis"/><child link="tyre"/><axis xyz="0 1 0"/></joint>
  <link name="world"/>
</robot>
"""
SDF = """
<sdf version="1.9"><model name="roller"><pose>0 0 0.2 0 0 0</pose>
  <link name="chassis"><inertial><pose>0.02 0 -0.1 0 0 0</pose><mass>2</mass>
    <inertia><ixx>0.05</ixx><iyy>0.04</iyy><izz>0.05</izz></inertia></inertial></link>
  <link name="tyre"><inertial><mass>1</mass><inertia><ixx>0.01</ixx><iyy>0.02</iyy><izz>0.01</izz></inertia></inertial>
    <collision name="c"><pose>0 0.01 0 1.5707963267948966 0 0</pose><geometry>
    <cylinder><radius>0.2</radius><length>1</length></cylinder></geometry></collision></link>
  <joint name="axle" type="revolute"><parent>chassis</parent><child>tyre</child><axis><xyz>0 1 0</xyz></axis></joint>
</model></sdf>
"""
SETTING = '[[joint_setting]]\njoint = "base"\nposition = [0, 0, 0.2, 1, 0, 0, 0]\nvelocity = [1, 0, 0, 0, 0, 0]\n'
WHEEL = '[[wheel]]\nname = "tyre.wheel"\nbody = "tyre"\ncenter = [0, 0.01, 0]\nradius = 0.2\n'


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text)


@pytest.mark.parametrize("suffix", ["urdf", "sdf"])
def test_a_body_rolls_as_a_wheel_of_a_mechanism_file_does(suffix: str, tmp_path: Path) -> None:
    setting = SETTING if suffix == "urdf" else ""
    write(tmp_path, **{f"roller__{suffix}": {"urdf": URDF, "sdf": SDF}[suffix], "roller__fmilin__toml": setting})
    write(tmp_path, wheels__toml=f'{suffix} = "roller.{suffix}"\n{setting}{WHEEL}')
    robot = tmp_path / f"roller.{suffix}"
    expected = fl.linearize(fl.load(tmp_path / "wheels.toml"))
    for lin in (
        fl.linearize(fl.load(robot, options={"roll": ["tyre"]})),
        fl.linearize(fl.load(robot, options={"roll": ["tyre:0.2"]})),
        fl.linearize(getattr(Mechanism, f"from_{suffix}")(robot, roll=["tyre"])),
    ):
        assert lin.states.names == expected.states.names
        assert len(lin.states) == 10  # of 14: height, slip along and across
        for letter in "ABCD":
            np.testing.assert_allclose(getattr(lin, letter), getattr(expected, letter), atol=1e-9, err_msg=letter)


def test_a_ball_rolls_by_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At rest it stays anywhere, turned in any way: five positions and three speeds, all at 0."""
    ball = (
        '<sdf version="1.9"><model name="ball"><pose>0 0 0.3 0 0 0</pose><link name="ball"><inertial><mass>2</mass>'
        "<inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial><collision name='c'><geometry><sphere>"
        "<radius>0.3</radius></sphere></geometry></collision></link></model></sdf>"
    )
    write(tmp_path, ball__sdf=ball)
    assert main(["linearize", str(tmp_path / "ball.sdf"), "--roll", "ball", "--json"]) == 0
    eigenvalues = np.array(json.loads(capsys.readouterr().out)["eigenvalues"])
    np.testing.assert_allclose(eigenvalues, np.zeros((8, 2)), atol=1e-7)  # three of them twice
    model = fl.load(tmp_path / "ball.sdf", options={"roll": ["ball"]})
    assert isinstance(model, Mechanism)
    (wheel,) = model.description.wheels
    assert (wheel.radius, wheel.tube, wheel.normal) == (0.0, 0.3, (0.0, 0.0, 1.0))


def test_wrong_wheels_are_rejected(tmp_path: Path) -> None:
    write(tmp_path, roller__urdf=URDF)
    robot = tmp_path / "roller.urdf"
    for roll, error, text in (
        (["tire"], fl.UnknownNameError, "'tyre'"),
        (["chassis"], fl.UsageError, "radius as a wheel is unknown"),
        (["chassis:0.1"], fl.UsageError, "axle of 'chassis' is unknown"),
        (["tyre:-1"], fl.UsageError, "positive radius"),
    ):
        with pytest.raises(error, match=text):
            fl.load(robot, options={"roll": roll})
    with pytest.raises(fl.UsageError, match="must be a sequence"):
        fl.load(robot, options={"roll": "tyre"})
    with pytest.raises(fl.UsageError, match="no body of it can roll"):
        fl.load("plant.fmu", options={"roll": ["tyre"]})
