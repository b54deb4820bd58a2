"""Which options of a linearization the functions take, and why they do not take the others."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from fmilin.errors import UsageError
from fmilin.options.linearization import Linearization
from fmilin.support.option import describe, is_given

if TYPE_CHECKING:
    from fmilin.formulations.formulation import Formulation
    from fmilin.numerics.differences.differences import Differences
    from fmilin.options.linearization import Stepping

F = TypeVar("F", bound=Callable[..., Any])

# Type checkers and editors read the keywords of functions from these classes; a test compares them with Linearization
# and with WITHOUT_MEANING.


class DerivativeOptions(TypedDict, total=False):
    """How derivatives are taken: options that every linearization takes."""

    derivatives: str | Differences
    checks: str
    one_sided: Literal["left", "right"] | None


class AccuracyOptions(DerivativeOptions, total=False):
    """The same, and what is done where derivatives are in doubt."""

    keep_inaccurate: bool
    hold_modes: bool


class CoordinateOptions(AccuracyOptions, total=False):
    """The same, and the choice of coordinates."""

    independent: Sequence[str] | None
    coordinates: str


class PeriodicOptions(CoordinateOptions, total=False):
    """The same, and the choice of signals."""

    inputs: Sequence[str] | None
    outputs: Sequence[str] | None


class BoxOptions(AccuracyOptions, total=False):
    """The options of linear models over a box of parameters."""

    independent: Sequence[str] | None
    inputs: Sequence[str] | None
    outputs: Sequence[str] | None


class TangentOptions(BoxOptions, total=False):
    """The options of linear models on a tangent space that is found from numbers."""

    stepping: Stepping | None


class FamilyOptions(PeriodicOptions, total=False):
    """The options of families of linear models."""

    keep_totals: bool
    stepping: Stepping | None
    descriptor: bool
    parameters: Sequence[str]
    at_singularity: bool
    formulation: str | Formulation | None


class ClosedLoopOptions(CoordinateOptions, total=False):
    """The options of sensitivities."""

    delays: Mapping[str, float]


class LoopOptions(ClosedLoopOptions, total=False):
    """The options of linear models of loops."""

    keep_totals: bool
    stepping: Stepping | None
    descriptor: bool
    parameters: Sequence[str]


class OpenedOptions(LoopOptions, total=False):
    """The same, and the choice of signals."""

    inputs: Sequence[str] | None
    outputs: Sequence[str] | None


class LinearizationOptions(OpenedOptions, total=False):
    """All options of :class:`Linearization` as keywords of functions."""

    at_singularity: bool
    formulation: str | Formulation | None


_SIGNALS_ARE_WIRES = "The inputs and outputs of a loop are its wires."
_NOT_LAGRANGE = "A connected system is not a model of Lagrange's equations."
_NOT_SINGULAR = "Only models of Lagrange's equations are linearized at singular configurations."
_CLOSED_LOOP_HOLDS_NOTHING = "A discrete model would hold the signal on the wire over a step."
_CLOSED_AGAIN = "The loop is closed with matrices, not equations."
_NO_MATRICES_OF_POINTS = "The coordinates follow the motion, unlike the equations as written."
_ORBIT_MOVES = "The orbit itself changes with parameters."
_ALONG_A_MOTION = "A motion is integrated; a stepped model is measured along it."
_NOT_ALONG_A_MOTION = "A motion has no linear model at a singular configuration."
_NO_FORMULATION_ALONG = "Formulations are of single points."
_OWN_STATES = "Derivatives by parameters keep the states of the model."
_BOX_NAMES_PARAMETERS = "The parameters are those of the box."
_MEMBERS = "Members are linearized each in its own coordinates and signals."
_ZERO_IN_EVERY = "Whether a channel is zero does not depend on this option."
_ALWAYS = "Inaccurate entries and the present modes are always kept here."

_TOTALS_OF_AN_ORBIT = "Multipliers of 1 belong to the totals of a periodic motion, another one to its phase."
_TOTALS_OF_STATES = "Totals would be constraints on the states, which are kept."
_DELAYS_ARE_AXES = "Delays of a sweep are axes of its grid: several values of each."
_NO_DELAYS_IN_FAMILIES = (
    "Families hold matrices, which models with delays do not have. Linearize one point with delays=, then call "
    "sweep_delays() of its linear model."
)
_NO_DELAYS_ALONG = "Periodic motions are followed without delays, which would change them."
_NO_DELAYS_OF_NUMBERS = "Boxes of parameters are of models without delays."
_DELAYS_CHANGE_NO_ZERO = "A channel that is zero without a delay is zero with it."

_LOOP = {
    "inputs": _SIGNALS_ARE_WIRES,
    "outputs": _SIGNALS_ARE_WIRES,
    "at_singularity": _NOT_SINGULAR,
    "formulation": _NOT_LAGRANGE,
}
_CLOSED_LOOP = {
    **_LOOP,
    "stepping": _CLOSED_LOOP_HOLDS_NOTHING,
    "descriptor": _CLOSED_AGAIN,
    "parameters": _CLOSED_AGAIN,
    "keep_totals": _CLOSED_AGAIN,
}
_PERIODIC = {
    "at_singularity": _NOT_ALONG_A_MOTION,
    "stepping": _ALONG_A_MOTION,
    "formulation": _NO_FORMULATION_ALONG,
    "descriptor": _NO_MATRICES_OF_POINTS,
    "parameters": _ORBIT_MOVES,
    "delays": _NO_DELAYS_ALONG,
    "keep_totals": _TOTALS_OF_AN_ORBIT,
}
_BOX = {
    "coordinates": _OWN_STATES,
    "at_singularity": _OWN_STATES,
    "stepping": _OWN_STATES,
    "formulation": _OWN_STATES,
    "descriptor": "Linear models between those of the box have no equations as written.",
    "parameters": _BOX_NAMES_PARAMETERS,
    "delays": _NO_DELAYS_OF_NUMBERS,
    "keep_totals": _TOTALS_OF_STATES,
}
_TOGETHER = {
    "coordinates": "The coordinates of all points are states of the model.",
    "at_singularity": _NOT_SINGULAR,
    "stepping": "Stepped models are computed point by point.",
    "formulation": "Formulations are of single points.",
    "descriptor": "Points that are computed together have no equations as written.",
    "parameters": "Derivatives by parameters are computed point by point.",
    "delays": _NO_DELAYS_IN_FAMILIES,
    "keep_totals": "Totals are those of a single point.",
}
_OF_MEMBERS = {
    "independent": _MEMBERS,
    "coordinates": _MEMBERS,
    "inputs": _MEMBERS,
    "outputs": _MEMBERS,
    "at_singularity": _NOT_SINGULAR,
    "stepping": "The members are stepped, not their linear models.",
    "formulation": _NOT_LAGRANGE,
    "descriptor": _MEMBERS,
    "parameters": _MEMBERS,
    "delays": "A co-simulation has the delays of its steps only.",
    "keep_totals": _MEMBERS,
}
_SAMPLED_LOOP = {
    "inputs": "The inputs and outputs are those of the system.",
    "outputs": "The inputs and outputs are those of the system.",
    "at_singularity": _NOT_SINGULAR,
    "stepping": "The steps are those of the sampled members.",
    "formulation": _NOT_LAGRANGE,
    "descriptor": "A sampled loop is a discrete model.",
    "parameters": "Derivatives by parameters are of continuous models.",
    "delays": "Delays are on wires of the system: fl.connect(..., delays={...}), which fl.linearize takes as well.",
    "keep_totals": "The states of the plant are those that the regulator acts on.",
}
_TANGENT = {
    "coordinates": "The coordinates are states of the model.",
    "at_singularity": "One Jacobian does not give the directions of motion at a singular configuration.",
    "formulation": "The constraints of the model are left out.",
    "descriptor": "The constraints of the model are left out.",
    "parameters": "Numbers at one point do not give the change of directions with parameters.",
    "delays": "The linear model takes them: with_delays() of the result.",
    "keep_totals": "Directions without motion are always left out.",
}
_EXPLANATION = {
    "independent": _ZERO_IN_EVERY,
    "coordinates": _ZERO_IN_EVERY,
    "inputs": "The input and the output are named.",
    "outputs": "The input and the output are named.",
    "at_singularity": "A channel is not determined at a singular configuration.",
    "stepping": _ZERO_IN_EVERY,
    "formulation": _ZERO_IN_EVERY,
    "descriptor": _ZERO_IN_EVERY,
    "keep_inaccurate": _ALWAYS,
    "hold_modes": _ALWAYS,
    "parameters": _ZERO_IN_EVERY,
    "delays": _DELAYS_CHANGE_NO_ZERO,
    "keep_totals": _ZERO_IN_EVERY,
}

WITHOUT_MEANING: Mapping[str, Mapping[str, str]] = {
    "linearize": {},
    "sweep": {"delays": _DELAYS_ARE_AXES},
    "linearize_along": {"delays": _NO_DELAYS_IN_FAMILIES},
    "batch": _TOGETHER,
    "linearize_periodic": _PERIODIC,
    "floquet_chart": {
        **_PERIODIC,
        "inputs": "Multipliers do not depend on the choice of inputs and outputs.",
        "outputs": "Multipliers do not depend on the choice of inputs and outputs.",
    },
    "linearize_on_tangent": _TANGENT,
    "loop_transfer": _LOOP,
    "sensitivity": _CLOSED_LOOP,
    "complementary_sensitivity": _CLOSED_LOOP,
    "opened": {"at_singularity": _NOT_SINGULAR, "formulation": _NOT_LAGRANGE},
    "sampled_loop": _SAMPLED_LOOP,
    "cosimulated": _OF_MEMBERS,
    "reduce_members": _OF_MEMBERS,
    "uncertain": _BOX,
    "place_modes": _BOX,
    "identified_parameters": _BOX,
    "explain": _EXPLANATION,
    "explain_zeros": _EXPLANATION,
}
"""By function that linearizes: the options that have no meaning there, each with the reason."""

_WITHOUT_A_LINEAR_MODEL = "The eigenvalues are those of the equations as written, without a linear model."
_FROM_RATES = "Constraints are found from rates of the model, without a linear model."

WITHOUT_MEANING_IN_COMMANDS: Mapping[str, Mapping[str, str]] = {
    "audit": {
        "one_sided": "The second method of an audit takes derivatives on both sides of the point.",
        "delays": "It works with matrices, which models with delays do not have.",
    },
    "explore": {"delays": "It works with matrices, which models with delays do not have."},
    "report": {"delays": "It works with matrices, which models with delays do not have."},
    "spectrum": {
        "inputs": "Eigenvalues do not depend on the choice of inputs and outputs.",
        "outputs": "Eigenvalues do not depend on the choice of inputs and outputs.",
        **dict.fromkeys(
            (
                "coordinates",
                "derivatives",
                "checks",
                "one_sided",
                "stepping",
                "descriptor",
                "keep_inaccurate",
                "hold_modes",
                "parameters",
                "delays",
                "keep_totals",
            ),
            _WITHOUT_A_LINEAR_MODEL,
        ),
    },
    "discover": dict.fromkeys((description.keyword for description in describe(Linearization)), _FROM_RATES),
}
"""The same of commands that do not pass their options to one of these functions."""

KEYWORDS = tuple(description.keyword for description in describe(Linearization))


def merge_options(function: str, linearization: Linearization | None, keywords: Mapping[str, object]) -> dict[str, Any]:
    """Return the options that a function is given, as a dataclass or as keywords.

    Raises
    ------
    TypeError
        For a keyword that is not an option, as Python does.
    UsageError
        For an option that is given twice, or that has no meaning in the function.
    """
    values: dict[str, Any] = {} if linearization is None else given_options(linearization)
    for keyword, value in keywords.items():
        if keyword not in KEYWORDS:
            raise TypeError(_describe_unexpected_keyword(function, keyword))
        if keyword in values:
            raise UsageError(
                f"{function}() is given {keyword}= twice, as a keyword and in linearization=. Leave one of them out."
            )
        values[keyword] = value
    reject_without_meaning(function, values)
    return values


def given_options(linearization: Linearization) -> dict[str, Any]:
    """Return the options that are not at their defaults."""
    return {name: getattr(linearization, name) for name in KEYWORDS if is_given(linearization, name)}


def reject_without_meaning(function: str, values: Mapping[str, object]) -> None:
    """Raise UsageError if an option that has no meaning in a function has another value than its default."""
    named = {keyword: value for keyword, value in values.items() if keyword in WITHOUT_MEANING[function]}
    if not named:
        return
    options = Linearization(**named)  # type: ignore[arg-type] # its fields are checked there
    for keyword, because in WITHOUT_MEANING[function].items():
        if keyword in named and is_given(options, keyword):
            raise UsageError(f"{keyword}= has no meaning in {function}(). {because} Leave it out of the call.")


def takes_linearization(function: F) -> F:
    """Show the options of a function as keywords, in its signature and its docstring; a decorator.

    The function has the parameters ``linearization`` and ``**options``, and describes the first of them.
    """
    signature = inspect.signature(function)
    *leading_parameters, last = signature.parameters.values()
    if last.kind is not inspect.Parameter.VAR_KEYWORD:
        raise TypeError(f"{function.__name__}() has no **options.")
    taken = {p.name for p in leading_parameters} | WITHOUT_MEANING[function.__name__].keys()
    options = [
        inspect.Parameter(d.keyword, inspect.Parameter.KEYWORD_ONLY, default=d.default, annotation=d.type)
        for d in describe(Linearization)
        if d.keyword not in taken
    ]
    function.__signature__ = signature.replace(parameters=[*leading_parameters, *options])  # type: ignore[attr-defined]
    function.__doc__ = _describe_keywords(function.__doc__ or "", [parameter.name for parameter in options])
    return function


def _describe_keywords(docstring: str, keywords: Sequence[str]) -> str:
    """Return a docstring that names the keywords, behind the parameter ``linearization`` or at the end."""
    described = re.search(r"^( *)linearization : .*\n(?:\1 +.*\n)+", docstring, flags=re.MULTILINE)
    if described is None:
        names = ", ".join(f"``{keyword}``" for keyword in keywords)
        return f"{docstring.rstrip()}\n\n    Keywords of :class:`fmilin.Linearization`: {names}.\n    "
    indent = described[1]
    entry = f"{indent}{', '.join(keywords)}\n{indent}    As in :class:`fmilin.Linearization`.\n"
    return docstring[: described.end()] + entry + docstring[described.end() :]


TRIM_KEYWORDS = ("fixed", "free", "near", "steady")


def _describe_unexpected_keyword(function: str, keyword: str) -> str:
    text = f"{function}() got an unexpected keyword argument '{keyword}'"
    if function == "sweep" and keyword in TRIM_KEYWORDS:
        return f"{text}. It is an option of the trim: trim=fl.TrimRequest({keyword}=...)."
    nearest = get_close_matches(keyword, list_options(function), 1)
    return f"{text}. Did you mean '{nearest[0]}'?" if nearest else text


def list_options(function: str) -> Iterable[str]:
    """Return the options that have a meaning in a function."""
    return [name for name in KEYWORDS if name not in WITHOUT_MEANING[function]]
