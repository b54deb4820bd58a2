"""``fmilin linearize MODEL``: a linear model at an operating point."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fmilin.cli import linear_models, linear_options, model_options, options
from fmilin.cli.command import Command
from fmilin.cli.derive import MODEL, ValueReader, command_option, json_switch, new_files, options_of_commands, take
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.request import build_request
from fmilin.formats import listed, require_codec
from fmilin.loading.source_kind import is_fmu
from fmilin.options import Stepping
from fmilin.options.groups import POINT

DELAYS_OF_ONE = {"--delay": "Formulations are compared by eigenvalues of matrices, without delays."}


@options_of_commands
class Snapshots:
    """Where along a motion the model is linearized."""

    times: tuple[float, ...] = command_option(
        (),
        f"Times of one motion at which to linearize: a family ({listed('family')}), or a file per time, FILE_tT1.mo.",
        POINT,
        "numbers",
        flag="--snapshots",
        metavar="T1,T2,...",
        reading=ValueReader(str, linear_models.snapshot_times),
        conflicts="--simulate-to --simulate-until --plot --open --loop-at --sensitivity-at --as-cosimulated "
        "--tangent-only",
        because="Snapshots are several linear models along the motion from the point.",
    )
    table: Path | None = command_option(
        None,
        "Inputs over time up to --snapshots, as for simulate.",
        POINT,
        "path",
        flag="--input",
        metavar="FILE.csv",
        needs="--snapshots",
    )


@options_of_commands
class LinearizeOptions:
    """Where the linear model goes."""

    output: tuple[Path, ...] = new_files("linear model")
    as_json: bool = json_switch("The linear model as one JSON document on standard output.")


@click.command(
    cls=Command,
    examples=[
        "fmilin linearize four_bar.fmu",
        "fmilin linearize four_bar.fmu --trim --fix phi=1.0 --free torque -o plant.mat",
        'fmilin linearize supplied.fmu --constraint "x^2 + y^2 - L^2"',
        "fmilin linearize loader.toml --independent lift.q,tilt.q",
    ],
)
@MODEL
@model_options.model_options(model_options.Replacement)
@model_options.POINT_OPTIONS
@take("carrying", model_options.Carrying)
@take("snapshots", Snapshots)
@linear_options.linearization_options(formulations=("all",))
@take("coupled", linear_options.Coupled)
@take("cut", linear_options.LoopCut)
@take("steps", linear_options.ConditioningOptions)
@take("written", linear_options.FileWriting)
@take("results", LinearizeOptions)
def command(
    model: str,
    snapshots: Snapshots,
    stepping: Stepping,
    order: str | None,
    formulation: str | None,
    choices: linear_options.FormulationChoices,
    coupled: linear_options.Coupled,
    cut: linear_options.LoopCut,
    steps: linear_options.ConditioningOptions,
    written: linear_options.FileWriting,
    results: LinearizeOptions,
    **request_options: Any,
) -> int:
    """Compute a linear model at an operating point, in independent coordinates.

    Without -o or --json a table is printed.
    """
    times, as_json, writing = snapshots.times, results.as_json, written.to_writing()
    files = list(results.output) if times else options.check_outputs(results.output)
    request = build_request(
        model,
        # A system that is co-simulated as one has steps of its own.
        stepping=None if coupled.as_cosimulated else stepping,
        order=None if coupled.as_cosimulated else order,
        formulation=formulation,
        choices=choices,
        **request_options,
    )
    # Of the models that have equations, in files that carry them; one side of a kink has no descriptor system.
    shows_equations = not (times or cut.wanted or is_fmu(model) or "--one-sided" in request.used_options)
    descriptor = shows_equations and (as_json or any(require_codec(path, "linear model").is_complete for path in files))
    request = replace(request, how=replace(request.how, descriptor=descriptor))
    how = coupled.request(stepping, order)
    if times:
        linear_options.reject_options(linear_options.explain_rejections("linearize_along"), "--snapshots")
    if formulation == "all":
        linear_options.reject_options(DELAYS_OF_ONE, "--formulation all")
    _reject_options_without_meaning(cut, is_cosimulated=coupled.as_cosimulated, is_on_tangent=request.tangent_only)
    if times:
        linear_models.check_files(files, times)
    conditioning = steps.to_conditioning()
    if formulation == "all":
        wants_model = bool(files) or bool(times) or conditioning is not None
        from fmilin.cli.spectrum import require_model

        require_model(wants_model=wants_model, wants_picture=coupled.plot is not None)

    def job(runner: JobRunner) -> None:
        if how is not None:
            linear_models.linearize_cosimulation(request, how, files, runner, as_json=as_json)
            return
        if times:
            linearized = linear_models.linear_models(request, times, runner, snapshots.table)
            linearized = linear_options.condition_models(linearized, conditioning)
            linear_models.deliver_each(linearized, times, files, runner, as_json=as_json, writing=writing)
            return
        if formulation == "all":
            from fmilin.cli.spectrum import compare

            compare(request, choices, runner, as_json=as_json)
            return
        spectrum = None
        if formulation is not None:
            from fmilin.cli.spectrum import one

            spectrum, linear, at = one(request, choices.formulation(formulation), runner)
        else:
            linear, at = linear_models.linear_model(request, runner, cut if cut.wanted else None)
        (linear,) = linear_options.condition_models([linear], conditioning)
        linear_models.deliver(linear, at, files, runner, as_json=as_json, writing=writing)
        if coupled.plot is not None:
            runner.draw(coupled.plot, linear.plot.eigenvalues(), "eigenvalues")
        if spectrum is not None and not files and not as_json:
            from fmilin.report.formulations import show_spectrum

            runner.print_shown(show_spectrum, spectrum)

    return request.work(job)


def _reject_options_without_meaning(cut: linear_options.LoopCut, *, is_cosimulated: bool, is_on_tangent: bool) -> None:
    """Raise UsageError if an option of a linearization has no meaning together with the others."""
    if is_cosimulated:
        linear_options.reject_options(linear_models.REASONS_AGAINST_COSIMULATION, "--as-cosimulated")
    if is_on_tangent:
        linear_options.reject_options(linear_options.explain_rejections("linearize_on_tangent"), "--tangent-only")
    if cut.wanted:
        cut.check()
