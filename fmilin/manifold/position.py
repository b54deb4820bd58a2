"""How far the manifold is from a point with small residuals: the Newton step, in sizes of the states.

Where constraints are nearly parallel a residual of 1e-10 may be a distance of 0.1. Directions along which the gradient
has singular values that count as zero are left out of a projection, because those of redundant constraints are
rounding. Those that are above rounding, together with a residual that is above rounding, are examined here.
"""

from __future__ import annotations

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.manifold.invariants import Gradient, Invariants
from fmilin.numerics.lapack import lapack
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EPS, POSITION_KNOWN, PROJECTION_TOLERANCE, TRIM_DISTANCE_TOLERANCE

ROUNDED_VALUES = 16 * EPS  # of the terms of a residual
GRADIENT_ROUNDING_TOLERANCE = 64 * EPS  # singular values of an exact gradient, relative to the largest
NEWTON_SINGULAR_VALUE_TOLERANCE = 1e-12
"""Singular values of an exact gradient, relative to the largest, that a Newton step uses at a point satisfying the
other equations: below, rounding of redundant constraints would move the point."""
ERRORS = 10.0  # times the stated error of a measured gradient, which a singular value must exceed to be more than that
MIN_NAMED_FRACTION = 0.1  # part of the largest component from which a constraint or a state is named
MAX_STEPS = 20  # converging iterations need less; nearly parallel constraints do not converge
MAX_CONTRACTION_RATIO = 0.7  # ratio of two steps of a Newton iteration that converges, the second of which counts
MAX_STEP_SIZE = 1.0  # step, in sizes of the states, beyond which another configuration would be found


@dataclass(frozen=True, eq=False)
class Position:
    """The significance of the Newton step at a point, beyond noise and in sizes of the states."""

    step: FloatArray  # (N,), towards the manifold, along directions that are determined by more than rounding
    singular_value: float  # the smallest one that the step uses, relative to the largest
    rows: FloatArray  # (m,), what each constraint contributes to the direction of that singular value, signed

    @property
    def distance(self) -> float:
        """The largest component of the step."""
        return float(np.max(np.abs(self.step), initial=0.0))


def relative_error(gradient: Gradient) -> float:
    """Return the error of a scaled gradient, relative to its rows; 0 where it is exact."""
    if gradient.is_exact:
        return 0.0
    error = np.linalg.norm(gradient.error * gradient.scales, axis=1) / gradient.sizes
    return float(np.linalg.norm(error[np.isfinite(error)]))


def smallest_usable(gradient: Gradient, least: float) -> float:
    """Return the part of the largest singular value beyond which one is not rounding and no error of measurement."""
    return max(least, ERRORS * relative_error(gradient))


def locate(
    gradient: Gradient, h: FloatArray, x: FloatArray, D: FloatArray, *, least: float, times: float = 1.0
) -> Position | None:
    """Return where the manifold is from x (N,) with the residuals h (m,); None where they may be noise.

    D (N,) holds the sizes of the states that may move, and zeros for others. Singular values up to ``least`` of the
    largest count as zero, residuals up to so many ``times`` their noise as nothing.
    """
    # States that are many times their size round by as much more.
    reach = max(1.0, float(np.max(np.abs(x) / gradient.scales, initial=0.0)))
    # Ten times: the noise of rates is an estimate from a few values.
    noise = times * (ROUNDED_VALUES * reach * gradient.reference + 10 * gradient.noise) / gradient.sizes
    residuals = h / gradient.sizes
    if (np.abs(residuals) <= noise).all():  # so is each combination of them: no need to decompose anything
        return None
    scaled = gradient.scaled * (D / gradient.scales)
    # Values that are not finite tell no distance.
    if not (scaled.size and np.isfinite(scaled).all() and np.isfinite(h).all()):
        return None
    U, sigma, Vt, failed = lapack.dgesdd(scaled, full_matrices=0)
    usable = sigma > smallest_usable(gradient, least) * sigma[0]
    if failed or not usable.any():
        return None
    parts = U.T @ residuals
    certain = np.where(usable & (np.abs(parts) > np.abs(U.T) @ noise), parts, 0.0)
    if not certain.any():
        return None
    amounts = np.divide(certain, sigma, out=np.zeros_like(certain), where=usable)
    weakest = int(np.flatnonzero(certain)[-1])
    return Position(-(D / gradient.scales) * (Vt.T @ amounts), float(sigma[weakest] / sigma[0]), U[:, weakest])


def solve_weak_directions(invariants: Invariants, t: float, x: FloatArray, D: FloatArray) -> FloatArray:
    """Return where Newton's method ends that uses weak directions, too, from a point with small residuals.

    Returns x itself where rounding determines no more, or where the iteration leads away instead of converging.
    """
    start, first, previous = x, 0.0, np.inf
    for count in range(MAX_STEPS):
        position = locate(
            invariants.gradient(t, x), invariants.values(t, x), x, D, least=NEWTON_SINGULAR_VALUE_TOLERANCE
        )
        if position is None:
            return x if count == 0 else _polish(invariants, t, x, D)
        distance = position.distance
        first = first or distance
        if distance > MAX_STEP_SIZE or (count > 1 and distance > MAX_CONTRACTION_RATIO * previous):
            # Steps that no longer shrink are rounding if they are short; long ones lead away.
            return x if distance <= PROJECTION_TOLERANCE else start
        x = x + invariants.scales * position.step
        # Steps of an iteration that converges quadratically add up to less than twice the first one.
        if float(np.max(np.abs(x - start) / invariants.scales)) > 2 * first:
            return start
        previous = distance
    return start


def _polish(invariants: Invariants, t: float, x: FloatArray, D: FloatArray) -> FloatArray:
    """Return x after one more Newton step: mostly residuals are more accurate than the bound on their noise."""
    last = locate(
        invariants.gradient(t, x), invariants.values(t, x), x, D, least=NEWTON_SINGULAR_VALUE_TOLERANCE, times=0.0
    )
    return x if last is None or last.distance > TRIM_DISTANCE_TOLERANCE else x + invariants.scales * last.step


def position_remarks(invariants: Invariants, t: float, x: FloatArray) -> tuple[Remark, ...]:
    """Return a diagnostic where a point that satisfies all constraints may be far from the one that is meant."""
    gradient = invariants.gradient(t, x)
    position = locate(gradient, invariants.values(t, x), x, invariants.scales, least=GRADIENT_ROUNDING_TOLERANCE)
    if position is None or position.distance <= POSITION_KNOWN:
        return ()
    names, states = invariants.names, invariants.model.states.names
    weights = np.abs(position.rows)
    parallel = [f"'{names[i]}'" for i in np.flatnonzero(weights > MIN_NAMED_FRACTION * weights.max())][:6]
    size = np.abs(position.step)
    moved = [states[i] for i in np.flatnonzero(size > MIN_NAMED_FRACTION * size.max())][:6]
    # One number for each state, in its own unit.
    listed = ", ".join(
        f"{name} is accurate to +-{size[i] * invariants.scales[i]:.2g} only"
        for name in moved
        for i in [invariants.model.states.positions[name]]
    )
    what = f"the constraints {', '.join(parallel)} are parallel within {position.singular_value:.1e}"
    text = (
        f"The point satisfies all constraints, but {what}: {listed}. If one of them is redundant leave it out; "
        "otherwise write them so that they differ by more."
    )
    return (Remark("position", text),)
