"""Whether an identified model is known well enough to be handed out: the limits are those of differenced ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.ground.errors import NumericalError
from fmilin.ground.remarks import inaccurate_entry
from fmilin.ground.tolerances import INACCURATE, QUIET, TOO_INACCURATE
from fmilin.linear_model.model import LinearModel

__all__ = ["with_accuracy_required"]


def with_accuracy_required(linear: LinearModel, *, keep: bool) -> LinearModel:
    """Return the linear model, with a remark where an entry of it is doubtful beside the others of its row.

    ``keep``: whether it is wanted however inaccurate it is.
    """
    sizes = np.abs(np.concatenate((linear.states.scales(linear.y0), linear.inputs.scales())))
    J = np.block([[linear.A, linear.B], [linear.C, linear.D]]) * sizes
    E = np.block([[linear.errors.A, linear.errors.B], [linear.errors.C, linear.errors.D]]) * sizes
    largest = np.abs(J).max(axis=1, keepdims=True, initial=0.0)
    shown = largest[len(linear.states) :]  # an output that nothing moves has a row of rounding
    np.maximum(shown, QUIET * np.max(shown[np.isfinite(shown)], initial=0.0), out=shown)
    part = np.where(largest > 0, E / np.where(largest > 0, largest, 1.0), 0.0)
    if not part.size or part.max() <= INACCURATE:
        return linear
    i, j = np.unravel_index(int(np.argmax(part)), part.shape)
    rows = (*(f"der({name})" for name in linear.states.names), *linear.outputs.names)
    columns = (*linear.states.names, *linear.inputs.names)
    name, value, error = f"d {rows[i]} / d {columns[j]}", J[i, j] / sizes[j], E[i, j] / sizes[j]
    reasons = " ".join(str(w) for w in linear.warnings if w.kind == "accuracy")
    if part[i, j] > TOO_INACCURATE and not keep:
        raise NumericalError(
            f"{name} cannot be told: it is {value:.4g} +- {error:.2g}, more than {TOO_INACCURATE:.0%} of the largest "
            f"entry of its row. {reasons} Ask the solver inside for a smaller tolerance (--solver-tolerance), or take "
            "another --step. --keep-inaccurate (keep_inaccurate=True in Python) returns the linear model all the same.",
            variable=columns[j],
        )
    if reasons:
        return linear
    return replace(linear, warnings=(*linear.warnings, inaccurate_entry(name, value, error)))
