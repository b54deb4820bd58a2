"""Whole files: known spectra, sensors, what is left out and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import mujoco
import numpy as np
import pytest
from fmilin_mujoco import soft_linearization

import fmilin as fl
from fmilin.cli.main import main
from fmilin.errors import ModelError
from fmilin.systems import four_bar
from fmilin.testing import check_model

EXAMPLE = Path(__file__).parents[1] / "example"
FOUR_BAR = EXAMPLE / "four_bar.xml"
PAIR = 2.147676638502278


def write(folder: Path, text: str, name: str = "scene.xml") -> Path:
    (folder / name).write_text(text)
    return folder / name


def body(inside: str, after: str = "") -> str:
    geom = '<geom type="sphere" size=".1" mass="1" pos="0 0 -.5" contype="0" conaffinity="0"/>'
    return f"<mujoco><worldbody><body name='b'>{inside}{geom}</body></worldbody>{after}</mujoco>"


def test_the_published_pair_of_the_four_bar() -> None:
    with fl.load(FOUR_BAR) as model:
        lin = fl.linearize(model, independent=["phi.q", "phi.v"], outputs=["angle", "tip.a[1]", "tip.a[3]"])
        check_model(model)
    assert lin.eigenvalues() == pytest.approx([-1j * PAIR, 1j * PAIR], rel=1e-9)
    with fl.load("fmilin.systems:four_bar") as native:
        same = fl.linearize(native, independent=["phi", "w"])
    assert pytest.approx(same.A, rel=1e-8, abs=1e-9) == lin.A
    assert native.info.name == four_bar().info.name


def test_a_gripper_whose_racks_follow_its_pinion() -> None:
    with fl.load(EXAMPLE / "gripper.xml") as model:
        check_model(model)
        lin = fl.linearize(model, independent=["pinion.q", "pinion.v"])
    inertia = 2e-4 + 2 * 0.1 * 0.02**2  # the racks as the pinion feels them
    assert pytest.approx(np.array([[0, 1], [-0.5 / inertia, -0.001 / inertia]]), rel=1e-9) == lin.A
    assert pytest.approx(np.array([[0], [1 / inertia]]), rel=1e-9) == lin.B
    assert pytest.approx(np.array([[0.02, 0]]), rel=1e-9) == lin.C


def test_a_floating_bar_and_load_hung_from_rods_in_space() -> None:
    with fl.load(f"mujoco:{EXAMPLE / 'trapeze.xml'}") as model:
        check_model(model)
        lin = fl.linearize(model)
        assert len(model.states) == 40
    s = lin.eigenvalues()
    assert s.shape == (12,)  # of 18 freedoms, three take each ball and six the weld
    rods, carried = 1.2, 7.0  # in the plane of the rods, the bar swings without turning
    plane = np.sqrt(9.81 * (carried + rods / 2) / (1.5 * (carried + rods / 3)))
    assert np.min(np.abs(s - 1j * plane)) < 1e-8 * plane
    assert np.sum(np.abs(s) < 1e-3) == 4  # each rod may spin about itself


def test_mujocos_own_linear_model_is_that_of_springs() -> None:
    s = soft_linearization(FOUR_BAR)
    assert s.shape == (6,)
    closest = np.min(np.abs(s - 1j * PAIR))
    assert 0.002 < closest / PAIR < 0.05  # soft constraints give way
    assert np.sum(np.abs(s.real) > 10) == 4  # the springs' own, of no motion of the linkage


def test_a_pendulum_by_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, body("<joint name='swing' type='hinge' axis='0 1 0'/>",
                                "<actuator><motor joint='swing' name='push'/></actuator>"))  # fmt: skip
    assert main(["linearize", str(file), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    inertia = 0.25 + 0.4 * 0.01
    assert found["states"] == ["swing.q", "swing.v"]
    assert found["A"] == [[0.0, 1.0], [pytest.approx(-9.81 * 0.5 / inertia, rel=1e-9), pytest.approx(0, abs=1e-9)]]
    assert found["B"] == [[0.0], [pytest.approx(1 / inertia, rel=1e-9)]]


def test_an_accelerometer_feels_gravity_and_the_constraint(tmp_path: Path) -> None:
    text = FOUR_BAR.read_text().replace(
        "<jointpos", '<accelerometer name="acc" site="B1"/><gyro name="gyro" site="B1"/><jointpos'
    )
    with fl.load(write(tmp_path, text)) as model:
        x = fl.operating_point(model, {"phi.q": 2.0, "phi.v": 0.7}).states
        y = dict(zip(model.outputs.names, model.evaluate(0.0, x, np.array([0.3])).outputs, strict=True))
    # B1 goes round B0 = (1, 0) on a circle, phi = rocker; the coupler keeps its direction.
    rate = model.evaluate(0.0, x, np.array([0.3])).derivatives[5]
    a = np.array([-np.sin(2.0), np.cos(2.0)]) * rate - 0.49 * np.array([np.cos(2.0), np.sin(2.0)])
    felt = a + np.array([0.0, 9.81])  # MuJoCo adds gravity to the acceleration of a frame, too
    for sensor in ("acc", "tip.a"):
        assert [y[f"{sensor}[1]"], y[f"{sensor}[3]"]] == pytest.approx(felt.tolist(), rel=1e-9)
    assert [y["gyro[1]"], y["gyro[2]"], y["gyro[3]"]] == pytest.approx([0, 0, 0], abs=1e-12)


def test_a_free_body_falls_and_turns(tmp_path: Path) -> None:
    with fl.load(write(tmp_path, body("<freejoint/>"))) as model:
        lin = fl.linearize(model, fl.operating_point(model, {"b.wx": 0.3}))
        assert model.states.names[:7] == ("b.x", "b.y", "b.z", "b.qw", "b.qx", "b.qy", "b.qz")
    assert len(lin.states) == 12  # of 13: the quaternion has unit length


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    text = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
      <body name="ball" pos="0 0 .0999"><joint name="up" type="slide" axis="0 0 1" range="0.1 1" limited="true"/>
      <joint name="turn" type="hinge" frictionloss=".1"/><geom size=".1"/><site name="s"/></body></worldbody>
      <sensor><touch name="feel" site="s"/></sensor></mujoco>"""
    with fl.load(write(tmp_path, text)) as model:
        words = " ".join(str(w) for w in fl.linearize(model).warnings)
        assert not model.outputs.has("feel")
    for part in ("touch: world and ball", "the joint up", "frictionloss) is left out: turn", "left out: feel"):
        assert part in words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco><worldbody><body>", r"MuJoCo cannot read '.*scene\.xml': .*python -m mujoco\.viewer"),
        (body("<joint name='j'/>").replace("'j'", "'j' type='screw'"), r"MuJoCo cannot read .*screw"),
        (
            """<mujoco><worldbody><flexcomp name="net" type="grid" dim="2" count="3 3 1" spacing=".1 .1 .1" radius=".01"
                 mass="1"><edge equality="true"/></flexcomp></worldbody></mujoco>""",
            r"The equality constraint 'equality1' is of the kind 'flex', which cannot be made ideal here",
        ),
    ],
)  # fmt: skip
def test_refusals(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        fl.load(write(tmp_path, "<!-- a comment -->" + text))


def test_other_xml_is_not_claimed(tmp_path: Path) -> None:
    from fmilin.errors import UsageError

    with pytest.raises(UsageError, match="not a model that fmilin can read"):
        fl.load(write(tmp_path, "<!-- <mujoco> --><robot/>"))


def test_an_old_engine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: "2.3.7")
    with pytest.raises(ModelError, match=r"'mujoco' 2\.3\.7 is too old: version 3\.2 or later is required"):
        fl.load(FOUR_BAR)


def test_urdf_by_name(tmp_path: Path) -> None:
    text = """<robot name="r"><link name="base"><inertial><mass value="1"/>
      <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
      <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="pin" type="continuous"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""
    with fl.load(f"mujoco:{write(tmp_path, text, 'robot.urdf')}") as model:
        s = fl.linearize(model).eigenvalues()
    assert s == pytest.approx(np.array([-1j, 1j]) * np.sqrt(2 * 9.81 * 0.5 / (0.1 + 2 * 0.25)), rel=1e-9)


def test_models_of_the_package_itself() -> None:
    shipped = Path(mujoco.__file__).parent / "testdata" / "model.xml"
    with fl.load(shipped) as model:
        assert fl.linearize(model, fl.operating_point(model, project=True)).A.size


@pytest.mark.parametrize(("outer", "inner"), [(100_000, 1), (200, 100)])
def test_copies_without_end_are_refused(tmp_path: Path, outer: int, inner: int) -> None:
    geom = '<geom size="0.1"/>'
    copies = f'<replicate count="{outer}" offset="1 0 0"><replicate count="{inner}">{geom}</replicate></replicate>'
    path = tmp_path / "copies.xml"
    path.write_text(f"<mujoco><worldbody>{copies}</worldbody></mujoco>", encoding="utf-8")
    with pytest.raises(fl.ModelError, match=r"<replicate> elements create [\d,]+ others, more than the limit"):
        fl.load(path)


DRONE = """<mujoco model="drone"><option density="1.225" viscosity="1.8e-5"/><worldbody><body name="frame" pos="0 0 1">
<freejoint name="f"/><geom type="box" size=".2 .15 .03" mass="1.3"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("speeds", [{}, {"f.vz": 5.0, "f.wx": 0.3, "f.vx": 5e-3}])
def test_drag_has_the_slope_of_its_viscous_part_at_rest(tmp_path: Path, speeds: dict[str, float]) -> None:
    """6 pi mu r of the sphere with the box's mean size: |v| v has no slope at rest, nor beside another velocity."""
    path = tmp_path / "drone.xml"
    path.write_text(DRONE)
    model = fl.load(path)
    lin = fl.linearize(model, fl.operating_point(model, speeds))
    assert not [w for w in lin.warnings if w.kind == "directional-derivative"]
    i = lin.states.names.index("f.vy")
    mean = 2 * (0.2 + 0.15 + 0.03) / 3
    assert lin.A[i, i] == pytest.approx(-3 * np.pi * 1.8e-5 * mean / 1.3, rel=1e-6)
