"""The three formulations and what there is to choose in each; hand one to ``spectrum``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from fmilin.ground.errors import UsageError
from fmilin.native.formulations.bases import require_method

__all__ = ["MCS", "RCS", "UCS", "Formulation", "formulation_named"]


@dataclass(frozen=True, slots=True)
class MCS:
    """Minimal coordinate set: the equations projected on the velocities that the constraints leave free."""

    basis: str = "coordinates"  # how R with Phi_q R = 0 is found (:mod:`fmilin.formulations.bases`)

    def __post_init__(self) -> None:
        require_method(self.basis)


@dataclass(frozen=True, slots=True)
class RCS:
    """Redundant coordinate set: coordinates and multipliers together, a descriptor pencil."""

    # where the spurious eigenvalues go: infinite with Phi_q and Phi_q' in A, zero with both in E
    spurious: Literal["infinite", "zero"] = "infinite"

    def __post_init__(self) -> None:
        if self.spurious not in ("infinite", "zero"):
            raise UsageError(f"Spurious eigenvalues can be put at 'infinite' or 'zero', not at '{self.spurious}'.")


@dataclass(frozen=True, slots=True)
class UCS:
    """Unconstrained coordinate set: every constraint replaced by a penalty, a mass with a spring and a damper."""

    alpha: float = 1e6  # the penalty: what each constraint weighs, in units of the mass matrix. Xi = alpha I
    xi: float = 1.0  # damping ratio of a violation: Theta = 2 xi omega I
    omega: float = 10.0  # frequency of a violation in rad/s: Omega = omega^2 I
    # at an equilibrium: go where the penalized system rests, which takes a violation Phi = lambda/(alpha omega^2) to
    # carry the multipliers. By default the point stays, and the penalties carry lambda there (their springs are set
    # so): that is nearer to the constrained system, and the same at every point
    displaced: bool = False

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("omega", self.omega)):
            if not (math.isfinite(value) and value > 0):
                raise UsageError(
                    f"The penalty's {name} must be positive and finite, not {value:g}. Try alpha = 1e6, omega = 10."
                )
        if not (math.isfinite(self.xi) and self.xi >= 0):
            raise UsageError(f"The penalty's xi is a damping ratio, 0 or more, not {self.xi:g}. Try 1.")


Formulation = MCS | RCS | UCS


def formulation_named(formulation: str | Formulation) -> Formulation:
    """Return the formulation with its usual options for ``"mcs"``, ``"rcs"`` or ``"ucs"``."""
    if isinstance(formulation, MCS | RCS | UCS):
        return formulation
    known: dict[str, Formulation] = {"mcs": MCS(), "rcs": RCS(), "ucs": UCS()}
    if formulation not in known:
        raise UsageError(f"'{formulation}' is no formulation. Choose one of: mcs, rcs, ucs.")
    return known[formulation]
