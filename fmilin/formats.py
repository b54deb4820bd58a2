"""Every kind of file that leaves the program, in one table: what it holds, who writes and reads it, for whom.

Writing, reading, help texts, completion and the table in ``docs/howto/files.md`` are made from it; nothing heavy is
imported, as the command line asks for suffixes before it loads anything.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from fmilin.errors import UsageError

Holds = Literal[
    "linear model",
    "family",
    "descriptor system",
    "periodic model",
    "uncertain model",
    "estimator",
    "schedule",
    "system",
    "picture",
    "motion picture",
    "page",
    "motion",
]
Action = Literal["write", "read"]


@dataclass(frozen=True, slots=True)
class Writing:
    """What a person may choose about a file beyond its format; each format takes what concerns it."""

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


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file."""

    holds: Holds
    suffix: str  # or how the whole name ends, as ``dslin.mat``
    audience: str  # for whom it is
    content: str  # what stands in it, for the documentation
    # who writes and reads: ``module:function``, a leading dot for a module of ``fmilin``. ``dumps(thing) -> bytes``,
    # ``loads(content, origin)``; without ``read`` nothing reads it back, and without ``write`` others write it
    write: str
    read: str = ""
    kind: str = ""  # what such a file is, where nothing reads it back
    choices: tuple[str, ...] = ()  # fields of :class:`Writing` that are heeded: ``dumps(thing, writing)``
    complete: bool = False  # whether everything goes in, a descriptor system included, and comes back bit by bit
    # ``write(thing, path)`` where what is larger than the memory goes into the file; ``read`` takes a path then, too
    stream: str = ""


def function_of(name: str) -> Callable[..., Any]:
    """Return the function that a format names; its module is imported now."""
    module, _, function = name.partition(":")
    result: Callable[..., Any] = getattr(import_module(module, "fmilin"), function)
    return result


FORMATS: tuple[Format, ...] = (
    Format(
        "linear model", ".mat", "MATLAB, Octave and SciPy",
        "`S = load('plant.mat'); sys = ss(S.A, S.B, S.C, S.D)`; names as cell arrays, the rest in `S.fmilin`",
        ".export.linear_arrays:dumps_mat", ".export.linear_arrays:loads_mat", complete=True,
    ),
    Format(
        "linear model", ".npz", "NumPy", "arrays under their names, the rest as JSON text in `fmilin`",
        ".export.linear_arrays:dumps_npz", ".export.linear_arrays:loads_npz", complete=True,
    ),
    Format(
        "linear model", ".json", "any language", "strict JSON, format `fmilin-linear/1`",
        ".export.document:dumps_json", ".export.document:loads_json", complete=True,
    ),
    Format(
        "linear model", ".fmu", "simulation tools",
        "an FMU 2.0 or 3.0 that runs the linear model by itself, [see below](#linear-models-as-fmus)",
        ".export.fmu_file:dumps", ".export.fmu_file:loads", choices=("name", "deviation", "fmi", "platforms"),
    ),
    Format(
        "linear model", ".m", "a function of MATLAB and Octave",
        "returns `ss` with names, units, point and offsets; of several models an array with its grid",
        ".export.m_file:dumps", kind="a program", choices=("name",),
    ),
    Format(
        "linear model", ".c", "microcontrollers", "[one C99 file](c_code.md) that runs it in steps, without a heap",
        ".export.c_file:dumps", kind="a program", choices=("name", "deviation", "precision"),
    ),
    Format(
        "linear model", ".mo", "Modelica", "one model; `modelica=\"equations\"` for plain inputs and outputs",
        ".export.modelica:dumps", kind="a Modelica model", choices=("name", "deviation", "modelica"),
    ),
    Format(
        "linear model", ".tex", "LaTeX", "matrices and modes with six digits, for `\\input{plant}`",
        ".export.for_people:dumps_tex", kind="a text",
    ),
    Format(
        "linear model", ".txt", "people", "the table of the terminal, and matrices with six digits",
        ".export.for_people:dumps_txt", kind="a text",
    ),
    Format(
        "linear model", "dslin.mat", "Dymola", "`ABCD`, `nx`, `xuyName`; any name that ends like this",
        ".export.foreign:dumps_dslin", ".export.foreign:loads_dslin",
    ),
    Format(
        "linear model", ".lin", "OpenFAST",
        "its linearization files, read: `fmilin convert turbine.*.lin -o family.nc` has azimuths and wind speeds "
        "as axes",
        "", ".export.foreign:loads_lin",
    ),
    Format(
        "family", ".nc", "xarray", "netCDF 4 with labelled axes; needs `pip install 'fmilin[families]'`",
        ".export.family_arrays:dumps_nc", ".export.family_arrays:read_nc", complete=True,
        stream=".export.family_arrays:write_nc",
    ),
    Format(
        "family", ".mat", "MATLAB and Octave",
        "arrays with the grid behind, and offsets as the LPV System block wants them",
        ".export.family_arrays:dumps_mat", ".export.family_arrays:loads_mat", complete=True,
    ),
    Format(
        "family", ".npz", "NumPy", "arrays with the grid in front, the rest as JSON text in `fmilin`",
        ".export.family_arrays:dumps_npz", ".export.family_arrays:loads_npz", complete=True,
    ),
    Format(
        "family", ".json", "any language", "strict JSON, format `fmilin-family/1`: one object per point",
        ".export.family_json:dumps", ".export.family_json:loads", complete=True,
    ),
    Format(
        "family", ".m", "a function of MATLAB and Octave", "returns an array of models with its grid",
        ".export.family_arrays:dumps_m", kind="a program", choices=("name",),
    ),
    Format(
        "descriptor system", ".mat", "MATLAB and Octave", "`S = load('plant.mat'); sys = dss(S.A, S.B, S.C, S.D, S.E)`",
        ".export.linear_arrays:dumps_descriptor_mat", ".export.linear_arrays:loads_descriptor_mat", complete=True,
    ),
    Format(
        "descriptor system", ".npz", "NumPy", "arrays under their names",
        ".export.linear_arrays:dumps_descriptor_npz", ".export.linear_arrays:loads_descriptor_npz", complete=True,
    ),
    Format(
        "periodic model", ".nc", "xarray", "matrices over the phase, multipliers, exponents: `fmilin floquet -o`",
        ".export.periodic_file:dumps_nc", ".export.periodic_file:load", complete=True,
    ),
    Format(
        "periodic model", ".mat", "MATLAB and Octave", "the same; the phase is the last axis of `A` to `T`",
        ".export.periodic_file:dumps_mat", ".export.periodic_file:load", complete=True,
    ),
    Format(
        "periodic model", ".npz", "NumPy", "the same; the phase is the first axis",
        ".export.periodic_file:dumps_npz", ".export.periodic_file:load", complete=True,
    ),
    Format(
        "periodic model", ".json", "any language", "the same, strict JSON, format `fmilin-floquet/1`",
        ".export.periodic_file:dumps_json", ".export.periodic_file:load", complete=True,
    ),
    Format("estimator", ".c", "microcontrollers", "[one C99 file](c_code.md)", ".export.estimator_c:save"),
    Format("estimator", ".fmu", "simulation tools", "an FMU 2.0 or 3.0 around it", ".export.estimator_c:save"),
    Format("schedule", ".c", "microcontrollers", "[one C99 file](c_code.md)", ".export.c_file:save_schedule"),
    Format("schedule", ".fmu", "simulation tools", "an FMU 2.0 or 3.0 around it", ".export.c_file:save_schedule"),
    Format(
        "uncertain model", ".m", "a function of MATLAB", "builds a `uss` with a `ureal` for each parameter: `u.save`",
        ".export.m_file:dumps_uncertain", kind="a program", choices=("name",),
    ),
    Format(
        "system", ".ssp", "tools that connect FMUs", "FMUs with their wires, SSP 1.0: `fl.export.ssp`",
        ".export.ssp_file:ssp",
    ),
    Format(
        "motion", ".csv", "spreadsheets", "time, every state and output: `fmilin simulate -o`",
        "fmilin.simulation.trajectory:trajectory_as_csv", kind="a table",
    ),
    Format("picture", ".png", "screens", "pixels", ".report.figures:rendered"),
    Format("picture", ".svg", "print", "lines and text", ".report.figures:rendered"),
    Format(
        "motion picture", ".gif", "screens", "a mechanism that moves in its modes",
        ".report.mechanism_picture:mechanism_motion",
    ),
    Format("page", ".html", "browsers", "tables and pictures in one file: `fmilin report`", ".report.web:report_html"),
    Format("page", ".htm", "browsers", "the same", ".report.web:report_html"),
)  # fmt: skip
"""Refusals and help texts list them in this order."""


def formats(holds: Holds, *, readable: bool = False, complete: bool = False) -> list[Format]:
    """Return the formats that hold such a thing and can be written, or read; only those that lose nothing."""
    return [
        f for f in FORMATS if f.holds == holds and (f.read if readable else f.write) and (f.complete or not complete)
    ]


def suffixes(*holds: Holds, readable: bool = False, complete: bool = False) -> tuple[str, ...]:
    """Return the suffixes of the formats that hold one of these things."""
    return tuple(f.suffix for thing in holds for f in formats(thing, readable=readable, complete=complete))


def listed(holds: Holds, **which: bool) -> str:
    """Return the suffixes for a help text; names that are more than a suffix with whom they are for."""
    every = formats(holds, **which)
    plain = " ".join(f.suffix for f in every if f.suffix.startswith("."))
    return ", ".join([plain, *(f"{f.suffix} ({f.audience})" for f in every if not f.suffix.startswith("."))])


def alternatives(holds: Holds, word: str = "or", **which: bool) -> str:
    """Return the suffixes as words: ``.mat, .npz or .json``."""
    *others, last = (suffix for suffix in suffixes(holds, **which) if suffix.startswith("."))
    return f"{', '.join(others)} {word} {last}"


def format_of(path: str | Path, holds: Holds, action: Action = "write") -> Format:
    """Return the format of a file by the end of its name; refuse one that cannot be written, or read."""
    match = _by_name(path, holds)
    if match is None or not getattr(match, action):
        article = "an" if holds[0] in "aeiou" else "a"
        suffix = Path(path).suffix.lower()
        has = f"the suffix '{suffix}'" if suffix else "no suffix"
        every = ", ".join(f"{f.suffix} ({f.audience})" for f in formats(holds, readable=action == "read"))
        raise UsageError(f"Cannot {action} '{path}' as {article} {holds}: it has {has}. Known are {every}.")
    return match


def is_named_as(path: str | Path, *holds: Holds) -> bool:
    """Whether the end of a file's name says that it holds one of these things."""
    return any(_by_name(path, thing) is not None for thing in holds)


def refuse_written_only(path: str | Path, advice: str) -> None:
    """Refuse to read what is written for others alone: a program, a text."""
    match = next((f for f in FORMATS if f.kind and f.suffix == Path(path).suffix.lower()), None)
    if match is not None:
        raise UsageError(f"Cannot read '{path}': a {match.suffix} file is {match.kind}. {advice}")


def _by_name(path: str | Path, holds: Holds) -> Format | None:
    """Return the format whose suffix is the longest end of the name; whole names belong to linear models alone."""
    name = Path(path).name.lower()
    own = [f for f in FORMATS if not f.suffix.startswith(".") and name.endswith(f.suffix)]
    same = own or [f for f in FORMATS if f.suffix == Path(path).suffix.lower()]
    return next((f for f in same if f.holds == holds), None)
