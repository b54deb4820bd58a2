"""Plants whose families are known in closed form."""

from __future__ import annotations

from fmilin.models import OdeModel

__all__ = ["buckling", "column", "fold_of", "oscillator", "relaxing"]

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


def relaxing(*, mixed: bool = False) -> OdeModel:
    """Two quantities that relax with rates a and 2, each for itself or, mixed, as sum and difference of the states."""
    equations = {"x": "-a*x", "y": "-2*y"}
    if mixed:
        equations = {"x": "-(a + 2)/2*x + (2 - a)/2*y", "y": "(2 - a)/2*x - (a + 2)/2*y"}
    return OdeModel("relaxing", equations, parameters={"a": 1.0})


def column() -> OdeModel:
    """Ziegler's column of two rods of length 1, springs 1 in both joints, masses 2 and 1, under a follower force P.

    3 a'' + b'' = -2 a + b + P (a - b), a'' + b'' = a - b: its frequencies meet at P = 7/2 - sqrt(2), where it begins to
    flutter, and its growing modes lose their frequencies at 7/2 + sqrt(2).

    References
    ----------
    Ziegler, Die Stabilitaetskriterien der Elastomechanik, Ingenieur-Archiv 20 (1952).
    """
    first = "(-3*a + 2*b + P*(a - b))/2"
    return OdeModel("column", {"a": "va", "b": "vb", "va": first, "vb": f"a - b - {first}"}, parameters={"P": 0.0})
