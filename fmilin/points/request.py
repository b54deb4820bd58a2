"""What is asked of an operating point: what is held, what is free, within which bounds, which states may move.

A request is made before a model is opened, and before anything heavy is loaded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fmilin.ground.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from fmilin.model.interface import Model
    from fmilin.model.point_files import SavedPoint

Kind = Literal["state", "input", "parameter"]


@dataclass(frozen=True)
class TrimRequest:
    """A trim problem, by name.

    Parameters
    ----------
    fixed : mapping of str to float
        States, inputs and parameters that keep these values.
    steady : sequence of str
        States that may move.
    free : sequence of str
        Inputs and parameters to solve for; states are free unless they are fixed.
    bounds : mapping of str to (float, float)
        Lowest and highest value of a free quantity; infinite where there is none.
    time : float or None
        In seconds; None: where the model starts.
    """

    fixed: Mapping[str, float] = field(default_factory=dict)
    steady: Sequence[str] = ()
    free: Sequence[str] = ()
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    time: float | None = None

    def checked(self, model: Model) -> TrimRequest:
        """Return the request with the model's own names instead of aliases.

        Raises
        ------
        UnknownNameError
            With the nearest names.
        UsageError
            When the parts of the request contradict each other, or the source cannot change its parameters.
        """
        fixed = {_own_name(model, name): _finite(name, value) for name, value in self.fixed.items()}
        moving = (model.states.index_of(name, "a state of the model") for name in self.steady)
        steady = tuple(dict.fromkeys(model.states.names[i] for i in moving))
        free = tuple(dict.fromkeys(_own_name(model, name) for name in self.free))
        bounds = {_own_name(model, name): _ordered(name, pair) for name, pair in self.bounds.items()}
        if both := [name for name in free if name in fixed]:
            raise UsageError(f"'{both[0]}' is both fixed and free. Leave one of them out.")
        for name in bounds:
            if name in fixed:
                raise UsageError(f"'{name}' is both fixed and bounded. Leave one of them out.")
            if not model.states.has(name) and name not in free:
                raise UsageError(f"'{name}' has bounds but is held. Name it among the free ones (--free {name}).")
        if self.time is not None and not math.isfinite(self.time):
            raise UsageError(f"The time {self.time} is not finite.")
        return TrimRequest(fixed, steady, free, bounds, self.time)

    def checked_guess(self, model: Model, guess: Mapping[str, float]) -> dict[str, float]:
        """Return a guess with the model's own names; to be called on a checked request.

        Raises
        ------
        UnknownNameError, UsageError
            When a name is unknown, or of something that is not solved for.
        """
        checked = {_own_name(model, name): _finite(name, value) for name, value in guess.items()}
        for name in checked:
            if name in self.fixed:
                raise UsageError(f"'{name}' is fixed, so there is nothing to guess. Leave one of them out.")
            if not model.states.has(name) and name not in self.free:
                raise UsageError(
                    f"'{name}' is held at its value, so there is nothing to guess. To solve for it, name it among the "
                    f"free ones (--free {name}); to hold another value, fix it (--fix {name}=VALUE)."
                )
        return checked


@dataclass(frozen=True, slots=True)
class PointRequest:
    """An operating point: by values of states, inputs and parameters, or the steady one nearest to these."""

    settings: Mapping[str, float] = field(default_factory=dict)  # of parameters also those that are set at loading
    time: float | None = None  # in seconds; None: where the model starts
    project: bool = False  # whether start values may lie off the manifold
    saved: Path | SavedPoint | None = None  # a point, or the file of one, that the settings change
    trim: TrimRequest | None = None  # look for an equilibrium or a steady motion
    guess: Mapping[str, float] = field(default_factory=dict)  # where that search starts, beside the settings

    def completed(self) -> PointRequest:
        """Return the request with its file read: parameters and time of a saved point stand behind its own."""
        if self.saved is None:
            return self
        from fmilin.model.point_files import load_point

        saved = load_point(self.saved) if isinstance(self.saved, Path) else self.saved
        time = saved.time if self.time is None else self.time
        return replace(self, settings={**saved.parameters, **self.settings}, time=time, saved=saved)

    @property
    def saved_point(self) -> SavedPoint | None:
        """The saved point of a completed request."""
        assert not isinstance(self.saved, Path), "the request is not completed"  # noqa: S101
        return self.saved

    def values_of(self, model: Model) -> dict[str, float]:
        """Return the settings of states and inputs."""
        return {n: v for n, v in self.settings.items() if model.states.has(n) or model.inputs.has(n)}

    def trim_of(self, model: Model) -> tuple[TrimRequest, dict[str, float]]:
        """Return the trim problem of a model loaded with the settings, and where its search starts.

        Inputs that are set are held unless they are free; states that are set are where the search starts.
        """
        trim, saved = self.trim or TrimRequest(), self.saved_point
        values = self.values_of(model) if saved is None else {**saved.states, **saved.inputs, **self.values_of(model)}
        start = {n: v for n, v in values.items() if (model.states.has(n) or n in trim.free) and n not in trim.fixed}
        held = {n: v for n, v in values.items() if n not in start}
        fixed = {n: v for n, v in trim.fixed.items() if n not in self.settings or n in values}
        time = self.time if trim.time is None else trim.time
        return replace(trim, fixed=held | fixed, time=time), start | dict(self.guess)


def quantity(model: Model, name: str) -> tuple[Kind, int]:
    """Return what ``name`` is and its position among its kind; parameters have no order, so 0."""
    if model.states.has(name):
        return "state", model.states.positions[name]
    if model.inputs.has(name):
        return "input", model.inputs.positions[name]
    if name in model.parameters:
        return "parameter", 0
    names = [*model.states.positions, *model.inputs.positions, *model.parameters]
    what = "a state, an input or a parameter of the model"
    if not model.parameters:
        what = "a state or an input of the model (and its parameters cannot be changed once it is loaded)"
    raise UnknownNameError.among(name, names, what)


def _own_name(model: Model, name: str) -> str:
    kind, position = quantity(model, name)
    if kind == "parameter":
        return name
    return (model.states if kind == "state" else model.inputs).names[position]


def _finite(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise UsageError(f"The value of '{name}' is {value}: give a finite number.")
    return float(value)


def _ordered(name: str, pair: tuple[float, float]) -> tuple[float, float]:
    low, high = float(pair[0]), float(pair[1])
    if not low < high:
        raise UsageError(
            f"The bounds of '{name}' are {low:g} and {high:g}: the first must be the smaller one. Fix it to hold it."
        )
    return low, high
