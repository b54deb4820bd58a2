"""Which module writes and reads which kind of file; the suffix decides.

A new format is one module with ``dumps(linear) -> bytes`` (and ``loads(content, origin)`` where it can be
read back), and one line in :data:`FORMATS`. Where there is something to choose it is
``dumps(linear, writing)``. Nothing heavy is imported here: the command line asks for suffixes before it loads
anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from fmilin.ground.errors import ModelError, UsageError
from fmilin.ground.files import check_writable, write_atomically
from fmilin.output.export.writing import Writing

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel

__all__ = [
    "FORMATS",
    "Format",
    "carries_descriptor",
    "check_output",
    "dumps",
    "dumps_array",
    "holds_arrays",
    "load",
    "save",
    "save_array",
]


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file."""

    module: str  # where ``dumps`` and ``loads`` live
    description: str  # for help texts
    readable: bool = True  # whether there is a ``loads``
    has_choices: bool = False  # whether ``dumps`` takes a :class:`~fmilin.export.writing.Writing`
    # whether one file can hold several models of one plant: ``dumps_array(models, writing)``
    holds_arrays: bool = False
    carries_descriptor: bool = False  # whether the descriptor system of a model goes into the file, where it has one


FORMATS = {
    ".mat": Format("fmilin.output.export.mat", "MATLAB, Octave and SciPy", carries_descriptor=True),
    ".npz": Format("fmilin.output.export.npz", "NumPy", carries_descriptor=True),
    ".json": Format("fmilin.output.export.json_file", "any language", carries_descriptor=True),
    ".m": Format(
        "fmilin.output.export.m_file",
        "a function of MATLAB and Octave",
        readable=False,
        has_choices=True,
        holds_arrays=True,
    ),
    ".fmu": Format("fmilin.output.export.fmu_file", "simulation tools", has_choices=True),
    ".mo": Format("fmilin.output.export.modelica", "Modelica", readable=False, has_choices=True),
    "dslin.mat": Format("fmilin.output.export.dslin", "Dymola"),
    ".tex": Format("fmilin.output.export.latex", "LaTeX", readable=False),
    ".txt": Format("fmilin.output.export.plain_text", "people", readable=False),
}


def save(linear: LinearModel, path: str | Path, writing: Writing | None = None) -> None:
    """Write ``linear`` to ``path``, completely or not at all; the suffix picks the format.

    ``writing``: what a person chose; the name in it is replaced by the stem of ``path``.
    """
    write_atomically(path, dumps(linear, path, writing))


def dumps(linear: LinearModel, path: str | Path, writing: Writing | None = None) -> bytes:
    """Return what :func:`save` would write to ``path``."""
    kind = _format(path)
    module = import_module(kind.module)
    if not kind.has_choices:
        return cast(bytes, module.dumps(linear))
    return cast(bytes, module.dumps(linear, replace(writing or Writing(), name=Path(path).stem)))


def save_array(
    models: Sequence[LinearModel],
    path: str | Path,
    *,
    grid: Mapping[str, Sequence[float]] | None = None,
    writing: Writing | None = None,
) -> None:
    """Write several linear models of one plant to one file: an array with its sampling grid.

    ``models``: with the same states, inputs and outputs: from :func:`fmilin.linearize_along`, for example. ``grid``:
    what varies, and its value at every model; by default found in their points: time, else inputs and parameters, else
    states.
    """
    write_atomically(path, dumps_array(models, path, grid=grid, writing=writing))


def dumps_array(
    models: Sequence[LinearModel],
    path: str | Path,
    *,
    grid: Mapping[str, Sequence[float]] | None = None,
    writing: Writing | None = None,
) -> bytes:
    """Return what :func:`save_array` would write to ``path``."""
    from fmilin.output.export.model_array import gathered

    if not holds_arrays(path):
        able = ", ".join(suffix for suffix, kind in FORMATS.items() if kind.holds_arrays)
        raise UsageError(f"'{path}' can hold one linear model, not {len(models)}. Formats for several: {able}.")
    module = import_module(_format(path).module)
    writing = replace(writing or Writing(), name=Path(path).stem)
    return cast(bytes, module.dumps_array(gathered(models, grid), writing))


def holds_arrays(path: str | Path) -> bool:
    """Whether one file of this format can hold several models of one plant."""
    return _format(path).holds_arrays


def carries_descriptor(path: str | Path) -> bool:
    """Whether the descriptor system of a model goes into a file of this format."""
    return _format(path).carries_descriptor


def load(path: str | Path) -> LinearModel:
    """Read a linear model; the suffix picks the format."""
    module = _format(path, reading=True).module
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ModelError(f"Cannot read the linear model '{path}': {why}.") from None
    return cast("LinearModel", import_module(module).loads(content, str(path)))


def check_output(path: str | Path) -> None:
    """Make sure that :func:`save` will be able to write to ``path``; cheap, and leaves nothing behind."""
    _format(path)
    check_writable(path)


def _format(path: str | Path, *, reading: bool = False) -> Format:
    suffix = "dslin.mat" if Path(path).name.lower().endswith("dslin.mat") else Path(path).suffix.lower()
    known = {s: f for s, f in FORMATS.items() if f.readable or not reading}
    if suffix not in known:
        action = "read" if reading else "write"
        has = f"the suffix '{suffix}'" if suffix else "no suffix"
        listed = ", ".join(f"{s} ({f.description})" for s, f in known.items())
        raise UsageError(f"Cannot {action} '{path}' as a linear model: it has {has}. Known are {listed}.")
    return known[suffix]
