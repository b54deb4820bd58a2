"""``fmilin plot FILE|MODEL --kind KIND -o FILE``: pictures of linear models, families and mechanisms."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli import model_options, options
from fmilin.cli.command import Command
from fmilin.cli.derive import (
    MODEL,
    OPTIONS,
    CommandLineOption,
    ValueReader,
    command_option,
    options_of_commands,
    require_file,
    switch,
    take,
)
from fmilin.cli.job_runner import JobRunner
from fmilin.cli.linear_options import linearization_options
from fmilin.cli.request import CommandRequest, at_point, build_request, open_compared_model, refuse_points
from fmilin.errors import UsageError
from fmilin.formats import Writing, matches_suffix, require_codec, suffixes
from fmilin.loading.source_kind import is_fmu, is_system
from fmilin.options.groups import LOOPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.model import LinearModel
    from fmilin.model.interface import Model
    from fmilin.periodic.chart import FloquetChart
    from fmilin.periodic.periodic_model import PeriodicModel

CHANNELS = ("bode", "nyquist", "step")  # from inputs to outputs
LINEAR = (
    "eigenvalues",
    "zeros",
    "modes",
    "participation",
    *CHANNELS,
    "margins",
    "errors",
    "sparsity",
    "sensitivities",
    "reduction",
)
FAMILY = ("eigenvalues", "zeros", "root-locus", "campbell", "surface")
NONLINEAR = ("validity",)
MECHANISM = ("mechanism", "shapes")
PERIODIC = ("multipliers", "floquet-modes", "campbell", "stability")
KINDS = tuple(dict.fromkeys((*LINEAR, *FAMILY, *NONLINEAR, *MECHANISM, *PERIODIC)))
KIND = {"option": CommandLineOption("What to draw.", OPTIONS, "choice", "", choices=KINDS)}


def _numbers(text: str, option: str) -> list[int]:
    """Return ``1,3`` as numbers from 1."""
    items = [item.strip() for item in text.split(",")]
    if any(not item.isdigit() or int(item) < 1 for item in items):
        raise UsageError(f"{option} '{text}': modes are counted from 1, as in {option} 1,3.")
    return [int(item) for item in items]


def _orders(text: str, option: str) -> tuple[float, ...]:
    return options.floats(text, ",", f"{option} '{text}' are not numbers. Write for example {option} 1,2,4.")


@options_of_commands
class Drawing:
    """The options of ``plot``: the kind of picture, and its file."""

    kind: str = field(metadata=KIND)
    output: Path = field(
        metadata=require_file(
            "The picture file to write; .gif: an animation of a mechanism's modes.",
            suffixes("picture", "motion picture"),
        )
    )
    against: str | None = command_option(
        None,
        "The nonlinear model of a linear one; of reduction the file of the full model.",
        OPTIONS,
        "text",
        metavar="MODEL",
    )
    loop_at: list[str] | None = command_option(
        None, "Of margins, bode and nyquist of a system: the loop transfer L at a wire.", LOOPS, "names"
    )
    mode: list[int] | None = command_option(
        None, "Of modes: which, slowest first.", OPTIONS, "numbers", metavar="N,...", reading=ValueReader(str, _numbers)
    )
    amplitude: float | None = command_option(
        None, "Of step, in the unit of each input.", OPTIONS, "number", metavar="A"
    )
    stop_time: float | None = command_option(
        None, "Of step and validity: the duration, in seconds.", OPTIONS, "number", metavar="T"
    )
    quantity: str | None = command_option(
        None, "Of surface: growth, damping, frequency, accuracy, or an entry, A[1,2].", OPTIONS, "text"
    )
    orders: tuple[float, ...] = command_option(
        (),
        "Of campbell: multiples of the axis.",
        OPTIONS,
        "numbers",
        metavar="N,...",
        reading=ValueReader(str, _orders),
    )
    hertz: bool = switch("Of campbell: frequencies in Hz.", OPTIONS)
    factors: bool = switch("Of bode: magnitudes as factors instead of dB.", OPTIONS)

    def check(self) -> None:
        """Make sure that the options go with the kind of picture."""
        conditions = {
            "--loop-at": (self.loop_at is not None, ("margins", "bode", "nyquist")),
            "--mode": (self.mode is not None, ("modes", "floquet-modes", "sensitivities")),
            "--amplitude": (self.amplitude is not None, ("step",)),
            "--stop-time": (self.stop_time is not None, ("step", "validity")),
            "--quantity": (self.quantity is not None, ("surface",)),
            "--orders": (bool(self.orders), ("campbell",)),
            "--hertz": (self.hertz, ("campbell",)),
            "--factors": (self.factors, ("bode",)),
            "--against": (self.against is not None, ("step", "validity", "reduction")),
        }
        for name, (is_given, kinds) in conditions.items():
            if is_given and self.kind not in kinds:
                raise UsageError(
                    f"{name} is for --kind {' or '.join(kinds)}, not {self.kind}. Leave it out of this command."
                )
        if self.kind == "reduction" and self.against is None:
            raise UsageError("--kind reduction shows a reduced linear model beside the full one: --against full.mat.")
        if matches_suffix(self.output, "motion picture") and self.kind != "modes":
            raise UsageError(
                f"Only --kind modes of a mechanism can be animated: draw {self.kind} as .png or .svg, not .gif."
            )


@click.command(
    cls=Command,
    examples=[
        "fmilin plot plant.mat --kind bode -o bode.png",
        "fmilin plot four_bar.fmu --kind step --stop-time 5 -o step.svg",
        "fmilin plot loader.toml --kind modes --trim -o modes.gif",
        "fmilin plot family.nc --kind root-locus -o locus.png",
        "fmilin plot loop.py:loop --kind margins --loop-at plant.u -o margins.png",
    ],
)
@MODEL
@take("drawing", Drawing)
@model_options.model_options(model_options.DiscoveryOptions)
@model_options.POINT_OPTIONS
@take("carrying", model_options.Carrying)
@linearization_options(omit_stepping=("amplitude",))
def command(model: str, drawing: Drawing, **request_options: Any) -> int:
    """Draw a linear model, a family of them, or a mechanism; the picture's path is printed.

    MODEL is a file of a linear model ({linear_files}, .fmu of one), of a family ({family_files}), or what 'fmilin
    linearize' takes: a model that is linearized first, or a mechanism.
    """
    drawing.check()
    request = build_request(drawing.against or model, **request_options)

    def job(runner: JobRunner) -> None:
        content = _draw(model, drawing, request, runner)
        runner.restore_directory()
        runner.write_files({drawing.output: content})
        runner.results.write(f"{drawing.output}\n")

    return request.work(job)


def _draw(source: str, drawing: Drawing, request: CommandRequest, runner: JobRunner) -> bytes:
    from fmilin.export.files import load_result
    from fmilin.export.periodic_record import load_any
    from fmilin.families.family import LinearFamily
    from fmilin.report.figures import encode_picture

    if (periodic := load_any(source)) is not None:
        refuse_points(source, request, drawing.against)
        return encode_picture(_of_periodic(periodic, source, drawing), drawing.output)
    if drawing.kind in PERIODIC and drawing.kind not in FAMILY:
        raise UsageError(
            f"--kind {drawing.kind} draws what 'fmilin floquet {source} -o FILE.nc' (with --vary: -o FILE.json) saves."
        )
    result = load_result(source)
    if result is None:
        if drawing.against is not None:
            raise UsageError(f"--against is for a file of a linear model, and '{source}' is a model itself.")
        if drawing.kind in MECHANISM or matches_suffix(drawing.output, "motion picture"):
            return _mechanism(drawing, request, runner)
        figure = _of_model(drawing, request, runner)
    elif matches_suffix(drawing.output, "motion picture") or drawing.kind in MECHANISM:
        raise UsageError(
            f"--kind {drawing.kind} draws bodies and joints, and '{source}' has none. Name the mechanism, as "
            "MODEL.toml or fmilin.systems:loader."
        )
    else:
        refuse_points(source, request, drawing.against, channels=True)
        figure = (
            _of_family(result, source, drawing)
            if isinstance(result, LinearFamily)
            else _of_linear(result, source, drawing, request, runner)
        )
    return encode_picture(figure, drawing.output)


def _of_periodic(periodic: PeriodicModel | FloquetChart, source: str, drawing: Drawing) -> Figure:
    from fmilin.periodic.chart import FloquetChart
    from fmilin.periodic.periodic_model import PeriodicModel
    from fmilin.report.periodic import floquet_mode_figure, multiplier_figure

    match periodic, drawing.kind:
        case FloquetChart(), "campbell":
            return periodic.campbell()
        case FloquetChart(), "stability":
            return periodic.stability()
        case PeriodicModel(), "multipliers":
            return multiplier_figure(periodic.floquet())
        case PeriodicModel(), "floquet-modes":
            return floquet_mode_figure(periodic.floquet(), drawing.mode)
        case PeriodicModel(), kind if kind in FAMILY:
            return _of_family(periodic.family(), source, drawing)
        case _:
            kinds = "campbell, stability" if isinstance(periodic, FloquetChart) else "multipliers, floquet-modes"
            raise UsageError(
                f"'{source}' was saved by 'fmilin floquet' and cannot be drawn as --kind {drawing.kind}. Choose one "
                f"of {kinds}."
            )


def _of_family(family: LinearFamily, source: str, drawing: Drawing) -> Figure:
    if drawing.kind not in FAMILY:
        raise UsageError(
            f"'{source}' is a family of {len(family)} points: --kind {drawing.kind} draws one linear model. For "
            f"families choose one of {', '.join(FAMILY)}."
        )
    plot = family.plot
    pictures: dict[str, Callable[[], Figure]] = {
        "eigenvalues": plot.eigenvalues,
        "zeros": plot.zeros,
        "root-locus": plot.root_locus,
        "campbell": lambda: plot.campbell(orders=drawing.orders, hertz=drawing.hertz),
        "surface": lambda: plot.surface(drawing.quantity or "growth"),
    }
    return pictures[drawing.kind]()


def _of_linear(
    linear: LinearModel, source: str, drawing: Drawing, request: CommandRequest, runner: JobRunner
) -> Figure:
    against = None
    if drawing.against is not None and drawing.kind != "reduction":
        against = open_compared_model(request, linear, runner)
    elif drawing.kind in NONLINEAR:
        raise UsageError(
            f"--kind {drawing.kind} needs the nonlinear model that '{source}' was made from: --against MODEL."
        )
    return _linear_figure(linear, drawing, request, against)


def _linear_figure(linear: LinearModel, drawing: Drawing, request: CommandRequest, against: Model | None) -> Figure:
    from fmilin.report.loop_margins import is_single_loop

    if drawing.kind in NONLINEAR and against is not None:
        from fmilin.report.verification_report import validity_figure

        return validity_figure(linear.verify(against, horizon=drawing.stop_time))
    if drawing.kind not in LINEAR:
        raise UsageError(
            f"--kind {drawing.kind} draws a family of linear models, and this is one: 'fmilin sweep MODEL --vary "
            "NAME=FROM:TO:COUNT -o FILE.nc' makes one."
        )
    if drawing.kind == "margins" and not is_single_loop(linear):
        raise UsageError(
            "--kind margins draws a loop at one wire of a system: add --loop-at WIRE, named by the input at which it "
            "ends."
        )
    plot, inputs, outputs = linear.plot, request.how.inputs, request.how.outputs
    pictures: dict[str, Callable[[], Figure]] = {
        "eigenvalues": plot.eigenvalues,
        "zeros": lambda: plot.zeros(inputs=inputs, outputs=outputs),
        "modes": lambda: plot.modes(drawing.mode),
        "participation": plot.participation,
        "bode": lambda: plot.bode(inputs=inputs, outputs=outputs, db=not drawing.factors),
        "nyquist": lambda: plot.nyquist(inputs=inputs, outputs=outputs),
        "step": lambda: plot.step(
            inputs=inputs,
            outputs=outputs,
            against=against,
            amplitude=drawing.amplitude,
            stop_time=drawing.stop_time,
        ),
        "margins": plot.margins,
        "errors": plot.errors,
        "sparsity": plot.sparsity,
        "sensitivities": lambda: plot.sensitivities(drawing.mode),
        "reduction": lambda: plot.reduction(type(linear).load(str(drawing.against))),
    }
    return pictures[drawing.kind]()


def _of_model(drawing: Drawing, request: CommandRequest, runner: JobRunner) -> Figure:
    """Linearize, and draw what comes of it."""
    from fmilin.composition.loop_transfer import loop_transfer
    from fmilin.linearization.linearize import linearize_naively, linearize_request

    if drawing.kind in FAMILY and drawing.kind not in LINEAR:
        raise UsageError(
            f"--kind {drawing.kind} draws a family of linear models: 'fmilin sweep {request.source} --vary "
            "NAME=FROM:TO:COUNT -o FILE.nc' makes one."
        )
    model, point = at_point(request, runner)
    if drawing.loop_at is not None:
        loop = loop_transfer(model, drawing.loop_at, point, linearization=request.how)
        return _linear_figure(loop, drawing, request, model)
    linear = linearize_request(model, point, request.how)
    if drawing.kind == "eigenvalues":
        all_independent = len(linear.states) == len(linear.full_states)
        return linear.plot.eigenvalues(None if all_independent else linearize_naively(model, point))
    return _linear_figure(linear, drawing, request, model)


def _mechanism(drawing: Drawing, request: CommandRequest, runner: JobRunner) -> bytes:
    """Draw a mechanism in its configuration, in its mode shapes, or moving in them."""
    import numpy as np

    from fmilin.linearization.linearize import linearize_request
    from fmilin.models.mechanism import MechanismDescription
    from fmilin.report.figures import encode_picture
    from fmilin.report.mechanism_picture import MovingMechanism, mechanism_figure

    model, point = at_point(request, runner)
    description = getattr(model, "description", None)
    if not isinstance(description, MechanismDescription):
        what = "an FMU" if is_fmu(request.source) or is_system(request.source) else "a model of equations alone"
        raise UsageError(
            f"'{request.source}' is {what}: it has no bodies and joints that could be drawn. Name a mechanism, as "
            "MODEL.toml, ROBOT.urdf, ROBOT.sdf or fmilin.systems:loader."
        )
    if drawing.kind == "mechanism":
        states = dict(zip(model.states.names, point.states.tolist(), strict=True))
        is_start = np.array_equal(point.states, model.start.states)
        caption = "at its start" if is_start else "at the operating point"
        figure = mechanism_figure(description, states=states, caption=caption)
        return encode_picture(figure, drawing.output, dpi=120)
    linear = linearize_request(model, point, replace(request.how, inputs=None, outputs=None))
    if not matches_suffix(drawing.output, "motion picture"):
        return encode_picture(mechanism_figure(description, linear), drawing.output, dpi=120)
    moving = MovingMechanism(description, linear, drawing.mode)
    return require_codec(drawing.output, "motion picture").dumps(moving, Writing())
