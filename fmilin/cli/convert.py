"""``fmilin convert LINEAR... -o FILE``: between the formats of linear models, made smaller or sampled on the way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fmilin.cli.conditioning import Steps, conditioned, steps_options
from fmilin.cli.files import Command
from fmilin.cli.fmus import Written, writing_options
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.options import DEBUG, checked_outputs, files_option, names_option
from fmilin.ground.errors import UsageError
from fmilin.output.export.family_files import checked_families, contents, is_family
from fmilin.output.export.writing import Writing

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.model import LinearModel

__all__ = ["command"]


@click.command(
    cls=Command,
    examples=[
        "fmilin convert plant.mat -o plant.m -o plant.mo",
        "fmilin convert plant.mat -o linear.fmu --deviation",
        "fmilin convert plant.mat --discretize zoh --sample-time 0.01 -o sampled.mat",
    ],
)
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

    LINEAR is a .mat, .npz, .json or .fmu; several make a family (.nc .mat .npz .json .m). A family is converted, too.
    """
    family = len(linear) > 1 or is_family(linear[0])
    try:
        files = checked_families(output) if family else checked_outputs(output)
    except UsageError:
        if not family:  # a family that is missing or damaged cannot be told: that is what is wrong first
            _loaded(linear[0])
        raise
    if grid is not None and len(linear) == 1:
        raise UsageError("--grid is for several linear models; this is one file.")
    writing = written.asked()
    conditioning = steps.asked()

    def job(runner: JobRunner) -> None:
        if len(linear) == 1 and family:
            from fmilin.families.family import LinearFamily

            if conditioning is not None:
                raise UsageError("A family is converted as it is: reduce or sample the linear models one by one.")
            runner.write_files(contents(LinearFamily.load(linear[0]), files))
            return
        if held := [path for path in linear if len(linear) > 1 and is_family(path)]:
            raise UsageError(f"'{held[0]}' holds a family already: convert it alone.")
        given = [_loaded(path) for path in linear]
        models = conditioned(given, conditioning)
        # .m sorts the members of a family along a grid of its own
        arrays = [path for path in files if family and path.suffix.lower() != ".m"]
        made = {path: _content(models, path, writing, grid) for path in files if path not in arrays}
        if arrays:
            made |= contents(_family(models, grid), arrays)
        runner.write_files(made)
        for old, new in zip(given, models, strict=True):
            for remark in new.warnings[len(old.warnings) :]:
                runner.say(f"Warning: {remark}\n")

    return work(job, isolate=False, debug=debug)


def _loaded(path: Path) -> LinearModel:
    """Read one linear model."""
    from fmilin.output.export.registry import load

    return load(path)


def _content(models: Sequence[LinearModel], path: Path, writing: Writing, axes: Sequence[str] | None) -> bytes:
    from fmilin.output.export.model_array import grid_of
    from fmilin.output.export.registry import dumps, dumps_array

    if len(models) == 1:
        return dumps(models[0], path, writing)
    return dumps_array(models, path, grid=None if axes is None else grid_of(models, axes), writing=writing)


def _family(models: Sequence[LinearModel], axes: Sequence[str] | None) -> LinearFamily:
    from fmilin.families.gathering import family_of
    from fmilin.output.export.model_array import grid_of, what_varies

    return family_of(models, (what_varies(models) or None) if axes is None else grid_of(models, axes))
