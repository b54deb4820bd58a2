"""Results as files: the end of a file's name picks the format among those of ``fmilin.formats``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from fmilin import formats
from fmilin.errors import ModelError, UsageError
from fmilin.support.files import check_writable, read_file
from fmilin.support.kinds import kinds_checked

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily
    from fmilin.linear_model.descriptor import Descriptor
    from fmilin.linear_model.model import LinearModel
    from fmilin.periodic.periodic_model import PeriodicModel
    from fmilin.trimming.uncertainty import Uncertain

    Result = LinearModel | LinearFamily | Descriptor | PeriodicModel | Uncertain

MARK = "fmilin-family/"  # stands in every file of a family, before the number of its version


@kinds_checked
def save(
    result: Result,
    path: str | Path,
    writing: formats.Writing | None = None,
    *,
    precision: Literal["double", "single"] = "double",
    sample_time: float | None = None,
) -> None:
    """Write a result, completely or not at all, in the format of the suffix and under the name of the stem.

    ``precision`` and ``sample_time`` take precedence over those of ``writing`` where they are not the defaults.
    """
    writing = writing or formats.Writing()
    chosen: str | None = None
    if precision != "double":
        writing, chosen = replace(writing, precision=precision), "precision"
    if sample_time is not None:
        writing, chosen = replace(writing, sample_time=sample_time), "sample_time"
    if chosen is not None and Path(path).suffix.lower() != ".c":
        raise UsageError(
            f"'{chosen}' is an option of C code, and '{path}' is not a C file. Leave it out, or write a .c file."
        )
    target = Path(path)
    codec = formats.require_codec(path, formats.identify_kind(result))
    codec.write(result, target, replace(writing, name=target.stem))


def save_all(family: LinearFamily, paths: Sequence[Path]) -> dict[Path, UsageError]:
    """Write a family to those of several files that can be written, and return why others could not."""
    refused: dict[Path, UsageError] = {}
    for path in paths:
        try:
            save(family, path)
        except UsageError as error:
            refused[path] = error
    return refused


def dumps(result: Result, path: str | Path, writing: formats.Writing | None = None) -> bytes:
    """Return what :func:`save` would write to ``path``, of a family that the memory holds twice."""
    codec = formats.require_codec(path, formats.identify_kind(result))
    return codec.dumps(result, replace(writing or formats.Writing(), name=Path(path).stem))


def dumps_each(
    models: Sequence[LinearModel], paths: Sequence[Path], axes: Sequence[str] | None, writing: formats.Writing
) -> dict[Path, bytes]:
    """Return each file's content: one linear model, or the family over ``axes`` (what varies by default) of several."""
    if len(models) == 1:
        return {path: dumps(models[0], path, writing) for path in paths}
    from fmilin.export.foreign import turbine_grid
    from fmilin.export.m_file import build_grid, dumps_array, gather_models, what_varies
    from fmilin.families.family_builder import build_family

    grid = turbine_grid(models) if axes is None else build_grid(models, axes)
    programs = [path for path in paths if path.suffix.lower() == ".m"]  # sort the members along a grid of their own
    contents = {path: dumps_array(gather_models(models, grid), replace(writing, name=path.stem)) for path in programs}
    if family_paths := [path for path in paths if path not in programs]:
        family = build_family(models, (what_varies(models) or None) if grid is None else grid)
        contents |= {path: dumps(family, path) for path in family_paths}
    return contents


@kinds_checked
def load(path: str | Path) -> LinearModel:
    """Read a linear model; the suffix picks the format."""
    return cast("LinearModel", load_result_kind("linear model", path))


@kinds_checked
def load_family(path: str | Path) -> LinearFamily:
    """Read a family; the suffix picks the format."""
    if formats.matches_suffix(path, "family"):
        formats.reject_unreadable_format(path, f"Load the family from {formats.alternatives('family', complete=True)}.")
    return cast("LinearFamily", load_result_kind("family", path))


@kinds_checked
def load_descriptor(path: str | Path) -> Descriptor:
    """Read a descriptor system; the suffix picks the format."""
    return cast("Descriptor", load_result_kind("descriptor system", path))


def load_result(source: str) -> LinearModel | LinearFamily | None:
    """Return the linear model or the family in a file; None where ``source`` names a model."""
    path = Path(source)
    if ":" in source and not path.exists():
        return None
    formats.reject_unreadable_format(
        path,
        f"Save the linear model as {formats.alternatives('linear model', complete=True)}, a family as "
        f"{formats.alternatives('family', complete=True)}.",
    )
    if path.suffix.lower() not in formats.suffixes("linear model", "family", readable=True):
        return None
    codec = formats.find_codec(path, "linear model")
    if codec is not None and not codec.recognizes(path):
        return None
    if not path.exists():
        raise ModelError(f"There is no file '{source}'. Name the file of a linear model or of a family.")
    return load_family(path) if is_family(path) else load(path)


def check_output(path: str | Path, holds: formats.Holds = "linear model") -> None:
    """Make sure that such a thing can be written to ``path``; cheap, and leaves nothing behind."""
    codec = formats.require_codec(path, holds)
    check_writable(path)
    codec.require_installed()


def check_family_outputs(paths: Sequence[Path]) -> list[Path]:
    """Return ``paths`` after making sure that a family can be written to every one."""
    for path in paths:
        check_output(path, "family")
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("The outputs name the same file twice. Keep one.")
    return list(paths)


def has_mark(path: Path, mark: str) -> bool:
    """Whether a text stands in a file; False where it cannot be read."""
    try:
        content = read_file(path)
    except OSError:
        return False
    return any(mark.encode(code) in content for code in ("ascii", "utf-16-le", "utf-32-le"))


def is_family(path: Path) -> bool:
    """Whether a file holds a family, by what stands in it; False where it cannot be read."""
    codec = formats.find_codec(path, "family")
    if codec is None or not codec.is_readable:
        return False
    if not formats.matches_suffix(path, "linear model"):
        return True
    if has_mark(path, MARK) or codec.suffix == ".json":
        return has_mark(path, MARK)
    try:  # a compressed file that another program saved again
        codec.loads(read_file(path), "")
    except (ModelError, OSError):
        return False
    return True


def load_result_kind(holds: formats.Holds, path: str | Path) -> object:
    """Read a file that holds such a result; the suffix picks the format."""
    result: object = formats.require_codec(path, holds, "read").read(Path(path))
    return result
