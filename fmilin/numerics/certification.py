"""When a small residual is a solution: the Newton step there, relative to the sizes of the unknowns.

With d = -J^+ r and K from one more Jacobian there is one solution within 2 |d| where K |d| <= 1/2 (Newton and
Kantorovich). Where that cannot be said the residual is followed along the direction in doubt until it leaves its noise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fmilin.numerics.balanced import TERMS_ROUNDED, equilibrate_jacobian
from fmilin.numerics.certificate import CertifiedZero
from fmilin.numerics.differences.sweep import POINTS, noise_from_table
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS, RANK, RANK_MEASURED, TRIM_DISTANCE_TOLERANCE

STEPS = 60  # of Newton's method behind a residual that passes for zero
STEP_TOLERANCE = 1e-12  # of a step, in sizes of the unknowns: no more is asked for
MAX_RESIDUAL_REDUCTION_RATIO = 0.9  # part of the residual that a step may leave: more is noise
FADING_STEP_RATIO = 0.92  # ratio of two steps; at a root of order m it is 1 - 1/m
MIN_FADING_COUNT = 6  # so many such ratios are a runaway
SIMILAR_RATIO_TOLERANCE = 0.05  # by how much two ratios differ at most that stand for a multiple root
MIN_PROBE_DISTANCE = 1e-5  # how far away, at least, the second Jacobian is taken, in sizes of the unknowns
LADDER = (TRIM_DISTANCE_TOLERANCE, 1e-2, 0.1, 0.3, 1.0)  # how far the residual is followed along a direction in doubt
CLEAR_RESIDUAL_FACTOR = 10.0  # times its noise, that a residual has left it
FAINT_RESIDUAL_SIZE = 1e-7  # a residual that has left its noise, and is fading nevertheless
LOOSE_SINGULAR_VALUE_TOLERANCE = 1e-13  # singular values that a step may still use where it need not be believed
NEARBY_DISTANCE = 1e-2  # how far away the usual sizes of derivatives are searched for, in sizes of the unknowns
ZERO_RESIDUAL_SIZE = 1e-26  # a residual that counts as zero where it leaves that level at once
ROOT_INTERVAL_WIDTH = 1e-20  # an interval for a root, in sizes of the unknowns
MAX_CORRECTIONS = 8  # of a point along a direction, as long as each takes a tenth of the residual
LINEAR_RANGE_FACTOR, LINEARITY_TOLERANCE = (
    10.0,
    0.25,
)  # times where a residual leaves its noise; relative curvature that it may have there
MIN_ROUNDING_ERROR = 4 * EPS  # of the terms of a residual, where its noise was measured


def _fade(ratios: list[float]) -> bool:
    """Whether steps of such ratios of lengths run away: they shrink, and ever more slowly."""
    return len(ratios) >= MIN_FADING_COUNT and min(ratios[-MIN_FADING_COUNT:]) > FADING_STEP_RATIO


class _JacobianAtPoint:
    """A Jacobian (m, n), measured in the ``entry_sizes`` nearby, and its pseudo-inverses."""

    def __init__(self, J: FloatArray, entry_sizes: FloatArray, z: FloatArray, limit: float) -> None:
        form = equilibrate_jacobian(J, entry_sizes)
        self.J, self.form, self.rank = J, form, form.rank(limit)
        self.P = form.inverse(self.rank)
        loose_rank = int(
            np.count_nonzero(form.sigma > LOOSE_SINGULAR_VALUE_TOLERANCE * np.max(form.sigma, initial=0.0))
        )
        self.loose, self.determines_all = form.inverse(loose_rank), loose_rank == J.shape[1]
        self.null = form.columns[:, None] * form.null_space(limit)
        self.rounding = TERMS_ROUNDED * np.abs(J) @ np.maximum(np.abs(z), 1.0)

    def weak(self, r: FloatArray, noise: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return directions (n, k) along which r, or its noise, says nothing of where the solution is."""
        form, k = self.form, self.rank
        U, V = form.U[:, :k], form.columns[:, None] * form.Vt[:k].T
        reached = (np.abs(U.T @ (form.rows * r)) + np.abs(U.T) @ (form.rows * noise)) / form.sigma[:k]
        return V[:, reached * np.max(np.abs(V) / sizes[:, None], axis=0, initial=0.0) > 0.1 * TRIM_DISTANCE_TOLERANCE]


class Sized(Protocol):
    """Unknowns with bounds and sizes."""

    low: FloatArray
    high: FloatArray

    def sizes(self, z: FloatArray) -> FloatArray:
        """Return how large the unknowns are at z, in units of z."""


class UnboundedUnknowns:
    """Unknowns that are measured in their sizes, without bounds."""

    def __init__(self, count: int) -> None:
        self.low = np.full(count, -np.inf)
        self.high = np.full(count, np.inf)

    def sizes(self, z: FloatArray) -> FloatArray:
        """Return one, or the value where that is larger."""
        return np.maximum(np.abs(z), 1.0)


class ZeroProblem(Protocol):
    """Equations r(z) = 0 in sizes, with what their certification needs: of trims, orbits, DAE starts."""

    moving: bool  # whether the Jacobian is measured although derivatives are exact
    measures_noise: bool  # whether the noise of r is measured; ``allowed`` says enough where values are costly
    first_order: NDArray[np.bool_]  # rows with the noise of rounding

    @property
    def unknowns(self) -> Sized:
        """The unknowns."""

    def values(self, z: FloatArray) -> FloatArray:
        """Return r (m,) at z (n,)."""

    def values_each(self, z: FloatArray) -> FloatArray:
        """Return r (k, m) at several z (k, n)."""

    def jacobian(self, z: FloatArray, *, exact: bool = True, quick: bool = False) -> tuple[FloatArray, bool]:
        """Return the derivatives of r (m, n) at z, and whether they are exact."""

    def entry_sizes(self, z: FloatArray) -> FloatArray:
        """Return how large the entries of the derivatives are at z, (m, n)."""


def certify_zero(
    equations: ZeroProblem, z: FloatArray, J: FloatArray, allowed: FloatArray, *, exact: bool
) -> CertifiedZero:
    """Return what is known of the solution near z (n,) with r small and the derivatives J (m, n)."""
    if not len(z):
        return CertifiedZero(z, np.zeros(0), np.zeros(0), np.abs(J))
    return _ZeroSearch(equations, z, J, allowed, exact=exact).certify()


def measure_noise(equations: ZeroProblem, z: FloatArray) -> FloatArray | None:
    """Return the noise of r (m,) near z (n,), measured along a short line; None where r is not defined there."""
    line = np.cos(np.arange(len(z)) + 1.0)
    # 1e-8: over half of the digits r is straight, and its noise is visible.
    values = equations.values_each(z + 1e-8 * np.arange(POINTS)[:, None] * line)
    return noise_from_table(values) if np.isfinite(values).all() else None


class _ZeroSearch:
    def __init__(
        self, equations: ZeroProblem, z: FloatArray, J: FloatArray, allowed: FloatArray, *, exact: bool
    ) -> None:
        self.equations, self.z, self.allowed, self.exact = equations, z, allowed, exact
        self.limit = RANK if exact and not equations.moving else RANK_MEASURED
        self.J, self.r = J, equations.values(z)
        terms = np.abs(J) @ np.maximum(np.abs(z), 1.0)
        # Rows are compared in their rounding; none counts more than the rounding of the largest one allows.
        self.weights = 1.0 / np.maximum(TERMS_ROUNDED * terms + 4 * EPS * np.max(terms, initial=0.0), 1e-300)
        self._nearby: tuple[FloatArray, FloatArray] | None = None  # a point, and the sizes of derivatives near it
        self.empty_rows = self._find_empty_rows()
        self.slopes = self._slopes()
        self.settled = self.centred = False  # whether steps have vanished; whether a flat root was searched for

    @property
    def sizes(self) -> FloatArray:
        return self.equations.unknowns.sizes(self.z)

    def certify(self) -> CertifiedZero:
        return replace(self._search(), empty_rows=self.empty_rows)

    def _search(self) -> CertifiedZero:
        ratios = self._polish_point()
        d = -self.slopes.P @ self.r
        if _fade(ratios):
            return CertifiedZero(self.z, np.full(len(d), np.inf), d, self.entry_sizes, runs_away=True)
        return self._judge_point(d)

    def _slopes(self) -> _JacobianAtPoint:
        unknowns = self.equations.unknowns
        inside = (self.z > unknowns.low) & (self.z < unknowns.high)
        self.entry_sizes = self._entry_sizes()
        self.entry_sizes[self.empty_rows] = 0.0
        self.J = np.where(self.empty_rows[:, None], 0.0, self.J)
        return _JacobianAtPoint(np.where(inside, self.J, 0.0), self.entry_sizes, self.z, self.limit)

    def _entry_sizes(self) -> FloatArray:
        """Return the largest modulus of each entry of the Jacobian (m, n), here or nearby."""
        if self._nearby is None or self._nearby[0] is not self.z:
            sizes = self.equations.entry_sizes(self.z + NEARBY_DISTANCE * np.cos(np.arange(len(self.z)) + 1.0))
            self._nearby = self.z, sizes
        return np.asarray(np.fmax(np.abs(self.J), self._nearby[1]))

    def _find_empty_rows(self) -> NDArray[np.bool_]:
        """Return which rows (m,) stay within their noise at points nearby.

        The derivatives of such a row are rounding: those of an arm's spin, which no moment reaches. Divided by their
        own length they would be an equation like any other, and its noise an error in all unknowns.
        """
        change = self._entry_sizes() @ self.sizes
        empty = (change > 0) & (change <= FAINT_RESIDUAL_SIZE * np.max(change, initial=0.0))
        noise = self._measure_noise() if empty.any() else None
        if noise is None:
            return np.zeros(len(change), dtype=bool)
        phase = np.arange(len(self.z)) + 1.0
        for direction in (np.cos(phase), -np.cos(phase), np.sin(phase), -np.sin(phase)):
            nearby = self.z + NEARBY_DISTANCE * self.sizes * direction
            change = np.abs(self.equations.values(nearby) - self.r)
            if (empty & (change > noise)).any():
                # Away from rest larger forces cancel, and leave more rounding.
                noise_nearby = self._measure_noise(nearby)
                if noise_nearby is not None:
                    noise = np.maximum(noise, noise_nearby)
            empty &= change <= noise  # NaN is not
        return np.asarray(empty)

    def _polish_point(self) -> list[float]:
        """Go on with Newton's method as long as it gains; return the ratios of the steps' lengths."""
        lengths: list[float] = []
        ratios: list[float] = []
        for _ in range(STEPS):
            d = -self.slopes.loose @ self.r
            lengths.append(float(np.max(np.abs(d) / self.sizes, initial=0.0)))
            if len(lengths) > 1:
                ratios.append(lengths[-1] / lengths[-2])
            floor = np.abs(self.slopes.loose) @ self.slopes.rounding
            if (
                _fade(ratios)
                or lengths[-1] <= STEP_TOLERANCE
                or (np.abs(d) <= floor).all()
                or not self._advance(d, ratios)
            ):
                break
        remaining = np.abs(self.r + self.slopes.J @ d)
        # The last step is short, and would remove nine tenths of the residual: nothing keeps it from zero.
        self.settled = (
            bool(d.any()) and lengths[-1] <= STEP_TOLERANCE and bool((remaining <= 0.1 * np.abs(self.r)).all())
        )
        return ratios

    def _advance(self, d: FloatArray, ratios: list[float]) -> bool:
        """Go along d, further where steps shrink as they do at a multiple root; False where nothing is gained."""
        unknowns, before = self.equations.unknowns, float(np.linalg.norm(self.weights * self.r))
        # Damped parts must gain less: near a kink a tenth of a step still leads nearer.
        fractions = [(1.0, MAX_RESIDUAL_REDUCTION_RATIO), (0.5, MAX_RESIDUAL_REDUCTION_RATIO), (0.1, 1.0 - 1e-2)]
        if (
            len(ratios) > 1
            and 0.3 < ratios[-1] < FADING_STEP_RATIO
            and abs(ratios[-1] - ratios[-2]) < SIMILAR_RATIO_TOLERANCE
        ):
            fractions.insert(0, (1.0 / (1.0 - ratios[-1]), 0.1))
        for fraction, falls in fractions:
            z = np.clip(self.z + fraction * d, unknowns.low, unknowns.high)
            r = self.equations.values(z)
            if float(np.linalg.norm(self.weights * r)) <= falls * before:  # NaN is not
                self._move(z, r)
                return True
        return False

    def _move(self, z: FloatArray, r: FloatArray) -> None:
        self.z, self.r, self.J = z, r, np.nan_to_num(self._jacobian(z))
        self.slopes = self._slopes()

    def _jacobian(self, z: FloatArray) -> FloatArray:
        return self.equations.jacobian(z, exact=self.exact, quick=not self.exact)[0]

    def _judge_point(self, d: FloatArray) -> CertifiedZero:
        uncertainty, noise = self._noise()
        doubtful = self.slopes.null
        if self.slopes.determines_all:
            # Small singular values alone say nothing: those of a beam of many elements, or of a bushing with a soft
            # spring, are far from rounding, and then Newton and Kantorovich's bound holds with all of them.
            step = -self.slopes.loose @ self.r
            bound = self._bound(step, uncertainty)
            if bound is not None and (bound <= TRIM_DISTANCE_TOLERANCE * self.sizes).all():
                return CertifiedZero(self.z, bound, step, self.entry_sizes, is_isolated=True)
        doubtful = np.hstack((doubtful, self.slopes.weak(self.r, noise, self.sizes)))
        if not doubtful.shape[1]:
            doubtful = (d if np.abs(d).max(initial=0.0) > 0 else np.cos(np.arange(len(d)) + 1.0))[:, None]
        return self._along(d, doubtful, noise)

    def _noise(self) -> tuple[FloatArray, FloatArray]:
        """Return what r is known to by its measured noise, and what rounding may make of it at most, (m,) each."""
        noise = self._measure_noise()
        is_measured = noise is not None
        measured = self.allowed if noise is None else noise
        most = np.maximum(self.slopes.rounding, measured)
        # The measured noise includes the rounding of terms that cancel; four units are the least that terms have.
        least = MIN_ROUNDING_ERROR * np.abs(self.slopes.J) @ np.maximum(np.abs(self.z), 1.0)
        uncertainty = np.maximum(least, measured) if is_measured else most
        first = self.equations.first_order
        return np.where(first, uncertainty, np.maximum(uncertainty, self.allowed)), np.where(
            first, most, np.maximum(most, self.allowed)
        )

    def _measure_noise(self, z: FloatArray | None = None) -> FloatArray | None:
        """Return ten times the noise of r (m,) at z (n,), or at the point itself; None where it is not measured."""
        if not self.equations.measures_noise:
            return None
        noise = measure_noise(self.equations, self.z if z is None else z)
        return None if noise is None else CLEAR_RESIDUAL_FACTOR * noise

    def _bound(self, d: FloatArray, noise: FloatArray) -> FloatArray | None:
        """Return 2 |d|, rounding included, where K |d| <= 1/2; None where it is not."""
        sizes, blurred = self.sizes, np.abs(self.slopes.loose) @ noise
        step = float(np.max(np.abs(d) / sizes))
        along = d / step if step > 0 else sizes * np.where(np.arange(len(d)) % 2, -1.0, 1.0)
        length = float(np.max((np.abs(d) + blurred) / sizes))
        probe = min(max(length, MIN_PROBE_DISTANCE), TRIM_DISTANCE_TOLERANCE)
        change = self._jacobian(self.z + probe * along) - (self.J if self.exact else self._jacobian(self.z))
        relative = (self.slopes.loose @ change) * sizes / sizes[:, None]
        h = float(np.linalg.norm(relative, np.inf)) / probe * length
        # Whether the residual changes on a way as the derivatives say: those measured over long steps may not.
        way = max(4 * length, STEP_TOLERANCE)
        change = self.equations.values(self.z + way * along) - self.r
        missing = np.abs(self.slopes.loose @ (change - self.slopes.J @ (way * along)))
        if not (h <= 0.5 and (missing <= 0.5 * way * sizes + 2 * blurred).all()):  # NaN is not
            return None
        return np.asarray(2 * (np.abs(d) + blurred) + h * length * sizes)

    def _along(self, d: FloatArray, doubtful: FloatArray, noise: FloatArray) -> CertifiedZero:
        """Return what follows from how the residual leaves zero along directions that J leaves open."""
        sizes, n = self.sizes, len(d)
        directions = doubtful.T / np.max(np.abs(doubtful) / sizes[:, None], axis=0, initial=1e-300)[:, None]
        Q = np.linalg.qr(doubtful / sizes[:, None])[0]
        apart = np.eye(n) - (sizes[:, None] * Q) @ (Q.T / sizes)
        rest = apart @ _JacobianAtPoint(self.slopes.J @ apart, self.entry_sizes, self.z, self.limit).P
        distance = 2 * np.abs(rest @ self.r) + np.abs(rest) @ noise
        multiple: set[int] = set()
        determined = 0
        mixed = np.cos(np.arange(len(directions)) + 1.0) @ directions
        if len(directions) > 1 and self._follow_direction(mixed, rest, noise)[0] == "family":
            directions = directions[:0]  # where a sum of all of them leads nowhere else, none does
        for v in directions:
            end, s = self._follow_direction(v, rest, noise)
            if end == "multiple" and self._leaves_linearly(v, s, rest):
                # A weak spring and a stiff one: the solution is simple, and known as well as rounding allows.
                distance = distance + s * np.abs(v)
                determined += 1
                continue
            if end == "nowhere" and not self.centred:
                root = self._find_root(v, rest, noise)
                if root is not None:
                    self.centred = True
                    self._move(root, self.equations.values(root))
                    return self._judge_point(-self.slopes.P @ self.r)
            if end in ("nowhere", "fades"):
                return CertifiedZero(self.z, np.full(n, np.inf), d, self.entry_sizes, runs_away=end == "fades")
            if end == "multiple":
                distance = distance + s * np.abs(v)
                # Unknowns of which this direction is a tenth of the uncertainty, at least, take part in it.
                multiple |= set(np.flatnonzero(s * np.abs(v) > 0.1 * distance).tolist())
        is_isolated = 0 < determined == len(directions)
        return CertifiedZero(self.z, distance, d, self.entry_sizes, tuple(sorted(multiple)), is_isolated=is_isolated)

    def _leaves_linearly(self, v: FloatArray, s: float, P: FloatArray) -> bool:
        """Whether the residual changes its sign along v, and grows in proportion, from where it leaves its noise."""
        distance = min(LINEAR_RANGE_FACTOR * s, 1.0)
        nothing = np.zeros(len(self.r))
        ahead, behind, half = (self._evaluate_residual(k * distance, v, P, nothing)[1] for k in (1.0, -1.0, 0.5))
        with np.errstate(over="ignore"):  # of a row that the direction does not enter, which then counts most
            row = int(np.argmax(np.abs(ahead) / np.maximum(np.abs(self.entry_sizes) @ np.abs(v), 1e-300)))
        slope = (ahead[row] - behind[row]) / 2
        is_odd = abs(ahead[row] + behind[row]) <= LINEARITY_TOLERANCE * abs(slope)
        return bool(is_odd and abs(half[row] - slope / 2) <= LINEARITY_TOLERANCE * abs(slope))  # NaN is not

    def _follow_direction(
        self, v: FloatArray, P: FloatArray, noise: FloatArray
    ) -> tuple[Literal["multiple", "family", "fades", "nowhere"], float]:
        """Return what zero is along v (n,), and how far from here it may be."""

        def measure_residual(s: float) -> tuple[float, float, bool]:
            """Return the residual at a distance, times its noise and in sizes, and whether steps help there."""
            _, r, around, helps = self._evaluate_residual(s, v, P, noise)
            r = np.nan_to_num(np.abs(r), nan=np.inf)
            ratio = np.max(np.minimum(r, 1.0) / around, initial=0.0)  # without equations every point is a zero
            return float(ratio), float(np.max(r, initial=0.0)), helps

        nearest = np.inf
        for sign in (1.0, -1.0):
            for s in LADDER:
                times, size, helps = measure_residual(sign * s)
                if times > CLEAR_RESIDUAL_FACTOR:
                    break
            else:
                continue
            if s > LADDER[0]:
                fades = size < FAINT_RESIDUAL_SIZE and not helps
                if fades and s < LADDER[-1] and measure_residual(sign * LADDER[-1])[1] > CLEAR_RESIDUAL_FACTOR * size:
                    return "fades", s
                continue
            while s > STEP_TOLERANCE and measure_residual(sign * s / 10)[0] > CLEAR_RESIDUAL_FACTOR:
                s /= 10
            nearest = min(nearest, s)
        if nearest == np.inf:
            return "family", 0.0
        times, size, _ = measure_residual(0.0)
        if self.settled or times <= CLEAR_RESIDUAL_FACTOR:
            return "multiple", nearest
        if size <= ZERO_RESIDUAL_SIZE and (noise < ZERO_RESIDUAL_SIZE).any():
            end, nearest = self._follow_direction(v, P, np.maximum(noise, ZERO_RESIDUAL_SIZE))
            return ("multiple" if end == "multiple" else "fades"), nearest
        return "nowhere", nearest

    def _evaluate_residual(
        self, s: float, v: FloatArray, P: FloatArray, noise: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
        """Return the point at a distance s along v that all but v can balance, r and its noise there, ``helps``."""
        z = self.z + s * v
        around = np.maximum(noise + TERMS_ROUNDED * np.abs(self.J) @ np.abs(s * v), 1e-300)
        r, helps = self.equations.values(z), True
        for _ in range(MAX_CORRECTIONS):
            if not (helps and (np.abs(r) > CLEAR_RESIDUAL_FACTOR * around).any()):
                break
            z, before = z - P @ r, float(np.max(np.abs(r)))
            r = self.equations.values(z)
            # Steps that gain less than a tenth do not lead to zero.
            helps = bool(np.max(np.abs(r)) <= 0.9 * before)  # NaN does not
        return z, r, around, helps

    def _find_root(self, v: FloatArray, P: FloatArray, noise: FloatArray) -> FloatArray | None:
        """Return where the remainder of r changes its sign along v: measured derivatives do not show flat roots."""
        from scipy.optimize import bisect

        _, r, around, _ = self._evaluate_residual(0.0, v, P, noise)
        row = int(np.argmax(np.abs(r) / around))

        def evaluate_row(s: float) -> float:
            return float(self._evaluate_residual(s, v, P, noise)[1][row])

        for s in (sign * TRIM_DISTANCE_TOLERANCE * 10.0**-k for k in range(6, -1, -1) for sign in (1.0, -1.0)):
            end = evaluate_row(s)
            if np.isfinite(end) and end * r[row] < 0:
                try:
                    root = float(bisect(evaluate_row, 0.0, s, xtol=ROOT_INTERVAL_WIDTH))
                except ValueError:  # the model is not defined in between
                    continue
                return self._evaluate_residual(root, v, P, noise)[0]
        return None
