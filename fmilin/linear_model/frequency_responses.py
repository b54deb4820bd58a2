"""The transfer matrix of a linear model at frequencies, exact in its delays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fmilin.linear_model.delayed import get_form
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray


def compute_frequency_response(linear: LinearModel, frequencies: FloatArray) -> NDArray[np.complex128]:
    """Return the transfer matrix at frequencies in rad/s, shape (ny, nu, k)."""
    w = np.atleast_1d(np.asarray(frequencies, dtype=np.float64))
    form = get_form(linear)
    points = np.asarray(1j * w, dtype=np.complex128)
    if linear.sample_time:
        points = np.exp(points * linear.sample_time)
    with np.errstate(over="ignore", invalid="ignore"):  # near a resonance large gains exceed the largest number
        responses = form.evaluate(points)
    return np.ascontiguousarray(np.moveaxis(responses, 0, -1))
