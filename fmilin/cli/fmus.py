"""Options of commands that write FMUs."""

from __future__ import annotations

import click

from fmilin.cli.options import names, one_of

__all__ = ["FMI", "PLATFORMS", "platforms_of"]

FMI = click.option("--fmi", type=one_of("2.0", "3.0"), default="2.0", help="Version of the standard, for .fmu.")
PLATFORMS = click.option(
    "--platforms",
    metavar="A,B,...",
    help="What an FMU runs on: linux64,win64,darwin64,aarch64-linux,...; this machine by default. Others need "
    "fmilin[cross].",
)


def platforms_of(text: str | None) -> tuple[str, ...]:
    """Return the platforms that were asked for, checked; none means this machine.

    Raises
    ------
    UsageError
        When a platform is unknown or named twice.
    """
    asked = tuple(names(text, "--platforms") or ())
    if asked:
        from fmilin.fmi.write.platforms import machines

        machines(asked)
    return asked
