"""The zip archive that an FMU is: looked into, and unpacked safely into a private directory."""

from __future__ import annotations

import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from fmilin.errors import ModelError
from fmilin.fmi.read.description import Description
from fmilin.fmi.read.xml import parse_description

__all__ = ["FmuFile", "read_description"]

CONSTRAINTS = "extra/org.fmilin/constraints.toml"
_LIBRARY_SUFFIXES = (".so", ".dll", ".dylib")


@dataclass(frozen=True)
class FmuFile:
    """An FMU on disk; nothing of it is executed here.

    Parameters
    ----------
    path : Path

    Raises
    ------
    ModelError
        From every member, when the file is missing, no zip archive, or damaged.
    """

    path: Path

    @property
    def name(self) -> str:
        """The file name, for messages."""
        return self.path.name

    @cached_property
    def members(self) -> tuple[zipfile.ZipInfo, ...]:
        """What the archive contains."""
        with self._opened() as archive:
            return tuple(archive.infolist())

    @cached_property
    def description(self) -> Description:
        """The model description.

        Raises
        ------
        ModelError
            When it is missing, malformed, of an unsupported version, or leaves states or derivatives open.
        """
        xml = self.read("modelDescription.xml")
        if xml is None:
            deeper = [m.filename for m in self.members if m.filename.endswith("/modelDescription.xml")]
            hint = (
                f"There is one at '{deeper[0]}': the folder was zipped instead of its content."
                if deeper
                else "Is it an FMU at all?"
            )
            raise ModelError(f"'{self.path}' contains no modelDescription.xml at its top level. {hint}")
        return parse_description(xml, self.name)

    @cached_property
    def platforms(self) -> tuple[str, ...]:
        """The folders under ``binaries/`` that hold a library, and ``"C sources"`` if there are any."""
        paths = [_posix(m) for m in self.members]
        binaries = {
            p.parts[1]: None
            for p in paths
            if len(p.parts) > 2 and p.parts[0] == "binaries" and p.suffix.lower() in _LIBRARY_SUFFIXES
        }
        sources = any(p.parts[:1] == ("sources",) and p.suffix in (".c", ".cpp", ".cc") for p in paths)
        return (*binaries, *(("C sources",) if sources else ()))

    @property
    def constraints(self) -> bytes | None:
        """The constraints that travel inside the FMU, or None."""
        return self.read(CONSTRAINTS)

    def read(self, member: str) -> bytes | None:
        """Return the content of one member, or None when there is none of that name."""
        wanted = PurePosixPath(member)
        info = next((m for m in self.members if _posix(m) == wanted), None)
        if info is None:
            return None
        with self._opened() as archive, self._explained():
            return archive.read(info)

    def unpack(self, folders: Sequence[str]) -> Path:
        """Unpack some folders, for example ``("resources", "binaries/linux64")``, and what lies at the top level.

        Returns
        -------
        Path
            A new directory that only this user can read; the caller removes it.

        Raises
        ------
        ModelError
            When the archive is damaged, or has a member that would leave the directory: an absolute path,
            a drive letter, ``..``, a symbolic link.
        """
        wanted = [PurePosixPath(f) for f in folders]
        for member in self.members:
            self._check(member)
        target = Path(tempfile.mkdtemp(prefix="fmilin-")).resolve()
        try:
            with self._opened() as archive, self._explained():
                for member in self.members:
                    path = _posix(member)
                    if len(path.parts) == 1 or any(path.is_relative_to(f) for f in wanted):
                        _extract(archive, member, target / path)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
        return target

    def _check(self, member: zipfile.ZipInfo) -> None:
        name = member.filename.replace("\\", "/")
        reason = None
        if stat.S_ISLNK(member.external_attr >> 16):
            reason = "is a symbolic link"
        elif name.startswith("/"):
            reason = "is an absolute path"
        elif ":" in name:
            reason = "has a drive letter or a stream name"
        elif ".." in PurePosixPath(name).parts:
            reason = "leads out of the archive"
        if reason:
            raise ModelError(
                f"'{self.path}' was not unpacked: its member '{member.filename}' {reason}. An FMU has no need of that; "
                f"do not use this file unless you know where it comes from."
            )

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        if not self.path.exists():
            raise ModelError(f"There is no file '{self.path}'. Check the path and the working directory.")
        if not self.path.is_file():
            raise ModelError(f"'{self.path}' is no file. Give the .fmu file itself.")
        try:
            archive = zipfile.ZipFile(self.path)
        except zipfile.BadZipFile:
            raise ModelError(
                f"'{self.path}' is no FMU: it is no zip archive, or an incomplete one. Copy or export it again."
            ) from None
        except OSError as error:
            raise ModelError(f"'{self.path}' cannot be read: {error.strerror or error}.") from None
        with archive:
            yield archive

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
            raise ModelError(
                f"'{self.path}' cannot be unpacked: {error}. The archive is damaged, encrypted or packed by an unusual "
                f"method; copy or export it again."
            ) from None
        except OSError as error:
            raise ModelError(f"'{self.path}' cannot be unpacked: {error.strerror or error}.") from None


def read_description(path: str | Path) -> Description:
    """Return what an FMU says about itself, without loading its code.

    Raises
    ------
    ModelError
        When there is no such file, it is no FMU, or one that is not supported yet.
    """
    return FmuFile(Path(path)).description


def _posix(member: zipfile.ZipInfo) -> PurePosixPath:
    """Return the member's path; some Windows tools write backslashes."""
    return PurePosixPath(member.filename.replace("\\", "/"))


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path) -> None:
    if member.filename.endswith(("/", "\\")):
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as source, target.open("wb") as sink:
        shutil.copyfileobj(source, sink)
    if (member.external_attr >> 16) & stat.S_IXUSR:
        target.chmod(0o700)  # some FMUs start a program of their own from resources/
