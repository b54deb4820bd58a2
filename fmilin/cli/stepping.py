"""Options for models that bring their own solver, co-simulation FMUs above all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from fmilin.cli.options import Renamed, grouped, one_of
from fmilin.ground.errors import UsageError

if TYPE_CHECKING:
    from fmilin.model.stepping import Stepping

__all__ = ["Stepped", "stepping_options"]


@dataclass(frozen=True)
class Stepped:
    """What stands on the command line about a model that is stepped."""

    method: str
    step: float | None
    lifted: bool
    order: str | None

    def asked(self) -> Stepping | None:
        """Return what was asked for; None when nothing was."""
        if self.method == "auto" and self.step is None and self.order is None and not self.lifted:
            return None
        order = None if self.order is None else _number(self.order)
        if self.order is not None and self.method in ("direct", "step"):
            raise UsageError(
                f"--order is for models identified from responses, --method {self.method} has the order of the FMU."
            )
        from fmilin.model.stepping import Stepping

        return Stepping(method=self.method, step=self.step, lifted=self.lifted, order=order)


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
    click.option("--step", metavar="SECONDS", type=float, help="Of a co-simulation: the communication step."),
    click.option(
        "--lifted", is_flag=True, help="The discrete model over one step, the base period of a sampled model."
    ),
    click.option(
        "--order",
        metavar="N|A,B,...",
        help="Of an identified model, chosen from singular values otherwise; of a Gauss-Seidel master: its members.",
    ),
)


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"--order '{text}': a whole number, the order of an identified model. Members of a co-simulation go with "
            "--as-cosimulated --master gauss-seidel."
        ) from None
