"""``fmilin convert LINEAR... -o FILE``: between the formats of linear models, made smaller or sampled on the way."""

from dataclasses import field
from pathlib import Path

import click

from fmilin.cli.command import Command
from fmilin.cli.derive import OPTIONS, command_option, options_of_commands, require_files, take
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.linear_options import ConditioningOptions, FileWriting, condition_models
from fmilin.cli.model_options import DEBUG, Debugging
from fmilin.cli.options import check_outputs
from fmilin.errors import UsageError
from fmilin.export.files import check_family_outputs, dumps, dumps_each, is_family, load, load_family


@options_of_commands
class ConvertOptions:
    """Where the linear models go."""

    output: tuple[Path, ...] = field(metadata=require_files("linear model"))
    grid: list[str] | None = command_option(
        None, "Axes of the array: time, inputs, parameters, states or outputs.", OPTIONS, "names"
    )


@click.command(
    cls=Command,
    examples=[
        "fmilin convert plant.mat -o plant.m -o plant.mo",
        "fmilin convert plant.mat -o linear.fmu --deviation",
        "fmilin convert plant.mat --discretize zoh --sample-time 0.01 -o sampled.mat",
    ],
)
@click.argument("linear", nargs=-1, required=True, type=click.Path(path_type=Path))
@take("target", ConvertOptions)
@take("written", FileWriting)
@take("steps", ConditioningOptions)
@DEBUG
def command(
    linear: tuple[Path, ...],
    target: ConvertOptions,
    written: FileWriting,
    steps: ConditioningOptions,
    debugging: Debugging,
) -> int:
    """Convert a linear model; nothing is lost between {lossless}.

    LINEAR is a {readable}; several make a family ({families}). A family is converted, too.
    """
    output, grid, writing = target.output, target.grid, written.to_writing()
    family = len(linear) > 1 or is_family(linear[0])
    try:
        files = check_family_outputs(output) if family else check_outputs(output)
    except UsageError:
        if not family:  # a missing or damaged family cannot be read: that error comes first
            load(linear[0])
        raise
    if grid is not None and len(linear) == 1:
        raise UsageError("--grid is for several linear models; this is one file.")
    conditioning = steps.to_conditioning()

    def job(runner: JobRunner) -> None:
        if len(linear) == 1 and family:
            if conditioning is not None:
                raise UsageError(
                    "A family is converted without reduction or sampling: reduce or sample the linear models one by "
                    "one."
                )
            loaded = load_family(linear[0])
            runner.write_files({path: dumps(loaded, path) for path in files})
            return
        if families := [path for path in linear if len(linear) > 1 and is_family(path)]:
            raise UsageError(f"'{families[0]}' holds a family already: convert it alone.")
        linear_models = [load(path) for path in linear]
        models = condition_models(linear_models, conditioning)
        runner.write_files(dumps_each(models, files, grid, writing))
        for old, new in zip(linear_models, models, strict=True):
            runner.say_remarks(new.warnings[len(old.warnings) :])

    return work(job, debug=debugging.debug)
