"""Derivatives of accelerations and sensors from MuJoCo's own quantities, at one point.

With accelerations a and multipliers held, the equations leave the residuals

    r = M(q) a + c(q, v) - tau(q, v, act, ctrl) + G' lambda,     s = G a + (dG/dt) v,

which take no solution of equations. Their derivatives along every freedom, speed, activation and control are
differences of fourth order (of second order where MuJoCo's forces are polynomials), in MuJoCo's own loop over its
inverse dynamics where that knows all of it; those of the constraints are exact. M da + G' dlambda = -dr, G da = -ds
then give the derivatives of the accelerations along any direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import mujoco
import numpy as np

from fmilin.adapters import NullSpaceFactors, classify_side
from fmilin.signals import FloatArray
from fmilin_mujoco.loops import Loops, Posture
from fmilin_mujoco.saturation import MUSCLE, Muscle

__all__ = ["Clamps", "PointSlopes", "clamps_at", "slopes_at", "slopes_of_loops", "without_clamps"]

TURN = 2.0**-10
"""Step along degrees of freedom, in rad, or in m for models larger than 1 m."""
STENCIL = ((1, 2 / 3, -1 / 6), (2, -1 / 12, 1 / 12))
"""Multiples of a step, with the weights of a difference of fourth order, and of what one of second order leaves out."""
NEAR = ((1, 1 / 2, 0.0),)
TINY = 2.0**-22
"""Step, in rad and m, along which drag shows its slope at rest: that of |v| v is zero at v = 0."""
AGREEMENT = 1e-9  # of MuJoCo's inverse dynamics with what its parts say, relative to the largest force
LEFT_OUT = 16.0  # times what the square tells: a tendon over a short lever leaves out twice as much
BENT = 1e-9  # difference of two derivatives, relative to the drag over the step, that is not rounding
PLAIN_GAINS = {int(mujoco.mjtGain.mjGAIN_FIXED), int(mujoco.mjtGain.mjGAIN_AFFINE)}
PLAIN_BIASES = {int(mujoco.mjtBias.mjBIAS_NONE), int(mujoco.mjtBias.mjBIAS_AFFINE)}
ROUNDING = 4 * float(np.finfo(float).eps)
COMPUTED = ("flg_energypos", "flg_energyvel", "flg_subtreevel", "flg_rnepost")
"""What MuJoCo keeps for its sensors once it has been computed."""
ACCELERATION = mujoco.mjtStage.mjSTAGE_ACC
OF_DRIVES = {
    int(getattr(mujoco.mjtSensor, f"mjSENS_{k}"))
    for k in ("ACTUATORFRC", "JOINTACTFRC", "TENDONACTFRC", "E_KINETIC", "USER")
}
"""Sensors that MuJoCo's inverse dynamics does not compute anew: of forces of actuators, or of speeds with positions."""
STEADY = {int(getattr(mujoco.mjtDyn, f"mjDYN_{k}")) for k in ("NONE", "INTEGRATOR", "FILTER", "FILTEREXACT", "MUSCLE")}
"""Activations with rates that depend on themselves and controls only."""

Move = Callable[[int, float], None]
Stencil = Sequence[tuple[int, float, float]]


@dataclass(frozen=True)
class PointSlopes:
    """What :func:`slopes_at` finds; columns are degrees of freedom, speeds, activations, controls.

    Attributes
    ----------
    residuals : array, shape (nv + m, k)
        Of r and s.
    sensors, activations : array, shape (ns, k), (na, k)
        Accelerations held.
    by_acceleration : array, shape (ns, nv)
    errors, sensor_errors : array, shape (nv + m,), (ns,)
        How wrong derivatives along degrees of freedom may be: rounding of the largest force over a step, and what is
        left out.
    factors : NullSpaceFactors
    """

    residuals: FloatArray
    sensors: FloatArray
    activations: FloatArray
    by_acceleration: FloatArray
    errors: FloatArray
    sensor_errors: FloatArray
    factors: NullSpaceFactors

    def along(self, directions: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the derivatives of a, act', sensors and multipliers along directions (k, j)."""
        unknowns = self.factors.solve(-self.residuals @ directions)
        a = unknowns[: self.by_acceleration.shape[1]]
        sensors = self.sensors @ directions + self.by_acceleration @ a
        return a, self.activations @ directions, sensors, unknowns[len(a) :]


@dataclass(frozen=True)
class Held:
    """The quantities held constant while the point moves: accelerations, multipliers, and parts of the model."""

    loops: Loops
    sensors: Sequence[int]
    muscles: Sequence[Muscle]
    a: FloatArray
    multipliers: FloatArray


def slopes_at(model: Any, data: Any, held: Held, factors: NullSpaceFactors) -> PointSlopes:
    """Return the derivatives at the point in ``data``, where everything has been computed."""
    nv, na, nu, m, ns = model.nv, model.na, model.nu, len(held.multipliers), len(held.sensors)
    base = [(array, array.copy()) for array in (data.qpos, data.qvel, data.act, data.ctrl)]
    forces = np.abs([data.qfrc_bias, data.qfrc_passive, data.qfrc_actuator]).max(initial=0.0)

    def moved(j: int, h: float) -> None:
        data.qpos[:] = base[0][1]
        mujoco.mj_integratePos(model, data.qpos, np.eye(1, nv, j)[0], h)

    def pushed(array: Any, value: FloatArray) -> Move:
        def push(j: int, h: float) -> None:
            array[:] = value
            array[j] += h

        return push

    def restored() -> None:
        for array, value in base:
            array[:] = value

    J = np.zeros((nv + m + ns + na, 2 * nv + na + nu))
    rows = np.delete(np.arange(len(J)), np.arange(nv, nv + m))
    if m:
        J[: nv + m, : 2 * nv] = slopes_of_loops(model, data, held)
    size = min(1.0, float(model.stat.extent))
    # far away their curvature is large
    turn = TURN / 4 if mujoco.mjtSensor.mjSENS_RANGEFINDER in model.sensor_type else TURN
    steps = np.where(model.jnt_type[model.dof_jntid] == mujoco.mjtJoint.mjJNT_SLIDE, turn * size, turn)
    stencil = NEAR if _is_polynomial(model) else STENCIL
    step = 0.5 if stencil is NEAR and not _is_limited(model) else TURN
    differences = _Differences(model, data, held)
    moves = (moved, *(pushed(*pair) for pair in base[1:]))
    first, lacked = 0, np.zeros((len(rows), nv))
    for stage, move, lengths, around in zip(
        (0, 1, 2, 2), moves, (steps, *(np.full(n, step) for n in (nv, na, nu))), (STENCIL, *3 * (stencil,)), strict=True
    ):
        columns = slice(first, first := first + len(lengths))
        slopes, lacking = differences.slopes(move, lengths, around, stage)
        J[rows, columns] += slopes
        lacked = lacking if move is moved else lacked
        restored()
        differences.compute(stage and 1)
    of_forces, rounding = J[:nv, :nv], ROUNDING * forces / turn  # small inertias magnify what it leaves of large forces
    sizes = np.fmax(np.fmax(np.abs(J[rows, :nv]), np.abs(lacked)), 1e-300)
    left_out = LEFT_OUT * (lacked**2 / sizes).max(axis=1, initial=0.0)
    of_forces[np.abs(of_forces) < rounding] = 0.0
    errors = np.zeros(nv + m)
    errors[:nv] = 4.0 * max(rounding, ROUNDING * np.abs(of_forces).max(initial=0.0)) + left_out[:nv]
    if data.qvel.any():  # the change of dG/dt along the motion
        errors[nv:] = (TURN**4 + ROUNDING / TURN) * np.abs(J[nv : nv + m, :nv]).max(axis=1, initial=0.0)
    parts = np.split(J, [nv + m, nv + m + ns])
    stated = errors, left_out[nv : nv + ns]
    return PointSlopes(parts[0], parts[1], parts[2], differences.by_acceleration(), *stated, factors)


def slopes_of_loops(model: Any, data: Any, held: Held) -> FloatArray:
    """Return the derivatives of G' lambda and G a + (dG/dt) v by positions and speeds, shape (nv + m, 2 nv).

    In X_j, the change along freedom j: X_j (dG/dt) v is that of C = X (G v) along v, but for how axes turn each other.
    """
    loops, now, q, v = held.loops, Posture.of(data), data.qpos.copy(), data.qvel.copy()
    slopes = np.zeros((model.nv + loops.count, 2 * model.nv))
    parts = slopes[: model.nv, : model.nv], slopes[model.nv :, : model.nv], slopes[model.nv :, model.nv :]
    parts[0][:] = loops.bends(now, held.multipliers)
    parts[1][:] = loops.changes(now, held.a)
    if v.any():
        C, turning = loops.changes(now, v), loops.turning(v)
        parts[2][:] = 2.0 * C + loops.rows(now)[1] @ turning
        h = TURN / np.abs(v).max()
        for k, w in ((sign * k, sign * w) for k, w, _ in STENCIL for sign in (1, -1)):
            data.qpos[:] = q
            mujoco.mj_integratePos(model, data.qpos, v, k * h)
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            parts[1][:] += w / h * loops.changes(now, v)
        data.qpos[:] = q
        parts[1][:] -= C @ turning
    return slopes


class Clamps(NamedTuple):
    """Limits of a model that steps may cross (actuators' forces and controls, joints' forces), and constant forces."""

    forces: tuple[int, ...]
    joints: tuple[int, ...]
    controls: tuple[int, ...]
    constant: tuple[tuple[int, float], ...]


def clamps_at(model: Any, data: Any) -> Clamps:
    """Return the limits that are not reached, and the plain actuators with a force at its limit."""
    forces, constant = [], []
    for i in np.flatnonzero(model.actuator_forcelimited).tolist():
        out = int(model.actuator_outadr[i]) if hasattr(model, "actuator_outadr") else i
        force = float(data.actuator_force[out])
        if classify_side(force, *model.actuator_forcerange[i]) == "inside":
            forces.append(i)
        elif model.actuator_gaintype[i] in PLAIN_GAINS and model.actuator_biastype[i] in PLAIN_BIASES:
            constant.append((i, force))
    joints = [
        j
        for j in np.flatnonzero(model.jnt_actfrclimited).tolist()
        if classify_side(float(data.qfrc_actuator[model.jnt_dofadr[j]]), *model.jnt_actfrcrange[j]) == "inside"
    ]
    controls = []
    for i in np.flatnonzero(model.actuator_ctrllimited).tolist():
        address = int(model.actuator_ctrladr[i]) if hasattr(model, "actuator_ctrladr") else i
        if classify_side(float(data.ctrl[address]), *model.actuator_ctrlrange[i]) == "inside":
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
    """Residuals without loops, sensors and activations near the point, accelerations held."""

    def __init__(self, model: Any, data: Any, held: Held) -> None:
        self._model, self._data, self._held = model, data, held
        stages, kinds = model.sensor_needstage[: model.nsensor], {*model.sensor_type[: model.nsensor].tolist()}
        self._fast, self._watched = bool((stages == ACCELERATION).any()), bool((stages != ACCELERATION).any())
        self._felt = bool(kinds & OF_DRIVES)
        self._flags = [flag for flag in COMPUTED if hasattr(data, flag)]
        self._ended = [flag for flag in self._flags if flag == "flg_rnepost"]
        self._inertia = np.zeros(model.nv)
        self.compute(0)
        elsewhere = self._felt or model.nplugin or not {*model.actuator_dyntype.tolist()} <= STEADY
        self._inverts = not elsewhere and self._inverse_agrees()

    def _inverse_agrees(self) -> bool:
        """Whether MuJoCo's inverse dynamics says the same of the point: a loop in C is a tenth of one from here."""
        model, data = self._model, self._data
        here, seen = self._forces(), self._seen()
        size = np.abs([data.qfrc_bias, data.qfrc_passive, data.qfrc_actuator, self._inertia]).max(initial=0.0)
        mujoco.mj_inverse(model, data)
        inverse = data.qfrc_inverse - data.qfrc_actuator
        pairs = (here, inverse, AGREEMENT * size), (seen, self._seen(), AGREEMENT * np.abs(seen).max(initial=1.0))
        return all(bool((np.abs(a - b) <= allowed).all()) for a, b, allowed in pairs)

    def slopes(self, move: Move, steps: FloatArray, stencil: Stencil, stage: int) -> FloatArray:
        """Return derivatives by both weights, (2, nv + ns + na, k): of positions, speeds, others by ``stage``."""
        model, held = self._model, self._held
        slopes = np.zeros((2, model.nv + len(held.sensors) + model.na, len(steps)))
        if stage < 2 and self._inverts:
            for h in np.unique(steps):
                columns = np.flatnonzero(steps == h)
                slopes[..., columns] = self._by_inverse(stage, float(h), stencil)[..., columns]
        else:
            for j, h in enumerate(steps):
                for k, *weights, sign in ((sign * k, w, b, sign) for k, w, b in stencil for sign in (1, -1)):
                    move(j, k * h)
                    self.compute(stage)
                    slopes[..., j] += np.outer(weights, sign / h * np.concatenate((self._forces(), self._seen())))
        if stage < 2 and _is_in_fluid(model):
            slopes[0, : model.nv] += self._bends_of_drag(move, steps, stencil, stage)
        return slopes

    def _by_inverse(self, variable: int, h: float, stencil: Stencil) -> FloatArray:
        """Return the same by positions (0), speeds (1) or accelerations (2), from MuJoCo's one-sided derivatives."""
        model, data, n = self._model, self._data, self._model.nv
        differences, slopes = np.zeros((n, n)), np.zeros((2, n, n))
        seen, slopes_seen = np.zeros((n, model.nsensordata)), np.zeros((2, model.nsensordata, n))
        arguments: list[Any] = [None] * 7
        arguments[variable], arguments[variable + 3] = differences, seen
        data.qacc[:] = self._held.a
        for k, *weights in ((sign * k, w, b) for k, w, b in stencil for sign in (1, -1)):
            mujoco.mjd_inverseFD(model, data, k * h, True, *arguments)  # noqa: FBT003 - flg_actuation
            slopes += np.multiply.outer(weights, abs(k) * differences.T)
            slopes_seen += np.multiply.outer(weights, abs(k) * seen.T)
        return np.concatenate((slopes, slopes_seen[:, self._held.sensors], np.zeros((2, model.na, n))), axis=1)

    def _bends_of_drag(self, move: Move, steps: FloatArray, stencil: Stencil, stage: int) -> FloatArray:
        """Return what long steps see of drag beyond its derivatives (nv, k): near rest it grows as |v| v."""

        def drag(j: int, h: float) -> FloatArray:
            move(j, h)
            self.compute(stage)
            return np.asarray(self._data.qfrc_fluid).copy()

        beyond = np.zeros((self._model.nv, len(steps)))
        for j, step in enumerate(steps):
            pairs = [(k, w, drag(j, k * step), drag(j, -k * step)) for k, w, _ in stencil]
            far = sum(w * (ahead - behind) for _, w, ahead, behind in pairs) / step
            # The remainder of |v| v is proportional to the step, and vanishes between two of them.
            one, half = ((drag(j, h) - drag(j, -h)) / (2 * h) for h in (TINY, TINY / 2))
            near, noise = 2 * half - one, np.abs(half - one) + ROUNDING * np.abs(drag(j, 0.0)) / TINY
            gap = far - near
            largest = np.max([np.abs(part) for pair in pairs for part in pair[2:]], axis=0) / step
            beyond[:, j] = np.where(np.abs(gap) > 4 * noise + BENT * largest, gap, 0.0)
        return beyond

    def compute(self, stage: int) -> None:
        """Compute from a stage on."""
        model, data = self._model, self._data
        if stage == 0:
            mujoco.mj_fwdPosition(model, data)
            mujoco.mj_mulM(model, data, self._inertia, self._held.a)
        if stage <= 1:
            for flag in self._flags:
                setattr(data, flag, False)
            if self._watched:
                mujoco.mj_sensorPos(model, data)  # the kinetic energy is among these
            mujoco.mj_fwdVelocity(model, data)
            if self._watched:
                mujoco.mj_sensorVel(model, data)
        mujoco.mj_fwdActuation(model, data)
        data.qacc[:] = self._held.a
        if self._felt if stage == 2 else self._fast:
            self._accelerate(self._held.a)

    def by_acceleration(self) -> FloatArray:
        """Return the derivatives of sensors by accelerations, which they are linear in."""
        held, nv = self._held, self._model.nv
        columns = np.zeros((len(held.sensors), nv))
        if self._fast and self._inverts:
            return self._by_inverse(2, 1.0, NEAR)[0, nv:][: len(held.sensors)]
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
        return np.asarray(self._inertia + (data.qfrc_bias - data.qfrc_passive - data.qfrc_actuator))

    def _seen(self) -> FloatArray:
        """Return the sensors and the rates of activations."""
        data = self._data
        for muscle in self._held.muscles:
            data.act_dot[muscle.activation] = muscle.rate(data.ctrl, data.act)
        return np.concatenate((data.sensordata[self._held.sensors], data.act_dot))


def _is_polynomial(model: Any) -> bool:
    """Whether forces are quadratic in speeds, activations and controls together: no muscles, no fluid, no powers."""
    laws = {*model.actuator_gaintype.tolist()} <= PLAIN_GAINS and {*model.actuator_biastype.tolist()} <= PLAIN_BIASES
    powers = any(np.any(getattr(model, name, 0)) for name in ("dof_dampingpoly", "tendon_dampingpoly"))
    plain = not powers and not _is_in_fluid(model) and not model.nplugin
    return laws and {*model.actuator_dyntype.tolist()} <= STEADY - {int(MUSCLE)} and plain


def _is_in_fluid(model: Any) -> bool:
    return bool(model.opt.density or model.opt.viscosity)
