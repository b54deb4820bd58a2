"""``fmilin simulate MODEL``: integrate on the manifold; as CSV, as a picture, beside a linear model."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fmilin.cli import options
from fmilin.cli.job_runner import JobRunner, work
from fmilin.cli.opening import is_fmu, open_model
from fmilin.cli.progress import progress_bar
from fmilin.cli.request import Request
from fmilin.errors import UsageError

if TYPE_CHECKING:
    from fmilin.model.interface import Model, OperatingPoint
    from fmilin.simulation.formulation import Formulation
    from fmilin.simulation.inputs import InputTable
    from fmilin.simulation.linear_response import Comparison
    from fmilin.simulation.method import Method
    from fmilin.simulation.trajectory import Trajectory

__all__ = ["Run", "command"]


class Formulations(StrEnum):
    """How the states are kept on the manifold."""

    PROJECTION = "projection"
    LOCAL = "local"
    BAUMGARTE = "baumgarte"
    NONE = "none"


class Methods(StrEnum):
    """The integrators."""

    DOP853 = "DOP853"
    RK45 = "RK45"
    RK23 = "RK23"
    RADAU = "Radau"
    BDF = "BDF"
    RK4 = "RK4"


@dataclass(frozen=True)
class Run:
    """How to integrate, as the command line says.

    Parameters
    ----------
    start, stop, step : float or None
        In seconds.
    formulation, method : str
    tolerance, longest_step : float or None
    energy : str or None
        An expression or the name of a variable.
    keeps_energy : bool
    """

    stop: float
    start: float | None = None
    step: float | None = None
    formulation: str = "projection"
    method: str = "DOP853"
    tolerance: float | None = None
    longest_step: float | None = None
    energy: str | None = None
    keeps_energy: bool = False

    def integrator(self) -> Method:
        """Return the method with its tolerances; RK4 steps from sample to sample when no step is given."""
        from fmilin.simulation.method import Method

        relative = Method().relative if self.tolerance is None else self.tolerance
        longest = self.longest_step
        if longest is None:
            longest = self.step if self.method == "RK4" and self.step is not None else float("inf")
        return Method(self.method, relative, relative / 100, longest)

    def way(self) -> Formulation:
        """Return the formulation."""
        from fmilin.simulation.formulations import Projection, formulation_named

        return Projection(keeps_energy=True) if self.keeps_energy else formulation_named(self.formulation)


def command(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="model.fmu, path/to/file.py:name or package.module:name")
    ],
    stop_time: Annotated[float, typer.Option(metavar="T", help="In seconds.")],
    start_time: Annotated[float | None, typer.Option(metavar="T", help="In seconds; the model's own start.")] = None,
    step: Annotated[
        float | None, typer.Option(metavar="H", help="Of the samples, in seconds; a 500th of the whole.")
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option("--input", metavar="FILE.csv", help="Inputs over time: a column 'time', and one per input."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Repeatable: a start value, parameter or input."),
    ] = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Repeatable: an expression or a variable that must be zero."),
    ] = None,
    constraints: Annotated[Path | None, typer.Option(metavar="FILE.toml", help="The same from a file.")] = None,
    no_constraints: Annotated[
        bool, typer.Option("--no-constraints", help="Integrate all states as they are, as other tools do.")
    ] = False,
    point: Annotated[
        Path | None, typer.Option("--point", metavar="FILE", help="A point that 'fmilin trim -o' saved: .toml .json")
    ] = None,
    project: Annotated[
        bool, typer.Option("--project", help="Start from the nearest point that satisfies the constraints.")
    ] = False,
    outputs: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="A choice and an order; der(x) and any continuous variable may be one."),
    ] = None,
    formulation: Annotated[
        Formulations, typer.Option(help="How the states are kept on the manifold.")
    ] = Formulations.PROJECTION,
    method: Annotated[Methods, typer.Option(help="Radau and BDF for stiff models.")] = Methods.DOP853,
    tolerance: Annotated[float | None, typer.Option(metavar="R", help="Relative, of one step; 1e-9.")] = None,
    longest_step: Annotated[
        float | None, typer.Option(metavar="H", help="Of the integrator, in seconds; the step of RK4.")
    ] = None,
    energy: Annotated[
        str | None, typer.Option(metavar="TEXT", help="An expression or a variable that is recorded as the energy.")
    ] = None,
    keep_energy: Annotated[
        bool, typer.Option("--keep-energy", help="Project onto the energy of the start, too.")
    ] = False,
    against: Annotated[
        Path | None, typer.Option(metavar="LINEAR", help="Compare with a linear model: .mat .npz .json")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.csv", help="Every state and output over time.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png", help="A picture.")] = None,
    no_isolation: Annotated[
        bool, typer.Option("--no-isolation", help="Load the FMU in this process instead of a child.")
    ] = False,
    timeout: options.Timeout = options.TIMEOUT,
    memory: options.Memory = None,
    compile_sources: options.Compile = False,
    unpack_limit: options.UnpackLimit = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> int:
    """Integrate a model on the manifold of its constraints.

    Without -o or --plot a summary is printed.
    """
    if no_constraints and (constraint or constraints):
        raise UsageError("--no-constraints contradicts --constraint and --constraints. Leave one of them out.")
    if keep_energy and formulation is not Formulations.PROJECTION:
        raise UsageError("--keep-energy goes with --formulation projection. Leave one of them out.")
    _check_file(output, ".csv", "-o")
    _check_file(plot, ".png", "--plot")
    run = Run(
        stop=_finite(stop_time, "--stop-time"),
        start=options.finite(start_time, "--start-time"),
        step=options.finite(step, "--step"),
        formulation=formulation.value,
        method=method.value,
        tolerance=options.finite(tolerance, "--tolerance"),
        longest_step=options.finite(longest_step, "--longest-step"),
        energy=energy,
        keeps_energy=keep_energy,
    )
    request = Request(
        source=model,
        fmu=options.fmu(unpack_limit, compile_sources=compile_sources),
        settings=options.assignments(settings or []),
        constraints=[] if no_constraints else constraint or None,
        constraints_file=constraints,
        outputs=options.names(outputs, "--outputs"),
        time=run.start,
        project=project,
        point=point,
    )

    def job(runner: JobRunner) -> None:
        table = _inputs(inputs)
        loaded, start = _opened(request, runner)
        trajectory = _simulated(loaded, start, run, table)
        runner.come_home()
        comparison = None if against is None else _compared(trajectory, against, run, table)
        name = loaded.info.name
        _write(trajectory, comparison, name, output, plot)
        _print(trajectory, comparison, name, runner, quiet=bool(output or plot))

    return work(
        job,
        isolate=is_fmu(model) and not no_isolation,
        debug=debug,
        limits=options.limits(timeout, memory),
    )


# -- the job -----------------------------------------------------------------------------------------


def _opened(request: Request, runner: JobRunner) -> tuple[Model, OperatingPoint]:
    from fmilin.cli.points import assembled, with_saved_point

    request, saved = with_saved_point(request)
    model, values = open_model(request, runner)
    point = assembled(model, values, request, saved)
    if request.outputs is not None:
        model = model.with_interface(None, request.outputs)
    return model, point


def _simulated(model: Model, point: OperatingPoint, run: Run, table: InputTable | None) -> Trajectory:
    import fmilin as fl

    with progress_bar(model.info.name, point.time, run.stop) as progress:
        return fl.simulate(
            model,
            point,
            stop_time=run.stop,
            step=run.step,
            inputs=table,
            formulation=run.way(),
            method=run.integrator(),
            energy=run.energy,
            progress=progress,
        )


def _inputs(path: Path | None) -> InputTable | None:
    if path is None:
        return None
    from fmilin.simulation.table_files import read_inputs

    return read_inputs(path)


def _compared(trajectory: Trajectory, path: Path, run: Run, table: InputTable | None) -> Comparison:
    from fmilin.linear_model.model import LinearModel
    from fmilin.simulation.linear_response import compare

    return compare(trajectory, LinearModel.load(path), inputs=table, method=run.integrator())


def _write(
    trajectory: Trajectory, comparison: Comparison | None, name: str, output: Path | None, plot: Path | None
) -> None:
    """Make all files before the first is written."""
    from fmilin.export.atomic import write_atomically

    contents: dict[Path, bytes] = {}
    if output is not None:
        from fmilin.simulation.table_files import trajectory_as_csv

        contents[output] = trajectory_as_csv(trajectory)
    if plot is not None:
        contents[plot] = _picture(trajectory, comparison, name)
    for path, content in contents.items():
        write_atomically(path, content)


def _picture(trajectory: Trajectory, comparison: Comparison | None, name: str) -> bytes:
    try:
        from fmilin.report.trajectory_picture import trajectory_picture

        return trajectory_picture(trajectory, comparison, title=name)
    except ModuleNotFoundError as error:
        raise UsageError(f"A picture needs {error.name}, which is not installed: pip install {error.name}.") from None


def _print(trajectory: Trajectory, comparison: Comparison | None, name: str, runner: JobRunner, *, quiet: bool) -> None:
    from fmilin.report.trajectory_table import print_comparison, print_trajectory

    if quiet:
        for remark in trajectory.remarks:
            sys.stderr.write(f"Warning: {remark}\n")
    else:
        print_trajectory(trajectory, name, runner.results)
    if comparison is not None:
        print_comparison(comparison, "the linear model", runner.results)


def _check_file(path: Path | None, suffix: str, option: str) -> None:
    if path is None:
        return
    if path.suffix.lower() != suffix:
        raise UsageError(f"{option} '{path}': the file has to end in {suffix}.")
    from fmilin.export.atomic import check_writable

    check_writable(path)


def _finite(value: float, option: str) -> float:
    options.finite(value, option)
    return value
