"""Options of the functions and commands, described once: type, default, help, group and command-line option.

Takes: nothing.
Returns: frozen dataclasses; signatures, checks, the command line and the documentation are derived from them.
Does not depend on: numpy.
"""

from fmilin.options.function_options import WITHOUT_MEANING, WITHOUT_MEANING_IN_COMMANDS, LinearizationOptions
from fmilin.options.linearization import Linearization, Stepping
from fmilin.options.motions import Orbit, Simulation, VerificationOptions
from fmilin.options.point_options import Point, Sweep, Trim
from fmilin.options.sources import FmuOptions, Loading, SourceOptions
from fmilin.support.option import Exclusion, OptionDescription, describe, option, required

__all__ = [
    "DESCRIBED",
    "WITHOUT_MEANING",
    "WITHOUT_MEANING_IN_COMMANDS",
    "Exclusion",
    "FmuOptions",
    "Linearization",
    "LinearizationOptions",
    "Loading",
    "OptionDescription",
    "Orbit",
    "Point",
    "Simulation",
    "SourceOptions",
    "Stepping",
    "Sweep",
    "Trim",
    "VerificationOptions",
    "describe",
    "option",
    "required",
]

DESCRIBED: tuple[type, ...] = (
    Linearization, Stepping, Loading, SourceOptions, FmuOptions, Point, Trim, Sweep, Simulation, Orbit,
    VerificationOptions,
)  # fmt: skip
"""All dataclasses of options."""
