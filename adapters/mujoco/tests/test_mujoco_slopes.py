"""Slopes in MuJoCo's own loop over its inverse dynamics, beside the loop over its parts; how often it is visited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from fmilin_mujoco import MujocoEngine, slopes
from fmilin_mujoco.slopes import PointSlopes

import fmilin as fl
from fmilin.adapters import EngineModel

MODELS = Path(__file__).parent / "models"
SITE, FRAME = "site='tip'", "objtype='site' objname='tip'"
SENSORS = {
    "accelerometer": SITE, "velocimeter": SITE, "gyro": SITE, "force": SITE, "torque": SITE, "magnetometer": SITE,
    "rangefinder": SITE, "jointpos": "joint='h'", "jointvel": "joint='h'", "tendonpos": "tendon='t'",
    "tendonvel": "tendon='t'", "actuatorpos": "actuator='m'", "actuatorvel": "actuator='m'", "ballquat": "joint='b'",
    "ballangvel": "joint='b'", "framepos": FRAME, "framequat": FRAME, "framexaxis": FRAME, "framelinvel": FRAME,
    "frameangvel": FRAME, "framelinacc": FRAME, "frameangacc": FRAME, "subtreecom": "body='arm'",
    "subtreelinvel": "body='arm'", "subtreeangmom": "body='arm'", "e_potential": "", "clock": "",
}  # fmt: skip
VISITED = {"actuatorfrc": "actuator='p'", "jointactuatorfrc": "joint='h'", "e_kinetic": ""}


def scene(sensors: dict[str, str], option: str = "") -> str:
    """Return a floating chain of a ball, a slide and a hinge with springs, a tendon and actuators of several kinds."""
    measured = "".join(f"<{kind} {of}/>" for kind, of in sensors.items())
    return f"""<mujoco>{option}<worldbody><site name='o' pos='0 0 1'/><geom type='plane' size='9 9 1' pos='0 0 -9'/>
      <body pos='0 0 1'><freejoint/><geom size='.1' pos='.05 0 0'/>
        <body name='arm' pos='.3 .1 0'><joint name='b' type='ball' damping='.1'/><geom size='.1' pos='0 .2 0'/>
          <body pos='0 .1 .2'><joint name='s' type='slide' axis='1 1 0' stiffness='3' damping='.2'/>
            <joint name='h' axis='0 1 1' pos='.1 0 0' stiffness='2' springref='20' armature='.1'/>
            <geom size='.1' pos='0 .2 0'/><site name='tip' pos='.1 .1 .1'/></body></body></body></worldbody>
      <tendon><spatial name='t' stiffness='5' damping='1'><site site='o'/><site site='tip'/></spatial></tendon>
      <actuator><position name='p' joint='h' kp='5' kv='1'/><motor name='m' site='tip' gear='1 2 3 .1 .2 .3'/>
        <general joint='s' dyntype='filter' dynprm='.1' gainprm='3' biastype='affine' biasprm='0 -1 -.1'/>
      </actuator><sensor>{measured}</sensor></mujoco>"""


def at_a_moving_point(engine: MujocoEngine) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return time, states and inputs away from the start, constraints not kept."""
    model, rng, x = engine.compiled, np.random.default_rng(5), engine.states.starts
    q = x[: model.nq].copy()
    mujoco.mj_integratePos(model, q, rng.normal(size=model.nv), 0.3)
    return 0.0, np.concatenate((q, rng.normal(size=model.nv), 0.1 * np.ones(model.na))), engine.inputs.starts + 0.1


SCENES: dict[str, Callable[[], Any]] = {
    "sensors": lambda: mujoco.MjModel.from_xml_string(scene(SENSORS)),
    "visited": lambda: mujoco.MjModel.from_xml_string(scene(VISITED)),
    "fluid": lambda: mujoco.MjModel.from_xml_string(scene({}, "<option density='1.2' viscosity='.1'/>")),
    "discrete": lambda: mujoco.MjModel.from_xml_string(scene({}, "<option><flag invdiscrete='enable'/></option>")),
    **{p.stem: lambda p=p: mujoco.MjModel.from_xml_path(str(p)) for p in MODELS.glob("*.xml")},  # type: ignore[misc]
}


@pytest.mark.parametrize("name", sorted(SCENES))
def test_both_loops_say_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = MujocoEngine(SCENES[name](), name)
    point, found = at_a_moving_point(engine), list[PointSlopes]()
    for _ in range(2):
        engine._last_slopes = None
        found.append(engine._slopes_at(*point).point)
        monkeypatch.setattr(slopes._Differences, "_inverse_agrees", lambda _: False)
    for array in fields(PointSlopes)[:-1]:
        one, other = (getattr(part, array.name) for part in found)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10 * max(1.0, np.abs(other).max(initial=0.0)))


@pytest.mark.parametrize(("name", "most"), [("sensors", 3), ("sprung_leg", 3), ("arm", 60)])
def test_positions_are_computed_a_few_times_for_all_slopes(
    name: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sensors of the arm measure its actuators: each of its six freedoms is moved from here."""
    engine, counts = MujocoEngine(SCENES[name](), name), Counter[str]()

    def counted(function: str) -> Callable[..., Any]:
        own = getattr(mujoco, function)

        def call(*arguments: Any) -> Any:
            counts[function] += 1
            return own(*arguments)

        return call

    for function in ("mj_fwdPosition", "mjd_inverseFD"):
        monkeypatch.setattr(mujoco, function, counted(function))
    engine._slopes_at(*at_a_moving_point(engine))
    assert counts["mj_fwdPosition"] <= most
    assert counts["mjd_inverseFD"] <= 8


def test_constraints_alone_take_no_dynamics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Default coordinates ask for the constraints beside the point in every state."""
    model = EngineModel(MujocoEngine(SCENES["sprung_leg"](), "leg"))
    visits = Counter[str]()
    own = MujocoEngine._solved
    monkeypatch.setattr(MujocoEngine, "_solved", lambda *a: (visits.update(["solved"]), own(*a))[1])
    chosen = fl.linearize(model)
    assert visits["solved"] <= 12
    x, u = model.start.states, model.start.inputs
    alone = model.constraint_residuals(0.0, x + 0.01, u)
    assert alone is not None
    np.testing.assert_allclose(alone, model.evaluate(0.0, x + 0.01, u).residuals, rtol=0, atol=1e-14)
    assert len(chosen.states) < len(x)


def test_rays_that_graze_the_ground_have_their_slope() -> None:
    """A ray from the height h, inclined by a, is h / sin(a) long: it changes by -h cos(a) / sin(a)^2 as it turns."""
    a, h = 0.1, 1.0
    text = f"""<mujoco><compiler angle='radian'/><worldbody><geom type='plane' size='99 99 1'/><body pos='0 0 {h}'>
      <joint name='j' axis='0 1 0'/><geom size='.1' pos='0 0 .3'/><site name='ray' euler='0 {np.pi / 2 + a} 0'/></body>
      </worldbody><sensor><rangefinder name='r' site='ray'/></sensor></mujoco>"""
    lin = fl.linearize(EngineModel(MujocoEngine(mujoco.MjModel.from_xml_string(text), "ray")))
    assert lin.point.outputs["r"] == pytest.approx(h / np.sin(a), rel=1e-12)
    assert lin.C[0, 0] == pytest.approx(-h * np.cos(a) / np.sin(a) ** 2, rel=1e-8)
    assert lin.method.derivatives == "exact"
