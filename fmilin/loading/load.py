"""Loads a model from every source: an FMU, a model in a Python file or package, an adapter's file."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fmilin.adapters.registry import chosen_adapter, find_adapter, load_by_adapter, split_member, suggest_adapter
from fmilin.constraints.declared import Constraint
from fmilin.constraints.expressions import Expression
from fmilin.errors import ConstraintError, UnknownNameError, UsageError, nearest_names
from fmilin.fmi.client.restrictions import Limits, apply_limits
from fmilin.fmi.read.archive import FmuFile
from fmilin.fmi.read.discrete_states import has_clocked_states_alone
from fmilin.formats import suffixes
from fmilin.loading.python_objects import model_in_python, names_python
from fmilin.loading.source_kind import INTERFACES, is_fmu, is_system
from fmilin.model.capabilities import HasContacts
from fmilin.model.interface import Model, OperatingPoint
from fmilin.options import FmuOptions, Loading
from fmilin.options.sources import SourceOptions, Value
from fmilin.support.files import path_exists
from fmilin.support.kinds import kinds_checked
from fmilin.trimming.trim_request import PointRequest, require_variable

if TYPE_CHECKING:
    from fmilin.composition.system import ConnectedModel
    from fmilin.fmi.read.fmu_model import FmuModel
    from fmilin.model.model_files import ConstraintsFile

logger = logging.getLogger("fmilin.loading")

_UNDERSTOOD = (
    "'model.fmu', 'path/to/file.py:name' and 'package.module:name' (a Model or a function that returns one, with "
    "literal keyword arguments if any: 'fmilin.systems:four_bar(loops=20)'), mechanisms as 'file.toml', "
    "'robot.urdf' or 'robot.sdf', and systems as 'system.ssp'"
)

_OPTIONS = tuple(field.name for field in fields(SourceOptions))
_OPTIONS_OF_ADAPTERS = {
    "friction_modes": "a Modelica file: it has no brakes or clutches that can be held in a mode",
    "keyframe": "an MJCF file: it has no keyframes",
    "library": "a Modelica file: it needs no libraries",
    "roll": "a URDF, SDFormat or MJCF file: no body of it can roll",
}


@kinds_checked
def load(
    source: str | Path,
    *,
    constraints: Sequence[str | Constraint] | None = None,
    constraints_file: str | Path | None = None,
    parameters: Mapping[str, Value] | None = None,
    time: float | None = None,
    interface: str | None = None,
    discrete_states: Sequence[str] | None = None,
    sample_interval: float | None = None,
    fmu: FmuOptions | None = None,
    options: Mapping[str, object] | None = None,
    limits: Limits | None = None,
) -> Model:
    """Return the model behind ``source``; close it, or use it in a ``with`` statement: an FMU holds files, a library.

    Parameters
    ----------
    source : str or Path
        The path of an FMU, ``path/to/file.py:name`` or ``package.module:name``: a :class:`~fmilin.Model` or a function
        that returns one, with literal keyword arguments if any; or a file that an installed adapter claims,
        ``ADAPTER:FILE`` where several could, or ``ADAPTER:NAME`` of a model that comes with its engine
        (``jsbsim:c172x``), ``FILE:MODEL`` where a file may hold several (``crane.mo:Package.Crane``); or a mechanism,
        ``file.toml``, ``robot.urdf`` or ``robot.sdf`` (see ``docs/mechanism.md``); or connected FMUs, ``system.ssp``.
    constraints : sequence of str or Constraint, optional
        Expressions that must be zero, or names of variables that must be zero. None: what the model brings
        (for an FMU ``MODEL_STEM.fmilin.toml`` next to it, then ``extra/org.fmilin/constraints.toml`` inside);
        an empty sequence: none at all.
    constraints_file : path, optional
        A TOML file with constraints; together with ``constraints``, both hold.
    parameters : mapping, optional
        Parameters and start values by name, set before an FMU is initialized.
    time : float, optional
        Start time in seconds; without it the FMU's own.
    interface : {"me", "cs"}, optional
        Of an FMU: model exchange or co-simulation; without it model exchange where the FMU has it.
    discrete_states : sequence of str, optional
        Of an FMU without continuous states: the discrete-time numbers that are the states of a sampled model
        x[k+1] = f(x[k], u[k]), ``["auto"]`` for those that look like it. Model-exchange FMUs of FMI 3.0 that declare
        states of clocked partitions, and no others, are sampled models without it.
    sample_interval : float, optional
        Seconds between two samples of these; by default what clocks, time events or the step size of the FMU say.
    fmu : FmuOptions, optional
        How much an FMU may unpack, and whether its sources may be compiled.
    options : mapping, optional
        What a kind of file is asked for: ``{"floating_base": True}`` for a URDF file, ``{"fix_joint": ["hand"]}`` for
        one and for SDFormat,
        ``{"roll": ["wheel"]}`` for wheels of a robot,
        ``{"hold": ["FL", "FR:flat"]}`` for feet on the ground (:meth:`fmilin.adapters.HasContacts.with_held`),
        ``{"keyframe": "home"}`` for an MJCF file, ``{"library": ["msl"]}`` for Modelica: where libraries are,
        and ``{"friction_modes": ["brake=locked"]}`` for one: brakes and clutches in another mode than at the start.
    limits : Limits, optional
        What the code of an FMU may take and reach; by default its own files, and nothing of yours.

    Raises
    ------
    UsageError
        When the source is of an unknown kind, or a parameter unknown.
    ModelError
        When the model cannot be read, loaded or initialized.
    ConstraintError
        When constraints are wrong or name unknown variables.
    """
    if time is not None and not (is_fmu(str(source)) or is_system(str(source))):
        raise UsageError(f"'{source}' is not an FMU: its start time is not set when it is loaded.")
    if isinstance(discrete_states, str):
        raise UsageError(
            f"'discrete_states' must be a sequence: write discrete_states=['{discrete_states}'] even for a single one."
        )
    if discrete_states is not None or sample_interval is not None:
        if not is_fmu(str(source)):
            raise UsageError(f"'{source}' is not an FMU: discrete_states= and sample_interval= are for FMUs.")
        fmu = replace(fmu or FmuOptions(), discrete_states=discrete_states, sample_interval=sample_interval)
    request = Loading(
        constraints=constraints,
        constraints_file=constraints_file,
        parameters=parameters or {},
        interface=interface,
        fmu=fmu,
        options=options or {},
    )
    with apply_limits(limits):
        return load_request(source, request, PointRequest(time=time))


def load_request(source: str | Path, request: Loading, at: PointRequest | None = None) -> Model:
    """Return the model behind ``source``, with what is set at loading of a completed request for a point."""
    at = at or PointRequest()
    if request.interface is not None and request.interface not in INTERFACES:
        raise UsageError(
            f"'{request.interface}' is not an interface of an FMU: use me (model exchange) or cs (co-simulation)."
        )
    text = str(source)
    if "\0" in text:
        raise UsageError("The path contains a character with the code 0, which no file name has.")
    chosen = chosen_adapter(text)
    if chosen is not None:  # it knows its options
        return _as_requested(lambda: load_by_adapter(*chosen, _of_file(request), by_name=True), request, at)
    _require_options(text, request)
    if is_python(text):
        return _as_requested(lambda: model_in_python(text), request, at)
    if Path(text).suffix.lower() == ".fmu":
        return _from_fmu(Path(text), request, at)
    return _from_file(text, request, at)


def _require_options(text: str, request: Loading) -> None:
    """Reject options that this kind of file does not have."""
    suffix = Path(text).suffix.lower()
    reader, is_fmu = _READERS.get(suffix), suffix == ".fmu"
    for name in request.options:
        if name not in _OPTIONS:
            raise UnknownNameError.among(name, _OPTIONS, "an option of a file")
        if name == "hold" and (is_fmu or reader is _from_ssp):
            raise UsageError(f"'{text}' is an FMU, or made of some: it has no bodies that can be held as feet.")
        if name in ("floating_base", "fix_joint") and reader is not _from_mechanism_file:
            what = "base of it can be made to float" if name == "floating_base" else "joint of it can be fixed"
            raise UsageError(f"'{text}' is not a URDF or SDFormat file read by fmilin: it has no {what}.")
        if name == "roll" and reader is _from_mechanism_file:
            continue
        if name in _OPTIONS_OF_ADAPTERS and (reader is not None or is_fmu or is_python(text)):
            raise UsageError(
                f"'{text}' is not {_OPTIONS_OF_ADAPTERS[name]}. Leave the option out, or load another file."
            )


def is_python(text: str) -> bool:
    """Whether a source without the name of an adapter is an object of a Python file or package."""
    return names_python(text) and not split_member(Path(text))[1]


def _of_file(request: Loading) -> dict[str, Any]:
    """Return the options that an adapter is asked for: all but those that any native model has."""
    return {name: value for name, value in request.options.items() if name != "hold"}


def _from_file(text: str, request: Loading, at: PointRequest) -> Model:
    """Return the model in a file that is neither an FMU nor Python."""
    suffix = Path(text).suffix.lower()
    reader = _READERS.get(suffix)
    if reader is not None:
        return reader(Path(text), request, at)
    adapter = find_adapter(Path(text))
    if adapter is not None:
        return _as_requested(lambda: load_by_adapter(adapter, Path(text), _of_file(request)), request, at)
    suggestion = suggest_adapter(Path(text))
    if suggestion:
        raise UsageError(suggestion)
    if suffix == ".py":
        raise UsageError(f"'{text}' may contain several models: name one of them, as in '{text}:name'.")
    if suffix in suffixes("linear model", "family", readable=True):
        raise UsageError(
            f"'{text}' is a file of results, not a model to be linearized. 'fmilin report', 'fmilin plot', "
            f"'fmilin design' and 'fmilin convert' take it, and in Python fl.LinearModel.load('{text}')."
        )
    if path_exists(Path(text)) or not suffix:
        what = f"of the suffix '{suffix}'" if suffix else "without a suffix"
        raise UsageError(f"'{text}' is not a model that fmilin can read, {what}. Supported are {_UNDERSTOOD}.")
    raise UsageError(
        f"No reader is installed for models with the suffix '{suffix}' ('{text}'). Supported are {_UNDERSTOOD}."
    )


def _from_fmu(path: Path, request: Loading, at: PointRequest) -> Model:
    from fmilin.fmi.read.fmu_model import FmuModel

    fmu = FmuFile(path, request.fmu)
    description = fmu.description
    if request.interface is not None:
        description = description.through(INTERFACES[request.interface])
    stepped = description.interface == "CoSimulation"
    declared = _read_declared(request, lambda name: name in description.by_name)
    independent: tuple[str, ...] = ()
    notes: list[str] = []
    if declared is None:
        file, _ = find_constraints(fmu)
        declared, independent = ([], ()) if file is None else (list(file.constraints), file.independent)
    elif request.constraints_file is not None:
        independent = _read(request.constraints_file).independent
    if not declared and description.states:
        notes = _describe_omitted_constraints(fmu)
    if logger.isEnabledFor(logging.INFO):
        for departure in fmu.departures():
            logger.info("%s: modelDescription.xml departs from the schema, %s", fmu.name, departure)
    settings = at.settings_at_loading(description.has_parameter)
    if fmu.options.discrete_states is not None or (not stepped and has_clocked_states_alone(description)):
        from fmilin.loading.sampled_fmu import load_sampled_fmu

        sampled_model = load_sampled_fmu(fmu, request, at, settings, declared)
        _require_shown(sampled_model, at, settings)
        return sampled_model
    kind: type[FmuModel] = FmuModel
    if stepped:
        from fmilin.fmi.read.stepped_model import SteppedFmu

        kind = SteppedFmu
    how: dict[str, Any] = {"parameters": request.parameters, "settings": settings, "time": at.time, "notes": notes}
    model = kind.opened(fmu, constraints=declared, independent=independent, **how)
    try:
        _require_shown(model, at, settings)
    except BaseException:
        model.close()
        raise
    return model


def _require_shown(model: Model, at: PointRequest, settings: Mapping[str, float]) -> None:
    """Reject what is fixed, was not set at loading and is nothing that comes out."""
    for name in at.settings.keys() - settings.keys():
        if model.states.find_signed(name) is None and model.inputs.find_signed(name) is None:
            require_variable(model, name)


def _describe_omitted_constraints(fmu: FmuFile) -> list[str]:
    """Say it when a model that brings constraints is taken without any."""
    file, where = find_constraints(fmu)
    if file is None or not file.constraints:
        return []
    return [
        f"The model's states are not independent: {len(file.constraints)} constraints in its file ({where}) were left "
        "out. All states are perturbed, so the linear model has more states than degrees of freedom, and false "
        "eigenvalues."
    ]


def find_constraints(fmu: FmuFile) -> tuple[ConstraintsFile | None, str]:
    """Return the constraints next to an FMU (STEM.fmilin.toml), else inside (extra/org.fmilin), and where they were."""
    from fmilin.model.model_files import read_constraints

    neighbour = fmu.path.with_name(f"{fmu.path.stem}.fmilin.toml")
    path = fmu.absolute.with_name(neighbour.name)
    if path_exists(path) and path.is_file():
        return read_constraints(path, str(neighbour)), str(neighbour)
    inside = fmu.constraints
    if inside is None:
        return None, ""
    where = f"extra/org.fmilin/constraints.toml inside {fmu.name}"
    return read_constraints(inside, where), where


def _read_declared(request: Loading, is_name: Callable[[str], bool]) -> list[Constraint] | None:
    """Return the constraints that were asked for explicitly; None when the model's own are wanted."""
    if request.constraints is None and request.constraints_file is None:
        return None
    from_file = () if request.constraints_file is None else _read(request.constraints_file).constraints
    return [*from_file, *(_constraint(item, is_name) for item in request.constraints or ())]


def _read(path: str | Path) -> ConstraintsFile:
    from fmilin.model.model_files import read_constraints

    return read_constraints(Path(path).absolute(), str(path))


def _constraint(item: str | Constraint, is_name: Callable[[str], bool]) -> Constraint:
    if isinstance(item, Constraint):
        return item
    if not isinstance(item, str):
        raise ConstraintError(f"A constraint must be a text or a Constraint, not {item!r}.")
    # The name of a variable is a constraint too, even one that is not an expression.
    return Constraint(Expression.variable(item)) if is_name(item) else Constraint.from_text(item)


def _from_ssp(path: Path, request: Loading, at: PointRequest) -> ConnectedModel:
    from fmilin.composition.ssp.opening import open_ssp

    if request.interface is not None:
        raise UsageError(f"'{path}' is a system: interface= is for single FMUs. Leave it out.")

    def member(fmu: Path, parameters: Mapping[str, Value], settings: Mapping[str, Value]) -> Model:
        member_request = Loading(parameters=parameters, fmu=request.fmu)
        return load_request(fmu, member_request, PointRequest(settings=_numbers(settings), time=at.time))

    settings: dict[str, Any] = {**at.settings, **request.parameters}
    targets = () if at.trim is None else at.trim.fixed
    model = open_ssp(path, member, settings=settings, targets=targets, options=request.fmu)
    model.reopening = partial(_from_ssp, path.absolute(), request, at)
    variables = {*model.states.positions, *model.inputs.positions, *model.outputs.positions}
    declared = _read_declared(request, variables.__contains__)
    return model if declared is None else model.with_constraints(declared)


def _from_mechanism_file(path: Path, request: Loading, at: PointRequest) -> Model:
    from fmilin.models.mechanism.mechanism_model import read_mechanism
    from fmilin.models.mechanism.prescribed_motions import build_model

    floating = bool(request.options.get("floating_base", False))
    names = {key: request.options.get(key, ()) for key in ("fix_joint", "roll")}
    for key, value in names.items():
        if isinstance(value, str):
            raise UsageError(f"'{key}' must be a sequence: write {key}=['{value}'] even for a single name.")
    fixed, roll = names.values()
    return _as_requested(
        lambda: read_mechanism(build_model, path, floating_base=floating, fixed_joints=fixed, roll=roll), request, at
    )


_READERS: dict[str, Callable[[Path, Loading, PointRequest], Model]] = {
    ".ssd": _from_ssp,
    ".ssp": _from_ssp,
    ".sdf": _from_mechanism_file,
    ".toml": _from_mechanism_file,
    ".urdf": _from_mechanism_file,
}
"""Who reads a file, by suffix; for other suffixes the adapters are asked."""


def _as_requested(loaded: Callable[[], Model], request: Loading, at: PointRequest) -> Model:
    """Return a model that is not an FMU with the parameters and constraints that were asked for."""
    model = loaded()
    start_names = {*model.states.positions, *model.inputs.positions}
    start_names |= model.states.positions_of_negatives.keys() | model.inputs.positions_of_negatives.keys()
    settings = at.settings_at_loading(lambda name: name in model.parameters)
    parameters = {**request.parameters, **{n: v for n, v in settings.items() if n not in start_names}}
    if parameters:
        try:
            model = model.with_parameters(_numbers(parameters))
        except UnknownNameError as error:
            near = nearest_names(error.name, start_names)
            if error.name not in at.settings or not near:
                raise
            candidates = [*near, *error.suggestions]
            raise UnknownNameError.among(error.name, candidates, "a state, input or parameter of the model") from None
    declared = _read_declared(request, (start_names | model.outputs.positions.keys()).__contains__)
    model = model if declared is None else model.with_constraints(declared)
    _require_shown(model, at, settings)
    contacts = request.options.get("hold", ())
    if not contacts:
        return model
    if not isinstance(model, HasContacts):
        raise UsageError(
            f"'{model.info.name}' has no named bodies: {', '.join(contacts)} cannot be held. Feet can be held in MJCF "
            "and URDF files and in mechanisms."
        )
    return model.with_held(contacts, _where_held(model, at))


def _where_held(model: Model, at: PointRequest) -> OperatingPoint:
    """Return the point at which feet are held where they are: by values, in a file, or the model's start."""
    from fmilin.manifold.operating_points import operating_point

    values, saved = at.collect_values(model), at.saved_point
    if saved is not None and not any(model.states.has(name) for name in values):
        return saved.on(model)
    return operating_point(model, values) if values else model.start


def _numbers(parameters: Mapping[str, Value]) -> dict[str, float]:
    try:
        return {name: float(value) for name, value in parameters.items()}  # type: ignore[arg-type]
    except (TypeError, ValueError):
        assignments = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
        raise UsageError(f"The parameters of a native model must be numbers, not {assignments}.") from None
