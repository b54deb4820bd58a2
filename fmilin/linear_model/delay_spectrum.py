"""Stability and modes of linear models with delays, from their rightmost eigenvalues."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import UsageError
from fmilin.linear_model.model import DEFAULT_EIGENVALUE_COUNT, DelayedLinearModel
from fmilin.linear_model.modes import Mode, Modes, compute_shape, slowness
from fmilin.linear_model.stability import SAFETY_FACTOR, Stability, judge_stability
from fmilin.numerics.delay_counts import count_eigenvalues_right_of
from fmilin.numerics.delay_eigenvalues import find_rightmost_eigenvalues
from fmilin.numerics.delay_form import DelayForm
from fmilin.numerics.delay_loops import list_loop_parts
from fmilin.signals import FloatArray

JUDGED_EIGENVALUE_COUNT = 12  # rightmost eigenvalues that decide about stability


def judge_delayed_stability(form: DelayForm) -> Stability:
    """Return whether deviations grow: the loops with delays by their rightmost eigenvalues, the other states by A."""
    form = form.close_undelayed()
    spectrum = find_rightmost_eigenvalues(form, JUDGED_EIGENVALUE_COUNT)
    states = sorted(i for part in list_loop_parts(form) if not part.channels for i in part.states)
    n = len(form.A)
    free = judge_stability(form.A[np.ix_(states, states)], form.errors[:n, :n][np.ix_(states, states)])
    s, e = spectrum.values[spectrum.from_delays], SAFETY_FACTOR * spectrum.errors[spectrum.from_delays]
    unstable = int(np.count_nonzero(s.real - e > 0))
    undecided = int(np.count_nonzero((s.real - e <= 0) & (s.real + e >= 0)))
    kinds = np.where(s.real - e > 0, "unstable", np.where(s.real + e < 0, "decays", "undecided"))
    if not len(s):
        return free
    worst = complex(s[np.argmax(s.real)])
    rightmost = f"the rightmost eigenvalue of the loops with delays is {_format(worst)} 1/s"
    if unstable:
        counted = count_eigenvalues_right_of(form, 0.0) if unstable == len(s) else None  # there may be more
        if counted is not None:
            unstable = max(unstable, counted - int(np.count_nonzero(free.eigenvalues.real > 0)))
        stable, text = False, f"unstable: {unstable} of the eigenvalues of the loops with delays grow; {rightmost}"
    elif free.stable is False:
        stable, text = False, free.text
    elif undecided or free.stable is None:
        stable = None
        text = f"cannot be determined: {rightmost}, within its error of the limit" if undecided else free.text
    else:
        stable, text = True, f"{free.text.split(':')[0] if states else 'stable'}: {rightmost}"
    return Stability(
        stable=stable,
        text=text,
        eigenvalues=np.concatenate((free.eigenvalues, s)),
        errors=np.concatenate((free.errors, spectrum.errors[spectrum.from_delays])),
        kinds=(*free.kinds, *kinds.tolist()),
        unstable=free.unstable + unstable,
        defective=free.defective,
        undecided=free.undecided + undecided,
        neutral=free.neutral,
    )


def _format(value: complex) -> str:
    if abs(value.imag) <= 1e-12 * abs(value):
        return f"{value.real:.6g}"
    return f"{value.real:.6g} ± {abs(value.imag):.6g} i"


def make_delayed_modes(model: DelayedLinearModel, count: int | None = None, *, near: complex = 0.0) -> Modes:
    """Return the modes of the rightmost eigenvalues, slowest first; shapes are null vectors of F(s)."""
    if near:
        raise UsageError("With delays the rightmost modes are computed, wherever they are: leave near= out.")
    count = DEFAULT_EIGENVALUE_COUNT if count is None else count
    form, T = model.form, model.T
    values, errors = model.eigenvalues(count), model.eigenvalue_errors(count)
    modes = []
    for value, error in zip(values.tolist(), errors.tolist(), strict=True):
        if value.imag < 0:
            continue
        F = form.evaluate_loop(np.array([value]))[0]
        vector = np.linalg.svd(F)[2][-1].conj()[: len(form.A)]
        shape, largest = compute_shape(T, vector)
        modes.append(Mode(value, shape / largest, error))
    return Modes(sorted(modes, key=lambda mode: slowness(mode.eigenvalue)))


def judge_model(model: DelayedLinearModel) -> Stability:
    """Return whether deviations of a model grow."""
    return judge_delayed_stability(model.form)


def count_right_eigenvalues(model: DelayedLinearModel, abscissa: float) -> int | None:
    """Return how many eigenvalues of a model have a larger real part."""
    return count_eigenvalues_right_of(model.form, abscissa)


def find_eigenvalues(model: DelayedLinearModel, count: int = DEFAULT_EIGENVALUE_COUNT) -> NDArray[np.complex128]:
    """Return the rightmost eigenvalues."""
    return find_delay_eigenvalues(model, count)[0]


def find_eigenvalue_errors(model: DelayedLinearModel, count: int = DEFAULT_EIGENVALUE_COUNT) -> FloatArray:
    """Return the errors of the rightmost eigenvalues."""
    return find_delay_eigenvalues(model, count)[1]


def find_delay_eigenvalues(model: DelayedLinearModel, count: int) -> tuple[NDArray[np.complex128], FloatArray]:
    """Return the rightmost eigenvalues and their errors, computed once for each count."""
    if count < 1:
        raise UsageError(f"The number of eigenvalues must be positive, not {count}.")
    remembered = model.__dict__.setdefault("_eigenvalues", {})
    if count not in remembered:
        result = find_rightmost_eigenvalues(model.form, count)
        remembered[count] = result.values, result.errors
    values, errors = remembered[count]
    return values.copy(), errors.copy()
