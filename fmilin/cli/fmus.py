"""Options of commands that write FMUs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from fmilin.cli import options

__all__ = ["FmiOption", "FmiVersion", "PlatformsOption", "platforms_of"]


class FmiVersion(StrEnum):
    """Versions of the standard that can be written."""

    FMI2 = "2.0"
    FMI3 = "3.0"


FmiOption = Annotated[FmiVersion, typer.Option("--fmi", help="Version of the standard, for .fmu.")]
PlatformsOption = Annotated[
    str | None,
    typer.Option(
        "--platforms",
        metavar="A,B,...",
        help="What an FMU runs on: linux64,win64,darwin64,aarch64-linux,...; this machine by default. Others need "
        "fmilin[cross].",
    ),
]


def platforms_of(text: str | None) -> tuple[str, ...]:
    """Return the platforms that were asked for, checked; none means this machine.

    Raises
    ------
    UsageError
        When a platform is unknown or named twice.
    """
    names = tuple(options.names(text, "--platforms") or ())
    if names:
        from fmilin.fmi.write.platforms import machines

        machines(names)
    return names
