"""What is asked for, and the answer: an operating point that was solved for, with a report.

A request says which numbers are fixed, which are free, within which bounds, and which states may move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from fmilin.ground.errors import UnknownNameError, UsageError
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray, Signals
from fmilin.ground.verbs import html_of, text_of
from fmilin.model.interface import Model, OperatingPoint

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
        if self.time is not None and not np.isfinite(self.time):
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
    if not np.isfinite(value):
        raise UsageError(f"The value of '{name}' is {value}: give a finite number.")
    return float(value)


def _ordered(name: str, pair: tuple[float, float]) -> tuple[float, float]:
    low, high = float(pair[0]), float(pair[1])
    if not low < high:
        raise UsageError(
            f"The bounds of '{name}' are {low:g} and {high:g}: the first must be the smaller one. Fix it to hold it."
        )
    return low, high


@dataclass(frozen=True)
class FreeDirection:
    """A way to move through a whole family of solutions, to first order."""

    name: str  # the quantity that leads; when it moves by one, the others that lead stay
    along: dict[str, float]  # how far the quantities that follow move, in their units per unit of the leading one


@dataclass(frozen=True, eq=False)
class TrimReport:
    """What was found beside the point."""

    states: Signals  # of the model
    inputs: Signals  # of the model
    # (N,), derivatives of all states at the point, in their units per second. Rounding where the state rests
    rates: FloatArray
    changes: FloatArray | None  # (N,), in a steady motion, the derivatives of the rates at the point
    moving: tuple[str, ...]  # states that move, some of them perhaps only later
    varying: tuple[str, ...]  # those among them whose rate is not constant, because they follow other states that move
    dragged: tuple[str, ...]  # those among them that were not listed: the constraints take them along
    free_directions: tuple[FreeDirection, ...]  # empty when the solution is isolated
    at_bounds: tuple[str, ...]  # quantities that lie on one of their bounds
    residual: float  # the largest residual, in sizes of the states (per second)
    exact: bool  # False when the residual is above 1e-10 and only the model's own noise or rounding explains it
    remarks: tuple[Remark, ...]
    # the smallest singular value of the balanced Jacobian over the largest: near zero at a fold, where two solutions
    # meet, and inside a family; NaN where it was not looked at
    regularity: float = np.nan

    def __repr__(self) -> str:
        return text_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)

    @property
    def is_equilibrium(self) -> bool:
        """Whether nothing moves."""
        return not self.moving

    @property
    def summary(self) -> str:
        """What was found, in words: ``"an equilibrium"``."""
        if self.is_equilibrium:
            return "an equilibrium"
        return f"a steady motion of {', '.join(self.moving)}"

    def rate(self, name: str) -> float:
        """Return the rate of the state ``name``, in its unit per second."""
        return float(self.rates[self.states.index_of(name, "a state of the model")])


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimmedPoint(OperatingPoint):
    """An operating point from :func:`fmilin.trim`: the argument ``point`` of :func:`fmilin.linearize`.

    Parameters
    ----------
    time, states, inputs, parameters, adjusted
        As in :class:`fmilin.OperatingPoint`. ``parameters`` has those that were fixed or solved for.
    report : TrimReport
    """

    report: TrimReport

    __repr__ = OperatingPoint.__repr__

    def same_place(self, other: TrimmedPoint) -> bool:
        """Whether the ``other`` point is the same solution, up to what two searches may differ by."""
        values, others = _everything(self), _everything(other)
        return bool(np.all(np.abs(values - others) <= 1e-6 * np.maximum(np.abs(values), 1.0)))


def _everything(point: TrimmedPoint) -> FloatArray:
    parameters = np.array([value for _, value in sorted(point.parameters.items())], dtype=np.float64)
    return np.concatenate((point.states, point.inputs, parameters))
