"""From what was asked on the command line to an open model and the values of its states and inputs."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from fmilin.cli.job_runner import JobRunner
from fmilin.cli.options import is_fmu, is_system
from fmilin.ground.errors import UsageError

if TYPE_CHECKING:
    from fmilin.cli.request import Request
    from fmilin.fmi.read.archive import FmuOptions
    from fmilin.model.interface import Model

__all__ = ["open_model"]


def open_model(request: Request, runner: JobRunner) -> tuple[Model, dict[str, float]]:
    """Return the model, which ``runner`` will close, and the states and inputs among the settings.

    States and inputs belong to the operating point. Everything else is a parameter or start value, which
    an FMU takes before it is initialized.
    """
    from fmilin.loading.load import LoadRequest, load_as
    from fmilin.model.point_files import load_point

    fmu = is_fmu(request.source)
    if request.interface is not None and not fmu:
        raise UsageError(f"--interface is for FMUs, and '{request.source}' is none. Leave it out.")
    wanted = LoadRequest(
        constraints=request.constraints,
        constraints_file=request.constraints_file,
        settings=request.settings,
        time=request.time if fmu or is_system(request.source) else None,
        interface=request.interface,
        fmu=_fmu_options(request, runner),
        options=request.options,
        saved=load_point(request.point) if request.point is not None and request.options.get("hold") else None,
    )
    model = runner.borrow(load_as(request.source, wanted))
    if request.discover:
        model = _with_discovered(model)
    return model, {n: v for n, v in request.settings.items() if model.states.has(n) or model.inputs.has(n)}


def _with_discovered(model: Model) -> Model:
    """Return the model with the constraints that are found, and say which on standard error."""
    from fmilin.discovery.procedure import discover

    found = discover(model)
    for remark in found.warnings:
        sys.stderr.write(f"Warning: {remark}\n")
    for finding in found.findings:
        sys.stderr.write(f"Found: {finding.expression} = 0 ({finding.level})\n")
    if not found.findings:
        sys.stderr.write("Found: no constraint; all states are treated as independent\n")
    return model.with_constraints(found.declared)


def _fmu_options(request: Request, runner: JobRunner) -> FmuOptions | None:
    """Return how the FMU is opened: for a discrete model its discrete-time numbers are wanted, too."""
    lifted = request.stepping is not None and request.stepping.lifted
    if not lifted and runner.instances == "shared":
        return request.fmu
    from fmilin.fmi.read.archive import FmuOptions

    return replace(request.fmu or FmuOptions(), sampled=lifted, instances=runner.instances)
