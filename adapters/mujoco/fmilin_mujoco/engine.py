"""MuJoCo as an engine: mass matrix, bias and sensors from MuJoCo; constraint forces from the ideal constraints.

    M(q) v' + G' lambda = tau - c(q, v),   G v' = -(dG/dt) v

with the solution of least |lambda| in the metric of M where constraints are redundant.

The file is longer than others as one class holds MuJoCo's buffers, which values, derivatives, errors and positions
share.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from fmilin import Constraint
from fmilin.adapters import (
    RANK,
    Engine,
    Foot,
    ModelInfo,
    NullSpaceFactors,
    Stance,
    Standing,
    contact_signals,
    require_regular,
)
from fmilin.errors import ModelError
from fmilin.signals import FloatArray, Signal, Signals
from fmilin_mujoco.closing import anchored, closed_start, start_of
from fmilin_mujoco.equalities import equalities
from fmilin_mujoco.feet import held_feet
from fmilin_mujoco.left_out import remarks, sensors_left_out
from fmilin_mujoco.loops import Loops, Posture
from fmilin_mujoco.names import (
    QUATERNION,
    input_signals,
    name_of,
    quaternion_places,
    sensor_signals,
    state_signals,
    straight_places,
)
from fmilin_mujoco.saturation import Muscle, Saturation, describe_branches, muscles_of, opened, saturation_of
from fmilin_mujoco.slopes import ROUNDING, TURN, Clamps, Held, PointSlopes, clamps_at, slopes_at, without_clamps
from fmilin_mujoco.start import Start

__all__ = ["MujocoEngine"]

_COMPUTED = ("flg_energypos", "flg_energyvel", "flg_subtreevel", "flg_rnepost")
"""What MuJoCo keeps for its sensors once it has been computed; mj_forward forgets it, its parts do not."""

_OFF = ("CONTACT", "LIMIT", "FRICTIONLOSS", "EQUALITY")


@dataclass(frozen=True)
class _AtPoint:
    """The terms from which the derivatives at a point are computed.

    Also G (m, nv), the derivatives of G v along each degree of freedom at constant v (m, nv), and the evaluation.
    """

    point: PointSlopes
    G: FloatArray
    changes: FloatArray
    values: tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class _Solved:
    """The solution at a point: rates, quantities, G, its changes, multipliers and factors (None if unconstrained)."""

    values: tuple[FloatArray, FloatArray]
    G: FloatArray
    changes: FloatArray
    multipliers: FloatArray
    factors: NullSpaceFactors | None


class MujocoEngine(Engine):
    """A MuJoCo model with ideal equality constraints; contacts, limits and dry friction left out.

    Parameters
    ----------
    model : mujoco.MjModel
        Copied.
    name : str
    start : Start, optional
        Where it starts; ``start_of(model)`` when left out.
    feet : sequence of Foot
        What is held where it is at the start.

    Attributes
    ----------
    compiled : mujoco.MjModel
        With anchors at the start.
    start : Start
        With closed loops.

    Raises
    ------
    ModelError
        When an equality constraint cannot be made ideal.
    """

    has_all_derivatives = True

    def __init__(self, model: Any, name: str, start: Start | None = None, feet: Sequence[Foot] = ()) -> None:
        start = start_of(model) if start is None else start
        self._given, self._held_feet = model, tuple(feet)
        self._m = m = copy(model)
        # Linear models are of the continuous equations, in which contacts are left out: neither depends on how MuJoCo
        # steps. Its inverse dynamics rejects models with the Runge-Kutta integrator or the noslip solver.
        m.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        m.opt.noslip_iterations = 0
        self._seen: dict[Saturation, MujocoEngine] = {}
        self._muscles: tuple[Muscle, ...] = ()
        self._last_slopes: tuple[Any, _AtPoint] | None = None
        self._free: tuple[Clamps, Any] | None = None
        anchors = anchored(m, start)
        loops = equalities(m)
        start, closing = closed_start(m, start, loops)
        held = held_feet(m, start, self._held_feet)
        self._equalities = [*loops, *(foot.equality for foot in held)]
        self._loops = Loops(m, self._equalities)
        self._start, self.contacts = start, tuple(foot.contact for foot in held)
        airborne = [foot.remark for foot in held if foot.remark]
        self.notes = [*start.remarks, *anchors, *closing, *airborne, *remarks(m, start, [foot.body for foot in held])]
        for flag in _OFF:
            m.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
        self._d = mujoco.MjData(m)
        self._d.mocap_pos[:], self._d.mocap_quat[:] = start.mocap
        self._flags = [flag for flag in _COMPUTED if hasattr(self._d, flag)]
        self._quaternions = [(q, v) for _, q, v in quaternion_places(m)]
        self._straight = list(straight_places(m))
        self.compiled, self.start = m, start
        self.info = ModelInfo(name, tool=f"MuJoCo {mujoco.mj_versionString()}")
        self.start_points = start.names
        self.states = state_signals(m, start)
        self.inputs = input_signals(m, start.ctrl)
        left_out = sensors_left_out(m, constrained=bool(self._equalities))
        sensors, self._sensors = sensor_signals(m, left_out)
        gaps = [
            (f"{e.name}.gap[{i + 1}]", f"{e.name}.rate[{i + 1}]", u)
            for e in self._equalities
            for i, u in enumerate(e.units)
        ]
        forces = Signals(signal for foot in self._held_feet for signal in contact_signals(foot))
        self._forces = len(forces)
        self.quantities = Signals(
            [
                *sensors,
                *forces,
                *(Signal(g, unit) for g, _, unit in gaps),
                *(Signal(r, f"{unit}/s") for _, r, unit in gaps),
            ]
        )
        determined: Sequence[bool] = self._determined().tolist() if forces else []
        self.outputs = (
            *(sensors.names or self.states.names[: m.nq]),
            *(name for name, is_determined in zip(forces.names, determined, strict=True) if is_determined),
        )
        closed = (Constraint.from_text(f"`{g}`", name=g, rate=f"`{r}`") for g, r, _ in gaps)
        unit = (
            Constraint.from_text(  # its rate is zero whatever the states are: nothing is hidden
                " + ".join(f"`{n}.{p}`^2" for p in QUATERNION) + " - 1", name=f"{n}: unit quaternion", level="velocity"
            )
            for n, _, _ in quaternion_places(m)
        )
        self.constraints = (*closed, *unit)
        self.freedoms_known = not self.constraints

    def visit(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rates of all states, the sensors, the contact forces, and gap and rate of each constraint."""
        if self._last_slopes is not None and self._last_slopes[0] == _key(t, x, u):
            rates, seen = self._last_slopes[1].values
            return rates.copy(), seen.copy()
        return self._solved(t, x, u).values

    def _solved(self, t: float, x: FloatArray, u: FloatArray) -> _Solved:
        m, d = self._m, self._d
        self._set(t, x, u)
        for flag in self._flags:
            setattr(d, flag, False)
        mujoco.mj_fwdPosition(m, d)
        mujoco.mj_sensorPos(m, d)
        mujoco.mj_fwdVelocity(m, d)
        mujoco.mj_sensorVel(m, d)
        mujoco.mj_fwdActuation(m, d)
        mujoco.mj_fwdAcceleration(m, d)
        g, G, changes = self._both(d.qvel)
        a, multipliers, factors = self._accelerations(G, changes @ d.qvel)
        d.qacc[:] = a
        mujoco.mj_rnePostConstraint(m, d)
        mujoco.mj_sensorAcc(m, d)
        for muscle in self._muscles:
            d.act_dot[muscle.activation] = muscle.rate(d.ctrl, d.act)
        rates = np.concatenate((self._position_rates(), a, d.act_dot))
        forces = -multipliers[len(G) - self._forces :]  # the rows of the feet are the last ones
        seen = np.concatenate((d.sensordata[self._sensors], forces, g, G @ d.qvel))
        return _Solved((rates, seen), G, changes, multipliers, factors)

    def held(self, feet: Sequence[Foot], t: float, x: FloatArray, u: FloatArray) -> MujocoEngine:
        """Return the model with feet held where they are at a point, which becomes its start."""
        nq, nv = self._m.nq, self._m.nv
        if twice := [foot.name for foot in feet if any(foot.name == other.name for other in self._held_feet)]:
            raise ModelError(f"The foot '{twice[0]}' is held already. Name it once.")
        start = replace(self._start, time=t, qpos=x[:nq], qvel=x[nq : nq + nv], act=x[nq + nv :], ctrl=u)
        return MujocoEngine(self._given, self.info.name, start, (*self._held_feet, *feet))

    def stance(self, feet: Sequence[Foot], x: FloatArray, u: FloatArray) -> Stance:
        """Return where feet touch the ground at a point, for a mechanism that has none of its own."""
        nq, nv = self._m.nq, self._m.nv
        start = replace(self._start, qpos=x[:nq], qvel=x[nq : nq + nv], act=x[nq + nv :], ctrl=u)
        standing = {}
        for foot, held in zip(feet, held_feet(self._given, start, feet), strict=True):
            body = name_of(self._m, mujoco.mjtObj.mjOBJ_BODY, held.body, "body")
            standing[foot.name] = Standing(body, held.equality.anchors.points[0], held.contact)
        return Stance(standing, tuple(self.held(feet, 0.0, x, u).notes))

    def contact_forces(self, t: float, x: FloatArray, u: FloatArray) -> dict[str, FloatArray]:
        """Return force and torque on each foot by its name, shape (3,) or (6,); NaN where they are not determined."""
        values = self.visit(t, x, u)[1][len(self._sensors) :][: self._forces]
        values = np.where(self._determined(), values, np.nan)
        sizes = [6 if foot.flat else 3 for foot in self._held_feet]
        parts = np.split(values, np.cumsum(sizes)[:-1])
        return {foot.name: part for foot, part in zip(self._held_feet, parts, strict=True)}

    def _determined(self) -> NDArray[np.bool_]:
        """Return which contact forces rigid bodies determine, at the start: those in no self-stress of G."""
        self._d.qpos[:] = self._start.qpos
        mujoco.mj_kinematics(self._m, self._d)
        mujoco.mj_comPos(self._m, self._d)
        G = self._rows()[1]
        stress = linalg.null_space(G.T, rcond=RANK)
        size = np.abs(stress).max(axis=1, initial=0.0)
        return np.asarray(size[len(G) - self._forces :] < np.sqrt(RANK))

    def resolve_limits(self, t: float, x: FloatArray, u: FloatArray) -> MujocoEngine:
        """Return the engine with limits opened at which controls stand, and diagnostics on what is saturated."""
        self._set(t, x, u)
        for compute in (mujoco.mj_fwdPosition, mujoco.mj_fwdVelocity, mujoco.mj_fwdActuation):
            compute(self._m, self._d)
        saturation = saturation_of(self._m, self._d)
        if not saturation.remarks:
            return self
        if saturation not in self._seen:
            other = self._seen[saturation] = copy(self)
            other._m = copy(self._m)
            opened(other._m, saturation.at)
            other._d = mujoco.MjData(other._m)
            other._d.mocap_pos[:], other._d.mocap_quat[:] = self._d.mocap_pos, self._d.mocap_quat
            other._last_slopes = other._free = None
            other._muscles = muscles_of(self._m, self._d, saturation.at)
            other.notes = [*self.notes, *saturation.remarks, *describe_branches(self._m, other._muscles)]
            other.names_limits = True
        return self._seen[saturation]

    def slopes(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the derivatives of rates, sensors, contact forces (:mod:`fmilin_mujoco.slopes`), gaps and their rates.

        With dq as a velocity d: dg = G d, and d(G v) = (change of G along d) v + G dv.
        """
        m, nv = self._m, self._m.nv
        slopes = self._slopes_at(t, x, u)
        q, v = x[: m.nq], x[m.nq : m.nq + nv]
        dq, dv, da = dx[: m.nq], dx[m.nq : m.nq + nv], dx[m.nq + nv :]
        moves = self._as_velocities(q, dq)
        a, act, sensors, multipliers = slopes.point.along(np.vstack((moves, dv, da, du)))
        forces = -multipliers[len(multipliers) - self._forces :]
        gaps = slopes.G @ moves, slopes.changes @ moves + slopes.G @ dv
        return np.vstack((self._turning(q, v, dq, dv), a, act)), np.vstack((sensors, forces, *gaps))

    def errors(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how wrong derivatives by positions may be: of rates (N,) and of quantities (nz,)."""
        slopes, nq, nv = self._slopes_at(t, x, u), self._m.nq, self._m.nv
        point, rates = slopes.point, np.zeros(len(x))
        unknowns = np.abs(point.factors.solve(np.eye(len(point.errors)))) @ point.errors
        rates[nq : nq + nv] = unknowns[:nv]
        sizes = np.abs(slopes.values[1][: len(self._sensors)]) + np.abs(point.sensors[:, :nv]).max(axis=1, initial=0.0)
        seen = ROUNDING / TURN * sizes + point.sensor_errors + np.abs(point.by_acceleration) @ unknowns[:nv]
        gaps = np.zeros(len(self.quantities) - len(seen) - self._forces)  # in closed form
        return rates, np.concatenate((seen, unknowns[len(unknowns) - self._forces :], gaps))

    def _slopes_at(self, t: float, x: FloatArray, u: FloatArray) -> _AtPoint:
        """Return what the derivatives along any direction are made of; the last point is kept."""
        key = _key(t, x, u)
        if self._last_slopes is None or self._last_slopes[0] != key:
            self._last_slopes = (key, self._new_slopes(t, x, u))
        return self._last_slopes[1]

    def _new_slopes(self, t: float, x: FloatArray, u: FloatArray) -> _AtPoint:
        m, d, nv = self._m, self._d, self._m.nv
        solved = self._solved(t, x, u)
        factors = solved.factors or NullSpaceFactors(self._mass_matrix(), solved.G)
        a = solved.values[0][m.nq : m.nq + nv]
        held = Held(self._loops, self._sensors, self._muscles, a, solved.multipliers)
        clamps = clamps_at(m, d)
        if self._free is None or self._free[0] != clamps:
            self._free = (clamps, without_clamps(m, clamps))
        return _AtPoint(slopes_at(self._free[1], d, held, factors), solved.G, solved.changes, solved.values)

    def positions(self, x: FloatArray) -> FloatArray | None:
        """Return gaps and their rates; NaN for sensors and contact forces."""
        if not self._equalities:
            return None
        nq, nv = self._m.nq, self._m.nv
        self._d.qpos[:], self._d.qvel[:] = x[:nq], x[nq : nq + nv]
        mujoco.mj_kinematics(self._m, self._d)
        mujoco.mj_comPos(self._m, self._d)
        g, G = self._rows()
        return np.concatenate((np.full(len(self._sensors) + self._forces, np.nan), g, G @ self._d.qvel))

    def kinematics(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return gaps and their rates, and their derivatives by all states; NaN for sensors and contact forces."""
        if not self._equalities:
            return None
        m, nq, nv = self._m, self._m.nq, self._m.nv
        self._set(t, x, u)
        mujoco.mj_kinematics(m, self._d)
        mujoco.mj_comPos(m, self._d)
        g, G, changes = self._both(x[nq : nq + nv])
        moves = self._as_velocities(x[:nq], np.eye(nq))
        unknown = len(self._sensors) + self._forces
        values = np.concatenate((np.full(unknown, np.nan), g, G @ x[nq : nq + nv]))
        slopes = np.zeros((len(values), len(x)))
        slopes[:unknown] = np.nan
        slopes[unknown : unknown + len(g), :nq] = G @ moves
        slopes[unknown + len(g) :, :nq] = changes @ moves
        slopes[unknown + len(g) :, nq : nq + nv] = G
        return values, slopes

    def _turning(self, q: FloatArray, v: FloatArray, dq: FloatArray, dv: FloatArray) -> FloatArray:
        """Return the derivatives of q', shape (nq, k)."""
        rates = np.zeros(dq.shape)
        for at, dof, size in self._straight:
            rates[at : at + size] = dv[dof : dof + size]
        for at, dof in self._quaternions:
            e, w = q[at : at + 4], v[dof : dof + 3]
            de, dw = dq[at : at + 4], dv[dof : dof + 3]
            rates[at] = -(w @ de[1:] + e[1:] @ dw) / 2
            turned = np.cross(de[1:], w, axisa=0, axisc=0) + np.cross(e[1:], dw, axisb=0, axisc=0)
            rates[at + 1 : at + 4] = (np.outer(w, de[0]) + e[0] * dw + turned) / 2
        return rates

    def gradient_of_gaps(self, x: FloatArray) -> FloatArray:
        """Return G with the rates of all gaps G v, shape (m, nv)."""
        self._set(0.0, x, np.zeros(self._m.nu))
        mujoco.mj_fwdPosition(self._m, self._d)
        return self._rows()[1]

    def _set(self, t: float, x: FloatArray, u: FloatArray) -> None:
        d, nq, nv = self._d, self._m.nq, self._m.nv
        d.time, d.qpos[:], d.qvel[:], d.act[:], d.ctrl[:] = t, x[:nq], x[nq : nq + nv], x[nq + nv :], u

    def _rows(self) -> tuple[FloatArray, FloatArray]:
        if not self._loops.count:
            return np.empty(0), np.empty((0, self._m.nv))
        return self._loops.rows(Posture.of(self._d))

    def _both(self, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return g, G, and how G v changes along each freedom, v held (m, nv), at positions that were computed."""
        if not self._loops.count:
            return np.empty(0), *np.empty((2, 0, self._m.nv))
        return self._loops.both(Posture.of(self._d), v)

    def _as_velocities(self, q: FloatArray, dq: FloatArray) -> FloatArray:
        """Return the velocities (nv, k) that move q along the columns of dq (nq, k); lengths of quaternions left."""
        moves = np.zeros((self._m.nv, dq.shape[1]))
        for at, dof, size in self._straight:
            moves[dof : dof + size] = dq[at : at + size]
        for at, dof in self._quaternions:
            unit = q[at : at + 4] / np.linalg.norm(q[at : at + 4])
            w, r = unit[0], unit[1:]
            s, d = dq[at], dq[at + 1 : at + 4]
            moves[dof : dof + 3] = 2.0 * (w * d - np.outer(r, s) - np.cross(r, d, axisb=0, axisc=0))
            moves[dof : dof + 3] /= np.linalg.norm(q[at : at + 4])
        return moves

    def _accelerations(self, G: FloatArray, bias: FloatArray) -> tuple[FloatArray, FloatArray, NullSpaceFactors | None]:
        """Return v' = a - M^-1 G' lambda with G v' = -bias, nearest to the free accelerations a; lambda; factors."""
        free: FloatArray = self._d.qacc_smooth.copy()
        if not len(G):
            return free, np.empty(0), None
        M = self._mass_matrix()
        factors = NullSpaceFactors(M, G)
        require_regular(factors, f"The equations of '{self.info.name}'", self.states.names[self._m.nq :])
        unknowns = factors.solve(np.concatenate((M @ free, -bias)))
        return unknowns[: len(free)], unknowns[len(free) :], factors

    def _mass_matrix(self) -> FloatArray:
        m, d = self._m, self._d
        M = np.zeros((m.nv, m.nv))
        try:
            mujoco.mj_fullM(m, d, M)
        except TypeError:  # before MuJoCo 4
            mujoco.mj_fullM(m, M, d.qM)
        return M

    def _position_rates(self) -> FloatArray:
        """Return q': v itself, except that quaternions turn by q (0, w)/2, w in the axes of the body."""
        d = self._d
        rates = np.zeros(self._m.nq)
        for q, v, size in self._straight:
            rates[q : q + size] = d.qvel[v : v + size]
        for q, v in self._quaternions:
            turn = np.zeros(4)
            mujoco.mju_mulQuat(turn, d.qpos[q : q + 4], np.concatenate(([0.0], 0.5 * d.qvel[v : v + 3])))
            rates[q : q + 4] = turn
        return rates


def _key(t: float, x: FloatArray, u: FloatArray) -> tuple[float, bytes, bytes]:
    return t, x.tobytes(), u.tobytes()
