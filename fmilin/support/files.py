"""Files that are written completely or not at all, temporary ones with the name of their process, TOML and JSON.

A temporary name holds the machine, its start, and the process with its start: what is left behind the next one removes.
"""

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import tomllib
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from fmilin.errors import UsageError

LONGEST_NAME = 255  # bytes of the name of a file on most systems
_NAME = re.compile(r"\.?fmilin-([0-9a-f]{8})-([0-9a-f]{8})-(\d+)-(\d+)-[0-9a-f]{16}(\.tmp)?")


def path_exists(path: Path) -> bool:
    """Whether a path leads to something; a name that the system does not allow, as one of 300 letters, does not."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_file(path: Path) -> bool:
    """Whether path leads to a regular file, also where the system does not allow the name."""
    return path_exists(path) and path.is_file()


def append_to_name(path: Path, ending: str) -> Path:
    """Return the path with an ending behind its name, which is shortened where the system does not allow its length."""
    name = f"{path.name}{ending}"
    if len(os.fsencode(name)) > LONGEST_NAME:
        digest = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]
        room = LONGEST_NAME - len(os.fsencode(f"-{digest}{ending}"))
        name = f"{os.fsencode(path.name)[:room].decode(errors='ignore')}-{digest}{ending}"
    return path.with_name(name)


def keep_owner_rights(path: Path) -> None:
    """Let the owner read and write what this process has made: with ``umask 777`` it had no rights at all."""
    mode = path.stat().st_mode
    rights = 0o700 if stat.S_ISDIR(mode) else 0o600
    if mode & rights != rights:
        path.chmod(stat.S_IMODE(mode) | rights)


def open_file(path: str | Path) -> IO[bytes]:
    """Open a regular file to read it. Raises OSError for all else: a device has no end, a named pipe may be silent."""
    _require_regular_file(Path(path).stat())
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        _require_regular_file(os.fstat(descriptor))  # another file may have taken the name meanwhile
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_file(path: str | Path) -> bytes:
    """Return the content of a regular file. Raises OSError for all else."""
    with open_file(path) as file:
        return file.read()


def _require_regular_file(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is a device, a named pipe or a socket, and not a regular file")


def new_folder() -> Path:
    """Return a new folder that only this user can read, for the caller to remove; those of ended processes go now."""
    try:
        parent = temporary_place()
        _tidy(parent)
        folder = parent / make_owned_name()
        folder.mkdir(mode=0o700)
        keep_owner_rights(folder)
    except OSError as error:
        raise UsageError(
            f"Cannot make a folder for temporary files: {error.strerror or error}. Let the environment variable "
            "TMPDIR name a writable folder with free space."
        ) from None
    return folder


def write_file(path: Path, content: bytes) -> None:
    """Write a file in a folder of this process, which can be read whatever the umask is."""
    path.write_bytes(content)
    keep_owner_rights(path)


def write_private(path: Path, text: str) -> None:
    """Write a new file that only this user can read."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        keep_owner_rights(path)
        file.write(text)


def temporary_place() -> Path:
    """Return TMPDIR or the system's folder; Python's search would write a file there, which a killed process leaves."""
    if tempfile.tempdir is None:
        for folder in (*map(os.environ.get, ("TMPDIR", "TEMP", "TMP")), "/tmp"):  # noqa: S108 - only where it is
            if folder and Path(folder).is_dir() and os.access(folder, os.W_OK | os.X_OK):
                tempfile.tempdir = str(Path(folder).absolute())
                break
    return Path(tempfile.gettempdir()).absolute()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a :func:`new_folder`, and remove it afterwards."""
    folder = new_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_owned_name() -> str:
    """Return a unique name that contains the process that made it."""
    machine, boot = _machine()
    pid = os.getpid()
    return f"fmilin-{machine}-{boot}-{pid}-{_read_start(pid) or 0}-{os.urandom(8).hex()}"


_tidied: dict[Path, float] = {}  # when a folder was looked through by this process
TIDYING_INTERVAL = 60.0  # seconds; a folder of temporary files may have ten thousand entries


def _tidy(folder: Path) -> None:
    """Remove leftovers, unless this process has done so a moment ago."""
    now = time.monotonic()
    if now - _tidied.get(folder, -TIDYING_INTERVAL) >= TIDYING_INTERVAL:
        _tidied[folder] = now
        remove_leftovers(folder)


def remove_leftovers(folder: Path) -> None:
    """Remove from ``folder`` what processes of this user have left there that do not live any more."""
    own_prefix, verdicts = make_owned_name()[: -len("0123456789abcdef")], dict[str, bool]()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = None if entry.name.startswith(own_prefix) else _NAME.fullmatch(entry.name)
            if match is None:
                continue
            owner = entry.name[: match.end(4)]  # a process may have a thousand folders
            if owner not in verdicts:
                verdicts[owner] = _is_orphaned(match)
            if not verdicts[owner]:
                continue
            with suppress(OSError):
                if hasattr(os, "getuid") and entry.stat(follow_symlinks=False).st_uid != os.getuid():
                    continue
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                elif entry.is_file(follow_symlinks=False):
                    Path(entry.path).unlink()


_UNKNOWN_BOOT = f"{zlib.crc32(b''):08x}"


def _is_orphaned(name: re.Match[str]) -> bool:
    machine, boot = _machine()
    if name[1] != machine:  # a folder that machines or containers share: nothing is known about that process
        return False
    if sys.platform.startswith("linux") and boot == _UNKNOWN_BOOT:  # without /proc nothing is known about any process
        return False
    return name[2] != boot or _read_start(int(name[3])) != int(name[4])


def _machine() -> tuple[str, str]:
    """Return numbers for what tells this machine (or container) from others, and its present run from earlier ones."""
    boot = space = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    with suppress(OSError):
        space = str(Path("/proc/self/ns/pid").readlink())
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return f"{zlib.crc32((name + space).encode()):08x}", f"{zlib.crc32(boot.encode()):08x}"


def _read_start(pid: int) -> int | None:
    """Return when a process started, in units that its system does not change afterwards; None when it has ended."""
    if sys.platform.startswith("linux"):  # psutil's time moves whenever the clock is set
        try:
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        return None if fields[0] in (b"Z", b"X") else int(fields[19])
    import psutil

    try:
        return round(psutil.Process(pid).create_time() * 100)
    except psutil.Error:
        return None


def check_writable(path: str | Path) -> Path:
    """Return where ``path`` really lies, after trying that a file can be created there; leaves nothing behind."""
    target = _target(path)
    descriptor, probe = _create_temporary(target)
    os.close(descriptor)
    probe.unlink()
    return target


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write ``content`` to ``path``: an old file stays as it was until the new one is complete on the disk."""
    write_all({path: content})


def write_all(contents: Mapping[str | Path, bytes] | Mapping[Path, bytes]) -> None:
    """Write several files: none takes the place of an old one until all are complete on the disk."""
    staged: list[tuple[Path, Path]] = []
    try:
        for path, content in contents.items():
            target = _target(path)
            remove_leftovers(target.parent)
            descriptor, temporary = _create_temporary(target)
            staged.append((temporary, target))
            try:
                _fill(descriptor, content)
                if target.exists():
                    temporary.chmod(target.stat().st_mode & 0o7777)
            except OSError as error:
                raise _refusal(target, error.strerror or str(error)) from None
        for temporary, target in staged:
            try:
                temporary.replace(target)
            except OSError as error:
                raise _refusal(target, error.strerror or str(error)) from None
    finally:
        for temporary, _ in staged:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
    for folder in {target.parent for _, target in staged}:
        _sync(folder)


def _fill(descriptor: int, content: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Let the new names reach the disk, too, where the system can do that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def replace_when_complete(path: str | Path) -> Iterator[Path]:
    """Yield the name of a file to fill; it takes the place of ``path`` when the block ends well, else it is gone."""
    target = _target(path)
    descriptor, temporary = _create_temporary(target)
    os.close(descriptor)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)
    except OSError as error:
        raise _refusal(target, error.strerror or str(error)) from None
    finally:
        temporary.unlink(missing_ok=True)


def _follow_links(path: Path) -> Path:
    """Return where a path leads. Some drives of Windows do not tell, nor does wine for more than 260 characters."""
    try:
        return path.resolve()
    except OSError:
        return path.absolute()


def _target(path: str | Path) -> Path:
    """Follow links, so that the file is replaced and not the link to it."""
    try:
        target = _follow_links(Path(path))
        folder = target.parent
        if not folder.is_dir():
            raise UsageError(
                f"Cannot write '{path}': there is no folder '{folder}'. Create the folder first, or choose another."
            )
        if target.is_dir():
            raise UsageError(f"Cannot write '{path}': this is a folder. Give the name of a file.")
        if target.exists() and not (target.is_file() and os.access(target, os.W_OK)):
            raise UsageError(
                f"Cannot write '{path}': a file of that name exists and is not writable. Choose another name."
            )
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, UsageError):
            raise
        raise _refusal(path, str(error)) from None
    return target


def _create_temporary(target: Path) -> tuple[int, Path]:
    """Create an empty file with the permissions that any new file gets, and a unique name."""
    temporary = target.with_name(f".{make_owned_name()}.tmp")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(temporary, flags, 0o666)
        keep_owner_rights(temporary)
    except OSError as error:
        raise _refusal(target, error.strerror or str(error)) from None
    return descriptor, temporary


def _refusal(path: str | Path, why: str) -> UsageError:
    return UsageError(f"Cannot write '{path}': {why}. Choose another path, or free disk space there.")


MAX_KEY_PARTS = 64  # parts of a dotted key; the time that reading one takes grows with their square

_LONG_KEY = re.compile(
    r"""(?<![\w."'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}""" % MAX_KEY_PARTS  # noqa: UP031 - braces
)


class DocumentError(ValueError):
    """An error in a document, as the end of a sentence."""


def read_toml(content: bytes | str) -> dict[str, Any]:
    """Return the table; raise :class:`DocumentError`."""
    if _LONG_KEY.search(text := _text(content)):
        raise DocumentError(f"a dotted key has more than {MAX_KEY_PARTS} parts")
    with _explain_errors():
        return tomllib.loads(text)


def read_json(content: bytes | str) -> Any:
    """Return the value; raise :class:`DocumentError`."""
    with _explain_errors():
        return json.loads(_text(content))


@contextmanager
def _explain_errors() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise DocumentError("it is nested too deeply") from None
    except ValueError as error:
        has_long_number = str(error).startswith("Exceeds the limit")
        raise DocumentError("an integer has thousands of digits" if has_long_number else str(error)) from None


def _text(content: bytes | str) -> str:
    try:
        return content if isinstance(content, str) else content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(str(error)) from None
