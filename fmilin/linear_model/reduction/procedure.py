"""Several steps in the order that makes sense: minimal, smaller, sampled, then the form of the states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fmilin.ground.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.reduction.gramians import balanced_truncation
from fmilin.linear_model.reduction.minimal import minimal_realization
from fmilin.linear_model.reduction.modal import keep_frequencies, modal_form
from fmilin.linear_model.reduction.physical import keep_states
from fmilin.linear_model.reduction.sampling import Hold, discretize
from fmilin.linear_model.reduction.transformation import balance


@dataclass(frozen=True, slots=True)
class Conditioning:
    """What is done to a linear model before it goes to another tool; nothing by default."""

    minimal: bool = False  # leave out what no input reaches or no output shows
    frequencies: tuple[float, float] | None = None  # keep the modes of this range, in rad/s
    order: int | None = None  # truncate to this order
    states: tuple[str, ...] = ()  # keep these states of the model
    hold: Hold | None = None  # sample, with ``sample_time``
    sample_time: float | None = None  # in seconds
    modal: bool = False  # one state per eigenvalue
    balance: Literal["nominals", "norms"] | None = None  # divide states by sizes

    def __post_init__(self) -> None:
        if (self.hold is None) != (self.sample_time is None):
            raise UsageError(
                "To sample a linear model takes a method and a sample time, for example --discretize zoh "
                "--sample-time 0.01."
            )
        forms = {"--modal": self.modal, "--balance": self.balance, "--keep-states": self.states}
        if len(given := [name for name, wanted in forms.items() if wanted]) > 1:
            raise UsageError(
                f"States are modal, balanced by their sizes, or those of the model: leave {' or '.join(given)} out."
            )
        if self.order is not None and self.order < 0:
            raise UsageError(f"--reduce {self.order}: an order is not negative.")

    def applied(self, linear: LinearModel) -> LinearModel:
        """Return the linear model after all steps."""
        if self.order is not None and self.order > len(linear.states):
            raise UsageError(
                f"--reduce {self.order}: the linear model has order {len(linear.states)}, and a smaller one was asked "
                "for."
            )
        if self.minimal:
            linear = minimal_realization(linear)
        if self.frequencies is not None:
            linear = keep_frequencies(linear, *self.frequencies)
        if self.order is not None:
            linear = balanced_truncation(linear, self.order)
        if self.states:
            linear = keep_states(linear, self.states)
        if self.hold is not None and self.sample_time is not None:
            linear = discretize(linear, self.sample_time, self.hold)
        if self.modal:
            linear = modal_form(linear)
        if self.balance is not None:
            linear = balance(linear, self.balance)
        return linear
