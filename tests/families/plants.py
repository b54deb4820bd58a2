"""Plants whose families are known in closed form."""

from __future__ import annotations

from fmilin.models.ode import OdeModel

__all__ = ["buckling", "fold_of", "oscillator"]

STIFFNESS = 100.0


def oscillator() -> OdeModel:
    """A mass on a spring: eigenvalues -d/2 +- i sqrt(k - d^2/4)."""
    equations = {"q": "v", "v": "F - k*q - d*v"}
    return OdeModel("oscillator", equations, inputs=["F"], parameters={"k": 4.0, "d": 0.2}, outputs={"position": "q"})


def buckling() -> OdeModel:
    """A shallow truss of two springs of length 1 over half a span ``b``, pressed down by F: it snaps through.

    At rest F = 2 k x (1/s - 1) with s = sqrt(b^2 + x^2); the branch from above turns back where s^3 = b^2.
    """
    return OdeModel(
        "truss",
        {"x": "v", "v": "2*k*x*(1/sqrt(b**2 + x**2) - 1) - F - v"},
        inputs=["F"],
        parameters={"k": STIFFNESS, "b": 0.9},
        start={"x": (1 - 0.9**2) ** 0.5},
    )


def fold_of(b: float) -> float:
    """Return the force at which the truss snaps through."""
    s = b ** (2 / 3)
    return float(2 * STIFFNESS * (s**2 - b**2) ** 0.5 * (1 / s - 1))
