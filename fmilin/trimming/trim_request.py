"""The request of an operating point: fixed and free quantities, bounds, and the states that may move.

A request is made before a model is opened, and before anything heavy is loaded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fmilin.errors import UnknownNameError, UsageError
from fmilin.options import Point, Trim
from fmilin.support.dataclass import dataclass
from fmilin.support.kinds import require_field_kinds

if TYPE_CHECKING:
    from fmilin.model.interface import Model
    from fmilin.model.model_files import SavedPoint

Kind = Literal["state", "input", "parameter"]

_RATE = re.compile(r"der\((.+)\)")


@dataclass(frozen=True)
class TrimRequest(Trim):
    """A trim problem, by name: the options of :func:`fmilin.trim`, as :class:`fmilin.options.Trim` explains them."""

    #: of a checked request: the part of ``fixed`` that is neither a state nor an input nor a parameter
    targets: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_field_kinds(self)

    @property
    def is_plain(self) -> bool:
        """Whether nothing but states, inputs and parameters is held and free, without bounds and preferences."""
        return not (self.bounds or self.minimize or self.near or self.stable or self.targets)

    def check(self, model: Model) -> TrimRequest:
        """Return the request with the model's own names instead of aliases.

        Raises
        ------
        UnknownNameError
            With the nearest names.
        UsageError
            When the parts of the request contradict each other, or the source cannot change its parameters.
        """
        fixed = {n: _finite(n, value) for n, value in without_negatives(model, self.fixed).items()}
        fixed = {read_name(model, name): value for name, value in fixed.items()}
        near = {n: _finite(n, value) for n, value in without_negatives(model, self.near).items()}
        near = {read_name(model, name): value for name, value in near.items()}
        bounds = _own_bounds(model, self.bounds)
        targets = dict(self.targets) | {n: v for n, v in fixed.items() if not is_quantity(model, n)}
        fixed = {n: v for n, v in fixed.items() if n not in targets}
        free = tuple(dict.fromkeys(_own_name(model, positive_name(model, name)) for name in self.free))
        steady_names = [positive_name(model, name) for name in self.steady]
        listed = [model.states.names[model.states.index_of(name, "a state of the model")] for name in steady_names]
        driven = [find_rate_state(model, name) for name, value in targets.items() if value != 0.0]
        steady = tuple(dict.fromkeys([*listed, *(name for name in driven if name is not None)]))
        for group, word in ((free, "free"), (bounds, "bounded"), (near, "wished for")):
            if both := [name for name in group if name in fixed or name in targets]:
                raise UsageError(f"'{both[0]}' is both fixed and {word}. Leave one of them out.")
        for name in (*bounds, *near):
            if is_quantity(model, name) and not model.states.has(name) and name not in free:
                what = "has bounds" if name in bounds else "is preferred"
                raise UsageError(f"'{name}' {what} but is fixed. Solve for it too: free=[{name!r}].")
        for name in names_minimized(self):
            read_name(model, name)
        if self.minimize is not None and near:
            raise UsageError("Minimized and preferred values contradict each other. Leave one of them out.")
        if self.stable and steady:
            raise UsageError(
                f"'{steady[0]}' may move, but a stable equilibrium is requested. Leave stable= or steady= out."
            )
        if self.time is not None and not math.isfinite(self.time):
            raise UsageError(f"The time {self.time} is not finite: give a time in seconds.")
        return replace(self, fixed=fixed, steady=steady, free=free, bounds=bounds, near=near, targets=targets)

    def check_guess(self, model: Model, guess: Mapping[str, float]) -> dict[str, float]:
        """Return a guess with the model's own names; to be called on a checked request.

        Raises UnknownNameError or UsageError when a name is unknown, or of something that is not solved for.
        """
        positive = without_negatives(model, guess)
        checked = {_own_name(model, name): _finite(name, value) for name, value in positive.items()}
        for name in checked:
            if name in self.fixed or name in self.targets:
                raise UsageError(f"'{name}' is fixed, so it needs no guess. Leave one of them out.")
            if not model.states.has(name) and name not in self.free:
                raise UsageError(
                    f"'{name}' is fixed at its value, so it needs no guess. Solve for it with free=[{name!r}], or fix "
                    f"it at another value with fixed={{{name!r}: VALUE}}."
                )
        return checked


def names_minimized(request: TrimRequest) -> tuple[str, ...]:
    """Return the names in what is to be minimized."""
    if request.minimize is None:
        return ()
    from fmilin.constraints.expressions import parse

    return parse(request.minimize).names


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRequest(Point):
    """An operating point: by values of states, inputs and parameters, or the steady one nearest to these.

    The settings have parameters, also those that were set at loading; the guess is where the search for an equilibrium
    starts, besides the settings.
    """

    trim: TrimRequest | None = None  # search for an equilibrium or a steady motion

    def complete(self) -> PointRequest:
        """Return the request with its file read: parameters and time of a saved point stand behind its own."""
        if self.saved is None:
            return self
        from fmilin.model.model_files import load_point

        saved = load_point(self.saved) if isinstance(self.saved, Path) else self.saved
        time = saved.time if self.time is None else self.time
        return replace(self, settings={**saved.parameters, **self.settings}, time=time, saved=saved)

    @property
    def saved_point(self) -> SavedPoint | None:
        """The saved point of a completed request."""
        assert not isinstance(self.saved, Path), "the request of the search is not completed"  # noqa: S101
        return self.saved

    def collect_values(self, model: Model) -> dict[str, float]:
        """Return the settings of states and inputs."""
        values = without_negatives(model, self.settings)
        return {n: v for n, v in values.items() if model.states.has(n) or model.inputs.has(n)}

    def _set_at_loading(self, model: Model, name: str) -> bool:
        """Whether the model was loaded with this value: a parameter, and not something that comes out."""
        if name not in self.settings or model.states.find_signed(name) or model.inputs.find_signed(name):
            return False
        return name in model.parameters or not is_variable(model, name)

    def settings_at_loading(self, is_parameter: Callable[[str], bool]) -> dict[str, float]:
        """Return the settings without what the trim fixes and is not a parameter: it may be what comes out."""
        fixed = self.trim.fixed if self.trim is not None else {}
        return {n: v for n, v in self.settings.items() if n not in fixed or is_parameter(n)}

    def build_trim(self, model: Model) -> tuple[TrimRequest, dict[str, float]]:
        """Return the trim problem and where its search starts: at states that are set, and inputs that are free."""
        trim, saved = self.trim or TrimRequest(), self.saved_point
        trim = replace(trim, fixed=without_negatives(model, trim.fixed))
        values = (
            self.collect_values(model)
            if saved is None
            else {**saved.states, **saved.inputs, **self.collect_values(model)}
        )
        start = {n: v for n, v in values.items() if (model.states.has(n) or n in trim.free) and n not in trim.fixed}
        fixed_values = {n: v for n, v in values.items() if n not in start}
        fixed = {n: v for n, v in trim.fixed.items() if not self._set_at_loading(model, n)}
        time = self.time if trim.time is None else trim.time
        return replace(trim, fixed=fixed_values | fixed, time=time), start | dict(self.guess)


def positive_name(model: Model, name: str) -> str:
    """Return the state or input, or the rate of a state, of which ``name`` is the negative; else ``name``."""
    rate = _RATE.fullmatch(name.strip())
    inner = name if rate is None else rate[1].strip()
    for signals in (model.states,) if rate is not None else (model.states, model.inputs):
        if signals.has(inner):
            return name
        if inner in signals.positions_of_negatives:
            positive = signals.names[signals.positions_of_negatives[inner]]
            return positive if rate is None else f"der({positive})"
    return name


def without_negatives(model: Model, values: Mapping[str, float]) -> dict[str, float]:
    """Return the values with the name of a negative replaced: where b = -a, ``{"b": 3}`` is ``{"a": -3}``.

    Raises UsageError when both names are there.
    """
    positive = {name: positive_name(model, name) for name in values}
    for name, model_name in positive.items():
        if model_name != name and model_name in values:
            raise UsageError(
                f"'{name}' is the negative of '{model_name}', and both have a value. Leave one of them out."
            )
    return {positive[name]: value if positive[name] == name else -value for name, value in values.items()}


def _own_bounds(model: Model, bounds: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Return bounds by the model's own names; those of a negative change places and signs."""
    model_bounds: dict[str, tuple[float, float]] = {}
    for name, pair in bounds.items():
        low, high = _order_bounds(name, pair)
        positive = positive_name(model, name)
        model_bounds[read_name(model, positive)] = (low, high) if positive == name else (-high, -low)
    return model_bounds


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
        what = "a state or an input of the model (and its parameters cannot be changed after loading)"
    raise UnknownNameError.among(name, names, what)


def is_quantity(model: Model, name: str) -> bool:
    """Whether :func:`quantity` knows the name."""
    return model.states.has(name) or model.inputs.has(name) or name in model.parameters


def find_rate_state(model: Model, name: str) -> str | None:
    """Return the state with ``name`` as its rate, ``der(STATE)``; None where it is something else."""
    match = _RATE.fullmatch(name.strip())
    if match is None or not model.states.has(match[1].strip()):
        return None
    return model.states.names[model.states.positions[match[1].strip()]]


def require_variable(model: Model, name: str) -> None:
    """Reject a name that is neither an output nor another continuous variable of the model."""
    from fmilin.model.capabilities import read_discrete_states

    if name in read_discrete_states(model):
        raise UsageError(f"'{name}' changes at events only, so it cannot be solved for. Fix a continuous variable.")
    if model.outputs.has(name) or find_rate_state(model, name) is not None:
        return
    try:
        model.with_interface(outputs=[name])
    except UnknownNameError as error:
        names = [*model.states.positions, *model.inputs.positions, *model.parameters, *model.outputs.positions]
        what = "a state, an input, a parameter, an output or another continuous variable of the model"
        raise UnknownNameError.among(name, [*names, *error.suggestions], what) from None


def is_variable(model: Model, name: str) -> bool:
    """Whether :func:`require_variable` lets the name pass."""
    try:
        require_variable(model, name)
    except UsageError:
        return False
    return True


def read_name(model: Model, name: str) -> str:
    """Return the model's own name of whatever can be fixed."""
    if is_quantity(model, name):
        return _own_name(model, name)
    require_variable(model, name)
    if (state := find_rate_state(model, name)) is not None:
        return f"der({state})"
    return model.outputs.names[model.outputs.positions[name]] if model.outputs.has(name) else name


def _own_name(model: Model, name: str) -> str:
    kind, position = quantity(model, name)
    return name if kind == "parameter" else (model.states if kind == "state" else model.inputs).names[position]


def _finite(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise UsageError(f"The value of '{name}' is {value}: give a finite number instead of it.")
    return float(value)


def _order_bounds(name: str, pair: tuple[float, float]) -> tuple[float, float]:
    low, high = float(pair[0]), float(pair[1])
    if not low < high:
        raise UsageError(
            f"The bounds of '{name}' are {low:g} and {high:g}: the first must be the smaller one. Fix it to hold it."
        )
    return low, high
