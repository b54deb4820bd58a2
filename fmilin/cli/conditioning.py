"""Options that ``linearize`` and ``convert`` share: what is done to a linear model before it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from fmilin.cli.options import grouped, number_option, one_of, read_by
from fmilin.ground.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fmilin.linear_model.model import LinearModel
    from fmilin.linear_model.reduction.procedure import Conditioning

__all__ = ["Steps", "conditioned", "steps_options"]


@dataclass(frozen=True)
class Steps:
    """What stands on the command line about what is done to a linear model."""

    minimal: bool
    keep_frequencies: tuple[float, float] | None
    reduce: int | None
    discretize: Literal["zoh", "foh", "tustin"] | None
    sample_time: float | None
    modal: bool
    balance: Literal["nominals", "norms"] | None

    def asked(self) -> Conditioning | None:
        """Return what the options ask for; None when they ask for nothing."""
        chosen = (self.keep_frequencies, self.reduce, self.discretize, self.sample_time, self.balance)
        if not (self.minimal or self.modal) and all(choice is None for choice in chosen):
            return None
        from fmilin.linear_model.reduction.procedure import Conditioning

        return Conditioning(
            minimal=self.minimal,
            frequencies=self.keep_frequencies,
            order=self.reduce,
            hold=self.discretize,
            sample_time=self.sample_time,
            modal=self.modal,
            balance=self.balance,
        )


def _range(text: str | None, option: str) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise UsageError(
            f"{option} '{text}' is no range of frequencies in rad/s: write LOW:HIGH, for example 0:100."
        ) from None
    return low, high


steps_options = grouped(
    "steps",
    Steps,
    click.option("--minimal", is_flag=True, help="Leave out what no input reaches or no output shows."),
    click.option(
        "--keep-frequencies",
        metavar="LOW:HIGH",
        help="Keep the modes of these rad/s.",
        callback=read_by(_range),
    ),
    click.option("--reduce", metavar="ORDER", type=int, help="Truncate a balanced realization to this order."),
    click.option(
        "--discretize",
        type=one_of("zoh", "foh", "tustin"),
        help="Sample; inputs are held, straight lines, or as Tustin has it.",
    ),
    number_option("--sample-time", metavar="T", help="In seconds."),
    click.option("--modal", is_flag=True, help="One state per eigenvalue."),
    click.option(
        "--balance",
        type=one_of("nominals", "norms"),
        help="Divide states by their nominal values or by norms of A.",
    ),
)


def conditioned(models: Sequence[LinearModel], steps: Conditioning | None) -> list[LinearModel]:
    """Return the models after the steps."""
    if steps is None:
        return list(models)
    if len(models) > 1 and (steps.minimal or steps.modal or steps.frequencies is not None or steps.order is not None):
        raise UsageError(
            "--minimal, --keep-frequencies, --reduce and --modal choose coordinates for one model: those of several "
            "models would not fit together. Reduce them one by one."
        )
    return [steps.applied(model) for model in models]
