"""Options of a linearization."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import InitVar
from typing import TYPE_CHECKING, Literal

from fmilin.errors import UsageError
from fmilin.options.groups import COSIMULATION, FORMULATIONS, LINEARIZATION
from fmilin.support.dataclass import dataclass
from fmilin.support.deprecation import warn_of_old_name
from fmilin.support.kinds import require_field_kinds
from fmilin.support.option import (
    Exclusion,
    describe_in_docstring,
    option,
    require_choices,
    require_compatible,
)

if TYPE_CHECKING:
    from fmilin.formulations.formulation import Formulation
    from fmilin.numerics.differences.differences import Differences

STEPPING_METHODS = ("auto", "direct", "step", "response", "multisine")
"""How a linear model of a stepped model is made; ``auto`` takes the first that works."""

STEPPING_INTEGRATORS = (
    "euler", "semi-implicit-euler", "positions-first-euler", "implicit-euler", "trapezoid", "rk2", "rk3", "rk4",
    "exact",
)  # fmt: skip
"""Integrators of a fixed step that can be named."""

FORMULATION_ALONE = "A formulation takes exact derivatives and coordinates of its own."
BOTH_BRANCHES = "A descriptor system has the equations as written, with both branches of a kink."


@describe_in_docstring
@dataclass(frozen=True, slots=True)
class Stepping:
    """How a linear model of a model with its own solver (a co-simulation FMU) is made.

    UsageError: for unknown methods, and for numbers that are not positive.
    """

    method: str = option(
        default="auto",
        help="From derivatives read at the point (direct), one communication step for each displaced coordinate "
        "(step), responses to pulses on the inputs (response), or the frequency response, for a noisy model "
        "(multisine). auto: the first of the first three that works.",
        group=COSIMULATION,
        kind="choice",
        choices=STEPPING_METHODS,
        old_flags=("--way",),
    )
    step: float | None = option(
        default=None,
        help="The communication step in seconds; chosen by default.",
        group=COSIMULATION,
        kind="number",
        metavar="SECONDS",
    )
    lifted: bool = option(
        default=False,
        help="The discrete model over one step, which is the base period of a sampled model, instead of the "
        "continuous one.",
        group=COSIMULATION,
        kind="switch",
    )
    order: int | None = option(
        default=None,
        help="The order of an identified model; chosen from the singular values by default.",
        group=COSIMULATION,
        kind="integer",
        metavar="N",
    )
    amplitude: float | None = option(
        default=None,
        help="The largest displacement of an input, in its unit; chosen so that the response is linear by default.",
        group=COSIMULATION,
        kind="number",
        metavar="A",
    )
    budget: float = option(
        default=20.0,
        help="Processor time for experiments, in seconds; a warning says what was left out.",
        group=COSIMULATION,
        kind="number",
        metavar="S",
    )
    integrator: str | None = option(
        default=None,
        help="The integrator of a model with a fixed step of its own, if its responses do not identify it.",
        group=COSIMULATION,
        kind="choice",
        choices=STEPPING_INTEGRATORS,
    )
    way: InitVar[str | None] = None  #: the old name of ``method``

    def __post_init__(self, way: str | None) -> None:
        if way is not None:
            warn_of_old_name("way", "method")
            object.__setattr__(self, "method", way)
        require_field_kinds(self)
        require_choices(self)
        if self.step is not None and not 0 < self.step < math.inf:
            raise UsageError(f"The communication step is {self.step:g} s: it must be positive and finite.")
        if self.order is not None and self.order < 1:
            raise UsageError(f"The order must be positive, not {self.order}.")
        if self.amplitude is not None and not 0 < self.amplitude < math.inf:
            raise UsageError(f"The amplitude must be positive and finite, not {self.amplitude:g}.")
        if not self.budget > 0:
            raise UsageError(f"The budget must be a positive time, not {self.budget:g} s.")


@describe_in_docstring
@dataclass(frozen=True, slots=True, kw_only=True)
class Linearization:
    """How a model is linearized: what :func:`fmilin.linearize` takes besides the model and the point.

    UsageError: for values that are not possible, and for options that exclude each other.
    """

    independent: Sequence[str] | None = option(
        default=None,
        help="States to keep as coordinates: as many as the model has degrees of freedom, or the positions of a "
        'second-order model, or expressions such as "theta=atan2(x,-y)"; chosen by default.',
        group=LINEARIZATION,
        kind="names",
    )
    inputs: Sequence[str] | None = option(
        default=None,
        help="Inputs of the linear model, a choice and an order; all by default. Parameters of an FMU are possible: "
        "derivatives are then differences.",
        group=LINEARIZATION,
        kind="names",
    )
    outputs: Sequence[str] | None = option(
        default=None,
        help="Outputs, a choice and an order; der(x) and any continuous variable are possible.",
        group=LINEARIZATION,
        kind="names",
    )
    coordinates: str = option(
        default="partition",
        help="How coordinates are chosen if none are named: states of the model (partition), or a basis of the tangent "
        "space (tangent).",
        group=LINEARIZATION,
        kind="choice",
        choices=("partition", "tangent"),
    )
    derivatives: str | Differences = option(
        default="auto",
        help="Exact directional derivatives, each column compared once with a difference, or else differences (auto); "
        "exact ones without that comparison (exact); central differences on the manifold (differences).",
        group=LINEARIZATION,
        kind="choice",
        choices=("auto", "exact", "differences"),
    )
    checks: str = option(
        default="standard",
        help="Checks after the computation: each as often as needed (standard); every check at every point, without "
        "results of earlier points (all); or no check, so that wrong constraints or derivatives pass unnoticed "
        "(none, which is rejected for models identified from responses).",
        group=LINEARIZATION,
        kind="choice",
        choices=("standard", "all", "none"),
    )
    one_sided: Literal["left", "right"] | None = option(
        default=None,
        help="Differences on one side of the point, for a point at a kink or at an event.",
        group=LINEARIZATION,
        kind="choice",
        choices=("left", "right"),
    )
    at_singularity: bool = option(
        default=False,
        help="At a singular configuration: linearize over the enlarged set of velocities.",
        group=LINEARIZATION,
        kind="switch",
        excludes=(Exclusion("checks", "At a singular configuration the checks of regular points have no meaning."),),
    )
    stepping: Stepping | None = option(
        default=None,
        help="For a model with its own solver, such as a co-simulation FMU.",
        group=COSIMULATION,
        kind="nested",
        flag=None,
    )
    formulation: str | Formulation | None = option(
        default=None,
        help="Of a model of Lagrange's equations: minimal (mcs), redundant (rcs) or unconstrained coordinates (ucs).",
        group=FORMULATIONS,
        kind="choice",
        choices=("mcs", "rcs", "ucs"),
        excludes=tuple(
            Exclusion(keyword, FORMULATION_ALONE, unless)
            for keyword, unless in (
                ("coordinates", ()),
                ("derivatives", ("exact",)),
                ("one_sided", ()),
                ("stepping", ()),
                ("checks", ()),
            )
        ),
    )
    descriptor: bool = option(
        default=False,
        help="Compute the descriptor system too. If there is none, lin.descriptor is None, and "
        "fmilin.descriptor(model) says why.",
        group=LINEARIZATION,
        kind="switch",
        flag=None,
        excludes=(Exclusion("one_sided", BOTH_BRANCHES),),
    )
    keep_inaccurate: bool = option(
        default=False,
        help="Return the linear model even if the error of an entry exceeds a tenth of the largest entry of its row.",
        group=LINEARIZATION,
        kind="switch",
    )
    hold_modes: bool = option(
        default=False,
        help="At an event: linearize in the present mode, such as a stuck clutch, as if the event did not occur.",
        group=LINEARIZATION,
        kind="switch",
    )
    keep_totals: bool = option(
        default=False,
        help="Hold linear totals of the states that never change, such as the content of a closed network, at their "
        "values at the point, and leave out their zero eigenvalues.",
        group=LINEARIZATION,
        kind="switch",
        excludes=(
            Exclusion("formulation", "A formulation takes the constraints of Lagrange's equations."),
            Exclusion("at_singularity", "A singular configuration is linearized over its own constraints."),
            Exclusion("descriptor", "A descriptor system has the equations as written, without totals."),
            Exclusion("parameters", "Derivatives by parameters are along states of the model, which are kept."),
        ),
    )
    parameters: Sequence[str] = option(
        default=(),
        help="Parameters by which A, B, C, D and the eigenvalues are differentiated. A trimmed point stays trimmed, "
        "another point keeps its independent states.",
        group=LINEARIZATION,
        kind="names",
        excludes=(
            Exclusion(
                "coordinates", "Derivatives by parameters are along states of the model.", resolved_by="independent"
            ),
        ),
    )

    delays: Mapping[str, float] = option(
        default={},
        help="Dead time in seconds before an input, behind an output, or on a wire of a system, named by the input of "
        "a member at which it ends.",
        group=LINEARIZATION,
        kind="assignments",
        flag="--delay",
        metavar="NAME=SECONDS",
    )

    def __post_init__(self) -> None:
        require_field_kinds(self)
        require_choices(self)
        require_compatible(self)
        if self.descriptor and getattr(self.derivatives, "side", None) is not None:
            raise UsageError(
                f"{BOTH_BRANCHES} One-sided derivatives= and descriptor= exclude each other: leave one of them out."
            )
