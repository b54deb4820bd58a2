"""Derivatives by central differences, with steps that fit the function and an error estimate for every entry."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fmilin.numerics.differences.directional import (
    Surroundings,
    choose_direction,
    correct_by_sweeps,
    list_compared_points,
    with_rounding,
)  # fmt: skip
from fmilin.numerics.differences.richardson import (
    SHORT_LENGTH_SIZE,
    Announce,
    Column,
    Differences,
    DifferenceSetting,
    EventCrossingError,
    Line,
    Slopes,
    Terms,
    first_difference,
    list_first_steps,
    truncation_error,
    with_best_step,
    with_weights,
)  # fmt: skip
from fmilin.numerics.differences.sweep import (
    NOISE_SPACING_SIZE,
    POINTS,
    RATIO,
    StepSweep,
    are_numbers,
    finite_values,
    noise_from_table,
    step_sweep,
)
from fmilin.numerics.differences.thresholds import (
    CLEAR_ROUNDING_RATIO,
    FIRST_STEPS,
    FIRST_STEPS_OF_SECOND_ORDER,
    MIN_JUMP_FRACTION,
    SHARED_CURVATURE_RATIO,
    TELLING_NOISE_RATIO,
    VISIBLE_ROUNDING_RATIO,
)
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS, KINK_TOLERANCE

__all__ = ["Differences", "EventCrossingError", "Slopes", "Surroundings", "jacobian_by_differences", "slopes"]

COLUMNS_ANNOUNCED = 64  # at once: their values are held in memory, and of an FMU they are one message
FEW_COLUMNS_FRACTION = (
    1 / 8
)  # part of the columns that may not be as curved as a smooth function, by chance: these are examined alone


def slopes(  # noqa: PLR0917 - functions of one measurement
    line: Line,
    base: FloatArray,
    scales: FloatArray,
    options: Differences | None = None,
    terms: Terms | None = None,
    around: Surroundings | None = None,
    announce: Announce | None = None,
) -> Slopes:
    """Measure dF/ds of F = ``line(j, s)`` for all columns j; ``terms`` that all cancel and scales ``around`` count.

    ``announce`` takes the displacements at which F is almost certainly evaluated next.
    """
    options = options or Differences()
    k, ulp = len(scales), np.spacing(np.abs(base))
    if k == 0 or len(base) == 0:
        nothing = np.zeros((len(base), k))
        return Slopes(nothing, nothing, nothing, nothing)
    if announce is not None and around is not None:
        announce(points=[s * choose_direction(scales) for s in _list_nearby_steps(options)])
    nearby = _nearby(line, scales, options, around)
    noise = np.maximum(noise_from_table(np.array(nearby)), 0.5 * ulp) if nearby else 4 * ulp
    if around is not None:
        noise = np.maximum(noise, around.repeat_error)
    start = options.relative_step or _first_step(noise, base, options)
    setting = DifferenceSetting(line, base, scales, noise, np.ones_like(base), options, announce)
    is_compared = around is not None and options.order == 4 and not options.side and options.relative_step is None
    compared = list_compared_points(around, scales) if around is not None and is_compared else ()
    columns = _first_differences(setting, start, compared)
    if around is not None and (lengths := natural_lengths(setting, columns, around)) is not None:
        return slopes(line, base, lengths, options, terms, within(around, lengths), announce)
    setting = with_weights(setting, columns, terms)
    columns = [with_best_step(setting, j, column) for j, column in enumerate(columns)]
    J = np.stack([c.D for c in columns], axis=1)
    rounding = np.stack([c.rounding for c in columns], axis=1)
    S1 = np.stack([c.S1 / c.h for c in columns], axis=1)
    S2 = np.stack([c.S2 / c.h for c in columns], axis=1)
    row_size = np.max(np.abs(J) * scales, axis=1, keepdims=True)
    bend = np.where(np.abs(S1) > VISIBLE_ROUNDING_RATIO * rounding, np.abs(S1), 0.0)
    jump = find_jumps(S1, S2, rounding, row_size / scales)
    small = np.abs(jump) < KINK_TOLERANCE * row_size / scales
    error = _errors(columns, base, J, scales, options) + np.where(small, np.abs(jump) / 2, 0.0)
    result = Slopes(J, error, np.where(small, 0.0, jump), bend)
    if around is not None and is_compared:
        with np.errstate(all="ignore"):  # some steps are long: what is not a number there is left out
            around, close = with_rounding(around, J, scales, terms, noise), None
            lengths = np.minimum(scales, [c.h / start for c in columns])
            straight = sum(not c.curved for c in columns)
            if (lengths < SHORT_LENGTH_SIZE * scales).any() and straight <= FEW_COLUMNS_FRACTION * k:
                nearer = within(around, lengths)
                close = replace(setting, scales=lengths), nearer, _nearby(line, lengths, options, nearer)
            correct_by_sweeps(setting, columns, result, around, terms, nearby, close=close)
    return result


def _first_differences(setting: DifferenceSetting, start: float, compared: Sequence[FloatArray]) -> list[Column]:
    """Measure all columns with steps of ``start`` times their sizes; ``compared`` are displacements that follow."""
    columns: list[Column] = []
    for first in range(0, len(setting.scales), COLUMNS_ANNOUNCED):
        steps = (start * setting.scales[first : first + COLUMNS_ANNOUNCED]).tolist()
        chosen = list(enumerate(steps, first))
        if setting.announce is not None:
            is_last = first + len(chosen) == len(setting.scales)
            announced = [(j, s) for j, h in chosen for s in list_first_steps(h, setting.options)]
            setting.announce(announced, compared if is_last else ())
        columns += [first_difference(setting, j, h) for j, h in chosen]
    return columns


def jacobian_by_differences(
    function: Callable[[FloatArray], FloatArray],
    x: FloatArray,
    scales: FloatArray,
    evaluate_ahead: Callable[[Sequence[FloatArray]], None] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the Jacobian of a function of x and its estimated error, each (r, n), moving one x at a time.

    ``evaluate_ahead`` takes points at which the function is almost certainly evaluated next.
    """

    def move(j: int, s: float) -> FloatArray:
        moved = x.copy()
        moved[j] += s
        return moved

    def announce(steps: Sequence[tuple[int, float]] = (), points: Sequence[FloatArray] = ()) -> None:
        if evaluate_ahead is not None:
            evaluate_ahead([*(move(j, s) for j, s in steps), *(x + displacement for displacement in points)])

    announce([(0, float(s * scales[0])) for s in _list_nearby_steps(Differences())] if len(scales) else [])
    result = slopes(lambda j, s: function(move(j, s)), function(x), scales, announce=announce)
    return result.J, result.error


def _first_step(noise: FloatArray, base: FloatArray, options: Differences) -> float:
    telling = np.abs(base) > TELLING_NOISE_RATIO * noise
    relative = float(np.max(noise[telling] / np.abs(base[telling]), initial=EPS))
    if options.order == 2:
        return float(np.clip(relative ** (1 / 3), *FIRST_STEPS_OF_SECOND_ORDER))
    return float(np.clip(relative ** (1 / 5), *FIRST_STEPS))


def _nearby(line: Line, scales: FloatArray, options: Differences, around: Surroundings | None) -> list[FloatArray]:
    """Return F on a tiny line near the point, along all columns where possible; nothing where it has no value."""

    def at(s: float) -> FloatArray:
        return line(0, s * scales[0]) if around is None else around.function(s * choose_direction(scales))

    return finite_values(at, *_list_nearby_steps(options)) or []


def _list_nearby_steps(options: Differences) -> list[float]:
    """Return the displacements, in sizes of the variables, at which the noise is measured near the point."""
    spacing = -NOISE_SPACING_SIZE if options.side == "left" else NOISE_SPACING_SIZE
    return [s * spacing for s in range(1, POINTS)]


def _errors(
    columns: list[Column], base: FloatArray, J: FloatArray, scales: FloatArray, options: Differences
) -> FloatArray:
    """Estimate the absolute error of every entry, comparing rows in scaled columns."""
    h = np.array([c.h for c in columns])
    rounding = np.stack([c.rounding for c in columns], axis=1)
    if options.order == 2 and not options.side:
        row_size = np.max(np.abs(J) * scales, axis=1, keepdims=True)
        # h^2/6 of the third derivative, which is as large as the row in its scales
        plain: FloatArray = 2 * rounding + (h / scales) ** 2 / 6 * row_size / scales
        # Where no bit of F has moved on either side the row's other derivatives, however large, tell of no error.
        still = np.stack([(c.D == 0) & (c.S1 == 0) for c in columns], axis=1)
        return np.where(still, np.spacing(np.abs(base))[:, None] / h, plain)
    curvature = np.stack([c.curvature for c in columns], axis=1)
    return estimate_errors(J, rounding, curvature, h, scales, options)


def estimate_errors(
    J: FloatArray,
    rounding: FloatArray,
    curvature: FloatArray,
    h: FloatArray,
    scales: FloatArray,
    options: Differences,
) -> FloatArray:
    """Estimate the absolute errors (..., r, c) of extrapolated differences with steps h (..., c).

    ``rounding`` and ``curvature`` are their rounding and their h^2 terms, (..., r, c).
    """
    h, scales = h[..., None, :], scales[..., None, :]
    row_size = np.max(np.abs(J) * scales, axis=-1, keepdims=True)
    bend = np.maximum(np.abs(curvature) * scales - rounding * scales, 0.0)
    sloped = row_size > 0
    relative = np.where(sloped, bend / np.where(sloped, row_size, 1.0), 0.0)
    # noise over noise tells nothing
    telling = row_size > VISIBLE_ROUNDING_RATIO * np.max(rounding * scales, axis=-1, keepdims=True)
    worst = np.max(np.where(telling, relative, 0.0), axis=-2, keepdims=True)
    relative = np.minimum(np.maximum(relative, SHARED_CURVATURE_RATIO * worst), 1.0)
    truncation = truncation_error(relative, h / scales, options) * np.where(sloped, row_size, bend) / scales
    total: FloatArray = 2 * rounding + truncation
    return total


def find_jumps(S1: FloatArray, S2: FloatArray, rounding: FloatArray, row_size: FloatArray) -> FloatArray:
    """Return (4 S(h) - S(2h)) / 2h where S(2h) / S(h) is nearer to 1 or 2 than to 4 and S is more than rounding."""
    visible = np.abs(S1) > np.maximum(VISIBLE_ROUNDING_RATIO * rounding, MIN_JUMP_FRACTION * row_size)
    ratio = S2 / np.where(visible, S1, 1.0)
    return np.where(visible & (ratio > 0.5) & (ratio < 3.0), (4 * S1 - S2) / 2, 0.0)


SUSPECT_GROWTH_EXPONENT = 4.0  # power of the step, growth beyond which asks for a sweep
STEEP_GROWTH_EXPONENT = 8.0  # the same that no polynomial of use has
DOMAIN_STEP_RATIO = 2.0**-10  # part of a size beyond which values are missing by chance, and below which by the size
FAR_STEP_SIZE = 2.0**-3  # in the new sizes, as far as the point's surroundings were examined in the old ones


def natural_lengths(setting: DifferenceSetting, columns: Sequence[Column], around: Surroundings) -> FloatArray | None:
    """Return smaller sizes (k,) where some are too large for the model, from the sweeps; None where all will do."""
    if not _grows_beyond_powers(setting, columns, around):
        return None
    lengths = setting.scales.copy()
    with np.errstate(all="ignore"):
        for j, scale in enumerate(setting.scales.tolist()):
            setting.announce_sweep(j, float(around.values[j]))
            sweep = step_sweep(partial(setting.line, j), setting.base, scale, float(around.values[j]))
            if sweep is not None:
                lengths[j] = min(scale, _length(sweep, setting.noise))
    return lengths if (lengths < setting.scales).any() else None


def within(around: Surroundings, lengths: FloatArray) -> Surroundings:
    """Return the surroundings at those sizes."""
    d, far_values = choose_direction(lengths), {}
    for step in (FAR_STEP_SIZE, -FAR_STEP_SIZE):
        if (value := finite_values(around.function, step * d)) is not None:
            far_values[step] = value[0]
    return replace(around, far_values=far_values)


def _grows_beyond_powers(setting: DifferenceSetting, columns: Sequence[Column], around: Surroundings) -> bool:
    parts = np.array([column.h for column in columns]) / setting.scales
    if parts.min() < DOMAIN_STEP_RATIO * parts.max() or not all(
        are_numbers(values) for values in around.far_values.values()
    ):
        return True
    near = np.array([np.abs(c.D - c.curvature) * c.h + np.abs(c.S1) / 2 for c in columns])
    twice = np.array([np.abs(c.D - 4 * c.curvature) * 2 * c.h + np.abs(c.S2) / 2 for c in columns])
    is_above_noise = near > CLEAR_ROUNDING_RATIO * setting.noise
    if np.any(is_above_noise & (twice > 2**SUSPECT_GROWTH_EXPONENT * near)):
        return True
    limits = {s: (abs(s) / parts.max()) ** SUSPECT_GROWTH_EXPONENT * near.sum(axis=0) for s in around.far_values}
    grown = [np.abs(values - setting.base) > limits[s] for s, values in around.far_values.items()]
    return bool(np.any(is_above_noise.any(axis=0) & np.array(grown).any(axis=0)))


def _length(sweep: StepSweep, noise: FloatArray) -> float:
    """Return the largest step below which values grow as powers do; the largest with values where that is tiny."""
    moved = np.maximum(np.abs(sweep.ahead - sweep.base), np.abs(sweep.behind - sweep.base))
    steep = moved[:-1] > RATIO**STEEP_GROWTH_EXPONENT * np.maximum(moved[1:], noise)
    # A jump or the end of a deadzone is steep once; farther away values go on growing, and past a pole they fall.
    goes_on = steep[:-1] | (moved[:-2] < moved[1:-1] / RATIO)
    if len(beyond := np.flatnonzero((steep[1:] & goes_on).any(axis=1))):
        return float(sweep.h[beyond[-1] + 2])
    return float(sweep.h[0]) if sweep.h[0] < DOMAIN_STEP_RATIO * sweep.scale else np.inf
