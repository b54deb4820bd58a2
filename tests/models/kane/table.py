"""The terms of table 1 of Peterson et al. in a form, each row of equations taken apart."""

from __future__ import annotations

from typing import Any

import sympy

from fmilin.models.kane.kane_form import KaneForm, LinearRow

__all__ = ["f_0", "f_1", "f_2", "f_3", "f_a"]


def _terms(row: LinearRow, symbols: tuple[Any, ...]) -> Any:
    return sympy.Add(*(c * w for w, c in row.coefficients.items() if w in symbols))


def f_a(form: KaneForm) -> tuple[Any, ...]:
    """Return the acceleration constraints."""
    return tuple(row.expression for row in form.acceleration)


def f_0(form: KaneForm) -> tuple[Any, ...]:
    """Return the terms of the kinematic equations that contain q'."""
    return tuple(_terms(row, form.q_dot) for row in form.kinematics)


def f_1(form: KaneForm) -> tuple[Any, ...]:
    """Return the other terms of the kinematic equations."""
    return tuple(row.rest for row in form.kinematics)


def f_2(form: KaneForm) -> tuple[Any, ...]:
    """Return the terms of the dynamic equations that contain u'."""
    return tuple(_terms(row, form.u_dot) for row in form.dynamics)


def f_3(form: KaneForm) -> tuple[Any, ...]:
    """Return the terms of the dynamic equations that contain neither u' nor multipliers."""
    return tuple(row.rest for row in form.dynamics)
