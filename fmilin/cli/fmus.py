"""Options of commands that write FMUs, and what else a file of a linear model leaves open."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import click

from fmilin.cli.options import grouped, names, one_of, read_by
from fmilin.output.formats import Writing

__all__ = ["FMI", "PLATFORMS", "Written", "writing_options"]


@dataclass(frozen=True)
class Written:
    """What stands on the command line about how a linear model is written."""

    deviation: bool
    modelica: Literal["blocks", "equations"]
    fmi: Literal["2.0", "3.0"]
    platforms: tuple[str, ...]

    def asked(self) -> Writing:
        """Return it as the formats take it."""
        return Writing(**asdict(self))


def _platforms(text: str | None, option: str) -> tuple[str, ...]:
    """Return the platforms that were asked for; none means this machine."""
    asked = tuple(names(text, option) or ())
    if asked:
        from fmilin.fmi.platforms import machines

        machines(asked)  # refuses what is unknown or named twice
    return asked


FMI = click.option("--fmi", type=one_of("2.0", "3.0"), default="2.0", help="Version of the standard, for .fmu.")
PLATFORMS = click.option(
    "--platforms",
    metavar="A,B,...",
    help="What an FMU runs on: linux64,win64,darwin64,aarch64-linux,...; this machine by default. Others need "
    "fmilin[cross].",
    callback=read_by(_platforms),
)
writing_options = grouped(
    "written",
    Written,
    click.option(
        "--deviation", is_flag=True, help="Signals in deviations from the point, where a format has the choice."
    ),
    click.option(
        "--modelica",
        type=one_of("blocks", "equations"),
        default="blocks",
        help="Connectors of Modelica.Blocks.Interfaces, or plain inputs and outputs.",
    ),
    FMI,
    PLATFORMS,
)
