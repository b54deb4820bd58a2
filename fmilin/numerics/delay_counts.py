"""How many eigenvalues of a system with delays lie right of a line, by the argument principle."""

from __future__ import annotations

import numpy as np

from fmilin.numerics.delay_eigenvalues import balance_form, list_loop_parts, require_retarded
from fmilin.numerics.delay_form import DelayForm

MAX_PHASE_STEP = 0.6  # in rad, of the determinant between two points of a contour
MAX_CONTOUR_POINTS = 400_000


def count_eigenvalues_right_of(form: DelayForm, abscissa: float) -> int | None:
    """Return how many eigenvalues have a larger real part, by the argument principle; None where that is too costly.

    The contour encloses all of them: |s| <= |A| + |B2 E (I - D22 E)^-1 C2| holds for each. UsageError for neutral
    systems.
    """
    form = form.close_undelayed()
    require_retarded(form)
    total = 0
    for part in list_loop_parts(form):
        block = balance_form(form.select_loop(part.states, part.channels))
        if not part.channels:
            total += int(np.count_nonzero(np.linalg.eigvals(block.A).real > abscissa))
            continue
        counted = _count_in_block(block, abscissa)
        if counted is None:
            return None
        total += counted
    return total


def _count_in_block(form: DelayForm, abscissa: float) -> int | None:
    radius = _bound_modulus(form, abscissa)
    reach = max(radius, abscissa + radius)
    if (radius * float(form.delays.max()) + 20) * 10 > MAX_CONTOUR_POINTS:
        return None
    start = int(10 * (radius * float(form.delays.max()) + 20))
    # the upper half of a rectangle, from its right end on the real axis to its left one
    sides = [
        reach + 1j * np.linspace(0, radius, 64),
        1j * radius + np.linspace(reach, abscissa, 64),
        abscissa + 1j * radius * np.linspace(1, 0, start),
    ]
    points = np.concatenate([sides[0], sides[1][1:], sides[2][1:]])
    for _ in range(40):
        phases = form.compute_characteristic_phases(points)
        steps = np.angle(np.exp(1j * np.diff(phases)))
        coarse = np.flatnonzero(np.abs(steps) > MAX_PHASE_STEP)
        if not len(coarse):
            return round(float(steps.sum()) / np.pi)
        if len(points) + len(coarse) > MAX_CONTOUR_POINTS:
            return None
        points = np.insert(points, coarse + 1, (points[coarse] + points[coarse + 1]) / 2)
    return None


def _bound_modulus(form: DelayForm, abscissa: float) -> float:
    """Return a bound of the modulus of the eigenvalues with larger real parts."""
    growth = np.exp(-abscissa * form.delays)
    W = np.abs(form.D22) * growth
    # z = C2 x + D22 E z with a nilpotent D22: a finite sum
    total, power = np.eye(len(W)), np.eye(len(W))
    for _ in range(len(W)):
        power = power @ W
        total += power
    through = (np.abs(form.B2) * growth) @ total @ np.abs(form.C2)
    return 1.01 * float(np.linalg.norm(np.abs(form.A) + through, 2)) + 1e-12
