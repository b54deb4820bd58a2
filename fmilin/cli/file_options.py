"""What a model file is asked for on the command line: ``--floating-base`` and ``--hold`` of robots, ``--keyframe``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from fmilin.cli.options import grouped

__all__ = ["FileOptions", "file_options"]


@dataclass(frozen=True)
class FileOptions:
    """What stands on the command line about the model's file; its fields are options of :func:`fmilin.load`."""

    floating_base: bool
    hold: tuple[str, ...]
    keyframe: str | None

    def asked(self) -> dict[str, Any]:
        """Return ``options`` of :func:`fmilin.load`: those that were given."""
        return {name: value for name, value in vars(self).items() if value}


file_options = grouped(
    "opened",
    FileOptions,
    click.option("--floating-base", is_flag=True, help="Let the root link of a URDF file move freely."),
    click.option(
        "--hold",
        metavar="FOOT[:point|:flat]",
        multiple=True,
        help="Repeatable: a body, site, geom or marker that stays where it is at the point, as a foot on the ground.",
    ),
    click.option("--keyframe", metavar="NAME", help="Start at this keyframe of an MJCF file."),
)
"""Gives a command the parameter ``opened``."""
