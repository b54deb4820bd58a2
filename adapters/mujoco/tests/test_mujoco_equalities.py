"""Ideal equality constraints against MuJoCo's own residuals and velocities, and against their own motion."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from fmilin_mujoco import MujocoEngine
from fmilin_mujoco.names import quaternion_places

import fmilin as fl
from fmilin.adapters import EngineModel
from fmilin.models.mechanism import Mechanism

SCENE = """
<mujoco>
  <option gravity="0.3 0 -9.81"/>
  <default><geom contype="0" conaffinity="0" type="box"/></default>
  <worldbody>
    <body name="a" pos="0 0 1">
      <freejoint name="fly"/><geom size=".1 .2 .3" mass="2"/><site name="x" pos=".1 .2 .1" quat="1 .2 .3 .1"/>
    </body>
    <body name="b" pos="1 0 1.2" quat="0.9 0.1 0.2 0.3">
      <joint name="ball" type="ball"/><geom size=".1 .2 .3" pos=".2 .1 -.3" mass="1.3"/>
      <body name="c" pos=".5 0 0">
        <joint name="h" type="hinge" axis="0 1 .3" stiffness="2" damping=".1"/>
        <geom size=".1 .2 .1" pos=".1 .1 -.3" mass="1.3"/><site name="y" pos="-.1 .2 .1" quat="1 .2 -.3 .1"/>
      </body>
    </body>
    <body name="d" pos="2 0 0"><joint name="s" type="slide" axis="0 0 1"/><geom size=".1 .1 .1" mass=".5"/></body>
  </worldbody>
  <tendon>
    <fixed name="t1"><joint joint="h" coef="1.5"/><joint joint="s" coef="-.4"/></fixed>
    <fixed name="t2"><joint joint="s" coef=".7"/></fixed>
    <fixed name="t3"><joint joint="s" coef=".7"/><joint joint="h" coef=".2"/></fixed>
  </tendon>
  <equality>EQUALITY</equality>
  <actuator>
    <motor joint="h" name="m"/><general name="g" joint="s" dyntype="filter" dynprm="0.3" gainprm="2"/>
  </actuator>
</mujoco>
"""

# The constraint, its rows, and how many states are left of 25: 13 positions, 11 velocities, 1 activation.
EQUALITIES = {
    '<connect name="k" body1="a" body2="c" anchor=".1 .2 .3"/>': (3, 17),
    '<connect name="k" site1="x" site2="y"/>': (3, 17),
    '<weld name="k" body1="a" body2="c"/>': (6, 11),
    '<weld name="k" body1="a" body2="c" anchor=".1 .1 .1" relpose="1 0 .2 .9 .1 .3 .1"/>': (6, 11),
    '<weld name="k" site1="x" site2="y"/>': (6, 11),
    '<weld name="k" body1="a" torquescale="2"/>': (6, 11),
    '<joint name="k" joint1="h" joint2="s" polycoef=".1 .5 .3 -.2 .1"/>': (1, 21),
    '<joint name="k" joint1="h" polycoef=".1"/>': (1, 21),
    '<tendon name="k" tendon1="t1" tendon2="t2" polycoef=".1 .5 .3 -.2 .1"/>': (1, 21),
    '<tendon name="k" tendon1="t2" tendon2="t3" polycoef=".1 .5 .3"/>': (1, 21),
    '<tendon name="k" tendon1="t1" polycoef=".1"/>': (1, 21),
}


def anywhere(model: mujoco.MjModel, engine: MujocoEngine) -> np.ndarray:
    x = engine.states.starts + 0.2 * np.random.default_rng(3).standard_normal(len(engine.states))
    for _, q, _ in quaternion_places(model):
        x[q : q + 4] /= np.linalg.norm(x[q : q + 4])
    return x


@pytest.mark.parametrize("text", EQUALITIES)
def test_gaps_and_rates_are_mujocos(text: str) -> None:
    model = mujoco.MjModel.from_xml_string(SCENE.replace("EQUALITY", text))
    engine = MujocoEngine(model, "scene")
    x, m = anywhere(model, engine), EQUALITIES[text][0]
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = x[: model.nq], x[model.nq : model.nq + model.nv]
    mujoco.mj_forward(model, data)
    values = engine.visit(0.0, x, np.zeros(2))[1]
    gap, rate = values[-2 * m : -m], values[-m:]
    scale = np.repeat([1.0, float(model.eq_data[0][10]) / 2.0], 3)[:m] if "weld" in text else np.ones(m)
    for ours, theirs in ((gap, data.efc_pos[:m]), (rate, data.efc_vel[:m])):
        if "weld" in text and "site" in text:  # the same rotation vector, seen from the other frame
            assert np.linalg.norm(gap[3:]) / 2 == pytest.approx(np.linalg.norm(data.efc_pos[3:6]), rel=1e-12)
            assert ours[:3] == pytest.approx(theirs[:3], rel=1e-12, abs=1e-14)
        else:
            assert ours * scale == pytest.approx(theirs, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("text", EQUALITIES)
def test_the_motion_keeps_the_rate_of_every_gap_also_off_the_manifold(text: str) -> None:
    model = mujoco.MjModel.from_xml_string(SCENE.replace("EQUALITY", text))
    engine = MujocoEngine(model, "scene")
    x, m, h = anywhere(model, engine), EQUALITIES[text][0], 1e-6
    rates, values = engine.visit(0.0, x, np.zeros(2))
    beside = [engine.visit(0.0, x + s * h * rates, np.zeros(2))[1] for s in (1, -1)]
    moved = (beside[0] - beside[1]) / (2 * h)
    assert moved[-2 * m : -m] == pytest.approx(values[-m:], rel=1e-6, abs=1e-8)
    assert moved[-m:] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("text", EQUALITIES)
def test_linear_models_have_the_freedoms_that_are_left(text: str) -> None:
    model = EngineModel(MujocoEngine(mujoco.MjModel.from_xml_string(SCENE.replace("EQUALITY", text)), "scene"))
    point = fl.operating_point(model, project=True)
    lin = fl.linearize(model, point)
    assert len(lin.states) == EQUALITIES[text][1]


@pytest.mark.parametrize(
    ("equality", "native"),
    [
        ('tendon1="t1" tendon2="t2" polycoef=".1 .5 .3 -.2 .1"', True),
        ('tendon1="t1" polycoef=".1"', True),
        ('tendon1="single" tendon2="t3" polycoef=".1 .5"', True),
        ('tendon1="single" tendon2="t3" polycoef=".1 .5 .3"', False),  # a power of a sum of joints
    ],
)
def test_tendons_over_joints_become_couplings_of_a_mechanism(equality: str, *, native: bool, tmp_path: Path) -> None:
    """Its rates are those of the engine, once the springs of the reference positions differ from zero."""
    path = tmp_path / "scene.xml"
    text = SCENE.replace("EQUALITY", f'<tendon name="k" {equality}/>').replace(
        'axis="0 0 1"/>', 'axis="0 0 1" ref=".3"/>'
    )
    text = text.replace("</tendon>", '<fixed name="single"><joint joint="h2" coef="2"/></fixed></tendon>')
    text = text.replace(
        '<geom size=".1 .1 .1" mass=".5"/>',
        """<geom size=".1 .1 .1" mass=".5"/><body name="e">
      <joint name="h2" axis="0 1 0" ref=".2"/><geom size=".1 .2 .1" pos=".3 0 0" mass=".4"/></body>""",
    )
    path.write_text(text)
    model, engine = fl.load(path), fl.load(f"mujoco:{path}")
    assert isinstance(model, Mechanism) is native
    point = fl.operating_point(engine, project=True)
    ours, theirs = (m.evaluate(0.0, point.states, point.inputs).derivatives for m in (model, engine))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * np.abs(theirs).max())


def test_a_tendon_along_points_cannot_be_held(tmp_path: Path) -> None:
    text = SCENE.replace("EQUALITY", '<tendon name="k" tendon1="line" polycoef=".1"/>')
    path = tmp_path / "scene.xml"
    path.write_text(
        text.replace("</tendon>", '<spatial name="line"><site site="x"/><site site="y"/></spatial></tendon>')
    )
    with pytest.raises(fl.ModelError, match="'k' holds the tendon 'line', which runs along points"):
        fl.load(path)


SENSORS = """<sensor><accelerometer site="x"/><gyro site="y"/><framelinacc objtype="site" objname="y"/>
  <subtreecom body="b"/><subtreelinvel body="b"/><subtreeangmom body="b"/><e_potential/><e_kinetic/>
  <jointpos joint="h"/><ballquat joint="ball"/><actuatorfrc actuator="g"/><force site="y"/></sensor></mujoco>"""


def test_without_constraints_accelerations_and_sensors_are_mujocos_own() -> None:
    model = mujoco.MjModel.from_xml_string(SCENE.replace("EQUALITY", "").replace("</mujoco>", SENSORS))
    engine = MujocoEngine(model, "scene")
    engine.visit(0.0, engine.states.starts, np.zeros(2))
    x, u = anywhere(model, engine), np.array([0.7, -0.4])
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.act[:] = x[: model.nq], x[model.nq : -1], x[-1:]
    data.ctrl[:] = u
    mujoco.mj_forward(model, data)
    rates = engine.visit(0.0, x, u)[0]
    assert engine.visit(0.0, x, u)[1] == pytest.approx(data.sensordata, rel=1e-12, abs=1e-12)
    assert rates[model.nq :] == pytest.approx([*data.qacc, *data.act_dot], rel=1e-12)
    turned = data.qpos.copy()
    mujoco.mj_integratePos(model, turned, data.qvel, 1e-6)
    assert rates[: model.nq] == pytest.approx((turned - data.qpos) / 1e-6, abs=1e-5)
