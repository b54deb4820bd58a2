"""FMUs with states in discrete time: Simulink's fixed-step code, clocked partitions, ``when sample(...)`` equations.

Such a state is a discrete-time number that an event, a clock or a communication step sets from its value before.
FMI 3.0 marks those of clocked partitions (the attribute ``previous``, section 2.4.7.5); FMI 1.0 and 2.0 mark none, so
that discrete-time numbers with a start value are taken, unless the user names others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fmilin.errors import UnknownNameError, UsageError, quote_first
from fmilin.fmi.read.description import ModelDescription, Unknown, Variable
from fmilin.fmi.read.model_structure import HELD_CLOCKS

AUTOMATIC = ("auto",)  # the names that request a search


def find_discrete_states(description: ModelDescription) -> list[Variable]:
    """Return the discrete-time numbers that look like states; empty without any."""
    numbers = [
        v
        for v in description.scan_variables()
        if v.is_float and v.variability == "discrete" and v.causality in ("local", "output")
    ]
    clocked = [v for v in numbers if v.previous is not None]
    if clocked:
        return clocked
    before_ticks = {v.previous for v in numbers}
    return [v for v in numbers if v.start and v.reference not in before_ticks]


def has_clocked_states_alone(description: ModelDescription) -> bool:
    """Whether the FMU has states of clocked partitions and none in continuous time, as it declares itself."""
    if description.states or not description.fmi_version.startswith("3"):
        return False
    return any(v.previous is not None and v.is_float for v in description.scan_variables())


def with_discrete_states(description: ModelDescription, names: Sequence[str]) -> ModelDescription:
    """Return the description with these numbers as its states; ``("auto",)`` for those that look like states.

    Raises
    ------
    UsageError
        When the FMU has states in continuous time, or nothing looks like a state.
    UnknownNameError
        When a name is not a number that may be a state.
    """
    if description.states:
        raise UsageError(
            f"'{description.source}' has continuous states ({quote_first(v.name for v in description.states)}), so it "
            "is not a sampled model. Leave out discrete_states; fl.Stepping(lifted=True) returns the discrete model "
            "of a continuous model with sampled parts."
        )
    if tuple(names) == AUTOMATIC:
        states = find_discrete_states(description)
        if not states:
            raise UsageError(
                f"No discrete-time number of '{description.source}' looks like a state (local or output, with a start "
                "value). Name the states of the sampled model with discrete_states=."
            )
    else:
        states = [_require_number(description, name) for name in names]
    return replace(
        description,
        states=tuple(states),
        # There are no rates; whoever reads these gets the states once more.
        derivatives=tuple(Unknown(v) for v in states),
        with_samples=True,
        is_sampled=True,
        notes=tuple(note for note in description.notes if not note.endswith(HELD_CLOCKS)),
        directional_derivatives=False,
    )


def _require_number(description: ModelDescription, name: str) -> Variable:
    variable = description.by_name.get(name)
    if variable is None or not variable.is_float or variable.causality not in ("local", "output"):
        numbers = [v.name for v in description.scan_variables() if v.is_float and v.causality in ("local", "output")]
        raise UnknownNameError.among(name, numbers, "a local number or an output that may be a discrete state")
    return variable
