"""The start values of states of an FMU, and their changes during its initialization."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fmilin.fmi.read.layout import ScalarLayout, ScalarVariable
from fmilin.fmi.read.settings import Assignment
from fmilin.model.capabilities import StartValue
from fmilin.signals import FloatArray

START_TOLERANCE = 1e-6
"""Changes of a start value, relative to it or to 1, that count as rounding. A looser one hides moves."""

REASONS = {
    ("set", True): "kept: set by the user",
    ("set", False): "moved: set by the user, but initialization computed another value",
    ("exact", True): "kept: exact",
    ("exact", False): "moved: declared as exact, but initialization computed another value",
    ("approx", True): "kept: a first guess that solves the initial equations",
    ("approx", False): "moved: a first guess for another value",
}
"""By where a start value comes from, and whether the state has it."""
COMPUTED = "follows: no start value is declared"


def report_start_values(
    layout: ScalarLayout, settings: Sequence[Assignment], states: FloatArray
) -> Iterator[StartValue]:
    """Yield the start value of each state (N,), as it was set or is declared, with what initialization made of it."""
    values_by_variable = {setting.variable.name: setting.values for setting in settings}
    for scalar, reached in zip(layout.states, states.tolist(), strict=True):
        unit = layout.signal(scalar, aliases=False).unit
        requested = _read_request(layout, scalar, values_by_variable)
        if requested is None:
            yield StartValue(scalar.name, unit, None, reached, COMPUTED)
            continue
        origin = "set" if scalar.variable.name in values_by_variable else _read_origin(scalar)
        is_kept = bool(np.isclose(reached, requested, rtol=START_TOLERANCE, atol=START_TOLERANCE))
        yield StartValue(scalar.name, unit, requested, reached, REASONS[origin, is_kept])


def _read_request(
    layout: ScalarLayout, scalar: ScalarVariable, values_by_variable: dict[str, tuple[object, ...]]
) -> float | None:
    """Return what was set, else the declared start value; None without either."""
    values = values_by_variable.get(scalar.variable.name)
    if values is not None:
        return float(str(values[scalar.offset]))
    return layout.start(scalar) if scalar.variable.start else None


def _read_origin(scalar: ScalarVariable) -> str:
    """Return "approx" for first guesses; a start value without ``initial`` can only be meant as it is."""
    return "approx" if scalar.variable.initial == "approx" else "exact"
