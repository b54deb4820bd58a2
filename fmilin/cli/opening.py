"""From what was asked on the command line to an open model and the values of its states and inputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fmilin.cli.desk import Desk
from fmilin.errors import UnknownNameError, nearest_names

if TYPE_CHECKING:
    from fmilin.cli.linearize import Request
    from fmilin.model import Model

__all__ = ["is_fmu", "open_model"]


def is_fmu(source: str) -> bool:
    """Whether ``source`` names an FMU: foreign code that should not run in this process."""
    return source.lower().endswith(".fmu")


def open_model(request: Request, desk: Desk) -> tuple[Model, dict[str, float]]:
    """Return the model, which ``desk`` will close, and the states and inputs among the settings.

    States and inputs belong to the operating point. Everything else is a parameter or start value, which
    an FMU takes before it is initialized.
    """
    import fmilin as fl

    fmu = is_fmu(request.source)
    names = (
        _places_in_fmu(request.source, request.settings) if fmu else _places_in_python(request.source, request.settings)
    )
    point = {name: value for name, value in request.settings.items() if name in names}
    try:
        model = fl.load(
            request.source,
            constraints=request.constraints,
            constraints_file=request.constraints_file,
            parameters={name: value for name, value in request.settings.items() if name not in names},
            time=request.time if fmu else None,
        )
    except UnknownNameError as error:
        near = nearest_names(error.name, names)
        if error.name not in request.settings or not near:
            raise
        known = [*near, *error.suggestions]
        raise UnknownNameError.among(error.name, known, "a state, input or parameter of the model") from None
    return desk.borrow(model), point


def _places_in_fmu(source: str, settings: Mapping[str, float]) -> set[str]:
    """Return which names are continuous states or inputs, from the description alone."""
    if not settings:
        return set()
    from fmilin.fmi.read.archive import read_description
    from fmilin.fmi.read.layout import Layout
    from fmilin.fmi.read.settings import structural_sizes

    description = read_description(Path(source))
    layout = Layout(description, structural_sizes(description, settings))
    found = {name: layout.find(name) for name in settings}
    places = {name: layout.place(scalar) for name, scalar in found.items() if scalar is not None}
    return {name for name, place in places.items() if place is not None and place.kind in ("state", "input")}


def _places_in_python(source: str, settings: Mapping[str, float]) -> set[str]:
    """Return the names of all states and inputs of a native model."""
    if not settings:
        return set()
    import fmilin as fl

    with fl.load(source) as model:
        return {*model.states.positions, *model.inputs.positions}
