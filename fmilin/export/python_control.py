"""The linear model as a ``control.StateSpace`` with names (:mod:`fmilin.signals`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fmilin.linear_model.model import LinearModel
from fmilin.signals import legal_name, original_name

if TYPE_CHECKING:
    import control

    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.model import DelayedLinearModel

__all__ = ["approximate_in_control", "family_to_control", "legal_name", "original_name", "to_control"]


def to_control(linear: LinearModel) -> control.StateSpace:
    """Return a ``control.StateSpace`` of the deviations y - y0, u - u0, out - g0; it has no place for the rate f0."""
    import control

    # python-control (0.10.2) takes every (1, 0) matrix for (0, 0): a system without inputs gets one, which goes again.
    idle = np.zeros((len(linear.states), 1)), np.zeros((len(linear.outputs), 1))
    system = control.ss(
        linear.A,
        linear.B if len(linear.inputs) else idle[0],
        linear.C,
        linear.D if len(linear.inputs) else idle[1],
        linear.sample_time,
        name=legal_name(linear.model.name) or "model",
        states=[legal_name(name) for name in linear.states.names],
        inputs=[legal_name(name) for name in linear.inputs.names] or ["idle"],
        outputs=[legal_name(name) for name in linear.outputs.names],
    )
    if not len(linear.inputs):
        system.B, system.D = linear.B.copy(), linear.D.copy()
        system.set_inputs([])
    return system


def family_to_control(family: LinearFamily) -> list[control.StateSpace | None]:
    """Return a system per point in the order of the grid; None where there is no linear model."""
    systems: list[control.StateSpace | None] = [None] * len(family)
    for number, linear in family.good():
        systems[number] = to_control(linear)
    return systems


def approximate_in_control(model: DelayedLinearModel) -> control.StateSpace:
    """Return the same of a model with delays, by Padé approximations; a Python warning says so.

    ``model.pade(order).to_control()`` is the same for another order, without the warning.
    """
    import warnings

    approximation = model.pade()
    warnings.warn(
        f"python-control has no delays. {approximation.warnings[-1].message} Another order: "
        "lin.pade(order).to_control().",
        stacklevel=3,
    )
    return to_control(approximation)
