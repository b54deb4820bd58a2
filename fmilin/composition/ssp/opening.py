"""An SSP file as a connected model."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from fmilin.composition.connect import build_member
from fmilin.composition.hybrid_system import build_system
from fmilin.composition.ssp.flattening import Flat, Node, Placed, flatten_system
from fmilin.composition.ssp.reading import Component, SystemStructure, read_structure
from fmilin.composition.ssp.wiring import build_declaration, compute_held_values, in_order
from fmilin.composition.system import ConnectedModel
from fmilin.composition.system_declaration import Value, conversion, in_member
from fmilin.errors import FmilinError, ModelError, UsageError, missing_file
from fmilin.fmi.read.archive import FmuFile, read_description, unpacked_together
from fmilin.fmi.read.fmu_model import FmuModel
from fmilin.model.interface import Model
from fmilin.options import FmuOptions
from fmilin.trimming.trim_request import require_variable

DEFAULT = "SystemStructure.ssd"
_FMU = "application/x-fmu-sharedlibrary"
_INSIDE = ".ssp!/"  # between the path of an archive inside the archive and a path in it
_MAX_NESTING = 16  # files that lead to a component: a system needs few, and an archive can contain itself
_DEFINITION, _PACKAGE = "application/x-ssp-definition", "application/x-ssp-package"
_MEND = "Put it there, or export the system again"
Opener = Callable[[Path, Mapping[str, Value], Mapping[str, Value]], Model]
"""From the path of an FMU, its parameters, and what the user sets of it, to the model."""


def _circle(files: Sequence[str]) -> str:
    circle = " -> ".join(f"'{f}'" for f in files)
    return f"systems contain each other in a cycle, {circle}. Remove one of these components"


@dataclass
class SspFile:
    """An SSP archive, or an SSD file with what it needs next to it; nothing of it is executed here."""

    path: Path
    options: FmuOptions | None = None  # how much may be unpacked
    _folder: Path | None = field(default=None, init=False)
    _archives: dict[str, SspFile] = field(default_factory=dict, init=False)
    # by the paths that components name: a file may be placed a thousand times
    _structures: dict[str, SystemStructure] = field(default_factory=dict, init=False)
    _descriptions: dict[str, dict[str, str]] = field(default_factory=dict, init=False)
    _above: tuple[Path, ...] = ()  # the archives that lead here

    @cached_property
    def archive(self) -> FmuFile | None:
        """The zip archive; None for a plain SSD file."""
        return None if self.path.suffix.lower() == ".ssd" else _Archive(self.path, self.options)

    def read(self, member: str) -> bytes | None:
        """Return the content of a file of the system, or None."""
        if (inside := self._inside(member)) is not None:
            return inside[0].read(inside[1])
        if self.archive is not None:
            return self.archive.read(member)
        neighbour = self.path.parent / member
        try:
            return neighbour.read_bytes() if neighbour.is_file() else None
        except OSError as error:
            raise ModelError(
                f"'{neighbour}' cannot be read: {error.strerror or error}. Check the path and its permissions."
            ) from None

    @property
    def start(self) -> str:
        """The SSD file of the outermost system."""
        return self.path.name if self.archive is None else DEFAULT

    @cached_property
    def structure(self) -> SystemStructure:
        """The structure that the file describes."""
        if not self.path.exists():
            raise missing_file(self.path)
        return read_structure(self.read, self.start, self.path.name)

    @cached_property
    def flat(self) -> Flat:
        """The system without nesting."""
        with unpacked_together():
            return flatten_system(self.structure, self.start, self._open_component)

    def _inside(self, source: str) -> tuple[SspFile, str] | None:
        """Return the archive inside this one that ``source`` leads into, and the rest of the path; None for none."""
        name, mark, rest = source.partition(_INSIDE)
        if not mark:
            return None
        return self._archives[f"{name}.ssp"], rest

    def _enter(self, component: Component) -> str:
        """Open an archive inside this one; return the path of its system."""
        outer, source = self, component.source
        while (inside := outer._inside(source)) is not None:
            outer, source = inside
        if source not in outer._archives:
            local_component = replace(component, source=source)
            path, above = outer.locate_file(local_component), (*outer._above, outer.path.resolve())
            if path.resolve() in above:
                names = [p.name for p in (*above[above.index(path.resolve()) :], path)]
                raise self._error(component, _circle(names))
            outer._archives[source] = SspFile(path, self.options, above)
        return f"{component.source}!/{DEFAULT}"

    def _open_component(self, component: Component, files: tuple[str, ...]) -> SystemStructure | None:
        """Return what a component in a file of its own consists of; None for an FMU."""
        suffix = component.source.lower()[-4:]
        if component.type == _FMU and suffix not in (".ssd", ".ssp"):
            return None
        if component.type not in (_FMU, _DEFINITION, _PACKAGE):
            raise self._error(component, f"its type '{component.type}' is not supported")
        if len(files) > _MAX_NESTING:
            raise self._error(component, f"systems are nested more than {_MAX_NESTING} files deep")
        if component.source in files:
            raise self._error(component, _circle((*files[files.index(component.source) :], component.source)))
        source = component.source
        if suffix == ".ssp":
            source = self._enter(component)
        if source not in self._structures:
            if suffix != ".ssp" and self.read(source) is None:
                raise self._error(component, f"its file '{source}' is missing. {_MEND}")
            self._structures[source] = read_structure(self.read, source, self.path.name)
        return self._structures[source]

    def _error(self, component: Component, what: str) -> ModelError:
        return ModelError(f"'{self.path.name}', line {component.line}, component '{component.name}': {what}.")

    def _build_missing_error(self, component: Component, where: str) -> ModelError:
        return self._error(component, f"the file '{component.source}' is missing {where} '{self.path.name}'. {_MEND}")

    def locate_file(self, component: Component) -> Path:
        """Return where an FMU, or an archive in the archive, lies on disk; the archive is unpacked for it."""
        if (inside := self._inside(component.source)) is not None:
            return inside[0].locate_file(replace(component, source=inside[1]))
        if self.archive is None:
            path = self.path.parent / component.source
        else:
            if component.source not in self.archive.by_path:
                neighbour = self.path.parent / Path(component.source).name
                if not neighbour.is_file():
                    raise self._build_missing_error(component, "in")
                return neighbour
            if self._folder is None:
                folders = {p.split("/")[0] for p in self.archive.by_path if "/" in p}
                self._folder = self.archive.unpack(sorted(folders))
            path = self._folder / component.source
        if not path.is_file():
            raise self._build_missing_error(component, "beside")
        return path

    def read_units(self, component: Component) -> dict[str, str]:
        """Return the units of an FMU's variables; nothing where it cannot be read, which is said when it is opened."""
        if component.source not in self._descriptions:
            units = {}
            with suppress(FmilinError):
                description = read_description(self.locate_file(component), self.options)
                units = {n: v.unit for n, v in description.by_name.items()}
            self._descriptions[component.source] = units
        return self._descriptions[component.source]

    def close(self) -> None:
        """Remove what was unpacked."""
        for archive in self._archives.values():
            archive.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


class _Archive(FmuFile):
    """The same care as with FMUs, in the words of SSP."""

    def read(self, member: str) -> bytes | None:
        with _as_ssp():
            return super().read(member)

    def unpack(self, folders: object) -> Path:
        with _as_ssp():
            return super().unpack(folders)  # type: ignore[arg-type]


@contextmanager
def _as_ssp() -> Iterator[None]:
    try:
        yield
    except ModelError as error:
        text = str(error).replace("is not an FMU", "is not an SSP file").replace("An FMU", "An SSP file")
        text = text.replace("the .fmu file", "the .ssp file").replace("which FMI does", "which SSP does")
        error.args = (text.replace("for an FMU", "for a file").replace("the FMU again", "the system again"),)
        raise


@unpacked_together()
def open_ssp(
    path: Path,
    load: Opener,
    *,
    settings: Mapping[str, Value] | None = None,
    targets: Collection[str] = (),
    options: FmuOptions | None = None,
) -> ConnectedModel:
    """Return the system of an SSP file as a model, its members called by their paths, ``Drive.Motor``.

    Inputs and outputs are the outermost system's connectors; without any, all free inputs and all outputs. Every FMU is
    used through model exchange where it has that, whatever ``implementation`` says: the equations are the same. Of
    ``settings``, states and inputs are left to the operating point, and so are ``targets`` that are not parameters.
    """
    file = SspFile(path, options)
    flat = file.flat
    if not flat.placed:
        raise ModelError(f"'{path.name}' contains no component: there is nothing to linearize.")
    members: dict[str, Model] = {}
    try:
        flat.hold(_discrete_numbers(flat, file, options))
        settings_by_component = _by_component(flat, settings or {})
        for name, member_settings in settings_by_component.items():
            described = read_description(file.locate_file(flat.placed[name].component), options)
            for variable in [v for v in member_settings if f"{name}.{v}" in targets and not described.has_parameter(v)]:
                del member_settings[variable]
        for name in in_order(flat):
            placed = flat.placed[name]
            fmu, member_settings = file.locate_file(placed.component), settings_by_component.get(name, {})
            held_inputs, notes = compute_held_values(flat, name, lambda node: _present(members, node))
            flat.notes += notes
            bound = {
                n: v for n, v in {**_parameters(flat, file, placed), **held_inputs}.items() if n not in member_settings
            }
            with in_member(name):
                members[name] = build_member(name, load(fmu, bound, member_settings))
        system = build_system(build_declaration(flat, {name: members[name] for name in flat.placed}))
        for name in [n for n in settings or {} if n in targets and not _is_set(n, settings_by_component)]:
            if not system.states.has(name) and not system.inputs.has(name):
                require_variable(system, name)
        _require_free(system, settings_by_component, [n for n in settings or {} if n not in targets])
    except BaseException:
        for model in members.values():
            model.close()
        file.close()
        raise
    weakref.finalize(system, file.close)
    return system


def _discrete_numbers(flat: Flat, file: SspFile, options: FmuOptions | None) -> set[Node]:
    """Return the real numbers that components hold between events: derivatives do not lead through them."""
    discrete_nodes: set[Node] = set()
    for path, placed in flat.placed.items():
        with in_member(path):
            description = read_description(file.locate_file(placed.component), options)
        if description.interface == "CoSimulation":  # it is stepped, and its discrete-time numbers are outputs
            continue
        discrete = {v.name for v in description.scan_variables() if v.is_float and v.variability == "discrete"}
        discrete_nodes |= {(path, name) for name in discrete}
    return discrete_nodes


def _present(members: Mapping[str, Model], node: Node) -> Value | None:
    """Return the value of a variable of a member that is open, where the member starts; None where it cannot tell."""
    model = members.get(node[0])
    if not isinstance(model, FmuModel):
        return None
    with in_member(node[0]):
        model.evaluate(model.start.time, model.start.states, model.start.inputs)
        return model.read_value(node[1])


def _require_free(
    system: ConnectedModel, own_settings: Mapping[str, Mapping[str, Value]], settings: Sequence[str]
) -> None:
    """Reject what would be set without effect."""
    for name in settings:
        if not _is_set(name, own_settings):
            system.inputs.index_of(name, "an input, state or parameter of the system")
    for member, member_settings in own_settings.items():
        for name in member_settings:
            if system.members[member].inputs.has(name) and not system.inputs.has(f"{member}.{name}"):
                raise UsageError(
                    f"'{member}.{name}' cannot be set: a connection feeds it, or no connector of the system leads to "
                    "it."
                )


def _is_set(name: str, own_settings: Mapping[str, Mapping[str, Value]]) -> bool:
    return any(f"{member}.{variable}" == name for member, settings in own_settings.items() for variable in settings)


def _by_component(flat: Flat, settings: Mapping[str, Value]) -> dict[str, dict[str, Value]]:
    """Return what the user sets, by component and its own name; of the whole system's inputs nothing."""
    by_component: dict[str, dict[str, Value]] = {}
    for text, value in settings.items():
        fitting = [p for p in flat.placed if text.startswith(f"{p}.")]
        if fitting:
            component = max(fitting, key=len)
            by_component.setdefault(component, {})[text[len(component) + 1 :]] = value
    return by_component


def _parameters(flat: Flat, file: SspFile, placed: Placed) -> dict[str, Value]:
    """Return the parameters of a component: handed down by connectors, or bound to it."""
    described, values = file.read_units(placed.component), {}
    for node in flat.list_inputs(placed.path):
        if (handed := _find_inherited_value(flat, node)) is not None:
            values[node[1]] = _in_unit(handed, described.get(node[1], ""), node)
    for (path, variable), bound in flat.values.items():
        if path == placed.path:
            values[variable] = _in_unit(bound, described.get(variable, ""), (path, variable))
    return values


def _find_inherited_value(flat: Flat, node: Node) -> tuple[Value, str, Mapping[str, object]] | None:
    """Return the value of a system's own connector that a parameter is connected to."""
    here = node
    for _ in range(len(flat.drivers) + 1):
        driver = flat.drivers.get(here)
        if driver is None:
            return None
        here = driver.source
        if here in flat.values and here[0] not in flat.placed:
            value, unit, units = flat.values[here]
            return driver.wire.change.of(value), unit, units
    return None


def _in_unit(bound: tuple[Value, str, Mapping[str, object]], unit: str, node: Node) -> Value:
    value, source_unit, units = bound
    if isinstance(value, (str, bool)) or not source_unit or not unit or source_unit == unit:
        return value
    try:
        return conversion(source_unit, unit, f"The parameter '{node[0]}.{node[1]}'", units).of(value)  # type: ignore[arg-type]
    except UsageError as error:
        raise ModelError(str(error)) from None
