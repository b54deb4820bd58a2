"""``fmilin convert LINEAR... -o FILE``: between the formats of linear models, made smaller or sampled on the way."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fmilin.cli import options
from fmilin.cli.conditioning import (
    BalanceOption,
    DiscretizeOption,
    KeepOption,
    MinimalOption,
    ModalOption,
    ReduceOption,
    SampleTimeOption,
    conditioned,
    conditioning,
)
from fmilin.cli.fmus import FmiOption, FmiVersion, PlatformsOption, platforms_of
from fmilin.cli.job_runner import JobRunner, work
from fmilin.errors import UsageError
from fmilin.export.registry import holds_arrays
from fmilin.export.writing import Writing

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel

__all__ = ["command"]


class Modelica(StrEnum):
    """How a Modelica model meets its surroundings."""

    BLOCKS = "blocks"
    EQUATIONS = "equations"


def command(
    linear: Annotated[
        list[Path],
        typer.Argument(metavar="LINEAR...", help="A linear model: .mat .npz .json .fmu; several make an array (.m)"),
    ],
    output: Annotated[
        list[Path],
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Repeatable; the suffix picks the format: .mat .npz .json .fmu .m .mo .tex .txt, dslin.mat (Dymola).",
        ),
    ],
    grid: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="What an array runs over: time, inputs, parameters, states or outputs."),
    ] = None,
    deviation: Annotated[
        bool, typer.Option("--deviation", help="Signals in deviations from the point, where a format has the choice.")
    ] = False,
    modelica: Annotated[
        Modelica, typer.Option(help="Connectors of Modelica.Blocks.Interfaces, or plain inputs and outputs.")
    ] = Modelica.BLOCKS,
    fmi: FmiOption = FmiVersion.FMI2,
    platforms: PlatformsOption = None,
    minimal: MinimalOption = False,
    keep_frequencies: KeepOption = None,
    reduce: ReduceOption = None,
    discretize: DiscretizeOption = None,
    sample_time: SampleTimeOption = None,
    modal: ModalOption = False,
    balance: BalanceOption = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> int:
    """Convert a linear model; nothing is lost between .mat, .npz and .json."""
    files = options.checked_outputs(output)
    if len(linear) > 1 and (single := [path for path in files if not holds_arrays(path)]):
        raise UsageError(f"'{single[0]}' can hold one linear model, not {len(linear)}: several fit into .m only.")
    axes = options.names(grid, "--grid")
    if axes is not None and len(linear) == 1:
        raise UsageError("--grid is for several linear models; this is one.")
    writing = Writing(deviation=deviation, modelica=modelica.value, fmi=fmi.value, platforms=platforms_of(platforms))
    steps = conditioning(
        minimal=minimal,
        keep=keep_frequencies,
        reduce=reduce,
        hold=discretize,
        sample_time=sample_time,
        modal=modal,
        balance=balance,
    )

    def job(_: JobRunner) -> None:
        from fmilin.export.atomic import write_atomically
        from fmilin.export.registry import load

        given = [load(path) for path in linear]
        models = conditioned(given, steps)
        contents = [_content(models, path, writing, axes) for path in files]
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
