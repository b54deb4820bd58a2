"""Options that ``linearize`` and ``convert`` share: what is done to a linear model before it is written."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from fmilin.cli import options
from fmilin.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fmilin.linear_model.model import LinearModel
    from fmilin.reduction.procedure import Conditioning

__all__ = [
    "BalanceOption",
    "Balancing",
    "DiscretizeOption",
    "Hold",
    "KeepOption",
    "MinimalOption",
    "ModalOption",
    "ReduceOption",
    "SampleTimeOption",
    "conditioned",
    "conditioning",
]


class Balancing(StrEnum):
    """What states are divided by."""

    NOMINALS = "nominals"
    NORMS = "norms"


class Hold(StrEnum):
    """What inputs do between samples."""

    ZOH = "zoh"
    FOH = "foh"
    TUSTIN = "tustin"


MinimalOption = Annotated[bool, typer.Option("--minimal", help="Leave out what no input reaches or no output shows.")]
KeepOption = Annotated[
    str | None,
    typer.Option("--keep-frequencies", metavar="LOW:HIGH", help="Keep the modes of these rad/s."),
]
ReduceOption = Annotated[
    int | None,
    typer.Option("--reduce", metavar="ORDER", help="Truncate a balanced realization to this order."),
]
DiscretizeOption = Annotated[
    Hold | None, typer.Option("--discretize", help="Sample; inputs are held, straight lines, or as Tustin has it.")
]
SampleTimeOption = Annotated[float | None, typer.Option("--sample-time", metavar="T", help="In seconds.")]
ModalOption = Annotated[bool, typer.Option("--modal", help="One state per eigenvalue.")]
BalanceOption = Annotated[
    Balancing | None, typer.Option("--balance", help="Divide states by their nominal values or by norms of A.")
]


def conditioning(
    *,
    minimal: bool,
    keep: str | None,
    reduce: int | None,
    hold: Hold | None,
    sample_time: float | None,
    modal: bool,
    balance: Balancing | None,
) -> Conditioning | None:
    """Return what the options ask for; None when they ask for nothing.

    Raises
    ------
    UsageError
        When they contradict each other, or make no sense.
    """
    chosen = (keep, reduce, hold, sample_time, balance)
    if not (minimal or modal) and all(choice is None for choice in chosen):
        return None
    from fmilin.reduction.procedure import Conditioning

    return Conditioning(
        minimal=minimal,
        frequencies=None if keep is None else _range(keep),
        order=reduce,
        hold=None if hold is None else hold.value,
        sample_time=options.finite(sample_time, "--sample-time"),
        modal=modal,
        balance=None if balance is None else balance.value,
    )


def conditioned(models: Sequence[LinearModel], steps: Conditioning | None) -> list[LinearModel]:
    """Return the models after the steps.

    Raises
    ------
    UsageError
        When several models would get coordinates that have nothing to do with each other, or a step does not fit.
    NumericalError
        When a step does not come out.
    """
    if steps is None:
        return list(models)
    if len(models) > 1 and (steps.minimal or steps.modal or steps.frequencies is not None or steps.order is not None):
        raise UsageError(
            "--minimal, --keep-frequencies, --reduce and --modal choose coordinates for one model: those of several "
            "models would not fit together. Reduce them one by one."
        )
    return [steps.applied(model) for model in models]


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise UsageError(
            f"--keep-frequencies '{text}' is no range of frequencies in rad/s: write LOW:HIGH, for example 0:100."
        ) from None
    return low, high
