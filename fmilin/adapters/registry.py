"""Sources that other distributions bring: an adapter turns an engine's file into a Model.

A distribution registers its adapter as an entry point of the group ``fmilin.adapters``. Entry points of the group
``fmilin.suffixes``, named ``ADAPTER.SUFFIX``, say which files it reads: no adapter is imported to find that out. Those
of the group ``fmilin.objects``, named ``PACKAGE.CLASS``, are functions of a Python object and a name: its model.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fmilin.errors import FmilinError, ModelError, UsageError, missing_file
from fmilin.model.interface import Model
from fmilin.support.dataclass import dataclass
from fmilin.support.files import open_file, path_exists

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "fmilin.adapters"
SUFFIX_GROUP = "fmilin.suffixes"
OBJECT_GROUP = "fmilin.objects"
_MAX_HEADER_BYTES = 4096  # bytes of a file that are read to tell what it is


class Adapter(ABC):
    """An adapter that a distribution registers: it claims files and turns them into models."""

    suffixes: tuple[str, ...] = ()  # of the files that it reads, lower case, with the dot
    description: str = ""  # what these files are, in a few words: "MuJoCo models (MJCF, URDF)"
    package: str = ""  # the distribution of the engine; empty if there is none
    oldest: tuple[int, ...] = ()  # the first version of it that will do, major and minor
    options: tuple[str, ...] = ()  # what :meth:`load_as` can be asked for

    def claims(self, path: Path) -> bool:
        """Whether this file, which has one of the suffixes, is for this adapter; it may look into the file."""
        return True

    def file_of(self, name: str) -> Path | None:
        """Return the file of a model that comes with the engine and is known by name, or None."""
        return None

    def engine(self) -> str:
        """Return what the adapter runs on, as found: "mujoco 3.3.2"."""
        if not self.package:
            return ""
        from importlib import metadata

        try:
            version = metadata.version(self.package)
        except metadata.PackageNotFoundError:
            raise ModelError(
                f"The required package '{self.package}' is not installed: pip install {self.package}"
            ) from None
        if tuple(int(part) for part in re.findall(r"\d+", version)[: len(self.oldest)]) < self.oldest:
            needed = ".".join(map(str, self.oldest))
            raise ModelError(
                f"'{self.package}' {version} is too old: version {needed} or later is required: pip install -U "
                f"{self.package}"
            )
        return f"{self.package} {version}"

    @abstractmethod
    def load(self, path: Path) -> Model:
        """Return the model in the file."""

    def load_as(self, path: Path, options: Mapping[str, Any]) -> Model:
        """Return the model in the file as it is asked for, by name, in what ``options`` lists."""
        return self.load(path)

    def load_member(self, path: Path, member: str, options: Mapping[str, Any]) -> Model:
        """Return one of several models in a file, which was written as ``FILE:MEMBER``."""
        raise UsageError(f"'{path}' contains a single model: leave out ':{member}'.")

    def load_named(self, name: Path, options: Mapping[str, Any]) -> Model:
        """Return a model that the engine finds by its name, in several files perhaps."""
        raise missing_file(name)

    def load_by_name(self, path: Path, options: Mapping[str, Any]) -> Model:
        """Return the model in a file that was written as ``ADAPTER:FILE``: the engine's own, where there are others."""
        return self.load_as(path, options)


@dataclass(frozen=True)
class Installed:
    """An adapter that is installed here; it is imported when it is first used."""

    name: str
    _entry: EntryPoint
    registered_suffixes: tuple[str, ...] = ()  # from the metadata; empty if the distribution does not register any

    @property
    def distribution(self) -> str:
        """Name and version of what brings it, which are read from its metadata."""
        return "" if self._entry.dist is None else f"{self._entry.dist.name} {self._entry.dist.version}"

    def reads_suffix(self, suffix: str) -> bool:
        """Whether the adapter reads files of a suffix; imports it only if its suffixes are not registered."""
        return suffix in (self.registered_suffixes or self.adapter().suffixes)

    def adapter(self) -> Adapter:
        """Import and return the adapter."""
        try:
            adapter = self._entry.load()()
        except FmilinError:
            raise
        except Exception as error:
            raise ModelError(
                f"The adapter '{self.name}' ({self.distribution}) cannot be loaded: {type(error).__name__}: {error}. "
                "Reinstall it with its dependencies, or remove it."
            ) from error
        if not isinstance(adapter, Adapter):
            raise ModelError(
                f"The adapter '{self.name}' ({self.distribution}) is a {type(adapter).__name__}, not a "
                "fmilin.adapters.Adapter: its entry point must name a class derived from it."
            )
        return adapter


def installed_adapters() -> list[Installed]:
    """Return the adapters that are installed, by name."""
    from importlib.metadata import entry_points  # slow to import, and an FMU does without

    entries = entry_points()  # of every distribution that is installed: it takes as long as to load a model
    suffixes: dict[tuple[int, str], list[str]] = {}
    for entry in entries.select(group=SUFFIX_GROUP):
        adapter_name, _, suffix = entry.name.partition(".")
        suffixes.setdefault((id(entry.dist), adapter_name), []).append(f".{suffix}")
    installed = [
        Installed(entry.name, entry, tuple(suffixes.get((id(entry.dist), entry.name), ())))
        for entry in entries.select(group=GROUP)
    ]
    return sorted(installed, key=lambda adapter: adapter.name)


def convert_object(source: object, label: str) -> object:
    """Return the model that an installed adapter makes of a Python object, such as a system of Exudyn, or the object.

    ``label`` is the name of the model, if the object has none.

    Raises
    ------
    UsageError
        When the object is of an engine without an installed adapter.
    """
    name = f"{type(source).__module__.partition('.')[0]}.{type(source).__name__}"
    from importlib.metadata import entry_points

    for entry in entry_points(group=OBJECT_GROUP, name=name):
        make_model: Callable[[object, str], object] = entry.load()
        return make_model(source, label)
    if name in PUBLISHED_OBJECTS:
        raise UsageError(f"A model of a {name} needs an adapter: pip install {PUBLISHED_OBJECTS[name]}")
    return source


def chosen_adapter(text: str) -> tuple[Installed, Path] | None:
    """Return adapter and file of a source ``ADAPTER:FILE`` or ``ADAPTER:NAME``, or None when it is not written so."""
    name, colon, file = text.partition(":")
    if not colon or not file or not name.isidentifier() or len(name) == 1:  # a single letter is a drive of Windows
        return None
    for adapter in installed_adapters():
        if adapter.name == name:
            return adapter, Path(file)
    for published in PUBLISHED:
        if published.name == name:
            raise UsageError(f"The adapter '{name}' is not installed: pip install {published.distribution}")
    if path_exists(Path(file)) and Path(file).is_file():  # module:name has none
        raise UsageError(
            f"There is no adapter '{name}' for '{file}'. The function fmilin.adapters.installed_adapters() lists the "
            "installed ones."
        )
    return None


def split_member(path: Path) -> tuple[Path, str]:
    """Return file and member of ``FILE:MEMBER``, for files of adapters that may hold several models; "" for others."""
    file, colon, member = str(path).rpartition(":")
    suffixes = {suffix for published in PUBLISHED if published.members for suffix in published.suffixes}
    return (Path(file), member) if colon and Path(file).suffix.lower() in suffixes else (path, "")


def find_adapter(path: Path) -> Installed | None:
    """Return the installed adapter that reads a file, or None."""
    path, _ = split_member(path)
    if not (path_exists(path) and path.is_file()):
        suffix = path.suffix.lower()
        # Of a Python file the name of a model in it is asked for first, whether it exists or not.
        if suffix != ".py" and any(installed.reads_suffix(suffix) for installed in installed_adapters()):
            raise missing_file(path)
        return None
    claiming = [
        installed
        for installed in installed_adapters()
        if installed.reads_suffix(path.suffix.lower()) and installed.adapter().claims(path)
    ]
    if len(claiming) > 1:
        names = " and ".join(f"'{adapter.name}'" for adapter in claiming)
        raise UsageError(
            f"The adapters {names} both read '{path}': name one of them, as in '{claiming[0].name}:{path.name}'."
        )
    return claiming[0] if claiming else None


def load_by_adapter(adapter: Installed, path: Path, options: Mapping[str, Any], *, by_name: bool = False) -> Model:
    """Return the model that an adapter makes of a file, or of a name that it knows."""
    reader, (path, member) = adapter.adapter(), split_member(path)
    by_the_engine = False
    if not path.is_file():
        named = reader.file_of(str(path))
        by_the_engine = named is None and path.suffix.lower() not in reader.suffixes
        if named is None and not by_the_engine:
            raise missing_file(path)
        path = named or path
    if path.suffix.lower() not in reader.suffixes and not by_the_engine:
        read = ", ".join(map(repr, reader.suffixes))
        raise UsageError(
            f"The adapter '{adapter.name}' reads {read}, not '{path.suffix}' ('{path}'). Choose another adapter for "
            "this file."
        )
    if unknown := [name for name in options if name not in reader.options]:
        known_options = f"It knows {', '.join(reader.options)}." if reader.options else "It knows none."
        raise UsageError(
            f"The adapter '{adapter.name}' does not have the option '{unknown[0]}' ('{path}'). {known_options}"
        )
    try:
        if by_the_engine:
            model = reader.load_named(path, options)
        elif member:
            model = reader.load_member(path, member, options)
        else:
            model = (reader.load_by_name if by_name else reader.load_as)(path, options)
    except FmilinError:
        raise
    except Exception as error:
        raise ModelError(
            f"The adapter '{adapter.name}' failed on '{path}': {type(error).__name__}: {error}. If the file is "
            f"correct, report this as a bug of {adapter.distribution}."
        ) from error
    if not isinstance(model, Model):
        raise ModelError(
            f"The adapter '{adapter.name}' returned a {type(model).__name__} for '{path}', not a Model. Report this "
            "to the adapter's author."
        )
    return model


class _Published(NamedTuple):
    """An adapter that exists, whether installed or not."""

    name: str
    distribution: str
    engine: str
    suffixes: tuple[str, ...]
    mark: bytes  # what the beginning of such a file contains; empty where the suffix says all
    members: bool = False  # whether a file may hold several models


PUBLISHED: Sequence[_Published] = (
    _Published("mujoco", "fmilin-mujoco", "MuJoCo", (".xml", ".mjcf"), b"<mujoco"),
    _Published("pinocchio", "fmilin-pinocchio", "Pinocchio", (".urdf",), b"<robot"),
    _Published("jsbsim", "fmilin-jsbsim", "JSBSim", (".xml",), b"<fdm_config"),
    _Published("exudyn", "fmilin-exudyn", "Exudyn", (".py",), b"import exudyn"),
    _Published("modelica", "fmilin-modelica", "Modelica", (".mo",), b"", members=True),
)


PUBLISHED_OBJECTS: Mapping[str, str] = {"exudyn.MainSystem": "fmilin-exudyn"}
"""Distributions that make models of Python objects, by package and class."""


def suggest_adapter(path: Path) -> str:
    """Return the advice to install an adapter that would read a file, or an empty string."""
    path, _ = split_member(path)
    suffix = path.suffix.lower()
    try:
        with open_file(path) as file:
            beginning = file.read(_MAX_HEADER_BYTES)
    except OSError:
        return ""
    have = {adapter.name for adapter in installed_adapters()}
    for published in PUBLISHED:
        if suffix in published.suffixes and published.mark in beginning and published.name not in have:
            return f"'{path}' may belong to {published.engine}: pip install {published.distribution}"
    return ""
