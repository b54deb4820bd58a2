"""Whether every entry of a linear model is known well enough to be returned.

An entry's estimate counts against the largest entry of its row of [A B] or [C D], in sizes of the variables; a row that
is nothing but error is compared with the size of its terms: zero is known well when noise makes 1e-8 of it.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fmilin.diagnostics import inaccurate_entry
from fmilin.errors import NumericalError
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray
from fmilin.tolerances import INACCURATE_ENTRY_ERROR, INDISTINCT_ROW_ERROR, MAX_ENTRY_ERROR


def matrix_and_errors(linear: LinearModel) -> tuple[FloatArray, FloatArray]:
    """Return [[A, B], [C, D]] and the estimated errors of its entries."""
    p, k = linear.B.shape
    J, E = np.empty((2, p + len(linear.D), p + k))
    for joined, parts in ((J, linear), (E, linear.errors)):
        joined[:p, :p], joined[:p, p:] = parts.A, parts.B
        joined[p:, :p], joined[p:, p:] = parts.C, parts.D
    return J, E


def require_parts(
    linear: LinearModel, part: FloatArray, advice: Callable[[int, int], str], *, keep: bool, is_reported: bool = False
) -> LinearModel:
    """Reject errors, ``part`` (P + ny, P + nu) of what each counts against, unless kept; else warn of them once."""
    doubtful = int(np.count_nonzero(part > INACCURATE_ENTRY_ERROR))
    if not doubtful:
        return linear
    i, j = (int(k) for k in np.unravel_index(int(np.argmax(part)), part.shape))
    rows = (*(f"der({name})" for name in linear.states.names), *linear.outputs.names)
    columns = (*linear.states.names, *linear.inputs.names)
    name, (value, error) = f"d {rows[i]} / d {columns[j]}", (float(M[i, j]) for M in matrix_and_errors(linear))
    if part[i, j] > MAX_ENTRY_ERROR and not keep:
        raise NumericalError(
            f"{name} cannot be determined: it is {value:.4g} +- {error:.2g}, more than {MAX_ENTRY_ERROR:.0%} of the "
            f"largest entry of its row.{advice(i, j)} keep_inaccurate=True returns the linear model anyway.",
            variable=columns[j],
        )
    more = f" So {'is' if doubtful == 2 else 'are'} {doubtful - 1} more." if doubtful > 1 else ""
    return (
        linear
        if is_reported
        else replace(linear, warnings=(*linear.warnings, inaccurate_entry(name, value, error, more)))
    )


def comparable_sizes(largest: FloatArray, error: FloatArray, terms: FloatArray) -> FloatArray:
    """Return what the errors of rows are compared with: the largest entry, or terms where it is nothing but error."""
    return np.where(
        largest <= 10 * error, np.maximum(largest, INDISTINCT_ROW_ERROR / INACCURATE_ENTRY_ERROR * terms), largest
    )
