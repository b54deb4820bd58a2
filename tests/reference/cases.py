"""Every case of the table by the name of its file, and what it may differ by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import fmilin as fl
from tests.reference import composed, engines, families, fmus, natives, systems, ways

__all__ = ["CASES", "CONDITION", "TABLES", "UNSETTLED", "installed", "linear_models"]

CASES: Mapping[str, Mapping[str, Callable[[], fl.LinearModel | Mapping[str, fl.LinearModel]]]] = {
    module.__name__.rpartition(".")[2]: module.CASES
    for module in (systems, ways, natives, composed, fmus, families, engines)
}

TABLES = Path(__file__).parent / "numbers"

CONDITION: Mapping[tuple[str, str], float] = {
    ("flexible_double_pendulum", ""): 1.2e5,
    ("flexible_double_pendulum stiffening", ""): 2.7e4,
    ("formulations of the four-bar", "ucs"): 1e8,
    ("formulations of the five-bar", "ucs"): 1e8,
}
"""How much rounding grows on the way to the matrices, where it is more than 4e3.

Of the beams: the condition number of the mass matrix on the free velocities, scaled to a diagonal of ones. The inertias
of a beam's long and short waves differ by so much: with another processor's linear algebra the first of these moves by
4e-12. Of the penalty formulation: the penalty alpha omega^2 = 1e6 * 10^2, whose forces cancel.
"""

UNSETTLED = frozenset(
    {
        ("ways of the four-bar", "tangent, auto"),
        ("sweep of four-bar, other coordinates", "0"),
        ("along the four-bar, other coordinates", "0"),
    }
)
"""Where the estimated errors of exact derivatives are rounding (1e-14) or what a difference leaves open (1e-9).

The linear algebra of the processor decides which: between the two stands a comparison of rounding errors.
"""


def linear_models(table: str, name: str) -> Mapping[str, fl.LinearModel]:
    """Return the linear models of a case, by what tells them apart."""
    result = CASES[table][name]()
    return {"": result} if isinstance(result, fl.LinearModel) else result


def installed(table: str, name: str) -> bool:
    """Return whether what a case needs is there: the adapters are packages of their own."""
    return table != "engines" or find_spec(engines.PACKAGES[name.partition(":")[0]]) is not None
