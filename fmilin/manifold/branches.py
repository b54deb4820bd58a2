"""One-sided derivatives that all belong to one branch of a model with a kink.

A kink such as ``max(5 (u - a), u - a)`` depends on two variables together: to the right of ``a`` alone and to the right
of ``u`` alone lie different branches, and columns measured one by one do not belong to any linear model. The slope
along one generic direction through all variables shows it: in one branch derivatives add up.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import KinkError, ModelError, NumericalError
from fmilin.manifold.neighbourhood import Neighbourhood
from fmilin.numerics.differences.differences import Differences, Slopes, slopes
from fmilin.signals import FloatArray
from fmilin.tolerances import KINK_TOLERANCE

WIDTHS = (0.5, 0.125)  # how far directions are turned towards one variable, as a part of its share
SEEDS = (1897, 1915, 1933)  # of directions that are tried one after the other, as one may graze a further kink
CERTAIN_DIFFERENCE_FACTOR = (
    10.0  # times its estimated error, beyond which a difference of derivatives is a difference of branches
)


def take_one_branch(nearby: Neighbourhood, measured: Slopes, options: Differences) -> tuple[Slopes, tuple[Remark, ...]]:
    """Return one-sided derivatives of one branch, with a diagnostic where the columns were of several.

    The branch is the one in which the model is when all variables move to that side together.

    Raises
    ------
    KinkError
        Where no direction leads into one branch.
    """
    count = len(nearby.scales)
    # A single variable moves in one branch only.
    if count < 2:
        return measured, ()
    first = _weights(SEEDS[0], count) * nearby.scales
    try:
        along, error = _differentiate_side(nearby, first[None], options)
    except NumericalError:
        return measured, ()  # an event beyond which the model cannot be evaluated: each column is what it was
    mixed = _differs(nearby, measured, along[:, 0] - measured.J @ first, error[:, 0] + measured.error @ first)
    if not mixed.any():
        return measured, ()
    for seed in SEEDS:
        direction = _weights(seed, count) * nearby.scales
        for width in WIDTHS:
            branch = _measure_branch(nearby, measured, options, direction, width)
            if branch is not None:
                return branch, (_remark_on_branch(nearby, measured, branch, options),)
    raise _no_branch(nearby, measured, along[:, 0], first, mixed)


SIGN_PATTERN_COUNT = 2  # of signs with which variables are moved together, to find kinks that no variable shows alone
STEPS = (2.0**-17, 2.0**-21)  # in sizes of the variables: second differences of a kink shrink like them
MIN_STEP_SIZE = 2.0**-50  # shorter steps change only the last bits of a variable
CANCELLING_ROW_TOLERANCE = (
    1e-10  # of the terms of a row that cancel, below which a change of derivatives is what their rounding leaves
)
SIMILAR_CURVATURE_RATIO = (
    0.3  # relative: how much the curvatures over these steps differ at most; those of noise are not alike
)


def require_no_joint_kink(nearby: Neighbourhood, sizes: FloatArray) -> None:
    """Raise KinkError where derivatives along some variables together jump, as of ``max(0, min(x, u))`` at zero.

    ``sizes`` (r,) are the largest derivatives of each row, in sizes of the variables.
    """
    count = len(nearby.scales)
    # The two sides of a single variable were compared with each other.
    if count < 2:
        return
    # A second difference sums four values, each with an error of a bit or two.
    rounding = 8 * np.spacing(np.abs(nearby.base))
    # Where terms cancel, as in the turning of a free box, their rounding grows with the step as a kink does.
    terms = nearby.terms(sizes)
    least = np.where(sizes < CANCELLING_ROW_TOLERANCE * terms, CANCELLING_ROW_TOLERANCE * terms, 0.0)
    patterns = _sign_patterns(count)
    directions = patterns * _weights(SEEDS[0], count) * nearby.scales
    nearby.evaluate_ahead([side * STEPS[0] * direction for direction in directions for side in (1.0, -1.0)])
    for signs, direction in zip(patterns, directions, strict=True):
        far_bend = _bend(nearby, direction, STEPS[0])
        # The model has no value there: other signs may still show the kink.
        if far_bend is None:
            continue
        bent = (np.abs(far_bend) > KINK_TOLERANCE * np.maximum(sizes, np.abs(far_bend))) & (
            np.abs(far_bend) > CERTAIN_DIFFERENCE_FACTOR * rounding / STEPS[-1]
        )
        bent &= np.abs(far_bend) > least
        near = far_bend
        # a function that is smooth over the shortest distance with a curvature above rounding has no kink, however
        # sharp
        shortest = float(np.min(CERTAIN_DIFFERENCE_FACTOR * rounding[bent] / np.abs(far_bend[bent]), initial=STEPS[-1]))
        for step in (*STEPS[1:], max(shortest, MIN_STEP_SIZE)):
            bend = _bend(nearby, direction, step) if bent.any() else None
            # No row has such a curvature any more, or the model has no value so near: one step alone shows no kink.
            if bend is None:
                bent[:] = False
                break
            near = bend
            bent &= np.abs(near - far_bend) <= SIMILAR_CURVATURE_RATIO * np.abs(far_bend)
        if bent.any():
            i = int(np.argmax(np.where(bent, np.abs(far_bend), 0.0)))
            names = ", ".join(f"{'+' if sign > 0 else '-'}{n}" for sign, n in zip(signs, nearby.columns, strict=True))
            raise KinkError(
                "The model has a kink at the point that depends on several variables together: the derivative of "
                f"{nearby.rows[i]} along ({names}) changes by {abs(near[i]):.4g} there. There is no linear model of "
                "both sides: choose one with one_sided='left' or one_sided='right', or move the point.",
                variable=nearby.columns[0],
            )


def _bend(nearby: Neighbourhood, direction: FloatArray, step: float) -> FloatArray | None:
    """Return by how much derivatives along a direction differ to both sides, (r,); None if undefined."""
    nearby.evaluate_ahead([step * direction, -step * direction])
    try:
        ahead, behind = nearby.at(step * direction), nearby.at(-step * direction)
    except (ModelError, NumericalError):
        return None
    return np.asarray((ahead + behind - 2 * nearby.base) / step)


def _sign_patterns(count: int) -> FloatArray:
    """Return signs (patterns, count), all of them up to a common factor where there are few."""
    if count == 2:
        rows = np.arange(2)
        bits = (rows[:, None] >> np.arange(count)) & 1
        return np.asarray(1.0 - 2.0 * bits)
    return np.random.default_rng(SEEDS[1]).choice([-1.0, 1.0], (SIGN_PATTERN_COUNT, count))


def _weights(seed: int, count: int) -> FloatArray:
    # In general position: every variable moves, and none outweighs the others.
    return np.random.default_rng(seed).uniform(0.5, 1.5, count)


def _differentiate_side(
    nearby: Neighbourhood, directions: FloatArray, options: Differences
) -> tuple[FloatArray, FloatArray]:
    """Return the one-sided derivatives along directions (m, P + nu), and their errors, each (r, m)."""

    def line(number: int, step: float) -> FloatArray:
        return nearby.at(step * directions[number])

    one_sided = slopes(line, nearby.base, np.ones(len(directions)), options, nearby.terms)
    return one_sided.J, one_sided.error


def _differs(nearby: Neighbourhood, measured: Slopes, gap: FloatArray, error: FloatArray) -> FloatArray:
    """Whether derivatives along one direction differ by more than errors explain, shape (r,)."""
    sizes = (np.abs(measured.J) * nearby.scales).max(axis=1, initial=0.0)
    return np.asarray(np.abs(gap) > CERTAIN_DIFFERENCE_FACTOR * error + KINK_TOLERANCE * sizes)


def _measure_branch(
    nearby: Neighbourhood, measured: Slopes, options: Differences, direction: FloatArray, width: float
) -> Slopes | None:
    """Return derivatives from directions near one, which all lead into one branch; None where they do not."""
    count = len(direction)
    turned = width * np.diag(direction)
    try:
        along, error = _differentiate_side(
            nearby, np.vstack((direction, direction + turned, direction - turned)), options
        )
    except NumericalError:
        return None
    middle, ahead, behind = along[:, :1], along[:, 1 : count + 1], along[:, count + 1 :]
    step = width * direction
    J = (ahead - behind) / (2 * step)
    errors = error[:, 1 : count + 1] + error[:, count + 1 :]
    known_to = errors / (2 * step)
    # a difference of derivatives leaves rounding where a variable has no part
    J = np.where(np.abs(J) <= known_to, 0.0, J)
    branch = nearby.with_exact_rows(Slopes(J, known_to, np.zeros_like(J), np.zeros_like(J)))
    gaps = np.column_stack((ahead + behind - 2 * middle, (branch.J @ direction)[:, None] - middle))
    doubts = np.column_stack((errors + 2 * error[:, :1], branch.error @ direction + error[:, 0]))
    for gap, doubt in zip(gaps.T, doubts.T, strict=True):
        if _differs(nearby, branch, gap, doubt).any():
            return None
    return replace(branch, narrow=measured.narrow)


def _remark_on_branch(nearby: Neighbourhood, measured: Slopes, branch: Slopes, options: Differences) -> Remark:
    gap = np.abs(branch.J - measured.J) * nearby.scales
    i, j = (int(k) for k in np.unravel_index(int(np.argmax(gap)), gap.shape))
    entry = f"d {nearby.rows[i]} / d {nearby.columns[j]}"
    return Remark(
        "kink-branch",
        "A kink at the point depends on several variables together. All derivatives are those of the branch that the "
        f"model takes when all variables move to the {options.side} together: {entry} is {branch.J[i, j]:.6g} there, "
        f"and {measured.J[i, j]:.6g} when '{nearby.columns[j]}' moves alone. The other side has another linear model.",
    )


def _no_branch(
    nearby: Neighbourhood, measured: Slopes, along: FloatArray, direction: FloatArray, mixed: FloatArray
) -> KinkError:
    i = int(np.argmax(np.where(mixed, np.abs(along - measured.J @ direction), 0.0)))
    moving = np.abs(measured.J[i] * direction)
    names = [nearby.columns[j] for j in np.argsort(-moving, kind="stable")[:3].tolist() if moving[j] > 0]
    single = ", ".join(f"{measured.J[i, nearby.columns.index(name)]:.6g} along '{name}'" for name in names)
    return KinkError(
        f"The model has a kink at the point that depends on several variables together: {nearby.rows[i]} has "
        f"one-sided derivatives {single}, which do not add up along all of them ({along[i]:.6g} for "
        f"{measured.J[i] @ direction:.6g}). No direction leads into one branch: move the point away from the kink.",
        variable=names[0] if names else None,
    )
