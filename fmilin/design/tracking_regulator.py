"""A regulator on the estimates of a Kalman filter, with integral action, references and the limits of actuators.

    u = u0 + N_u r - K (x_hat - y0 - N_x r) - K_z z,         z_{k+1} = z_k + h (y_k - g0 - r)

for deviations r of the references from the outputs of the operating point; N_x r and N_u r are the states and inputs at
which the tracked outputs rest at r. Where actuators reach their limits the filter predicts with what they do, and the
integrals give back what was asked for beyond the limits, as fast as the loop is (back-calculation). They do not
wind up, and a short kick of a reference does not upset them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fmilin.design.kalman import KalmanFilter
from fmilin.design.laws import linear_law
from fmilin.design.regulators import KalmanRegulator
from fmilin.errors import UnknownNameError, UsageError
from fmilin.linear_model.measured_angles import MeasuredAngles
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray, Signal, Signals, as_numbers

Reference = float | Callable[[float], float]
MAX_STATIC_RESIDUAL = 1e-6  # of a unit reference: outputs that inputs cannot hold there are not tracked


@dataclass(frozen=True, eq=False)
class Tracking:
    """The integral action of a regulator: which of its measurements it holds, and its gains."""

    rows: tuple[int, ...]  # of the measurements
    gain: FloatArray  # K_z, shape (drives, tracked)
    states: FloatArray  # N_x, shape (P, tracked)
    inputs: FloatArray  # N_u, shape (drives, tracked)
    recovery: float = 0.0  # the part of what limits take that integrals give back in a sample


def find_static_response(
    sampled: LinearModel, columns: Sequence[int], rows: Sequence[int]
) -> tuple[FloatArray, FloatArray]:
    """Return states and inputs at which each of the outputs ``rows`` rests at 1, the others of them at 0."""
    P, k, n = len(sampled.A), len(columns), len(rows)
    system = np.block([
        [sampled.A - np.eye(P), sampled.B[:, list(columns)]],
        [sampled.C[list(rows)], sampled.D[np.ix_(list(rows), list(columns))]],
    ])  # fmt: skip
    right = np.vstack((np.zeros((P, n)), np.eye(n)))
    solution = np.linalg.lstsq(system, right, rcond=None)[0]
    off = np.abs(system @ solution - right).max(axis=0, initial=0.0)
    if np.any(off > MAX_STATIC_RESIDUAL):
        name = sampled.outputs.names[rows[int(np.argmax(off))]]
        raise UsageError(
            f"'{name}' cannot rest at every reference together with {', '.join(sampled.outputs.names[i] for i in rows)}"
            f": {k} inputs hold at most {k} outputs, and only those that answer to a constant input. Track fewer "
            "outputs, or drive more inputs."
        )
    return solution[:P], solution[P:]


class TrackedReferences:
    """Absolute values, or functions of time in seconds, that outputs are to follow."""

    tracked: tuple[str, ...]
    references: dict[str, Reference]
    _starts: FloatArray

    def set_up_references(self, tracked: Sequence[str], starts: Sequence[float]) -> None:
        """Let references stay at ``starts``."""
        self.tracked = tuple(tracked)
        self.references = dict(zip(self.tracked, starts, strict=True))
        self._starts = np.array(starts, dtype=np.float64)

    def follow(self, references: Mapping[str, Reference]) -> None:
        """Set references: absolute values of tracked outputs, or functions of time in seconds.

        Raises UnknownNameError when an output is not tracked, UsageError when a value is not a number.
        """
        for name, value in references.items():
            if name not in self.references:
                raise UnknownNameError.among(name, self.tracked, "an output that the regulator tracks")
            if not callable(value):
                as_numbers(value, f"The reference of '{name}'")
        self.references |= references

    def evaluate_references(self, t: float) -> FloatArray:
        """Return the deviations of the references from the start, at t seconds, shape (tracked,)."""
        values = [self.references[name] for name in self.tracked]
        return np.asarray([float(v(t)) if callable(v) else float(v) for v in values] - self._starts)


class TrackingRegulator(KalmanRegulator, TrackedReferences):
    """u = u0 + N_u r - K (x_hat - y0 - N_x r) - K_z z; see :func:`fmilin.design.lqg`, which makes it."""

    _attributes = ".filter, .gain, .tracked, .references, .limits, .linear_model()"

    def __init__(
        self,
        filter: KalmanFilter,  # noqa: A002 - as KalmanRegulator
        gain: FloatArray,
        drives: Sequence[str],
        tracking: Tracking,
        limits: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        self.tracking, self.limits = tracking, dict(limits or {})
        tracked = [filter.linear.outputs.names[i] for i in tracking.rows]
        self.set_up_references(tracked, [float(filter.linear.point.outputs[name]) for name in tracked])
        self._back = -tracking.recovery * np.linalg.pinv(tracking.gain)
        super().__init__(filter, gain, drives)

    def restart(self) -> None:
        """Go back to before the first sample: the estimate is the operating point, the integrals are zero."""
        super().restart()
        self._integrals = np.zeros(len(self.tracking.rows))

    def answer(self, t: float, read: FloatArray) -> FloatArray:
        """Return u, shape (len(drives),), for what was ``read``, shape (m,), at ``t`` seconds."""
        tracking, r, s = self.tracking, self.evaluate_references(t), self.filter.sampled
        predicted = s.C @ (self._predicted - s.y0) + s.D @ (self._inputs - self._u0)
        self._estimate, innovation = self.filter.correct_during(self._observer, self._predicted, self._inputs, read)
        feedback = self.gain @ (self._estimate - s.y0 - tracking.states @ r)
        u0 = self._u0[self._columns]
        self._requested = u0 + tracking.inputs @ r - feedback - tracking.gain @ self._integrals
        y = (predicted + innovation)[list(tracking.rows)]
        self._integrals = self._integrals + self.sample_time * (y - r)
        low, high = self.bounds
        return np.asarray(np.clip(self._requested, low, high))

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The least and the largest value of each drive."""
        pairs = np.array([self.limits.get(name, (-np.inf, np.inf)) for name in self.drives], dtype=np.float64)
        return np.asarray(pairs[:, 0]), np.asarray(pairs[:, 1])

    def update_states(self, outputs: FloatArray) -> None:
        """Predict with the ``outputs``, shape (drives,), that are applied; the integrals give back the excess."""
        super().update_states(outputs)
        self._integrals = self._integrals + self._back @ (np.asarray(outputs) - self._requested)

    def linear_model(self) -> LinearModel:
        """Return the regulator as a sampled linear model, from measurements and references to inputs.

        Its states are those of the Kalman regulator and ``integral.NAME``; references are inputs ``reference.NAME``.
        It does not know of limits.
        """
        plain, tracking, h = super().linear_model(), self.tracking, self.sample_time
        n, m, q = len(plain.A), len(plain.inputs), len(tracking.rows)
        if not q:
            return plain
        forward = tracking.inputs + self.gain @ tracking.states
        moved = self.compute_limit_response()[:n]  # how the states move with the inputs
        pick = np.zeros((q, m))
        pick[np.arange(q), list(tracking.rows)] = 1.0
        A = np.block([[plain.A, -moved @ tracking.gain], [np.zeros((q, n)), np.eye(q)]])
        B = np.block([[plain.B, moved @ forward], [h * pick, -h * np.eye(q)]])
        C = np.hstack((plain.C, -tracking.gain))
        D = np.hstack((plain.D, forward))
        outputs = [plain.inputs[i] for i in tracking.rows]
        integrals = [Signal(f"integral.{s.name}", f"{s.unit}.s" if s.unit else "s", start=0.0) for s in outputs]
        references = [replace(s, name=f"reference.{s.name}", aliases=(), turn=None) for s in outputs]
        signals = Signals([*plain.states, *integrals]), Signals([*plain.inputs, *references]), plain.outputs
        f0 = np.concatenate((plain.f0, np.zeros(q)))
        return linear_law("regulator", self.filter.linear, (A, B, C, D), signals, h, f0)

    def compute_limit_response(self) -> FloatArray:
        """Return how the states move with what limits take from the outputs, shape (P, outputs)."""
        return np.vstack((super().compute_limit_response(), self._back))

    def find_measured_angles(self) -> MeasuredAngles | None:
        """Return the measured angles with their predictions from the states of :meth:`linear_model`."""
        angles, q = super().find_measured_angles(), len(self.tracking.rows)
        if angles is None or not q:
            return angles
        n = len(angles.columns)
        return replace(
            angles,
            of_states=np.hstack((angles.of_states, np.zeros((n, q)))),
            of_inputs=np.hstack((angles.of_inputs, np.zeros((n, q)))),
        )
