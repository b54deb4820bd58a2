"""The zip archive that an FMU is: looked into, and unpacked safely into a private directory."""

import json
import lzma
import os
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from fmilin.errors import ModelError, join_first, missing_file
from fmilin.fmi.read.description import ModelDescription
from fmilin.fmi.read.xml import departures, parse_description
from fmilin.options import FmuOptions
from fmilin.support.files import new_folder, temporary_folder

BYTES_PER_GIB = 2**30


CONSTRAINTS = "extra/org.fmilin/constraints.toml"
TURNS = "extra/org.fmilin/turns.json"
MAX_MEMBERS = 50_000
LARGEST_DIRECTORY = 8 << 20  # bytes of the list of members, which is read as a whole before anything else
_LIBRARY_SUFFIXES = (".so", ".dll", ".dylib")
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_MAX_END_BYTES = 22 + 65535 + 20  # bytes: the record at the end, its comment, the record before it in large ones
_ENCRYPTED_FLAG = 0x1  # bit of the flags of a member
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    RuntimeError,
    OverflowError,
    ValueError,
)
"""What Python's zipfile raises for archives that are damaged or made to do harm, names that are no UTF-8 included."""


_unpacked_together: ContextVar[list[int] | None] = ContextVar("unpacked_together", default=None)


@contextmanager
def unpacked_together() -> Iterator[None]:
    """Let all archives that are unpacked meanwhile share one limit: archives in archives, members of a system."""
    if _unpacked_together.get() is not None:
        yield
        return
    token = _unpacked_together.set([])
    try:
        yield
    finally:
        _unpacked_together.reset(token)


class FmuFile:
    """An FMU on disk; nothing of it is executed here."""

    def __init__(self, path: Path, options: FmuOptions | None = None) -> None:
        self.path = path
        self.absolute = path.absolute()
        self.options = options or FmuOptions()

    @property
    def name(self) -> str:
        """The file name, for messages."""
        return self.path.name

    @cached_property
    def members(self) -> tuple[zipfile.ZipInfo, ...]:
        """The entries of the archive."""
        with self._opened() as archive:
            members = tuple(archive.infolist())
        self._check_directory(len(members), 0)
        return members

    def _check_directory(self, members: int, size: int) -> None:
        why = ""
        if members > MAX_MEMBERS:
            why = f"it has {members} members, more than the {MAX_MEMBERS} that are allowed"
        elif size > LARGEST_DIRECTORY:
            why = f"the list of its members takes {_in_words(size)}, more than {_in_words(LARGEST_DIRECTORY)}"
        if why:
            raise ModelError(f"'{self.path}' was not unpacked: {why}. Use this file only if you trust its source.")

    @cached_property
    def by_path(self) -> dict[str, zipfile.ZipInfo]:
        """The members by their paths, ``binaries/linux64/m.so``; a folder's has no slash at its end."""
        members: dict[str, zipfile.ZipInfo] = {}
        for member in self.members:
            # Some Windows tools write backslashes.
            other = members.setdefault(PurePosixPath(member.filename.replace("\\", "/")).as_posix(), member)
            if (other.CRC, other.file_size) != (member.CRC, member.file_size):
                raise ModelError(
                    f"'{self.path}' was not unpacked: it has two different members '{member.filename}', so its "
                    "content depends on the tool. Export the FMU again."
                )
        return members

    @cached_property
    def description(self) -> ModelDescription:
        """The model description."""
        xml = self.read("modelDescription.xml")
        if xml is None:
            deeper = [m.filename for m in self.members if m.filename.endswith("/modelDescription.xml")]
            zipped = f"There is one at '{deeper[0]}': the folder was zipped instead of its content." if deeper else ""
            hint = zipped or "Check that it is an FMU."
            raise ModelError(f"'{self.path}' contains no modelDescription.xml at its top level. {hint}")
        return parse_description(xml, self.name)

    def departures(self) -> list[str]:
        """Return how the model description departs from the standard's XML schema, which rarely matters."""
        xml = self.read("modelDescription.xml")
        return [] if xml is None else departures(xml, self.name)

    @cached_property
    def platforms(self) -> tuple[str, ...]:
        """The folders under ``binaries/`` that hold a library, and ``"C sources"`` if there are any."""
        paths = [PurePosixPath(path) for path in self.by_path]
        libraries = (p for p in paths if p.parts[:1] == ("binaries",) and p.suffix.lower() in _LIBRARY_SUFFIXES)
        binaries = dict.fromkeys(p.parts[1] for p in libraries if len(p.parts) > 2)
        sources = any(p.parts[:1] == ("sources",) and p.suffix in (".c", ".cpp", ".cc") for p in paths)
        return (*binaries, *(("C sources",) if sources else ()))

    @property
    def constraints(self) -> bytes | None:
        """The constraints that travel inside the FMU, or None."""
        return self.read(CONSTRAINTS)

    @cached_property
    def turns(self) -> dict[str, float]:
        """By how much outputs jump where they wrap, as angles do, by name, where the FMU tells it; else empty."""
        content = self.read(TURNS)
        if content is None:
            return {}
        try:
            turns = {str(name): float(turn) for name, turn in json.loads(content).items()}
        except (ValueError, TypeError, AttributeError):  # an aid, which a damaged file does not give
            return {}
        return {name: turn for name, turn in turns.items() if 0 < turn < float("inf")}

    def read(self, member: str) -> bytes | None:
        """Return the content of the member of this name, or None."""
        info = self.by_path.get(member)
        if info is None:
            return None
        self._check_size(f"its member '{member}'", info.file_size, self.options.most_bytes / 4)
        self._check_readable(info)
        with self._opened() as archive, self._explained():
            return archive.read(info)

    def unpack(self, folders: Sequence[str]) -> Path:
        """Unpack some folders and the top level to a new private directory, which the caller removes."""
        for member in self.members:
            self._check(member)
        within = tuple(f"{folder}/" for folder in folders)
        members = {path: m for path, m in self.by_path.items() if "/" not in path or f"{path}/".startswith(within)}
        size = sum(m.file_size for m in members.values())
        sizes = _unpacked_together.get()
        before = sum(sizes or ())
        what = "the part of it that is needed" + (", with what was unpacked before," if before else "")
        self._check_size(what, before + size, self.options.most_bytes)
        if sizes is not None:
            sizes.append(size)
        for member in members.values():
            self._check_readable(member)
        target = new_folder().resolve()
        try:
            with self._opened() as archive, self._explained():
                for path, member in members.items():
                    _extract(archive, member, target / path)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
        return target

    def _check(self, member: zipfile.ZipInfo) -> None:
        name = member.filename.replace("\\", "/")
        reasons = {
            "is a symbolic link": stat.S_ISLNK(member.external_attr >> 16),
            "is an absolute path": name.startswith("/"),
            "has a drive letter or a stream name": ":" in name,
            "lies outside of the archive": ".." in PurePosixPath(name).parts,
        }
        if reason := next((reason for reason, holds in reasons.items() if holds), ""):
            raise ModelError(
                f"'{self.path}' was not unpacked: its member '{member.filename}' {reason}. An FMU does not need this; "
                "use this file only if you trust its source."
            )

    def _check_size(self, what: str, size: int, most: float) -> None:
        if size > most:
            raise ModelError(
                f"'{self.path}' was not unpacked: {what} would take {_in_words(size)}, more than the "
                f"{_in_words(most)} that are allowed. If you trust the file, raise the limit with "
                "fmu=FmuOptions(most_bytes=...)."
            )

    def _check_readable(self, member: zipfile.ZipInfo) -> None:
        if member.flag_bits & _ENCRYPTED_FLAG:
            raise ModelError(
                f"'{self.path}' cannot be unpacked: its member '{member.filename}' is encrypted, which FMI does not "
                "allow. Ask its author for an FMU without a password."
            )

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        if not self.absolute.exists():
            raise missing_file(self.path)
        if not self.absolute.is_file():
            raise ModelError(f"'{self.path}' is not a file. Give the .fmu file itself.")
        try:
            self._check_directory(*_announced(self.absolute))
            archive = zipfile.ZipFile(self.absolute)
        except zipfile.BadZipFile:
            raise ModelError(
                f"'{self.path}' is not an FMU: the zip archive is missing or incomplete. Copy or export it again."
            ) from None
        except OSError as error:
            raise ModelError(
                f"'{self.path}' cannot be read: {error.strerror or error}. Check the path and its permissions."
            ) from None
        except _UNREADABLE as error:
            raise ModelError(f"'{self.path}' is a damaged zip archive: {error}. Copy or export it again.") from None
        with archive:
            yield archive

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except _UNREADABLE as error:
            raise ModelError(
                f"'{self.path}' cannot be unpacked: {error or type(error).__name__}. The archive is damaged or packed "
                f"by an unusual method; copy or export it again."
            ) from None
        except OSError as error:
            raise ModelError(
                f"'{self.path}' cannot be unpacked: {error.strerror or error}. Free disk space, or choose another "
                "TMPDIR."
            ) from None


def read_description(path: str | Path, options: FmuOptions | None = None) -> ModelDescription:
    """Return what an FMU says about itself, without loading its code."""
    return FmuFile(Path(path), options).description


def _announced(path: Path) -> tuple[int, int]:
    """Return how many members the end of an archive announces, and the bytes of their list; (0, 0) without one."""
    # Python reads the list as a whole as soon as it opens an archive: seconds for a million members.
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _MAX_END_BYTES))
        end = file.read()
        at = end.rfind(b"PK\5\6")
        if at < 0 or len(end) - at < 22:
            return 0, 0
        members, directory = struct.unpack_from("<HI", end, at + 10)
        large = b""
        if at >= 20 and end[at - 20 : at - 16] == b"PK\6\7":
            file.seek(min(struct.unpack_from("<Q", end, at - 12)[0], size))
            large = file.read(56)
    if len(large) == 56 and large[:4] == b"PK\6\6":
        members, directory = struct.unpack_from("<QQ", large, 32)
    return members, directory


def _in_words(size: float) -> str:
    return f"{size / BYTES_PER_GIB:.1f} GiB" if size >= 0.1 * BYTES_PER_GIB else f"{size / 2**20:.1f} MiB"


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> None:
    if member.filename.endswith(("/", "\\")):
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    is_program = (member.external_attr >> 16) & stat.S_IXUSR  # some FMUs start one of their own from resources/
    descriptor = os.open(target, _NEW_FILE, 0o700 if is_program else 0o666)
    with archive.open(member) as source, os.fdopen(descriptor, "wb") as sink:
        shutil.copyfileobj(source, sink)


READ_BY_FMPY = ("modelDescription.xml", "sources/buildDescription.xml")
MAX_NAMES = 3


def problems(fmu: FmuFile) -> list[str]:
    """Return a sentence per broken rule and difference; FMPy gets files that :class:`FmuFile` found harmless."""
    from fmpy.validation import validate_fmu

    ours = fmu.description
    with temporary_folder() as folder:
        for member in READ_BY_FMPY:
            content = fmu.read(member)
            if content is not None:
                (folder / member).parent.mkdir(exist_ok=True)
                (folder / member).write_bytes(content)
        broken = [" ".join(problem.split()) for problem in validate_fmu(str(folder))]
        return list(dict.fromkeys((*broken, *read_otherwise(ours, folder))))


def read_otherwise(ours: ModelDescription, folder: Path) -> Iterator[str]:
    """Yield what FMPy reads otherwise from the model description in a folder."""
    from fmpy import read_model_description

    try:
        theirs = read_model_description(str(folder), validate=False)
    except Exception as error:  # noqa: BLE001 - of any kind: it does not expect files that break the rules
        yield " ".join(str(error).split()) or f"FMPy cannot read it: {type(error).__name__}."
        return
    if theirs.guid != ours.token:
        yield f"FMPy reads the identity {theirs.guid!r}, fmilin {ours.token!r}."
    if ours.fmi_version.startswith("1"):
        return  # its states are in no description, and its aliases are variables of their own
    for kind, mine, other in (
        ("states", ours.states, [unknown.variable.derivative for unknown in theirs.derivatives]),
        ("inputs", ours.variables.with_causality("input"), _of(theirs, "input")),
        ("outputs", ours.variables.with_causality("output"), _of(theirs, "output")),
    ):
        by_fmilin, by_fmpy = [(v.name, v.reference) for v in mine], [(v.name, int(v.valueReference)) for v in other]
        if by_fmilin != by_fmpy:
            yield f"FMPy reads {_describe_variables(by_fmpy, kind)}, fmilin {_describe_variables(by_fmilin, kind)}."


def _of(theirs: Any, causality: str) -> list[Any]:
    return [v for v in theirs.modelVariables if v.causality == causality and not v.alias]


def _describe_variables(variables: Iterable[tuple[str, int]], kind: str) -> str:
    names = [f"{name} ({reference})" for name, reference in variables]
    return f"{len(names)} {kind}" + (f": {join_first(names, MAX_NAMES)}" if names else "")
