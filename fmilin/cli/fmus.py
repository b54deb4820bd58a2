"""Options of commands that write FMUs."""

from __future__ import annotations

import click

from fmilin.cli.options import names, one_of, read_by

__all__ = ["FMI", "PLATFORMS"]


def _platforms(text: str | None, option: str) -> tuple[str, ...]:
    """Return the platforms that were asked for; none means this machine."""
    asked = tuple(names(text, option) or ())
    if asked:
        from fmilin.fmi.write.platforms import machines

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
