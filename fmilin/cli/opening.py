"""From what was asked on the command line to an open model and the values of its states and inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fmilin.cli.job_runner import JobRunner
from fmilin.cli.options import is_fmu
from fmilin.errors import UnknownNameError, UsageError, nearest_names

if TYPE_CHECKING:
    from fmilin.cli.request import Request
    from fmilin.fmi.read.options import FmuOptions
    from fmilin.model.interface import Model

__all__ = ["open_model"]


def open_model(request: Request, runner: JobRunner) -> tuple[Model, dict[str, float]]:
    """Return the model, which ``runner`` will close, and the states and inputs among the settings.

    States and inputs belong to the operating point. Everything else is a parameter or start value, which
    an FMU takes before it is initialized.
    """
    import fmilin as fl

    fmu = is_fmu(request.source)
    if request.interface is not None and not fmu:
        raise UsageError(f"--interface is for FMUs, and '{request.source}' is none. Leave it out.")
    begins: dict[str, float] = {}
    if fmu:
        names, begins = _places_in_fmu(request)
    else:
        names = _places_in_python(request.source, request.settings)
    point = {name: value for name, value in request.settings.items() if name in names}
    try:
        model = fl.load(
            request.source,
            constraints=request.constraints,
            constraints_file=request.constraints_file,
            parameters={name: value for name, value in request.settings.items() if name not in names} | begins,
            time=request.time if fmu else None,
            interface=request.interface,
            fmu=_fmu_options(request),
        )
    except UnknownNameError as error:
        near = nearest_names(error.name, names)
        if error.name not in request.settings or not near:
            raise
        known = [*near, *error.suggestions]
        raise UnknownNameError.among(error.name, known, "a state, input or parameter of the model") from None
    return runner.borrow(model), point


def _fmu_options(request: Request) -> FmuOptions | None:
    """Return how the FMU is opened: for a discrete model its discrete-time numbers are wanted, too."""
    if request.stepping is None or not request.stepping.lifted:
        return request.fmu
    from fmilin.fmi.read.options import FmuOptions

    return replace(request.fmu or FmuOptions(), sampled=True)


def _places_in_fmu(request: Request) -> tuple[set[str], dict[str, float]]:
    """Return which settings are states or inputs, from the description alone, and which of them it begins with.

    A co-simulation FMU may not let its states be set later, so it begins with them.
    """
    if not request.settings:
        return set(), {}
    from fmilin.fmi.read.archive import read_description
    from fmilin.fmi.read.layout import Layout
    from fmilin.fmi.read.settings import structural_sizes
    from fmilin.loading import INTERFACES

    description = read_description(Path(request.source), request.fmu)
    if request.interface is not None:
        description = description.through(INTERFACES[request.interface])
    if description.fmi_version.startswith("1") and description.interface == "ModelExchange":
        return _places_in_code(request), {}
    layout = Layout(description, structural_sizes(description, request.settings))
    found = {name: layout.find(name) for name in request.settings}
    kinds = {
        name: (place.kind, scalar.variable.is_settable)
        for name, scalar in found.items()
        if scalar is not None and (place := layout.place(scalar)) is not None
    }
    names = {name for name, (kind, _) in kinds.items() if kind in ("state", "input")}
    stepped = description.interface == "CoSimulation"
    begins = [name for name, kind in kinds.items() if stepped and kind == ("state", True)]
    return names, {name: request.settings[name] for name in begins}


def _places_in_code(request: Request) -> set[str]:
    """Return the names of all states and inputs of an FMU of FMI 1.0, whose code alone knows its states."""
    import fmilin as fl

    with fl.load(request.source, constraints=[], fmu=request.fmu) as model:
        known = {*model.states.positions, *model.inputs.positions}
        return {name for name in request.settings if name in known or model.states.has(name)}


def _places_in_python(source: str, settings: Mapping[str, float]) -> set[str]:
    """Return the names of all states and inputs of a native model."""
    if not settings:
        return set()
    import fmilin as fl

    with fl.load(source) as model:
        return {*model.states.positions, *model.inputs.positions}
