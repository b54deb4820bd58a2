"""Checks of slopes: exact products, the declared structure, the constraints, the linear model in two ways."""

from __future__ import annotations

import numpy as np

from fmilin.ground.signals import FloatArray
from fmilin.loading.testing.subject import PARTS, Subject, beside, close, linear, tangent
from fmilin.numerics.differences.differences import jacobian_by_differences

__all__ = ["constraints", "derivatives", "products", "structure"]

NEGLIGIBLE = 1e-12
"""Deviations of numbers that agree, in units of the model."""


def products(s: Subject) -> bool | None:
    """Check that exact products are linear in the direction, and equal differences of the values."""
    m, t, x, u = s.model, s.point.time, s.point.states, s.point.inputs
    n, k = len(m.states), len(m.inputs)
    basis = tangent(s)
    dx, du = np.hstack((basis, np.zeros((n, k)))), np.hstack((np.zeros((k, basis.shape[1])), np.eye(k)))
    exact = m.products(t, x, u, dx, du)
    if exact is None:
        return False
    weights = s.random.standard_normal((dx.shape[1], 2))
    mixed = m.products(t, x, u, dx @ weights, du @ weights)
    if mixed is None:
        s.fail("products() answers for some directions and not for others.")
    z, sizes = np.concatenate((x, u)), np.ones(dx.shape[1])
    along = np.vstack((dx, du))
    for part in PARTS:
        J, sums = getattr(exact, part), getattr(mixed, part)
        rows = len(getattr(s.at_point(), part))
        s.promise(J.shape == (rows, dx.shape[1]), f"products() returns {part} of shape {J.shape}.")
        known = np.isfinite(J)
        close(
            s,
            np.where(known, J, 0.0) @ weights,
            sums,
            f"products() is not linear in the direction: {part}",
            1e-9,
            rows=known.all(axis=1),
            allowed=NEGLIGIBLE,
        )

        def value(c: FloatArray, part: str = part) -> FloatArray:
            moved = z + along @ c
            return np.asarray(getattr(m.evaluate(t, moved[:n], moved[n:]), part))

        measured, error = jacobian_by_differences(value, np.zeros(dx.shape[1]), sizes)
        differ = (
            np.abs(J - measured)
            > NEGLIGIBLE + 10 * error + s.tolerance * np.max(np.abs(measured), axis=1, initial=0.0)[:, None]
        )
        bad = np.argwhere(differ & known)
        where = "" if not len(bad) else f"row {bad[0][0]}: {J[tuple(bad[0])]:.9g} and {measured[tuple(bad[0])]:.9g}"
        s.promise(not len(bad), f"products() differs from differences of the {part}, {where}.")
    return None


def structure(s: Subject) -> bool | None:
    """Check that what is declared independent is so in the products."""
    m = s.model
    if m.structure is None:
        return False
    n, k = len(m.states), len(m.inputs)
    s.promise(m.structure.shape == (n + len(m.outputs), n + k), f"structure has the shape {m.structure.shape}.")
    exact = m.products(s.point.time, s.point.states, s.point.inputs, np.eye(n, n + k), np.eye(k, n + k, n))
    if exact is None:
        return False
    J = np.vstack((exact.derivatives, exact.outputs))
    wrong = np.argwhere((np.nan_to_num(J) != 0) & ~m.structure)
    s.promise(not len(wrong), f"structure denies a dependence that products() shows, at {wrong[:1].tolist()}.")
    return None


def constraints(s: Subject) -> bool | None:
    """Check that the motion keeps the constraints, no input breaks them, and they take states away."""
    if not len(s.model.constraints):
        return False
    m, t, x, u = s.model, s.point.time, beside(s), s.point.inputs
    alone, all_of_it = m.constraint_residuals(t, x, u), m.evaluate(t, x, u).residuals
    if alone is not None:
        what = "constraint_residuals() and the residuals of evaluate() differ"
        close(s, alone, all_of_it, what, 1e-9, allowed=NEGLIGIBLE)
    lin = linear(s)  # refuses constraints that the motion does not keep
    s.promise(
        len(lin.states) < len(s.model.states) or not lin.accuracy.conditioning > 1,
        "its constraints take no state away: they say nothing.",
    )
    return None


def derivatives(s: Subject) -> bool | None:
    """Check that the linear model from exact derivatives equals the one from differences."""
    exact, measured = linear(s), linear(s, "differences")
    if exact.method.derivatives == "differences":
        return False
    s.promise(exact.states.names == measured.states.names, "coordinates differ between exact slopes and differences.")
    for name in "ABCD":
        error = 10 * getattr(measured.errors, name)
        close(
            s,
            getattr(exact, name),
            getattr(measured, name),
            f"the matrix {name} by exact derivatives and by differences differ",
            s.tolerance,
            allowed=error,
        )
    return None
