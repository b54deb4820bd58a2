"""``fmilin design MODEL --lqg``: from a model to a sampled regulator, its margins, and files for the target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from fmilin.cli import linear_options, model_options, options
from fmilin.cli.command import Command
from fmilin.cli.derive import (
    FILES,
    MODEL,
    OPTIONS,
    WEIGHTS,
    ValueReader,
    command_option,
    json_switch,
    new_file,
    options_of_commands,
    switch,
    take,
)
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.request import CommandRequest, at_point, build_request, open_compared_model, refuse_points
from fmilin.errors import NumericalError, UsageError
from fmilin.formats import suffixes

if TYPE_CHECKING:
    from fmilin.design.kalman import KalmanFilter
    from fmilin.design.regulator_design import RegulatorDesign
    from fmilin.design.regulator_verification import RegulatorVerification
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import Model

SUFFIXES = tuple(dict.fromkeys((*suffixes("linear model"), ".html")))


@options_of_commands
class RegulatorOptions:
    """The arguments of :func:`fmilin.design.lqg` and :func:`fmilin.design.loop_shaping`."""

    states: dict[str, float] = command_option(
        {},
        "The weight of a state or output in the cost, such as 1/(largest deviation)^2.",
        WEIGHTS,
        "assignment lists",
        flag="--state-weight",
        metavar="NAME=W,...",
    )
    inputs: dict[str, float] = command_option(
        {},
        "The weight of an input that the regulator drives.",
        WEIGHTS,
        "assignment lists",
        flag="--input-weight",
        metavar="NAME=W,...",
    )
    process: dict[str, float] = command_option(
        {},
        "The spectral density of process noise in an input; with --hold-noise its variance.",
        WEIGHTS,
        "assignment lists",
        metavar="NAME=Q,...",
    )
    measured: dict[str, float] = command_option(
        {}, "A measured output, with the variance of a sample.", WEIGHTS, "assignment lists", metavar="NAME=R,..."
    )
    sample_time: float | None = command_option(None, "The time between samples.", WEIGHTS, "number", metavar="SECONDS")
    track: list[str] | None = command_option(
        None, "Measured outputs that follow references, with integral action.", WEIGHTS, "names"
    )
    limits: dict[str, tuple[float, float]] = command_option(
        {},
        "The limits of an actuator, which the regulator keeps without wind-up.",
        WEIGHTS,
        "special",
        flag="--limit",
        metavar="NAME=LO:HI",
        reading=ValueReader(str, options.bounds, is_repeatable=True),
    )
    hold_noise: bool = switch("Process noise is constant over each sample.", WEIGHTS)
    input_size: dict[str, float] = command_option(
        {},
        "An amplitude that an input usually has, for --loop-shaping.",
        WEIGHTS,
        "assignment lists",
        metavar="NAME=U,...",
    )
    output_size: dict[str, float] = command_option(
        {},
        "A measured output, with a deviation that matters, for --loop-shaping.",
        WEIGHTS,
        "assignment lists",
        metavar="NAME=Y,...",
    )
    crossover: float | None = command_option(
        None, "Where the shaped gain crosses 1, for --loop-shaping.", WEIGHTS, "number", metavar="RAD/S"
    )

    def design(self, linear: LinearModel) -> RegulatorDesign:
        """Return the LQG regulator of a linear model."""
        import fmilin as fl

        required = (
            ("--state-weight", "NAME=WEIGHT", self.states, linear.states.names),
            ("--input-weight", "NAME=WEIGHT", self.inputs, linear.inputs.names),
            ("--process", "NAME=DENSITY", self.process, linear.inputs.names),
            ("--measured", "NAME=VARIANCE", self.measured, linear.outputs.names),
            ("--sample-time", "SECONDS", self.sample_time, ()),
        )
        _require_options("An LQG regulator requires weights, noise and a sample time", required)
        return fl.design.lqg(
            linear,
            states=self.states,
            inputs=self.inputs,
            process=self.process,
            measured=self.measured,
            sample_time=float(self.sample_time or 0.0),
            track=self.track or (),
            limits=self.limits,
            hold_noise=self.hold_noise,
        )

    def filter(self, linear: LinearModel) -> KalmanFilter:
        """Return the Kalman filter of a linear model, from its measured outputs alone."""
        import fmilin as fl
        from fmilin.linear_model.system_zeros import select_channels

        required = (
            ("--process", "NAME=DENSITY", self.process, linear.inputs.names),
            ("--measured", "NAME=VARIANCE", self.measured, linear.outputs.names),
            ("--sample-time", "SECONDS", self.sample_time, ()),
        )
        _require_options("A Kalman filter requires noise and a sample time", required)
        return fl.design.kalman_filter(
            select_channels(linear, None, list(self.measured)),
            float(self.sample_time or 0.0),
            process=self.process,
            measured=self.measured,
            hold_noise=self.hold_noise,
        )

    def shape(self, linear: LinearModel) -> RegulatorDesign:
        """Return the regulator of a linear model by H-infinity loop shaping."""
        import fmilin as fl

        required = (
            ("--input-size", "NAME=U", self.input_size, linear.inputs.names),
            ("--output-size", "NAME=Y", self.output_size, linear.outputs.names),
            ("--crossover", "RAD/S", self.crossover, ()),
            ("--sample-time", "SECONDS", self.sample_time, ()),
        )
        _require_options("Loop shaping requires sizes of inputs and outputs, a crossover and a sample time", required)
        return fl.design.loop_shaping(
            linear,
            inputs=self.input_size,
            measured=self.output_size,
            crossover=float(self.crossover or 0.0),
            sample_time=float(self.sample_time or 0.0),
            track=self.track or (),
            limits=self.limits,
        )


def _require_options(sentence: str, required: Sequence[tuple[str, str, object, Sequence[str]]]) -> None:
    """Name the first option that is missing: flag, example, value and the names that it may have."""
    for flag, example, value, names in required:
        if not value:
            listed = f" Names here: {', '.join(names[:8])}." if names else ""
            raise UsageError(f"{sentence}. Add the option that is missing: {flag} {example}.{listed}")


@options_of_commands
class DesignOptions:
    """The options of ``design``: the method, the check, and the files."""

    lqg: bool = switch("Optimal feedback on the estimates of a Kalman filter, sampled.", OPTIONS)
    loop_shaping: bool = switch("The most robust regulator of a shaped loop (H-infinity), sampled.", OPTIONS)
    kalman: bool = switch("A Kalman filter alone, of the measured outputs, sampled.", OPTIONS)
    against: str | None = command_option(
        None, "Of a file of a linear model: the nonlinear model, on which the regulator runs.", OPTIONS, "text",
        metavar="MODEL",
    )  # fmt: skip
    no_verify: bool = switch("Do not run the regulator on the nonlinear model.", OPTIONS)
    output: tuple[Path, ...] = command_option(
        (),
        "The regulator or filter; the suffix picks the format: " + " ".join(SUFFIXES) + " (.html: a report)",
        FILES,
        "paths",
        flag="--output",
        short="-o",
        metavar="FILE",
        reading=ValueReader(options.NewFile(SUFFIXES), is_repeatable=True),
    )
    plot: Path | None = new_file("A picture of sensitivities and closed-loop poles.", suffixes("picture"))
    precision: Literal["double", "single"] = command_option(
        "double", "Precision of the numbers in C code.", FILES, "choice", choices=("double", "single")
    )
    fmi: Literal["2.0", "3.0"] = command_option(
        "2.0", "Version of the standard, for .fmu.", FILES, "choice", choices=("2.0", "3.0")
    )
    as_json: bool = json_switch("Gains, margins and poles as one JSON document on standard output.")


@click.command(
    cls=Command,
    examples=[
        "fmilin design four_bar.fmu --lqg --state-weight phi=100,w=1 --input-weight torque=1 --process torque=0.1 "
        "--measured phi=1e-6 --sample-time 0.01 -o controller.c",
        "fmilin design plant.mat --lqg --state-weight phi=10 --input-weight torque=1 --process torque=0.1 "
        "--measured phi=1e-4 --sample-time 0.02 --track phi --limit torque=-5:5 -o controller.fmu -o report.html",
        "fmilin design plant.mat --loop-shaping --input-size torque=1 --output-size phi=0.1 --crossover 5 "
        "--sample-time 0.02 -o controller.c",
        "fmilin design plant.mat --kalman --process torque=0.1 --measured phi=1e-6 --sample-time 0.01 -o filter.c",
    ],
)
@MODEL
@take("results", DesignOptions)
@take("weights", RegulatorOptions)
@model_options.model_options(model_options.DiscoveryOptions)
@model_options.POINT_OPTIONS
@linear_options.linearization_options()
def command(model: str, results: DesignOptions, weights: RegulatorOptions, **request_options: Any) -> int:
    """Design a sampled regulator, and run it on the nonlinear model; or a filter.

    MODEL is what 'fmilin linearize' takes, or a file of a linear model ({linear_files}), with --against MODEL for the
    run. Without -o a table is printed; -o saves the regulator and prints its margins.
    Ends with status 5 when the nonlinear closed loop is unstable.
    """
    if sum((results.lqg, results.loop_shaping, results.kalman)) != 1:
        number = (
            "More than one method of design is" if results.lqg or results.loop_shaping else "No method of design is"
        )
        raise UsageError(
            f"{number} named. Add --lqg with weights and noise, --loop-shaping with sizes and a crossover, or --kalman "
            "with noise, for a filter alone."
        )
    if results.kalman and (results.against is not None or results.plot is not None):
        raise UsageError(
            "--kalman designs a filter, which closes no loop: leave out --against and --plot. 'fl.design.filtered' "
            "runs a filter on recorded data, or on a simulation of the nonlinear model."
        )
    for path in results.output:
        if path.suffix.lower() not in SUFFIXES:
            raise UsageError(f"-o '{path}': a regulator is saved as {' '.join(SUFFIXES)}.")
        from fmilin.support.files import check_writable

        check_writable(path)
    options.require_apart(results.output)
    if results.against is not None and results.no_verify:
        raise UsageError("--against names the model on which the regulator runs: leave out --no-verify, or --against.")
    request = build_request(results.against or model, **request_options)

    def job(runner: JobRunner) -> None:
        linear, nonlinear = _find_models(model, request, runner, results.against)
        if results.kalman:
            _deliver_filter(weights.filter(linear), results, runner)
            return
        design = weights.shape(linear) if results.loop_shaping else weights.design(linear)
        verification = None
        if nonlinear is not None and not results.no_verify:
            verification = design.verify(nonlinear)
        _deliver(design, verification, results, runner)

    return request.work(job)


def _find_models(
    source: str, request: CommandRequest, runner: JobRunner, against: str | None
) -> tuple[LinearModel, Model | None]:
    """Return the linear model of a file, or of a model at its point, with that model."""
    from fmilin.export.files import load_result
    from fmilin.families.family import LinearFamily
    from fmilin.linearization.linearize import linearize_request

    result = load_result(source)
    if result is None:
        if against is not None:
            raise UsageError(
                f"--against is for a file of a linear model, and '{source}' is a model itself, on which the regulator "
                "runs."
            )
        model, point = at_point(request, runner)
        return linearize_request(model, point, request.how), model
    refuse_points(source, request, against, channels=True)
    if isinstance(result, LinearFamily):
        raise UsageError(f"'{source}' is a family of linear models. A regulator is designed from one of them.")
    return result, None if against is None else open_compared_model(request, result, runner)


def _deliver_filter(kalman: KalmanFilter, results: DesignOptions, runner: JobRunner) -> None:
    """Write the files and print."""
    runner.restore_directory()
    for path in results.output:
        kalman.save(path, precision=results.precision, fmi=results.fmi)
        runner.say(f"{path}: the filter, every {kalman.sampled.sample_time:g} s\n")
    if results.as_json:
        runner.print_json(
            {
                "states": list(kalman.linear.states.names),
                "measured": list(kalman.linear.outputs.names),
                "gain": kalman.gain.tolist(),
                "covariance": kalman.covariance.tolist(),
                "sample_time": kalman.sampled.sample_time,
            }
        )
    elif not results.output:
        runner.print_shown(type(kalman)._print_table, kalman)


def _deliver(
    design: RegulatorDesign,
    verification: RegulatorVerification | None,
    results: DesignOptions,
    runner: JobRunner,
) -> None:
    """Write the files and print; then complain if the nonlinear loop is unstable."""
    from fmilin.report.regulator_report import show_verification_of_regulator, summarize_design

    runner.restore_directory()
    for path in results.output:
        design.save(path, precision=results.precision, fmi=results.fmi, verification=verification)
        runner.say(f"{path}: the regulator, every {design.regulator.sample_time:g} s\n")
    if results.plot is not None:
        runner.draw(results.plot, design.plot(), "sensitivities at each wire, and closed-loop poles")
    if results.as_json:
        document = design.to_document()
        if verification is not None:
            document["verification"] = verification.to_document()
        runner.print_json(document)
    elif results.output:
        runner.say(summarize_design(design, verification))
    else:
        runner.print_shown(type(design)._print_table, design)
        if verification is not None:
            runner.print_shown(show_verification_of_regulator, verification)
    if verification is not None and verification.stable is False:
        raise NumericalError(
            "The regulator stabilizes the linear model, but not the nonlinear one after a disturbance of a hundredth "
            "of the sizes of its states. Use a larger --input-weight, a shorter --sample-time, or another point."
        )
