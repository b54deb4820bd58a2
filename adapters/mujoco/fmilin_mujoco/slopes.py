"""Slopes of accelerations and sensors from MuJoCo's own quantities, at one point.

With accelerations a and multipliers held, the equations leave the residuals

    r = M(q) a + c(q, v) - tau(q, v, act, ctrl) + G' lambda,     s = G a + (dG/dt) v,

which take no solution of equations. Their slopes along every freedom, speed, activation and control are differences of
sixth order (of second order where MuJoCo's forces are polynomials), and M da + G' dlambda = -dr, G da = -ds give the
slopes of the accelerations along any direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from fmilin.models.limits import side_of
from fmilin.saddle_point.null_space import NullSpaceFactors
from fmilin.signals import FloatArray
from fmilin_mujoco.equalities import Equality
from fmilin_mujoco.saturation import Muscle

__all__ = ["PointSlopes", "slopes_at", "without_clamps"]

TURN = 2.0**-8
"""Step along freedoms, in rad, or in m for models larger than 1 m."""
STENCIL = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
NEAR = ((1, 1 / 2),)
PLAIN_GAINS = {int(mujoco.mjtGain.mjGAIN_FIXED), int(mujoco.mjtGain.mjGAIN_AFFINE)}
PLAIN_BIASES = {int(mujoco.mjtBias.mjBIAS_NONE), int(mujoco.mjtBias.mjBIAS_AFFINE)}
ROUNDING = 4 * float(np.finfo(float).eps)
KEPT = ("flg_energypos", "flg_energyvel", "flg_subtreevel", "flg_rnepost")
"""What MuJoCo keeps for its sensors once it has been computed."""
ACCELERATION = mujoco.mjtStage.mjSTAGE_ACC


@dataclass(frozen=True)
class PointSlopes:
    """What :func:`slopes_at` finds; columns are freedoms, speeds, activations, controls.

    Attributes
    ----------
    residuals : array, shape (nv + m, k)
        Of r and s.
    sensors, activations : array, shape (ns, k), (na, k)
        Accelerations held.
    by_acceleration : array, shape (ns, nv)
    factors : NullSpaceFactors
    """

    residuals: FloatArray
    sensors: FloatArray
    activations: FloatArray
    by_acceleration: FloatArray
    factors: NullSpaceFactors

    def along(self, directions: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the slopes of a, act', sensors and multipliers along directions (k, j)."""
        right = -self.residuals @ directions
        # One by one they are refined: small inertias do not magnify the rounding of large forces.
        found = np.array([self.factors.solve(column) for column in right.T]).reshape(-1, len(right)).T
        a = found[: self.by_acceleration.shape[1]]
        sensors = self.sensors @ directions + self.by_acceleration @ a
        return a, self.activations @ directions, sensors, found[len(a) :]


@dataclass(frozen=True)
class Held:
    """What stays as it is while the point moves: accelerations and multipliers, and the parts of the model."""

    equalities: Sequence[Equality]
    sensors: Sequence[int]
    muscles: Sequence[Muscle]
    a: FloatArray
    multipliers: FloatArray


def slopes_at(model: Any, data: Any, held: Held, factors: NullSpaceFactors) -> PointSlopes:
    """Return the slopes at the point in ``data``, where everything has been computed."""
    nv, na, nu = model.nv, model.na, model.nu
    base = [data.qpos.copy(), data.qvel.copy(), data.act.copy(), data.ctrl.copy()]
    fast = bool((model.sensor_needstage[: model.nsensor] == ACCELERATION).any()) if model.nsensor else False
    size = min(1.0, float(model.stat.extent))
    steps = [TURN * (size if kind == mujoco.mjtJoint.mjJNT_SLIDE else 1.0) for kind in model.jnt_type[model.dof_jntid]]

    def values(stage: int) -> FloatArray:
        _compute(model, data, stage, fast, held.a)
        return _values(model, data, held)

    def restored(stage: int) -> None:
        data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = base
        del stage

    def moved(j: int, h: float) -> FloatArray:
        restored(0)
        step = np.zeros(nv)
        step[j] = h
        mujoco.mj_integratePos(model, data.qpos, step, 1.0)
        return values(0)

    def pushed(where: str, j: int, h: float) -> FloatArray:
        restored(1)
        getattr(data, where)[j] += h
        return values(1 if where == "qvel" else 2)

    columns = [_slope(lambda h, j=j: moved(j, h), steps[j], STENCIL) for j in range(nv)]  # type: ignore[misc]
    restored(0)
    values(0)
    stencil = NEAR if _is_polynomial(model) else STENCIL
    for where, count in (("qvel", nv), ("act", na), ("ctrl", nu)):
        step = 0.5 if stencil is NEAR and not _is_limited(model) else TURN
        columns += [_slope(lambda h, j=j, w=where: pushed(w, j, h), step, stencil) for j in range(count)]  # type: ignore[misc]
        restored(0)
        values(1)
    J = np.array(columns).T.reshape(-1, 2 * nv + na + nu)
    forces = np.abs([data.qfrc_bias, data.qfrc_passive, data.qfrc_actuator]).max(initial=0.0)
    of_forces = J[:nv, :nv]  # small inertias magnify what rounding leaves of large forces
    of_forces[np.abs(of_forces) < ROUNDING * forces / TURN] = 0.0
    m, ns = len(held.multipliers), len(held.sensors)
    by_acceleration = np.zeros((ns, nv))
    if fast and ns:
        now = data.sensordata[held.sensors].copy()
        for j in range(nv):
            push = held.a.copy()
            push[j] += 1.0
            _accelerate(model, data, push)
            by_acceleration[:, j] = data.sensordata[held.sensors] - now
    parts = np.split(J, [nv + m, nv + m + ns])
    return PointSlopes(parts[0], parts[1], parts[2], by_acceleration, factors)


def without_clamps(model: Any, data: Any) -> Any:
    """Return the model without the limits of controls and forces that are not reached: steps may cross them."""
    free = copy(model)
    for i in np.flatnonzero(model.actuator_forcelimited).tolist():
        out = int(model.actuator_outadr[i]) if hasattr(model, "actuator_outadr") else i
        if side_of(float(data.actuator_force[out]), *model.actuator_forcerange[i]) == "inside":
            free.actuator_forcelimited[i] = 0
        elif free.actuator_gaintype[i] in PLAIN_GAINS and free.actuator_biastype[i] in PLAIN_BIASES:
            free.actuator_gainprm[i], free.actuator_biasprm[i] = 0.0, 0.0  # a constant force, whatever is done
            free.actuator_biastype[i] = int(mujoco.mjtBias.mjBIAS_AFFINE)
            free.actuator_biasprm[i, 0] = data.actuator_force[out]
    for j in np.flatnonzero(model.jnt_actfrclimited).tolist():
        if side_of(float(data.qfrc_actuator[model.jnt_dofadr[j]]), *model.jnt_actfrcrange[j]) == "inside":
            free.jnt_actfrclimited[j] = 0
    for i in np.flatnonzero(model.actuator_ctrllimited).tolist():
        address = int(model.actuator_ctrladr[i]) if hasattr(model, "actuator_ctrladr") else i
        if side_of(float(data.ctrl[address]), *model.actuator_ctrlrange[i]) == "inside":
            free.actuator_ctrllimited[i] = 0
    return free


def _is_limited(model: Any) -> bool:
    """Whether limits are left that large steps might cross."""
    return any(a.any() for a in (model.actuator_forcelimited, model.actuator_ctrllimited, model.jnt_actfrclimited))


def _compute(model: Any, data: Any, stage: int, fast: bool, a: FloatArray) -> None:  # noqa: FBT001 - a fact
    """Compute from positions (0), velocities (1) or activations (2) on, accelerations given."""
    for flag in KEPT:
        if hasattr(data, flag):
            setattr(data, flag, False)
    if stage == 0:
        mujoco.mj_fwdPosition(model, data)
    if stage <= 1:
        mujoco.mj_sensorPos(model, data)  # the kinetic energy is among these
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_sensorVel(model, data)
    mujoco.mj_fwdActuation(model, data)
    data.qacc[:] = a
    if fast:
        _accelerate(model, data, a)


def _accelerate(model: Any, data: Any, a: FloatArray) -> None:
    data.qacc[:] = a
    if hasattr(data, "flg_rnepost"):
        data.flg_rnepost = False
    mujoco.mj_rnePostConstraint(model, data)
    mujoco.mj_sensorAcc(model, data)


def _values(model: Any, data: Any, held: Held) -> FloatArray:
    r = np.zeros(model.nv)
    mujoco.mj_mulM(model, data, r, held.a)
    r += data.qfrc_bias - data.qfrc_passive - data.qfrc_actuator
    s = np.empty(0)
    if held.equalities:
        G = np.concatenate([e.rows(data)[1] for e in held.equalities])
        r += G.T @ held.multipliers
        s = G @ held.a + np.concatenate([e.change(data, data.qvel) for e in held.equalities])
    for muscle in held.muscles:
        data.act_dot[muscle.activation] = muscle.rate(data.ctrl, data.act)
    return np.concatenate((r, s, data.sensordata[held.sensors], data.act_dot))


def _slope(f: Callable[[float], FloatArray], h: float, stencil: Sequence[tuple[int, float]]) -> FloatArray:
    found: FloatArray = np.asarray(sum(w * (f(k * h) - f(-k * h)) for k, w in stencil)) / h
    return found


def _is_polynomial(model: Any) -> bool:
    """Whether forces are quadratic in speeds, activations and controls together: no muscles, no fluid, no powers."""
    known = {int(getattr(mujoco.mjtDyn, f"mjDYN_{k}")) for k in ("NONE", "INTEGRATOR", "FILTER", "FILTEREXACT")}
    laws = {*model.actuator_gaintype.tolist()} <= PLAIN_GAINS and {*model.actuator_biastype.tolist()} <= PLAIN_BIASES
    powers = any(np.any(getattr(model, name, 0)) for name in ("dof_dampingpoly", "tendon_dampingpoly"))
    fluid = bool(model.opt.density or model.opt.viscosity)
    return laws and {*model.actuator_dyntype.tolist()} <= known and not powers and not fluid and not model.nplugin
