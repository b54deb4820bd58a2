"""``fmilin convert LINEAR... -o FILE``: between the formats of linear models, made smaller or sampled on the way."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fmilin.cli.conditioning import Steps, conditioned, steps_options
from fmilin.cli.fmus import Written, writing_options
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.options import DEBUG, checked_outputs, files_option, names_option
from fmilin.errors import UsageError
from fmilin.export.registry import holds_arrays
from fmilin.export.writing import Writing

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel

__all__ = ["command"]


@click.command()
@click.argument("linear", nargs=-1, required=True, type=click.Path(path_type=Path))
@files_option(required=True)
@names_option("--grid", "What an array runs over: time, inputs, parameters, states or outputs.")
@writing_options
@steps_options
@DEBUG
def command(
    linear: tuple[Path, ...],
    output: tuple[Path, ...],
    grid: list[str] | None,
    written: Written,
    steps: Steps,
    *,
    debug: bool,
) -> int:
    """Convert a linear model; nothing is lost between .mat, .npz and .json.

    LINEAR is a .mat, .npz, .json or .fmu; several make an array (.m).
    """
    files = checked_outputs(output)
    if len(linear) > 1 and (single := [path for path in files if not holds_arrays(path)]):
        raise UsageError(f"'{single[0]}' can hold one linear model, not {len(linear)}: several fit into .m only.")
    if grid is not None and len(linear) == 1:
        raise UsageError("--grid is for several linear models; this is one.")
    writing = written.asked()
    conditioning = steps.asked()

    def job(_: JobRunner) -> None:
        from fmilin.atomic import write_atomically
        from fmilin.export.registry import load

        given = [load(path) for path in linear]
        models = conditioned(given, conditioning)
        contents = [_content(models, path, writing, grid) for path in files]
        for path, content in zip(files, contents, strict=True):
            write_atomically(path, content)
        for old, new in zip(given, models, strict=True):
            for remark in new.warnings[len(old.warnings) :]:
                sys.stderr.write(f"Warning: {remark}\n")

    return work(job, isolate=False, debug=debug)


def _content(models: Sequence[LinearModel], path: Path, writing: Writing, axes: Sequence[str] | None) -> bytes:
    from fmilin.export.model_array import grid_of
    from fmilin.export.registry import dumps, dumps_array

    if len(models) == 1:
        return dumps(models[0], path, writing)
    return dumps_array(models, path, grid=None if axes is None else grid_of(models, axes), writing=writing)
