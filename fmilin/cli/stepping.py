"""Options for models that bring their own solver, co-simulation FMUs above all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from fmilin.cli.options import Renamed, grouped, one_of
from fmilin.errors import UsageError

if TYPE_CHECKING:
    from fmilin.model.stepping import Stepping

__all__ = ["Stepped", "stepping_options"]


@dataclass(frozen=True)
class Stepped:
    """What stands on the command line about a model that is stepped."""

    method: str
    step: float | None
    lifted: bool
    order: int | None

    def asked(self) -> Stepping | None:
        """Return what was asked for; None when nothing was.

        Raises
        ------
        UsageError
            When a number is not positive, or the options contradict each other.
        """
        if self.method == "auto" and self.step is None and self.order is None and not self.lifted:
            return None
        if self.order is not None and self.method in ("direct", "step"):
            raise UsageError(
                f"--order is for models identified from responses, --method {self.method} has the order of the FMU."
            )
        from fmilin.model.stepping import Stepping

        return Stepping(method=self.method, step=self.step, lifted=self.lifted, order=self.order)


stepping_options = grouped(
    "stepped",
    Stepped,
    click.option(
        "--method",
        "--way",
        "method",
        cls=Renamed,
        type=one_of("auto", "direct", "step", "response", "multisine"),
        default="auto",
        help="Of a co-simulation FMU: how the linear model is made; the first that works.",
    ),
    click.option("--step", metavar="SECONDS", type=float, help="Of a co-simulation FMU: the communication step."),
    click.option(
        "--lifted", is_flag=True, help="The discrete model over one step, the base period of a sampled model."
    ),
    click.option(
        "--order", metavar="N", type=int, help="Of an identified model; chosen from singular values otherwise."
    ),
)
