"""Equality constraints at once, against MuJoCo's own Jacobians and differences of them."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from fmilin_mujoco.equalities import equalities
from fmilin_mujoco.loops import Loops, Posture
from fmilin_mujoco.slopes import Held, slopes_of_loops

MODELS = Path(__file__).parent / "models"
TANGLE = """
<mujoco>
  <worldbody>
    <body name="base" pos="0 0 1">
      <freejoint/>
      <geom size=".1" pos=".1 0 0"/>
      <body name="ball" pos=".3 .1 0">
        <joint type="ball"/>
        <geom size=".1" pos="0 .2 0"/>
        <body name="hand" pos="0 .1 .2">
          <joint name="slide" type="slide" axis="1 1 0"/>
          <joint name="hinge" axis="0 1 1" pos=".1 0 0"/>
          <geom size=".1" pos="0 .2 0"/>
        </body>
      </body>
    </body>
    <body name="other" pos="1 0 0">
      <joint name="lead" axis="1 0 1"/>
      <geom size=".1" pos=".2 .2 0"/>
      <body name="tip" pos=".1 .2 .3">
        <joint type="ball"/>
        <geom size=".1" pos=".2 .2 0"/>
      </body>
    </body>
  </worldbody>
  <equality>
    <connect body1="hand" body2="tip" anchor=".1 .2 .3"/>
    <weld body1="ball" body2="tip" anchor=".1 .3 0"/>
    <joint joint1="hinge" joint2="lead" polycoef=".1 .2 .3 .4 .5"/>
    <weld body1="base"/>
    <joint joint1="slide" polycoef=".1"/>
    <connect body1="other" body2="ball" anchor=".1 .2 .3"/>
  </equality>
</mujoco>
"""
STEP = 2e-5
FINE, LONG = 1e-4, 1e-3


@pytest.mark.parametrize("source", ["tangle", "gripper", "finger", "humanoid", "mobile", "sprung_leg"])
def test_rows_changes_and_slopes_are_those_of_mujoco_s_jacobians(source: str) -> None:
    model = (
        mujoco.MjModel.from_xml_string(TANGLE)
        if source == "tangle"
        else mujoco.MjModel.from_xml_path(str(MODELS / f"{source}.xml"))
    )
    data, rng = mujoco.MjData(model), np.random.default_rng(7)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 0.5)
    data.qvel[:] = v = rng.normal(size=model.nv)
    each = equalities(model)
    loops, start = Loops(model, each), data.qpos.copy()

    def one_by_one() -> tuple[np.ndarray, np.ndarray]:
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        g, G = zip(*(e.rows(data) for e in each), strict=True)
        return np.concatenate(g), np.concatenate(G)

    def moved(step: np.ndarray) -> np.ndarray:
        data.qpos[:] = start
        mujoco.mj_integratePos(model, data.qpos, step, 1.0)
        return one_by_one()[1] @ v

    changes = np.array([moved(STEP * e) - moved(-STEP * e) for e in np.eye(model.nv)]).T / (2 * STEP)
    bias = (moved(STEP * v) - moved(-STEP * v)) / (2 * STEP)
    data.qpos[:] = start
    g, G = one_by_one()
    at = Posture.of(data)
    np.testing.assert_allclose(loops.rows(at)[0], g, rtol=0, atol=1e-14)
    np.testing.assert_allclose(loops.rows(at)[1], G, rtol=0, atol=1e-14)
    np.testing.assert_allclose(loops.changes(at, v), changes, rtol=0, atol=1e-6)
    np.testing.assert_allclose(loops.changes(at, v) @ v, bias, rtol=0, atol=1e-6)

    a, multipliers = rng.normal(size=model.nv), rng.normal(size=len(g))
    held = Held(loops, [], (), a, multipliers)
    slopes = slopes_of_loops(model, data, held)

    def residuals(step: np.ndarray, faster: np.ndarray) -> np.ndarray:
        """Return G' lambda and G a + (dG/dt) v of constraints that are visited one by one."""
        speed = v + faster
        data.qpos[:] = start
        mujoco.mj_integratePos(model, data.qpos, step, 1.0)
        here, q = one_by_one()[1], data.qpos.copy()
        ahead, behind = (Gs_along(q, sign * speed) for sign in (1, -1))
        return np.concatenate((here.T @ multipliers, here @ a + (ahead - behind) @ speed / (2 * FINE)))

    def Gs_along(q: np.ndarray, speed: np.ndarray) -> np.ndarray:
        data.qpos[:] = q
        mujoco.mj_integratePos(model, data.qpos, FINE * speed, 1.0)
        return one_by_one()[1]

    zero = np.zeros(model.nv)
    for columns, pairs in ((slopes[:, : model.nv], [(e, zero) for e in np.eye(model.nv)]),
                           (slopes[:, model.nv :], [(zero, e) for e in np.eye(model.nv)])):  # fmt: skip
        differences = [(residuals(LONG * x, LONG * y) - residuals(-LONG * x, -LONG * y)) / (2 * LONG) for x, y in pairs]
        np.testing.assert_allclose(columns, np.array(differences).T, rtol=0, atol=2e-5)
