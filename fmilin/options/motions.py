"""Options of motions: simulated, periodic, compared with those of a linear model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from fmilin.options.groups import MOTION, POINT
from fmilin.support.dataclass import dataclass
from fmilin.support.option import describe_in_docstring, option, required

INTEGRATION_METHODS = ("DOP853", "RK45", "RK23", "Radau", "BDF", "RK4")
STABILIZATIONS = ("projection", "local", "baumgarte", "none")


@describe_in_docstring
@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """How a model is integrated on its manifold."""

    stop_time: float = field(metadata=required("In seconds.", MOTION, "number", "T"))
    start_time: float | None = option(
        default=None, help="In seconds; that of the point by default.", group=MOTION, kind="number", metavar="T"
    )
    step: float | None = option(
        default=None,
        help="Time between samples, in seconds; a 500th of the whole by default.",
        group=MOTION,
        kind="number",
        metavar="H",
    )
    stabilization: str = option(
        default="projection",
        help="How the states are kept on the manifold.",
        group=MOTION,
        kind="choice",
        choices=STABILIZATIONS,
        old_flags=("--formulation",),
    )
    method: str = option(
        default="DOP853",
        help="The integrator; Radau and BDF for stiff models.",
        group=MOTION,
        kind="choice",
        choices=INTEGRATION_METHODS,
    )
    tolerance: float | None = option(
        default=None, help="Relative tolerance of one step; 1e-9 by default.", group=MOTION, kind="number", metavar="R"
    )
    longest_step: float | None = option(
        default=None, help="Of the integrator, in seconds; the step of RK4.", group=MOTION, kind="number", metavar="H"
    )
    energy: str | None = option(
        default=None, help="An expression or a variable that is recorded as the energy.", group=MOTION, kind="text"
    )
    keep_energy: bool = option(
        default=False, help="Project onto the energy of the start as well.", group=MOTION, kind="switch"
    )


@describe_in_docstring
@dataclass(frozen=True, slots=True, kw_only=True)
class Orbit:
    """Which periodic motion is sought, and how."""

    period: float | None = option(
        default=None,
        help="In seconds, of a forced motion; found by default. The first guess if it is among the free quantities.",
        group=MOTION,
        kind="number",
        metavar="T",
    )
    turn: str | None = option(
        default=None, help="The state that grows by one turn in a period.", group=MOTION, kind="text", metavar="NAME"
    )
    fixed: Mapping[str, float] = option(
        default={},
        help="A state at the start of the period, an input or a parameter, fixed at this value.",
        group=POINT,
        kind="assignments",
        flag="--fix",
    )
    free: Sequence[str] = option(
        default=(), help="Inputs and parameters to solve for, or period.", group=POINT, kind="names"
    )
    steady: Sequence[str] = option(
        default=(),
        help="States that may change by the same amount in every period, such as distances.",
        group=POINT,
        kind="names",
    )
    guess: Mapping[str, float] = option(
        default={}, help="Where the search for the orbit starts.", group=POINT, kind="assignments"
    )
    method: str = option(
        default="DOP853",
        help="The integrator; Radau and BDF for stiff models.",
        group=MOTION,
        kind="choice",
        choices=("DOP853", "RK45", "Radau", "BDF"),
    )
    tolerance: float = option(
        default=1e-12,
        help="Relative tolerance of one step of the integration.",
        group=MOTION,
        kind="number",
        metavar="R",
    )
    segments: int | None = option(
        default=None,
        help="Segments of multiple shooting; 1, then 8 by default.",
        group=MOTION,
        kind="integer",
        metavar="K",
    )


@describe_in_docstring
@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationOptions:
    """How a linear model is compared with the nonlinear one."""

    horizon: float | None = option(
        default=None,
        help="How long each response is followed, in seconds; two slow periods by default.",
        group=MOTION,
        kind="number",
        metavar="T",
    )
