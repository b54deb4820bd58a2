"""Formats of files: what a codec offers, the registry of codecs, and questions about them by suffix and content.

A codec stands in the file of its format, in ``fmilin/export/codecs/`` or, for pictures and pages, in
``fmilin/report/codecs.py``, and registers itself. Writing, reading, help texts, completion and the table in
``docs/howto/files.md`` are made from the registry. The command line asks for suffixes before it loads anything else:
neither this module nor a file of codecs imports a heavy library at its top.
"""

from __future__ import annotations

from bisect import insort
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, get_args

from fmilin.errors import ModelError, UsageError
from fmilin.support.dataclass import dataclass

Holds = Literal[
    "linear model",
    "delayed linear model",
    "family",
    "descriptor system",
    "periodic model",
    "estimator",
    "schedule",
    "uncertain model",
    "system",
    "motion",
    "picture",
    "motion picture",
    "page",
]
"""The kinds of contents of a file, in the order of the documentation."""

Action = Literal["write", "read"]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Writing:
    """Choices about a file beyond its format; each format uses those that concern it."""

    name: str = "plant"  # what the thing in the file is called (a function, a model): the stem of the file's name
    # signals in deviations from the operating point instead of absolute values, and without f0, its own motion
    deviation: bool = False
    # connectors of Modelica.Blocks.Interfaces, or plain ``input Real`` and ``output Real``
    modelica: Literal["blocks", "equations"] = "blocks"
    fmi: Literal["2.0", "3.0"] = "2.0"  # the version of the standard that an FMU follows
    platforms: tuple[str, ...] = ()  # what an FMU shall run on (``"linux64"``, ``"win64"``, ...); empty: this machine
    embedded: bool = False  # an FMU that needs no file at run time, as filters and regulators are written
    precision: Literal["double", "single"] = "double"  # of the numbers in C code
    sample_time: float | None = None  # in seconds, of C code for a continuous model; chosen by its motions by default


class Codec(Protocol[Result]):
    """One kind of file, for results of one type.

    A format is a class that derives from ``Codec[Result]``, states the first four attributes, overrides :meth:`dumps`
    and, if it can be read back, :meth:`loads`, and is decorated with :func:`register`. Imports of numpy and of the
    packages of fmilin stand inside its methods.

    Examples
    --------
    >>> from fmilin.formats import Codec, Writing, register
    >>> @register  # doctest: +SKIP
    ... class OrderText(Codec["LinearModel"]):
    ...     holds = "linear model"
    ...     suffix = ".order"
    ...     audience = "people"
    ...     content = "the order in words"
    ...
    ...     def dumps(self, result: "LinearModel", writing: Writing) -> bytes:
    ...         return f"{writing.name} has {len(result.states)} states".encode()
    """

    holds: Holds
    suffix: str  # or how the whole name ends, as ``dslin.mat``
    audience: str  # for whom it is
    content: str  # its content, for the documentation
    position: int = 1000  # in lists of formats that hold the same: ascending, then by suffix
    description: str = ""  # of a file that is neither read back nor a model, with its article: "a program"
    choices: tuple[str, ...] = ()  # fields of :class:`Writing` that it heeds
    is_complete: bool = False  # whether everything goes in, a descriptor system included, and comes back bit by bit
    is_writable: bool = True
    is_readable: bool = False

    def dumps(self, result: Result, writing: Writing) -> bytes:
        """Return the content of a file; ``writing.name`` is the stem of its name."""
        raise UsageError(f"A {self.suffix} file with a {self.holds} is only read, not written.")

    def loads(self, content: bytes, origin: str) -> Result:
        """Return the result from the content of a file; ``origin`` names the file in messages."""
        raise ModelError(
            f"Cannot read '{origin}': a {self.suffix} file with a {self.holds} can only be written, not read."
        )

    def write(self, result: Result, path: Path, writing: Writing) -> None:
        """Write a file completely or not at all. Formats for results larger than the memory override this."""
        from fmilin.support.files import write_atomically

        write_atomically(path, self.dumps(result, writing))

    def read(self, path: Path) -> Result:
        """Read a file. Formats for results larger than the memory override this."""
        from fmilin.support.files import read_file

        try:
            content = read_file(path)
        except (OSError, ValueError) as error:
            raise unreadable_file(path, self.holds, error) from None
        return self.loads(content, str(path))

    def recognizes(self, path: Path) -> bool:
        """Whether a file with this suffix can be one of this format. False if its content says otherwise."""
        return True

    def require_installed(self) -> None:
        """Raise UsageError if a package that the format needs is not installed."""


# Results of many types: what a codec returns for a file is known only from ``holds``.
AnyCodec = Codec[Any]
CodecClass = TypeVar("CodecClass", bound=type[AnyCodec])

PICTURE_SUFFIXES = (".png", ".svg", ".pdf", ".gif", ".jpg")
_codecs: list[AnyCodec] = []
_HOLDS = get_args(Holds)


def register(codec_class: CodecClass) -> CodecClass:
    """Add a format, as a decorator of its class. Raises ValueError if its suffix is taken for what it holds."""
    register_codec(codec_class())
    return codec_class


def register_codec(codec: AnyCodec) -> None:
    """Add a format. Raises ValueError if its suffix is taken for what it holds."""
    if any((other.holds, other.suffix) == (codec.holds, codec.suffix) for other in _codecs):
        raise ValueError(f"A format for '{codec.suffix}' files with a {codec.holds} is registered already.")
    insort(_codecs, codec, key=_sort_key)


def _sort_key(codec: AnyCodec) -> tuple[int, int, str]:
    return _HOLDS.index(codec.holds), codec.position, codec.suffix


def registered_codecs() -> tuple[AnyCodec, ...]:
    """Return all formats in the order of the documentation."""
    return tuple(_codecs)


def list_codecs(holds: Holds, *, readable: bool = False, complete: bool = False) -> list[AnyCodec]:
    """Return the formats of such a result that can be written, or read. ``complete`` selects those that lose nothing.

    Messages and help texts list them in this order.
    """
    return [
        codec
        for codec in _codecs
        if codec.holds == holds
        and (codec.is_readable if readable else codec.is_writable)
        and (codec.is_complete or not complete)
    ]


def suffixes(*holds: Holds, readable: bool = False, complete: bool = False) -> tuple[str, ...]:
    """Return the suffixes of the formats that hold one of these things."""
    return tuple(codec.suffix for kind in holds for codec in list_codecs(kind, readable=readable, complete=complete))


def listed(holds: Holds, *, readable: bool = False, complete: bool = False) -> str:
    """Return the suffixes for a help text. An ending of a whole name, as dslin.mat, stands with its audience."""
    codecs = list_codecs(holds, readable=readable, complete=complete)
    plain = " ".join(codec.suffix for codec in codecs if codec.suffix.startswith("."))
    names = [f"{codec.suffix} ({codec.audience})" for codec in codecs if not codec.suffix.startswith(".")]
    return ", ".join([plain, *names])


def alternatives(holds: Holds, word: str = "or", *, readable: bool = False, complete: bool = False) -> str:
    """Return the suffixes as words: ``.mat, .npz or .json``."""
    endings = suffixes(holds, readable=readable, complete=complete)
    *leading_endings, last = (suffix for suffix in endings if suffix.startswith("."))
    return f"{', '.join(leading_endings)} {word} {last}"


def identify_kind(result: object) -> Holds:
    """Return what a file of a result holds, as its class states. Raises UsageError for what files cannot hold."""
    kind: Holds | None = getattr(type(result), "file_kind", None)
    if kind is None:
        raise UsageError(f"An object of the type '{type(result).__name__}' is not a result that can be saved.")
    return kind


def require_codec(path: str | Path, holds: Holds, action: Action = "write") -> AnyCodec:
    """Return the format that the end of a file's name picks. Raises UsageError if it cannot be written, or read."""
    codec = find_codec(path, holds)
    if codec is None or not (codec.is_writable if action == "write" else codec.is_readable):
        article = "an" if holds[0] in "aeiou" else "a"
        suffix = Path(path).suffix.lower()
        has = f"the suffix '{suffix}'" if suffix else "no suffix"
        codecs = list_codecs(holds, readable=action == "read")
        if holds == "delayed linear model":
            endings = ", ".join(f"{codec.suffix} ({codec.audience})" for codec in list_codecs(holds))
            raise UsageError(
                f"Cannot {action} '{path}': a linear model with delays is written as {endings} only. Choose one of "
                "these, or save lin.pade(order), which has no delays."
            )
        listing = ", ".join(f"{codec.suffix} ({codec.audience})" for codec in codecs)
        raise UsageError(
            f"Cannot {action} '{path}' as {article} {holds}: it has {has}. Known are {listing}. Choose one of these "
            f"formats.{_advise(holds, suffix) if action == 'write' else ''}"
        )
    return codec


def _advise(holds: Holds, suffix: str) -> str:
    """Say which function writes a page or a picture of a linear model."""
    if holds != "linear model":
        return ""
    if suffix == ".html":
        return " A page with tables and pictures is written by lin.save_report()."
    return " A picture is drawn by lin.plot.eigenvalues()." if suffix in PICTURE_SUFFIXES else ""


def find_codec(path: str | Path, holds: Holds) -> AnyCodec | None:
    """Return the format with the longest suffix that the name ends with, None if such a result has none.

    Endings of whole names, as ``dslin.mat``, belong to linear models alone.
    """
    name = Path(path).name.lower()
    by_ending = [codec for codec in _codecs if not codec.suffix.startswith(".") and name.endswith(codec.suffix)]
    by_suffix = [codec for codec in _codecs if codec.suffix == Path(path).suffix.lower()]
    return next((codec for codec in by_ending or by_suffix if codec.holds == holds), None)


def matches_suffix(path: str | Path, *holds: Holds) -> bool:
    """Whether the end of a file's name says that it holds one of these things."""
    return any(find_codec(path, kind) is not None for kind in holds)


def reject_unreadable_format(path: str | Path, advice: str) -> None:
    """Raise UsageError for a file in a format that is only written: a program, a text."""
    suffix = Path(path).suffix.lower()
    codec = next((codec for codec in _codecs if codec.description and codec.suffix == suffix), None)
    if codec is not None:
        raise UsageError(
            f"Cannot read '{path}' as a result of fmilin: a {codec.suffix} file is {codec.description}. {advice}"
        )


def unreadable_file(path: Path, holds: Holds, error: Exception) -> ModelError:
    """Return the error for a file that cannot be opened."""
    why = getattr(error, "strerror", None) or error
    return ModelError(f"Cannot read the {holds} '{path}': {why}.")
