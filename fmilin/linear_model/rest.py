"""How far a linear model's point is from an equilibrium."""

from __future__ import annotations

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.linear_model.model import LinearModel
from fmilin.numerics.rest import NewtonStep, is_equilibrium, newton_step


def step_to_rest(linear: LinearModel) -> NewtonStep:
    """Return the Newton step of the coordinates y, in their sizes."""
    rates, sizes, slopes, errors = _parts(linear)
    p = len(sizes)
    return newton_step(rates, sizes, slopes[:, :p], errors[:, :p])


def is_at_rest(linear: LinearModel) -> bool:
    """Whether an equilibrium is so near to the point that it is one."""
    return not len(linear.f0) or is_equilibrium(*_parts(linear), len(linear.f0))


def _parts(linear: LinearModel) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return rates and sizes (P,), slopes and their errors (P, P + nu) in sizes of y and u."""
    y = linear.states.scales(linear.y0)
    u = linear.inputs.scales(np.array([linear.point.inputs[name] for name in linear.inputs.names]))
    slopes, columns = np.hstack((linear.A, linear.B)), np.concatenate((y, u))
    stated = linear.errors.A.shape == linear.A.shape and linear.errors.B.shape == linear.B.shape
    errors = np.hstack((linear.errors.A, linear.errors.B)) if stated else np.zeros(slopes.shape)
    return linear.f0, y, slopes * columns, errors * columns
