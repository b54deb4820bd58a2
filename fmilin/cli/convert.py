"""``fmilin convert LINEAR -o FILE``: between the formats of linear models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fmilin.cli import options
from fmilin.cli.desk import Desk, work
from fmilin.export.writing import Writing

__all__ = ["command"]


def command(
    linear: Annotated[Path, typer.Argument(metavar="LINEAR", help="A linear model: .mat, .npz or .json")],
    output: Annotated[
        list[Path],
        typer.Option("-o", "--output", metavar="FILE", help="Repeatable; the suffix picks the format: .mat .npz .json"),
    ],
    deviation: Annotated[
        bool, typer.Option("--deviation", help="Signals in deviations from the point, where a format has the choice.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> int:
    """Convert a linear model; nothing is lost between .mat, .npz and .json."""
    files = options.checked_outputs(output)
    writing = Writing(deviation=deviation)

    def job(_: Desk) -> None:
        from fmilin.export.atomic import write_atomically
        from fmilin.export.registry import dumps, load

        model = load(linear)
        contents = [dumps(model, path, writing) for path in files]
        for path, content in zip(files, contents, strict=True):
            write_atomically(path, content)

    return work(job, isolate=False, debug=debug)
