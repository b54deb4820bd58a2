"""Exact derivatives compared with differences that rounding makes inaccurate.

The accelerations of a long chain of bodies solve M v' = F with a matrix M of condition 1e8 and more. Rounding changes
them by 1e-9, and a difference over a step of 1e-5 by 1e-4, where the derivatives of a recursion are right to 1e-11. So
the noise of the evaluations is measured, and what it makes of a difference is not a contradiction.

Two things keep such a comparison from passing everything. M times the accelerations, along the motions that constraints
leave free, are forces: the rounding of the solution nearly cancels in them, while an error of a slope does not. And
differences over longer steps have less noise; the next step shows how much of the slope they leave out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from fmilin.errors import ModelError, NumericalError
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.manifold.rank import fixed_direction
from fmilin.model.capabilities import read_second_order_form
from fmilin.numerics.decompositions import null_space
from fmilin.numerics.differences.differences import Slopes
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import DERIVATIVE_AGREEMENT_TOLERANCE, MAX_ERROR_HIDDEN_BY_NOISE

STEPS = (2.0**-17, 2.0**-14, 2.0**-11)  # in sizes of the variables; the next one bounds what each leaves out
NOISE_STEP = 2.0**-27  # between the points of the line on which noise is measured
NOISE_POINTS = 6  # of that line: the largest of their four second differences is the noise
NOISE_MARGIN = 20.0  # times the noise over the step, what a difference may be off: of few values an estimate is rough
TRUNCATION_MARGIN = 16.0  # times what a central difference leaves out: two steps show its order of magnitude


def confirm_within_noise(nearby: Neighbourhood, exact: Slopes, floor: FloatArray) -> bool | None:
    """Return whether differences confirm exact derivatives of equations without kinks; None where they contradict them.

    False says that they agree as far as a difference can show, and that its noise may hide an error of some row.
    ``floor`` (r,) is what rounding leaves of derivatives that cancel.
    """
    sizes = (np.abs(exact.J) * nearby.scales).max(axis=1, initial=0.0)
    limit = MAX_ERROR_HIDDEN_BY_NOISE * np.maximum(sizes, nearby.terms(sizes))
    # Derivatives are not better than they claim to be: their errors are stated with the linear model.
    claimed = np.linalg.norm(exact.error * nearby.scales, axis=1)
    least = np.maximum(np.maximum(floor, claimed), DERIVATIVE_AGREEMENT_TOLERANCE * sizes)
    hidden = np.full(len(sizes), np.inf)
    try:
        for comparison in _compare(nearby, exact):
            if not comparison.agrees(least):
                return None
            hidden = np.minimum(hidden, comparison.find_hidden(len(sizes)))
            if (hidden <= limit).all():
                return True
    except (ModelError, NumericalError):
        return None  # the model cannot be evaluated nearby
    return False


@dataclass(frozen=True, eq=False)
class _Comparison:
    """A difference with its error, of rows or of combinations of rows that make forces of accelerations."""

    gap: FloatArray  # (k,), to the exact slope along the direction
    tolerance: FloatArray  # (k,), what noise and the length of the step make of the difference
    weights: tuple[FloatArray, list[int]] | None = None  # W (k, n) and the n rows that it combines; None: rows

    def agrees(self, least: FloatArray) -> bool:
        """Whether no gap is beyond the tolerance, of rows beyond ``least`` (r,)."""
        tolerance = np.maximum(self.tolerance, least) if self.weights is None else self.tolerance
        return bool((np.abs(self.gap) <= tolerance).all())

    def find_hidden(self, count: int) -> FloatArray:
        """Return how large an error of each of ``count`` rows alone may be without being seen."""
        if self.weights is None:
            return self.tolerance
        W, rows = self.weights
        hidden = np.full(count, np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            hidden[rows] = np.fmin.reduce(self.tolerance[:, None] / np.abs(W), axis=0)
        return hidden


def _compare(nearby: Neighbourhood, exact: Slopes) -> Iterator[_Comparison]:
    """Yield comparisons along one direction, each able to show more than those before it."""
    count = len(nearby.scales)
    signs = np.where(fixed_direction(1952, 0.0, count) < 0.5, -1.0, 1.0)  # one sign would wind up a long chain
    direction = signs * fixed_direction(1848, 0.5, count) * nearby.scales
    expected = exact.J @ direction
    # The point itself may be one at which all terms vanish, as where a chain hangs: noise is measured near it.
    line = np.array([nearby.at((STEPS[1] + i * NOISE_STEP) * direction) for i in range(NOISE_POINTS)])
    noise = _measure_noise(line)
    difference = _difference(nearby, direction, STEPS[0])
    forces: tuple[FloatArray, list[int]] | None = None
    for i, (step, longer) in enumerate(pairwise(STEPS)):
        other = _difference(nearby, direction, longer)
        gap, left_out = difference - expected, (other - difference) / ((longer / step) ** 2 - 1)
        yield _Comparison(gap, _tolerate(noise, step, left_out))
        if i == 0:
            forces = _find_forces(nearby)
        if forces is not None:
            W, rows = forces
            noise_of_forces = _measure_noise(line[:, rows] @ W.T)
            yield _Comparison(W @ gap[rows], _tolerate(noise_of_forces, step, W @ left_out[rows]), forces)
        difference = other


def _measure_noise(line: FloatArray) -> FloatArray:
    """Return the noise of each component (r,) of values (k, r) on a line so short that they change linearly on it.

    ECNoise searches for orders of differences that agree, which in one of hundreds of rows some do by accident.
    """
    second = np.abs(np.diff(line, n=2, axis=0)).max(axis=0) / 2
    return np.asarray(np.maximum(second, 0.5 * np.spacing(np.abs(line).max(axis=0))))


def _difference(nearby: Neighbourhood, direction: FloatArray, step: float) -> FloatArray:
    return (nearby.at(step * direction) - nearby.at(-step * direction)) / (2 * step)


def _tolerate(noise: FloatArray, step: float, left_out: FloatArray) -> FloatArray:
    return NOISE_MARGIN * noise / step + TRUNCATION_MARGIN * np.abs(left_out)


def _find_forces(nearby: Neighbourhood) -> tuple[FloatArray, list[int]] | None:
    """Return W (k, n) with forces W v' along the motions that constraints leave free, and the rows of v'; or None."""
    point = nearby.point
    form = read_second_order_form(nearby.model, point.time, point.states, point.inputs)
    if form is None:
        return None
    W = form.M if not len(form.G) else null_space(form.G).T @ form.M
    return W, form.velocities.tolist()
