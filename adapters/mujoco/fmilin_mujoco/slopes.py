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
from typing import Any, NamedTuple

import mujoco
import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.native.native_engine import side_of
from fmilin.numerics.null_space import NullSpaceFactors
from fmilin_mujoco.loops import Loops, Posture
from fmilin_mujoco.saturation import Muscle

__all__ = ["Clamps", "PointSlopes", "clamps_at", "slopes_at", "without_clamps"]

TURN = 2.0**-8
"""Step along freedoms, in rad, or in m for models larger than 1 m."""
STENCIL = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
NEAR = ((1, 1 / 2),)
TINY = 2.0**-22
"""Step, in rad and m, along which drag shows its slope where it bends at rest: |v| v has none at v = 0."""
BENT = 1e-9  # difference of two slopes, relative to the drag over the step, that is no rounding
PLAIN_GAINS = {int(mujoco.mjtGain.mjGAIN_FIXED), int(mujoco.mjtGain.mjGAIN_AFFINE)}
PLAIN_BIASES = {int(mujoco.mjtBias.mjBIAS_NONE), int(mujoco.mjtBias.mjBIAS_AFFINE)}
ROUNDING = 4 * float(np.finfo(float).eps)
COMPUTED = ("flg_energypos", "flg_energyvel", "flg_subtreevel", "flg_rnepost")
"""What MuJoCo keeps for its sensors once it has been computed."""
ACCELERATION = mujoco.mjtStage.mjSTAGE_ACC

Move = Callable[[int, float], None]
Stencil = Sequence[tuple[int, float]]


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
        unknowns = np.array([self.factors.solve(column) for column in right.T]).reshape(-1, len(right)).T
        a = unknowns[: self.by_acceleration.shape[1]]
        sensors = self.sensors @ directions + self.by_acceleration @ a
        return a, self.activations @ directions, sensors, unknowns[len(a) :]


@dataclass(frozen=True)
class Held:
    """What stays as it is while the point moves: accelerations and multipliers, and the parts of the model."""

    loops: Loops
    sensors: Sequence[int]
    muscles: Sequence[Muscle]
    a: FloatArray
    multipliers: FloatArray


def slopes_at(model: Any, data: Any, held: Held, factors: NullSpaceFactors) -> PointSlopes:
    """Return the slopes at the point in ``data``, where everything has been computed."""
    nv, na, nu, m, ns = model.nv, model.na, model.nu, len(held.multipliers), len(held.sensors)
    base = [(array, array.copy()) for array in (data.qpos, data.qvel, data.act, data.ctrl)]
    differences = _Differences(model, data, held)
    size = min(1.0, float(model.stat.extent))
    steps = [TURN * (size if kind == mujoco.mjtJoint.mjJNT_SLIDE else 1.0) for kind in model.jnt_type[model.dof_jntid]]

    def restored() -> None:
        for array, value in base:
            array[:] = value

    def moved(j: int, h: float) -> None:
        data.qpos[:] = base[0][1]
        step = np.zeros(nv)
        step[j] = h
        mujoco.mj_integratePos(model, data.qpos, step, 1.0)

    J = np.zeros((nv + m + ns + na, 2 * nv + na + nu))
    J[:, :nv] = differences.slopes(moved, steps, STENCIL, 0)
    restored()
    differences.compute(0)
    stencil = NEAR if _is_polynomial(model) else STENCIL
    step = 0.5 if stencil is NEAR and not _is_limited(model) else TURN
    first = nv
    for stage, (array, value) in zip((1, 2, 2), base[1:], strict=True):

        def pushed(j: int, h: float, array: Any = array, value: FloatArray = value) -> None:
            array[:] = value
            array[j] += h

        J[:, first : first + len(value)] = differences.slopes(pushed, [step] * len(value), stencil, stage)
        restored()
        differences.compute(1)
        first += len(value)
    forces = np.abs([data.qfrc_bias, data.qfrc_passive, data.qfrc_actuator]).max(initial=0.0)
    of_forces = J[:nv, :nv]  # small inertias magnify what rounding leaves of large forces
    of_forces[np.abs(of_forces) < ROUNDING * forces / TURN] = 0.0
    parts = np.split(J, [nv + m, nv + m + ns])
    return PointSlopes(parts[0], parts[1], parts[2], differences.by_acceleration(), factors)


class Clamps(NamedTuple):
    """Limits of a model that steps may cross (actuators' forces and controls, joints' forces), and constant forces."""

    forces: tuple[int, ...]
    joints: tuple[int, ...]
    controls: tuple[int, ...]
    constant: tuple[tuple[int, float], ...]


def clamps_at(model: Any, data: Any) -> Clamps:
    """Return the limits that are not reached, and the plain actuators whose force has reached its limit."""
    forces, constant = [], []
    for i in np.flatnonzero(model.actuator_forcelimited).tolist():
        out = int(model.actuator_outadr[i]) if hasattr(model, "actuator_outadr") else i
        force = float(data.actuator_force[out])
        if side_of(force, *model.actuator_forcerange[i]) == "inside":
            forces.append(i)
        elif model.actuator_gaintype[i] in PLAIN_GAINS and model.actuator_biastype[i] in PLAIN_BIASES:
            constant.append((i, force))
    joints = [
        j
        for j in np.flatnonzero(model.jnt_actfrclimited).tolist()
        if side_of(float(data.qfrc_actuator[model.jnt_dofadr[j]]), *model.jnt_actfrcrange[j]) == "inside"
    ]
    controls = []
    for i in np.flatnonzero(model.actuator_ctrllimited).tolist():
        address = int(model.actuator_ctrladr[i]) if hasattr(model, "actuator_ctrladr") else i
        if side_of(float(data.ctrl[address]), *model.actuator_ctrlrange[i]) == "inside":
            controls.append(i)
    return Clamps(tuple(forces), tuple(joints), tuple(controls), tuple(constant))


def without_clamps(model: Any, clamps: Clamps) -> Any:
    """Return the model without limits that steps may cross, and with constant forces; itself where there are none."""
    if not any(clamps):
        return model
    free = copy(model)
    free.actuator_forcelimited[list(clamps.forces)] = 0
    free.jnt_actfrclimited[list(clamps.joints)] = 0
    free.actuator_ctrllimited[list(clamps.controls)] = 0
    for i, force in clamps.constant:
        free.actuator_gainprm[i], free.actuator_biasprm[i] = 0.0, 0.0
        free.actuator_biastype[i] = int(mujoco.mjtBias.mjBIAS_AFFINE)
        free.actuator_biasprm[i, 0] = force
    return free


def _is_limited(model: Any) -> bool:
    """Whether limits are left that large steps might cross."""
    return any(a.any() for a in (model.actuator_forcelimited, model.actuator_ctrllimited, model.jnt_actfrclimited))


class _Differences:
    """Residuals, sensors and activations near the point, accelerations and multipliers held."""

    def __init__(self, model: Any, data: Any, held: Held) -> None:
        self._model, self._data, self._held = model, data, held
        stages = model.sensor_needstage[: model.nsensor]
        self._fast, self._watched = bool((stages == ACCELERATION).any()), bool((stages != ACCELERATION).any())
        self._flags = [flag for flag in COMPUTED if hasattr(data, flag)]
        self._ended = [flag for flag in self._flags if flag == "flg_rnepost"]
        self._inertia = np.zeros(model.nv)

    def slopes(
        self,
        move: Callable[[int, float], None],
        steps: Sequence[float],
        stencil: Sequence[tuple[int, float]],
        stage: int,
    ) -> FloatArray:
        """Return the columns of slopes along moves; from positions (0), speeds (1) or activations (2) on."""
        model, held, m = self._model, self._held, len(self._held.multipliers)
        weights = np.array([sign * w for k, w in stencil for sign in (1, -1)])
        multiples = [sign * k for k, _ in stencil for sign in (1, -1)]
        tied = bool(m) and stage < 2
        now = Posture.of(self._data)
        room = Posture.stack(self._data, len(steps) * len(multiples) if tied else 0)
        values = np.zeros((len(steps) * len(multiples), model.nv + m + len(held.sensors) + model.na))
        points = [(j, k * h) for j, h in enumerate(steps) for k in multiples]
        for i, (j, h) in enumerate(points):
            move(j, h)
            self.compute(stage)
            values[i, : model.nv] = self._forces()
            values[i, model.nv + m :] = self._seen()
            if tied:
                room.keep(i, now)
        if tied:
            forces, s = held.loops.residuals(room, held.a, held.multipliers)
            values[:, : model.nv] += forces
            values[:, model.nv : model.nv + m] = s
        sums = np.tensordot(weights, values.reshape(len(steps), len(multiples), values.shape[1]), (0, 1))
        slopes = np.asarray((sums / np.reshape(steps, (-1, 1))).T)
        if stage < 2 and _is_in_fluid(model):
            slopes[: model.nv] += self._bends_of_drag(move, steps, stencil, stage)
        return slopes

    def _bends_of_drag(self, move: Move, steps: Sequence[float], stencil: Stencil, stage: int) -> FloatArray:
        """Return what long steps see of drag beyond its slopes (nv, k): next to rest it goes as |v| v."""

        def drag(j: int, h: float) -> FloatArray:
            move(j, h)
            self.compute(stage)
            return np.asarray(self._data.qfrc_fluid).copy()

        beyond = np.zeros((self._model.nv, len(steps)))
        for j, step in enumerate(steps):
            pairs = [(k, w, drag(j, k * step), drag(j, -k * step)) for k, w in stencil]
            far = sum(w * (ahead - behind) for _, w, ahead, behind in pairs) / step
            # What is left of |v| v is proportional to the step, and vanishes between two of them.
            one, half = ((drag(j, h) - drag(j, -h)) / (2 * h) for h in (TINY, TINY / 2))
            near, noise = 2 * half - one, np.abs(half - one) + ROUNDING * np.abs(drag(j, 0.0)) / TINY
            gap = far - near
            largest = np.max([np.abs(part) for pair in pairs for part in pair[2:]], axis=0) / step
            beyond[:, j] = np.where(np.abs(gap) > 4 * noise + BENT * largest, gap, 0.0)
        return beyond

    def compute(self, stage: int) -> None:
        """Compute from a stage on."""
        model, data = self._model, self._data
        for flag in self._flags:
            setattr(data, flag, False)
        if stage == 0:
            mujoco.mj_fwdPosition(model, data)
        if stage <= 1:
            if self._watched:
                mujoco.mj_sensorPos(model, data)  # the kinetic energy is among these
            mujoco.mj_fwdVelocity(model, data)
            if self._watched:
                mujoco.mj_sensorVel(model, data)
        mujoco.mj_fwdActuation(model, data)
        data.qacc[:] = self._held.a
        if self._fast:
            self._accelerate(self._held.a)

    def by_acceleration(self) -> FloatArray:
        """Return the slopes of sensors by accelerations, which they are linear in."""
        held, nv = self._held, self._model.nv
        columns = np.zeros((len(held.sensors), nv))
        if self._fast and len(held.sensors):
            now = self._data.sensordata[held.sensors].copy()
            for j in range(nv):
                push = held.a.copy()
                push[j] += 1.0
                self._accelerate(push)
                columns[:, j] = self._data.sensordata[held.sensors] - now
        return columns

    def _accelerate(self, a: FloatArray) -> None:
        self._data.qacc[:] = a
        for flag in self._ended:
            setattr(self._data, flag, False)
        mujoco.mj_rnePostConstraint(self._model, self._data)
        mujoco.mj_sensorAcc(self._model, self._data)

    def _forces(self) -> FloatArray:
        """Return M a + c - tau."""
        data = self._data
        mujoco.mj_mulM(self._model, data, self._inertia, self._held.a)
        return np.asarray(self._inertia + (data.qfrc_bias - data.qfrc_passive - data.qfrc_actuator))

    def _seen(self) -> FloatArray:
        """Return the sensors and the rates of activations."""
        data = self._data
        for muscle in self._held.muscles:
            data.act_dot[muscle.activation] = muscle.rate(data.ctrl, data.act)
        return np.concatenate((data.sensordata[self._held.sensors], data.act_dot))


def _is_polynomial(model: Any) -> bool:
    """Whether forces are quadratic in speeds, activations and controls together: no muscles, no fluid, no powers."""
    kinds = {int(getattr(mujoco.mjtDyn, f"mjDYN_{k}")) for k in ("NONE", "INTEGRATOR", "FILTER", "FILTEREXACT")}
    laws = {*model.actuator_gaintype.tolist()} <= PLAIN_GAINS and {*model.actuator_biastype.tolist()} <= PLAIN_BIASES
    powers = any(np.any(getattr(model, name, 0)) for name in ("dof_dampingpoly", "tendon_dampingpoly"))
    plain = not powers and not _is_in_fluid(model) and not model.nplugin
    return laws and {*model.actuator_dyntype.tolist()} <= kinds and plain


def _is_in_fluid(model: Any) -> bool:
    return bool(model.opt.density or model.opt.viscosity)
