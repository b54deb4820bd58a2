"""Pinocchio as an engine: dynamics and analytic derivatives from Pinocchio, constraint forces from ideal welds.

    M(q) v' + nle(q, v) = tau + G' lambda,   G v' + gamma = 0,

and its derivatives by differentiating these equations, with the partial derivatives of the recursive Newton-Euler
algorithm at held lambda and of the frames' accelerations (Carpentier and Mansard 2018). Along the manifold a weld's two
frames stay one, so that constraint forces keep their components in each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from scipy import linalg

from fmilin import Constraint
from fmilin.adapters import DenseFactors, Engine, Factors, ModelInfo, NullSpaceFactors, require_regular
from fmilin.errors import ModelError
from fmilin.signals import FloatArray, Signal, Signals
from fmilin_pinocchio.closing import Weld
from fmilin_pinocchio.mimicking import Couplings, Mimic
from fmilin_pinocchio.names import Joint, joints_of, signals_of

__all__ = ["PinocchioEngine"]

REDUNDANT = 1e-9
"""Singular values of G below this fraction of the largest belong to redundant constraints."""

CLOSED = 1e-11
ITERATIONS = 100


@dataclass(frozen=True)
class _Closure:
    """A weld at a point: the gap X from the first frame to the second, and how it moves."""

    X: Any
    A: FloatArray
    """Takes twists of the first frame to the second, (6, 6)."""
    G: FloatArray
    """(6, nv): the twist of the second frame relative to the first, in axes of the second."""
    first: FloatArray
    """The twist of the first frame, in axes of the second, (6,)."""


_Dynamics = tuple[FloatArray, FloatArray, list[_Closure], Factors]
"""Accelerations, reactions (-lambda), closures, and what solves for the first two."""


class PinocchioEngine(Engine):
    """A Pinocchio model with welds that close its loops.

    Parameters
    ----------
    robot : pinocchio.Model
    welds : sequence of Weld
    guess : array, shape (nq,), optional
        Where the loops are closed from; the neutral position by default.
    name : str
    independent : sequence of str
        States to keep.
    mimics : sequence of Mimic
        Joints that follow others.

    Raises
    ------
    ModelError
        When the loops do not close, or a joint is of an unknown kind.
    """

    def __init__(
        self,
        robot: Any,
        welds: Sequence[Weld] = (),
        guess: FloatArray | None = None,
        *,
        name: str = "",
        independent: Sequence[str] = (),
        mimics: Sequence[Mimic] = (),
    ) -> None:
        self._robot, self._welds, self._data = robot, tuple(welds), robot.createData()
        self._joints: list[Joint] = list(joints_of(robot))
        self._couplings = Couplings(mimics, self._joints, robot.nv)
        straight = [j for j in self._joints if j.sizes == (1, 1)]
        self._straight = (np.array([j.q for j in straight], dtype=int), np.array([j.v for j in straight], dtype=int))
        self._turning = [j for j in self._joints if j.sizes != (1, 1)]
        self._last: tuple[tuple[bytes, ...], _Dynamics] | None = None
        self._wrenches = pin.StdVec_Force()
        self._wrenches.extend([pin.Force.Zero() for _ in range(robot.njoints)])
        q = self._closed(pin.neutral(robot) if guess is None else np.array(guess, dtype=np.float64))
        self.info = ModelInfo(name or robot.name, tool=f"Pinocchio {pin.__version__}")
        self.states = signals_of(self._joints, q)
        loops = {*(weld.name for weld in welds), *(mimic.follower for mimic in mimics)}
        driven = [j for j in self._joints if j.sizes[1] == 1 and j.name not in loops]
        self._driven = [j.v for j in driven]
        self.inputs = Signals(
            Signal(f"{j.name}.{'force' if j.kind == 'slide' else 'torque'}", "N" if j.kind == "slide" else "N.m")
            for j in driven
        )
        rows = [(weld.name, i) for weld in welds for i in range(6)]
        units = ("m", "m", "m", "rad", "rad", "rad")
        names = [*((n, i, units[i]) for n, i in rows), *((m.name, 0, u) for m, u in zip(
            mimics, self._couplings.units, strict=True))]  # fmt: skip
        self.quantities = Signals(
            [Signal(f"{n}.gap[{i + 1}]", unit) for n, i, unit in names]
            + [Signal(f"{n}.rate[{i + 1}]", f"{unit}/s") for n, i, unit in names]
        )
        self.outputs = tuple(self.states.names[j.q] for j in driven)
        closed = (Constraint.from_text(f"`{n}.gap[{i + 1}]`", rate=f"`{n}.rate[{i + 1}]`") for n, i, _ in names)
        unit = (
            Constraint.from_text(  # its rate is zero whatever the states are: nothing is hidden
                " + ".join(f"`{p}`^2" for p in j.unit) + " - 1", name=f"{j.name}: unit length", level="velocity"
            )
            for j in self._joints
            if j.unit
        )
        self.constraints = (*closed, *unit)
        self.freedoms_known = not self.constraints
        self.independent = tuple(independent)

    @property
    def robot(self) -> Any:
        """The model of Pinocchio, with the loops' joints."""
        return self._robot

    @property
    def welds(self) -> tuple[Weld, ...]:
        """The welds that close the loops."""
        return self._welds

    def visit(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rates of all states, and gap and rate of each weld."""
        q, v = self._split(x)
        a, _, closures, _factors = self._dynamics(q, v, u)
        gaps = [pin.log6(closure.X).vector for closure in closures]
        rates = [pin.Jlog6(closure.X) @ (closure.G @ v) for closure in closures]
        follow = self._couplings
        quantities = [np.empty(0), *gaps, follow.gaps(q), *rates, follow.G @ v]
        return np.concatenate((self._position_rates(q, v), a)), np.concatenate(quantities)

    def slopes(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return exact directional derivatives, at a point and in directions that keep the welds closed."""
        robot, data, nq = self._robot, self._data, self._robot.nq
        q, v = self._split(x)
        a, reactions, closures, factors = self._dynamics(q, v, u)
        moves, dv = self._as_velocities(q, dx[:nq]), dx[nq:]
        forces = self._forces(closures, reactions)
        tau_q, tau_v, _M = pin.computeRNEADerivatives(robot, data, q, v, a, forces)
        r = -tau_q @ moves - tau_v @ dv - robot.damping[:, None] * dv
        r[self._driven] += du
        pin.computeForwardKinematicsDerivatives(robot, data, q, v, a)
        gap_slopes, rate_slopes, pulls = [], [], []
        for weld, closure in zip(self._welds, closures, strict=True):
            (V1, A1q, A1v), (V2, A2q, A2v) = (self._partials(weld, side) for side in (0, 1))
            move = closure.G @ moves
            gap_slopes.append(pin.Jlog6(closure.X) @ move)
            turned = pin.Motion(closure.first)
            swept = -turned.action @ move  # the first twist, seen from a second frame that moves
            rate_slopes.append(pin.Jlog6(closure.X) @ ((V2 - closure.A @ V1) @ moves + swept + closure.G @ dv))
            pulls.append(-(A2q - closure.A @ A1q) @ moves - (A2v - closure.A @ A1v) @ dv)
        G = self._couplings.G
        da = factors.solve(np.vstack([r, *pulls, np.zeros((len(G), dx.shape[1]))]))[: robot.nv]
        rates = np.vstack((self._position_slopes(q, v, dx[:nq], dv), da))
        return rates, np.vstack([np.empty((0, dx.shape[1])), *gap_slopes, G @ moves, *rate_slopes, G @ dv])

    # -- dynamics ----------------------------------------------------------------------------------

    def _dynamics(self, q: FloatArray, v: FloatArray, u: FloatArray) -> _Dynamics:
        """Return accelerations, reactions, the closures of the welds and all their rows, and what solved for them."""
        robot, data = self._robot, self._data
        key = (q.tobytes(), v.tobytes(), u.tobytes())
        if self._last is not None and self._last[0] == key:  # derivatives are usually requested at the last evaluation
            return self._last[1]
        closures, biases = self._closures(q, v)
        follow = self._couplings.G
        G = np.vstack([np.empty((0, robot.nv)), *(closure.G for closure in closures), follow])
        M = np.triu(pin.crba(robot, data, q))  # the triangle that every version of Pinocchio fills
        M = M + np.triu(M, 1).T
        tau = -robot.damping * v
        tau[self._driven] += u
        r = tau - pin.nonLinearEffects(robot, data, q, v)
        factors = NullSpaceFactors(M, G) if len(G) else DenseFactors(M)
        require_regular(factors, f"The equations of '{self.info.name}'", self.states.names[robot.nq :])
        w = factors.solve(np.concatenate([r, *(-bias for bias in biases), np.zeros(len(follow))]))
        self._last = (key, (w[: robot.nv], -w[robot.nv :], closures, factors))
        return self._last[1]

    def _closures(self, q: FloatArray, v: FloatArray) -> tuple[list[_Closure], list[FloatArray]]:
        """Return the closures, and d(G v)/dt with v' = 0 for each."""
        robot, data = self._robot, self._data
        closures, biases = [], []
        if self._welds:
            pin.forwardKinematics(robot, data, q, v, np.zeros(robot.nv))
            pin.computeJointJacobians(robot, data, q)
        for weld in self._welds:
            (j1, j2), (P1, P2) = weld.joints, weld.placements
            X = (data.oMi[j1] * P1).inverse() * (data.oMi[j2] * P2)
            A = X.inverse().action
            J1, J2 = (
                pin.getFrameJacobian(robot, data, j, P, pin.LOCAL)
                for j, P in zip(weld.joints, weld.placements, strict=True)
            )
            first = A @ P1.actInv(data.v[j1]).vector
            G = J2 - A @ J1
            relative = pin.Motion(G @ v)
            bias = P2.actInv(data.a[j2]).vector - A @ P1.actInv(data.a[j1]).vector + relative.action @ first
            closures.append(_Closure(X, A, G, first))
            biases.append(bias)
        return closures, biases

    def _forces(self, closures: list[_Closure], reactions: FloatArray) -> Any:
        """Return the constraint forces as wrenches on the joints, in the joints' axes."""
        forces = self._wrenches
        for weld in self._welds:
            for j in weld.joints:
                forces[j] = pin.Force.Zero()
        for k, (weld, closure) in enumerate(zip(self._welds, closures, strict=True)):
            wrench = pin.Force(reactions[6 * k : 6 * k + 6])
            (j1, j2), (P1, P2) = weld.joints, weld.placements
            forces[j2] += P2.act(wrench)
            forces[j1] -= P1.act(closure.X.act(wrench))
        return forces

    def _partials(self, weld: Weld, side: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the partial derivatives of a frame's twist by q, and of its acceleration by q and v; each (6, nv)."""
        V_q, A_q, A_v, _ = pin.getFrameAccelerationDerivatives(
            self._robot, self._data, weld.joints[side], weld.placements[side], pin.LOCAL
        )
        return V_q, A_q, A_v

    # -- positions ---------------------------------------------------------------------------------

    def _split(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return q with unit lengths, and v."""
        return pin.normalize(self._robot, x[: self._robot.nq].copy()), x[self._robot.nq :]

    def _position_rates(self, q: FloatArray, v: FloatArray) -> FloatArray:
        rates = np.empty(self._robot.nq)
        rates[self._straight[0]] = v[self._straight[1]]
        for j in self._turning:
            rates[_of(j, 0)] = j.map(q[_of(j, 0)]) @ v[_of(j, 1)]
        return rates

    def _position_slopes(self, q: FloatArray, v: FloatArray, dq: FloatArray, dv: FloatArray) -> FloatArray:
        slopes = np.empty((self._robot.nq, dq.shape[1]))
        slopes[self._straight[0]] = dv[self._straight[1]]
        for j in self._turning:
            mine, move, speed = q[_of(j, 0)], dq[_of(j, 0)], v[_of(j, 1)]
            slopes[_of(j, 0)] = j.map(mine) @ dv[_of(j, 1)]
            if speed.any():
                for k, column in enumerate(move.T):
                    slopes[_of(j, 0), k] += j.map_slope(mine, column, speed)
        return slopes

    def _as_velocities(self, q: FloatArray, dq: FloatArray) -> FloatArray:
        """Return the velocities (nv, k) that move q along the columns of dq (nq, k)."""
        moves = np.empty((self._robot.nv, dq.shape[1]))
        moves[self._straight[1]] = dq[self._straight[0]]
        for j in self._turning:
            E = j.map(q[_of(j, 0)])  # its columns are orthogonal
            moves[_of(j, 1)] = (E.T / np.sum(E * E, axis=0)[:, None]) @ dq[_of(j, 0)]
        return moves

    def _closed(self, q: FloatArray) -> FloatArray:
        """Return the position with closed loops nearest to a guess, by Gauss-Newton."""
        q = self._couplings.followed(pin.normalize(self._robot, q))
        names = {weld.name for weld in self._welds}
        of_loops = [v for j in self._joints if j.name in names for v in range(j.v, j.v + j.sizes[1])]
        for columns in (of_loops, list(range(self._robot.nv))):  # first the joints of the loops, which have no guess
            q, gap = self._descended(q, columns)
            if not gap.size or np.abs(gap).max() < CLOSED:
                return q
        k = int(np.argmax(np.abs(gap))) // 6
        if k >= len(self._welds):
            mimic = self._couplings.mimics[int(np.argmax(np.abs(gap))) - 6 * len(self._welds)]
            raise ModelError(
                f"The joint '{mimic.follower}' cannot follow '{mimic.leader}' with all loops closed: it is off by "
                f"{np.abs(gap).max():.3g}. Check the ratio and the offset, or give the joints a better guess with "
                "[[joint_setting]]."
            )
        open_by = np.abs(gap[6 * k : 6 * k + 6])
        raise ModelError(
            f"The loop '{self._welds[k].name}' cannot be closed: from the first guess it remains open by "
            f"{open_by[:3].max():.3g} m and {open_by[3:].max():.3g} rad. Check its two frames, or give the joints a "
            "better guess with [[joint_setting]]."
        )

    def _descended(self, q: FloatArray, columns: list[int]) -> tuple[FloatArray, FloatArray]:
        """Return where Gauss-Newton ends when some velocities move, and the gaps there."""
        for _ in range(ITERATIONS):
            closures, _biases = self._closures(q, np.zeros(self._robot.nv))
            welded = [pin.log6(closure.X).vector for closure in closures]
            gap = np.concatenate([np.empty(0), *welded, self._couplings.gaps(q)])
            if not columns or not gap.size or np.abs(gap).max() < CLOSED:
                break
            moved = [pin.Jlog6(closure.X) @ closure.G for closure in closures]
            G = np.vstack([*moved, self._couplings.G])[:, columns]
            step = np.zeros(self._robot.nv)
            step[columns] = -linalg.pinv(G, rtol=REDUNDANT) @ gap
            if np.abs(step).max() < CLOSED:
                break
            q = pin.integrate(self._robot, q, step * min(1.0, 1.0 / np.abs(step).max()))
        return q, gap


def _of(joint: Joint, which: int) -> slice:
    first = (joint.q, joint.v)[which]
    return slice(first, first + joint.sizes[which])
