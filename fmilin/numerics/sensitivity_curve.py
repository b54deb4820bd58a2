"""Where S = 1/(1 - L) of a stable closed loop meets lines of the complex plane, and how far it goes from 1/2.

S is bounded on the stability limit, also where L has poles there. With T = S - 1, L = T/S:

    L is real       where Im S = 0:    the closed loop with the factor k = 1/L = S/T has an eigenvalue there;
    |L| = 1         where Re S = 1/2:  the argument of L is what the phase may turn;
    the disk margin is 1 / max |S - 1/2| (Seiler, Packard and Gahinet, 2020, with skew 0).

Crossings are bracketed in two ways, which are united: by a grid of frequencies in which steps are a part of the
distance to the nearest pole, both ends included, and by the eigenvalues of a pencil: its finite zeros on the stability
limit are all crossings. With S~ the adjoint of S (S~ = conj S on the limit), S - S~ = 0 and S + S~ = 1 are

    [A - s  0        B     ]                     [A - z  0          B     ]
    [0      -A' - s  -C'   ]  continuous,        [0      z A' - 1   C'    ]  sampled, with the sign of S~ as +-.
    [C      +-B'     D+-D' ]                     [C      +-z B'     D+-D' ]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.numerics.feedback import Matrix, StateSpace
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS

ComplexArray = NDArray[np.complex128]

STEP = 0.12  # of a frequency grid, in distances to the nearest pole
GRID_MARGIN_FACTOR = (
    1e4  # the grid reaches this much above the largest pole or zero, and below the smallest distance to a pole
)
BELOW = np.geomspace(1e-6, 1.0, 25)[:-1]  # of the first step of the grid
MAX_STEPS = 20_000  # of the grid: poles near the limit make its steps short
MAX_STATES = 150  # of pencils: QZ of twice the order; beyond that the grid and closed-loop eigenvalues stand alone
SIGNIFICANT_ROUNDING_FACTOR = 30.0  # times the rounding of S or T that a value must exceed to be more than rounding
NEAR_TOUCH_DISTANCE = 1e-2  # of the curve's size: local minima of a distance to a line that are refined
POSSIBLE_ROUNDING_RATIO = 1e-8  # of the largest: values that are compared with their own rounding
PEAK_TOLERANCE = 1e-9  # relative: a peak by which two ways may differ


@dataclass(frozen=True)
class CurveCrossing:
    """A point of the curve on a line; ``frequency`` in rad/s, infinite at the end of a continuous one."""

    frequency: float
    S: complex
    T: complex
    rounding: float  # of S and T


class SensitivityCurve:
    """S and T = S - 1 of a stable closed loop along the upper half of the stability limit.

    ``angle`` is the frequency of a continuous loop in rad/s, and frequency times sample time of a sampled one.
    """

    def __init__(self, A: Matrix, B: Matrix, C: Matrix, D: Matrix, sample_time: float) -> None:
        from scipy.linalg import schur

        self.system = StateSpace(A, B, C, D, sample_time).balance()
        self.sample_time = sample_time
        if len(A):
            self._triangle, U = schur(self.system.A.astype(np.complex128), output="complex")
        else:
            self._triangle, U = np.zeros((0, 0), np.complex128), np.zeros((0, 0), np.complex128)
        self._entry = U.conj().T @ self.system.B
        self._exit = self.system.C @ U
        self.poles = np.diag(self._triangle)
        self.last = math.pi if sample_time else math.inf

    def locate(self, angle: FloatArray | float) -> ComplexArray:
        """Return the points of the stability limit."""
        angles = np.atleast_1d(np.asarray(angle, dtype=np.float64))
        return np.asarray(np.exp(1j * angles) if self.sample_time else 1j * angles, dtype=np.complex128)

    def evaluate(self, angle: FloatArray | float) -> ComplexArray:
        """Return T at finite angles, shape (angles, m, m)."""
        points = self.locate(angle)
        n, m = self._entry.shape
        x = np.empty((len(points), n, m), np.complex128)
        for i in range(n - 1, -1, -1):
            right_side = self._entry[i] + np.einsum("j,kjm->km", self._triangle[i, i + 1 :], x[:, i + 1 :])
            x[:, i] = right_side / (points - self._triangle[i, i])[:, None]
        T: ComplexArray = np.einsum("pn,knm->kpm", self._exit, x) + self.system.D
        real_angles = (0.0, math.pi) if self.sample_time else (0.0,)
        ends = np.isin(np.atleast_1d(angle), real_angles)
        T[ends] = T[ends].real  # the ends of the curve are real: what is left is rounding
        return T

    def estimate_rounding(self, angle: float) -> float:
        """Return how far rounding, of a size of eps in A, B and C, changes T at an angle."""
        n = len(self.poles)
        if not n:
            return EPS * (1.0 + float(np.abs(self.system.D).max(initial=0.0)))
        if math.isinf(angle):
            return EPS * (1.0 + float(np.abs(self.system.D).max(initial=0.0)))
        from scipy.linalg import solve_triangular

        shifted = self.locate(angle)[0] * np.eye(n) - self._triangle
        x = solve_triangular(shifted, self._entry)
        y = solve_triangular(shifted, self._exit.conj().T, trans="C")
        size = float(np.linalg.norm(self._triangle)) + abs(self.locate(angle)[0])
        through = np.linalg.norm(y) * size * np.linalg.norm(x)
        direct = np.linalg.norm(self._exit) * np.linalg.norm(x) + np.linalg.norm(y) * np.linalg.norm(self._entry)
        return float(EPS * (through + direct + np.linalg.norm(self.system.D)))

    def to_frequency(self, angle: float) -> float:
        """Return the frequency in rad/s."""
        return angle / self.sample_time if self.sample_time else angle

    # -- the grid ------------------------------------------------------------------------------------------------------

    def make_grid(self, candidates: FloatArray) -> FloatArray:
        """Return angles from one end to the other, with ``candidates`` and points near them."""
        if self.sample_time:
            top = math.pi
        else:
            sizes = np.concatenate((np.abs(self.poles), candidates[np.isfinite(candidates)]))
            top = GRID_MARGIN_FACTOR * float(sizes.max(initial=0.0)) or 1.0
        steps = self._choose_angles(top)
        near = [candidates * (1.0 + d) for d in (-1e-2, -1e-4, -1e-6, 0.0, 1e-6, 1e-4, 1e-2)]
        first = steps[1] if len(steps) > 1 else top
        near.append(first * BELOW)
        if self.sample_time:
            last = math.pi - steps[-2] if len(steps) > 1 else top
            near.append(math.pi - last * BELOW)
        grid = np.unique(np.concatenate([steps, *near]))
        return np.asarray(grid[(grid >= 0) & (grid <= top)], dtype=np.float64)

    def _choose_angles(self, top: float) -> FloatArray:
        """Return angles in steps of a part of the distance to the nearest pole, where S is a short power series."""
        if not len(self.poles):
            return np.array([0.0, top])
        angle, angles = 0.0, [0.0]
        real, imaginary = self.poles.real, self.poles.imag
        while angle < top and len(angles) < MAX_STEPS:
            at = complex(math.cos(angle), math.sin(angle)) if self.sample_time else complex(0.0, angle)
            distance = math.sqrt(float(((at.real - real) ** 2 + (at.imag - imaginary) ** 2).min()))
            # At a pole on the limit the distance is zero: steps at the rounding of the angle lead past it.
            angle += STEP * max(distance, EPS * max(angle, 1.0 if self.sample_time else 0.0), 1e-300)
            angles.append(min(angle, top))
        return np.array(angles)

    # -- pencils -------------------------------------------------------------------------------------------------------

    def _solve_pencil(self, rows: list[list[Matrix]], moving: list[list[Matrix]]) -> FloatArray:
        """Return the angles of the finite zeros, of each its nearest point on the upper half of the limit."""
        from scipy.linalg import eig

        try:
            eigenvalues = eig(np.block(rows), np.block(moving), left=False, right=False)
        except (np.linalg.LinAlgError, ValueError):  # the grid stands alone
            return np.empty(0)
        values = np.asarray(eigenvalues, dtype=np.complex128)
        values = values[np.isfinite(values)]
        if self.sample_time:
            return np.asarray(np.abs(np.angle(values[values != 0])), dtype=np.float64)
        return np.concatenate((np.abs(values.imag), np.abs(values)))

    def find_zeros(self, sign: int, constant: float) -> FloatArray:
        """Return the angles near which S + sign S~ + constant may be zero."""
        A, B, C, D = self.system.A, self.system.B, self.system.C, self.system.D
        n = len(A)
        if not 0 < n <= MAX_STATES:
            return np.empty(0)
        one, none = np.eye(n), np.zeros((n, n))
        column, row = np.zeros((n, 1)), np.zeros((1, n))
        at_infinity = D + 1.0 + sign * (D.T + 1.0) + constant
        if self.sample_time:
            rows = [[A, none, B], [none, -one, C.T], [C, row, at_infinity]]
            moving = [[one, none, column], [none, -A.T, column], [row, -sign * B.T, np.zeros((1, 1))]]
        else:
            rows = [[A, none, B], [none, -A.T, -C.T], [C, sign * B.T, at_infinity]]
            moving = [[one, none, column], [none, one, column], [row, row, np.zeros((1, 1))]]
        return self._solve_pencil(rows, moving)

    def find_levels(self, level: float) -> FloatArray:
        """Return the angles near which a singular value of S - 1/2 may be ``level`` (Bruinsma and Steinbuch, 1990)."""
        A, B, C = self.system.A, self.system.B, self.system.C
        n, m = B.shape
        if not 0 < n <= MAX_STATES:
            return np.empty(0)
        D = self.system.D + 0.5 * np.eye(m)
        one, none = np.eye(n), np.zeros((n, n))
        column, row, corner = np.zeros((n, m)), np.zeros((m, n)), np.zeros((m, m))
        excess = D.T @ D - level**2 * np.eye(m)
        if self.sample_time:
            rows = [[A, none, B], [C.T @ C, -one, C.T @ D], [D.T @ C, row, excess]]
            moving = [[one, none, column], [none, -A.T, column], [row, -B.T, corner]]
        else:
            rows = [[A, none, B], [-C.T @ C, -A.T, -C.T @ D], [D.T @ C, B.T, excess]]
            moving = [[one, none, column], [none, one, column], [row, row, corner]]
        return self._solve_pencil(rows, moving)

    # -- crossings -----------------------------------------------------------------------------------------------------

    def find_real_points(self) -> list[CurveCrossing]:
        """Return where S, and so L, is real, both ends included."""
        return self._find_crossings(self.find_zeros(-1, 0.0), lambda T: T.imag, 0.0)

    def find_unit_loops(self) -> list[CurveCrossing]:
        """Return where |L| = 1; an end only where it is on the line."""
        crossings = self._find_crossings(self.find_zeros(1, -1.0), lambda T: T.real + 0.5, 0.5)
        return [c for c in crossings if abs(c.S.real - 0.5) <= SIGNIFICANT_ROUNDING_FACTOR * max(c.rounding, EPS)]

    def _find_crossings(
        self, candidates: FloatArray, distance: Callable[[ComplexArray], FloatArray], offset: float
    ) -> list[CurveCrossing]:
        from scipy.optimize import brentq

        grid = self.make_grid(candidates)
        values = distance(self.evaluate(grid)[:, 0, 0])
        inner = slice(1, len(grid) - 1 if self.sample_time else len(grid))
        angles, values = grid[inner], values[inner]

        def follow(angle: float) -> float:
            return float(distance(self.evaluate(angle)[:, 0, 0])[0])

        # Values that are rounding have signs of their own: near a crossing that the pencil knows to the last digit,
        # near an end that is on the line, and everywhere where the curve is a part of the line.
        small = np.flatnonzero(np.abs(values) <= POSSIBLE_ROUNDING_RATIO * np.abs(values).max(initial=0.0))
        rounded = np.zeros(len(values), dtype=bool)
        rounded[small] = [not self._is_significant(abs(values[k]), angles[k]) for k in small]
        clear = np.flatnonzero(~rounded)
        changes = np.flatnonzero(values[clear[:-1]] * values[clear[1:]] < 0)
        roots = [
            float(brentq(follow, angles[clear[k]], angles[clear[k + 1]], xtol=1e-300, rtol=4 * EPS)) for k in changes
        ]
        touches = [k for k in np.flatnonzero(rounded) if _is_touched(int(k), clear, values)]
        roots += [float(angles[k]) for k in touches]
        roots += self._find_touches(angles[clear], values[clear], follow)
        return [self._cross(angle) for angle in (0.0, self.last, *roots)]

    def _find_touches(self, angles: FloatArray, values: FloatArray, follow: Callable[[float], float]) -> list[float]:
        """Return where the curve touches a line between two points of the grid without a change of sign."""
        from scipy.optimize import minimize_scalar

        sizes = np.abs(values)
        near = NEAR_TOUCH_DISTANCE * float(sizes.max(initial=0.0))
        same = (values[:-2] * values[1:-1] > 0) & (values[1:-1] * values[2:] > 0)
        lowest = (sizes[1:-1] <= sizes[:-2]) & (sizes[1:-1] <= sizes[2:]) & (sizes[1:-1] <= near) & same
        touches = []
        for k in np.flatnonzero(lowest) + 1:
            low, high = float(angles[k - 1]), float(angles[k + 1])
            result = minimize_scalar(
                lambda w: abs(follow(w)), bounds=(low, high), method="bounded", options={"xatol": 1e-9 * high}
            )
            at = float(result.x)
            if not self._is_significant(abs(follow(at)), at):
                touches.append(at)
        return touches

    def _is_significant(self, value: float, angle: float) -> bool:
        return value > SIGNIFICANT_ROUNDING_FACTOR * self.estimate_rounding(angle)

    def _cross(self, angle: float) -> CurveCrossing:
        T = complex(self.system.D[0, 0]) if math.isinf(angle) else complex(self.evaluate(angle)[0, 0, 0])
        return CurveCrossing(self.to_frequency(angle), 1.0 + T, T, self.estimate_rounding(angle))

    # -- the disk ------------------------------------------------------------------------------------------------------

    def find_peak(self) -> tuple[float, float]:
        """Return the largest singular value of S - 1/2 over all frequencies, and the frequency in rad/s.

        The largest of the grid is refined. The pencil then tells whether the curve exceeds it anywhere; if so, the
        search goes on from the largest value between two of its zeros.
        """
        grid = self.make_grid(np.empty(0))
        sizes = self._measure(grid)
        peak, at = self._refine_peak(grid, sizes)
        high_frequency_gain = float(np.linalg.norm(self.system.D + 0.5 * np.eye(len(self.system.D)), 2))
        if not self.sample_time and high_frequency_gain >= peak:
            peak, at = high_frequency_gain, math.inf
        for _ in range(10):
            angles = np.unique(self.find_levels(peak * (1.0 + PEAK_TOLERANCE)))
            angles = angles[angles <= self.last]
            if not len(angles):
                break
            between = np.unique(np.concatenate((angles, (angles[1:] + angles[:-1]) / 2)))
            sizes = self._measure(between)
            if sizes.max() <= peak * (1.0 + PEAK_TOLERANCE):
                break
            peak, at = self._refine_peak(between, sizes)
        return peak, self.to_frequency(at)

    def _measure(self, angles: FloatArray | float) -> FloatArray:
        T = self.evaluate(angles)
        return np.asarray(np.linalg.svd(T + 0.5 * np.eye(T.shape[-1]), compute_uv=False)[:, 0], dtype=np.float64)

    def _refine_peak(self, angles: FloatArray, sizes: FloatArray) -> tuple[float, float]:
        from scipy.optimize import minimize_scalar

        best = int(np.argmax(sizes))
        peak, at = float(sizes[best]), float(angles[best])
        low, high = float(angles[max(best - 1, 0)]), float(angles[min(best + 1, len(angles) - 1)])
        if low < high:
            result = minimize_scalar(
                lambda w: -float(self._measure(w)[0]),
                bounds=(low, high),
                method="bounded",
                options={"xatol": 1e-12 * high},
            )
            if -float(result.fun) > peak:
                peak, at = -float(result.fun), float(result.x)
        return peak, at


def _is_touched(rounded: int, clear: NDArray[np.int64], values: FloatArray) -> bool:
    """Return whether a point on the line lies between two that are clearly on one and the same side of it."""
    after = int(np.searchsorted(clear, rounded))
    if after == 0 or after == len(clear):
        return False
    return bool(values[clear[after - 1]] * values[clear[after]] > 0)
