"""``fmilin linearize system.ssp --as-cosimulated``: the linear model of a co-simulation itself."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fmilin.cli.job_runner import JobRunner
from fmilin.cli.options import grouped, names, one_of, picture_option
from fmilin.ground.errors import UsageError

if TYPE_CHECKING:
    from fmilin.cli.request import Request
    from fmilin.cli.stepping import Stepped

__all__ = ["Coupled", "Wanted", "composition_options", "linearize_cosimulation"]


@dataclass(frozen=True)
class Wanted:
    """A co-simulation that is to be linearized."""

    step: float
    master: str
    order: tuple[str, ...]
    plot: Path | None


@dataclass(frozen=True)
class Coupled:
    """What stands on the command line about a system of several members."""

    as_cosimulated: bool
    master: str | None
    plot: Path | None

    def asked(self, stepped: Stepped) -> Wanted | None:
        """Return what was asked for; None when nothing was."""
        if not self.as_cosimulated:
            if self.master is not None:
                raise UsageError("--master goes with --as-cosimulated. Add it, or leave it out.")
            return None
        if stepped.step is None:
            raise UsageError("--as-cosimulated needs the communication step: --step SECONDS.")
        if stepped.lifted or stepped.method != "auto":
            raise UsageError("--as-cosimulated does not go with --lifted or --method. Leave them out.")
        master = self.master or "jacobi"
        order = tuple(names(stepped.order, "--order") or ())
        if order and master == "jacobi":
            raise UsageError("--order is for --master gauss-seidel: a Jacobi master steps all members at once.")
        return Wanted(stepped.step, master, order, self.plot)


composition_options = grouped(
    "coupled",
    Coupled,
    click.option(
        "--as-cosimulated", is_flag=True, help="Of a system: the discrete model of its co-simulation, with its delays."
    ),
    click.option("--master", type=one_of("jacobi", "gauss-seidel"), help="Of the co-simulation; jacobi."),
    picture_option("A picture: of the eigenvalues; with --as-cosimulated of the damping lost."),
)


def linearize_cosimulation(
    request: Request, wanted: Wanted, files: Sequence[Path], runner: JobRunner, *, as_json: bool
) -> None:
    """Deliver the discrete linear model of a co-simulation; without files or JSON the table of its damping."""
    import fmilin as fl
    from fmilin.cli.points import at_point
    from fmilin.connected.system import ConnectedModel

    model, point = at_point(request, runner)
    if not isinstance(model, ConnectedModel):
        raise UsageError(f"'{request.source}' is no system of several members: --as-cosimulated is for those.")
    model = model.with_interface(request.inputs, request.outputs)
    found = fl.cosimulated(model, _on(model, point), step=wanted.step, master=wanted.master, order=wanted.order)
    _deliver(found, wanted, files, runner, as_json=as_json)


def _on(model: Any, point: Any) -> Any:
    """Return the point with the inputs that were chosen; the others stand at their start values."""
    if len(point.inputs) == len(model.inputs):
        return point
    from dataclasses import replace

    return replace(point, inputs=model.start.inputs)


def _deliver(found: Any, wanted: Wanted, files: Sequence[Path], runner: JobRunner, *, as_json: bool) -> None:
    from fmilin.ground.files import write_atomically
    from fmilin.output.export.files import dumps

    runner.restore_directory()
    contents = {path: dumps(found.linear, path) for path in files}
    if wanted.plot is not None:
        from fmilin.output.report.cosimulation import cosimulation_picture

        contents[wanted.plot] = cosimulation_picture(found, wanted.plot.suffix)
    for path, content in contents.items():
        write_atomically(path, content)
        sys.stderr.write(f"{path}: co-simulation over steps of {wanted.step:g} s\n")
    if as_json:
        runner.results.write(dumps(found.linear, "results.json").decode("ascii"))
    elif not files:
        from fmilin.output.report.cosimulation import print_cosimulation

        print_cosimulation(found, runner.results)
