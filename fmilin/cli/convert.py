"""``fmilin convert LINEAR... -o FILE``: between the formats of linear models, made smaller or sampled on the way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from fmilin.cli.conditioning import Steps, conditioned, steps_options
from fmilin.cli.files import Command
from fmilin.cli.fmus import FMI, PLATFORMS
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.options import DEBUG, checked_outputs, files_option, names_option, one_of
from fmilin.errors import UsageError
from fmilin.export.registry import holds_arrays
from fmilin.export.writing import Writing

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel

__all__ = ["command"]


@click.command(cls=Command)
@click.argument("linear", nargs=-1, required=True, type=click.Path(path_type=Path))
@files_option(required=True)
@names_option("--grid", "What an array runs over: time, inputs, parameters, states or outputs.")
@click.option("--deviation", is_flag=True, help="Signals in deviations from the point, where a format has the choice.")
@click.option(
    "--modelica",
    type=one_of("blocks", "equations"),
    default="blocks",
    help="Connectors of Modelica.Blocks.Interfaces, or plain inputs and outputs.",
)
@FMI
@PLATFORMS
@steps_options
@DEBUG
def command(
    linear: tuple[Path, ...],
    output: tuple[Path, ...],
    grid: list[str] | None,
    modelica: Literal["blocks", "equations"],
    fmi: Literal["2.0", "3.0"],
    platforms: tuple[str, ...],
    steps: Steps,
    *,
    deviation: bool,
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
    writing = Writing(deviation=deviation, modelica=modelica, fmi=fmi, platforms=platforms)
    conditioning = steps.asked()

    def job(runner: JobRunner) -> None:
        from fmilin.export.registry import load

        given = [load(path) for path in linear]
        models = conditioned(given, conditioning)
        runner.write_files({path: _content(models, path, writing, grid) for path in files})
        for old, new in zip(given, models, strict=True):
            for remark in new.warnings[len(old.warnings) :]:
                runner.say(f"Warning: {remark}\n")

    return work(job, isolate=False, debug=debug)


def _content(models: Sequence[LinearModel], path: Path, writing: Writing, axes: Sequence[str] | None) -> bytes:
    from fmilin.export.model_array import grid_of
    from fmilin.export.registry import dumps, dumps_array

    if len(models) == 1:
        return dumps(models[0], path, writing)
    return dumps_array(models, path, grid=None if axes is None else grid_of(models, axes), writing=writing)
