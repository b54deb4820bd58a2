"""Linear models that other programs leave: Dymola's ``dslin.mat``, and OpenFAST's linearization files (``.lin``).

``dslin.mat`` is a MAT-file of version 4: ``ABCD`` = [A B; C D], the number of states ``nx``, and a matrix of characters
``xuyName`` with the names of states, inputs and outputs in its rows, in UTF-8. ``.lin`` is text: a header, tables of
states, rates, inputs and outputs, then A, B, C, D; orientations have three numbers and are one channel.
"""

import io
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import FmilinError, ModelError, UsageError
from fmilin.export.archives import finite_array
from fmilin.export.linear_record import require_writable
from fmilin.linear_model.model import Accuracy, LinearizationMethod, LinearizationPoint, LinearModel
from fmilin.model.interface import ModelInfo
from fmilin.signals import FloatArray, Signal, Signals

_DOUBLES_TYPE, _TEXT_TYPE = (
    0,
    51,
)  # types of MAT-file 4: little-endian, full matrix of doubles; text of one byte per character


def dumps_dslin(linear: LinearModel) -> bytes:
    """Return the file's content."""
    require_writable(linear)
    if linear.sample_time > 0:
        raise UsageError(
            f"The model is sampled every {linear.sample_time:g} s, and dslin.mat cannot store the sample time. "
            "Convert the continuous model, or use .mat, .m or .mo."
        )
    names = [name.encode("utf-8") for name in (*linear.states.names, *linear.inputs.names, *linear.outputs.names)]
    width = max(map(len, names), default=0)
    rows = np.array([list(name.ljust(width)) for name in names], dtype=np.uint8).reshape(len(names), width)
    ABCD = np.block([[linear.A, linear.B], [linear.C, linear.D]])
    return b"".join(
        (_variable("ABCD", ABCD), _variable("nx", np.array([[float(len(linear.states))]])), _variable("xuyName", rows))
    )


def is_dslin(content: bytes) -> bool:
    """Whether this seems to be a file of :func:`dumps_dslin` or of Dymola: a small MAT-file that names all three."""
    return all(name in content for name in (b"ABCD\0", b"nx\0", b"xuyName\0")) and content[:6] != b"MATLAB"


def loads_dslin(content: bytes, origin: str) -> LinearModel:
    """Read a ``dslin.mat``; the operating point, which it does not have, counts as zero."""
    from scipy.io import loadmat

    try:
        top: dict[str, Any] = loadmat(io.BytesIO(content))  # type: ignore[arg-type]  # the stubs forgot open files
        names = [_name(row) for row in np.ravel(top["xuyName"])]
        return _of_dslin(finite_array(top["ABCD"], "ABCD"), top["nx"], names, origin)
    except (FmilinError, ValueError) as error:
        raise ModelError(f"'{origin}' is not a dslin.mat that fmilin reads: {error}") from None
    except Exception as error:  # noqa: BLE001 - SciPy raises whatever a damaged file leads to
        raise ModelError(f"'{origin}' is not a dslin.mat that fmilin reads: {error!r}.") from None


def _of_dslin(ABCD: FloatArray, nx: FloatArray, names: list[str], origin: str) -> LinearModel:
    n, (rows, columns) = int(np.ravel(nx)[0]), ABCD.shape
    n_u, n_y = columns - n, rows - n
    if n < 0 or n_u < 0 or n_y < 0 or len(names) != n + n_u + n_y:
        raise ModelError(f"a matrix of {rows} x {columns}, {n} states and {len(names)} names do not fit together.")
    states, inputs, outputs = (Signals(part) for part in (names[:n], names[n : n + n_u], names[n + n_u :]))
    text = "The file has no operating point: all values are deviations, and the accuracy is unknown."
    matrices = ABCD[:n, :n].copy(), ABCD[:n, n:].copy(), ABCD[n:, :n].copy(), ABCD[n:, n:].copy()
    point = LinearizationPoint(0.0, *(dict.fromkeys(group.names, 0.0) for group in (states, inputs, outputs)))
    info = ModelInfo(PurePath(origin).name.removesuffix(".mat"))
    return _build_unreduced((*matrices, np.zeros(n), np.zeros(n)), (states, inputs, outputs), point, info, text)


def _build_unreduced(
    arrays: Sequence[FloatArray], groups: Sequence[Signals], point: LinearizationPoint, info: ModelInfo, text: str
) -> LinearModel:
    """Return a linear model (A, B, C, D, f0, y0) of independent states, with unknown accuracy."""
    (A, B, C, D, f0, y0), (states, inputs, outputs) = arrays, groups
    return LinearModel(
        A, B, C, D, np.eye(len(states)), f0, states, states, inputs, outputs, y0, point,
        Accuracy(*[float("nan")] * 8), LinearizationMethod("unknown", "unknown", 0), info, (Remark("point", text),),
    )  # fmt: skip


def _name(row: str) -> str:
    text = str(row).rstrip(" \0")
    try:
        return text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


def _variable(name: str, matrix: NDArray[Any]) -> bytes:
    text = matrix.dtype == np.uint8
    head = struct.pack("<5i", _TEXT_TYPE if text else _DOUBLES_TYPE, *matrix.shape, 0, len(name) + 1)
    data = matrix if text else matrix.astype("<f8")
    return head + name.encode("ascii") + b"\0" + data.tobytes(order="F")


TOOL = "OpenFAST"
COUNTS = {"states": "continuous states", "inputs": "inputs", "outputs": "outputs"}
TABLES = COUNTS | {"rates": "continuous state derivatives"}
TURNING = {"azimuth": ("Azimuth", "rad"), "rotor_speed": ("Rotor Speed", "rad/s")}
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[EeDd]?[-+]\d+)?"
_ROW = re.compile(rf"(\d+)\s+({_NUMBER}(?:,\s*{_NUMBER})*)\s+(?:([TF])\s+)?(?:(\d)\s+)?(\S.*)")
_NO_LETTER = re.compile(r"(?<=\d)(?=[-+]\d{3}$)")  # Fortran drops the E of exponents with three digits
_PART_OF_STEP = 0.25  # azimuths of two wind speeds nearer than this part of their step are one


@dataclass(frozen=True)
class _Entry:
    """A row of a table."""

    value: float
    rotating: bool
    text: str

    @property
    def unit(self) -> str:
        """The text behind the last comma, without the brackets of output channels."""
        return self.text.rpartition(", ")[2].removeprefix("(").removesuffix(")") if ", " in self.text else ""

    @property
    def name(self) -> str:
        """The description without its unit and without the index inside ElastoDyn."""
        words = self.text.rpartition(", ")[0] or self.text
        return re.sub(r"\s*\(internal DOF index = [^=]*\)$", "", words.strip())


def loads_lin(content: bytes, origin: str) -> LinearModel:
    """Read the linear model of one file; azimuth, rotor speed and wind speed are parameters of its point."""
    lines = content.decode("utf-8", "replace").splitlines()
    if not any(line.startswith("Linearized model:") and TOOL in line for line in lines[:5]):
        raise ModelError(
            f"'{origin}' is not a linearization file of OpenFAST: its first lines are those of another format."
        )
    try:
        return _of_lin(lines, origin)
    except (ValueError, IndexError) as error:
        raise ModelError(
            f"'{origin}' is not a linearization file of OpenFAST that fmilin reads (versions 2 to 4 are known): "
            f"{error}."
        ) from None


def turbine_grid(models: Sequence[LinearModel]) -> dict[str, list[float]] | None:
    """Return wind speed and azimuth of every model, each (n,), whichever varies; None unless all come from OpenFAST.

    Azimuths are multiples of what the rotor turns in a time step, so they differ a little between wind speeds: where
    each has as many, the k-th ones count as their mean. The exact one stays among the parameters of each point.
    """
    if any(m.model.tool != TOOL or "azimuth" not in m.point.parameters for m in models):
        return None
    names = [n for n in ("wind_speed", "azimuth") if all(n in m.point.parameters for m in models)]
    columns = {n: np.array([m.point.parameters[n] for m in models]) for n in names}
    if "wind_speed" in columns:
        columns["azimuth"] = _common(columns["wind_speed"], columns["azimuth"])
    return {n: values.tolist() for n, values in columns.items() if np.ptp(values) > 0} or None


def _common(wind: FloatArray, azimuth: FloatArray) -> FloatArray:
    groups = [np.flatnonzero(wind == speed) for speed in np.unique(wind)]
    count = len(groups[0])
    if count == 0 or any(len(group) != count for group in groups):
        return azimuth
    order = np.array([group[np.argsort(azimuth[group])] for group in groups])  # (wind speeds, azimuths)
    if np.ptp(azimuth[order], axis=0).max() > _PART_OF_STEP * 2 * np.pi / count:
        return azimuth
    common = azimuth.copy()
    common[order] = azimuth[order].mean(axis=0)
    return common


def _of_lin(lines: Sequence[str], origin: str) -> LinearModel:
    count = {group: int(_header(lines, f"Number of {words}")) for group, words in COUNTS.items()}
    for kind in ("discrete", "constraint"):
        if int(_header(lines, f"Number of {kind} states")):
            raise ValueError(f"it has {kind} states, which a linear model in continuous time cannot hold")
    tables = {group: list(_table(lines, f"Order of {words}:")) for group, words in TABLES.items()}
    for group, n in (*count.items(), ("rates", count["states"])):
        if len(tables[group]) != n:
            raise ValueError(f"its header announces {n} {group}, its table has {len(tables[group])}")
    n, m, p = count.values()
    if not n:
        raise ValueError("it has no continuous states: it is a file of a module without dynamics of its own")
    shapes = {"A": (n, n), "B": (n, m), "C": (p, n), "D": (p, m)}
    matrices = [_matrix(lines, name, shape) for name, shape in shapes.items()]
    by_group = {group: _signals(tables[group]) for group in count}
    values = {group: np.array([entry.value for entry in table]) for group, table in tables.items()}
    at = {g: dict(zip(signals.names, values[g].tolist(), strict=True)) for g, signals in by_group.items()}
    parameters = {name: float(_header(lines, title, unit=unit)) for name, (title, unit) in TURNING.items()}
    if wind := _header(lines, "Wind Speed", ""):  # from version 2.4 on
        parameters["wind_speed"] = float(wind)
    digits = "The numbers have the digits that OpenFAST wrote (OutFmt); their accuracy is unknown."
    time = float(_header(lines, "Simulation time"))
    point = LinearizationPoint(time, at["states"], at["inputs"], at["outputs"], parameters)
    info = ModelInfo(PurePath(origin).name.removesuffix(".lin"), tool=TOOL)
    return _build_unreduced((*matrices, values["rates"], values["states"]), [*by_group.values()], point, info, digits)


def _header(lines: Sequence[str], title: str, missing: str | None = None, unit: str = "") -> str:
    """Return the number behind a title of the header; in another unit than ``unit`` it is rejected."""
    for line in lines[:40]:
        if line.strip().startswith(title + ":"):
            number, *units = line.partition(":")[2].split()
            if unit and units and units[0] != unit:
                raise ValueError(f"its line '{line.strip()}' is not in {unit}")
            return number
    if missing is None:
        raise ValueError(f"its header has no line '{title}:'")
    return missing


def _table(lines: Sequence[str], title: str) -> Iterator[_Entry]:
    """Yield the rows below a title; none where there is no such table."""
    start = next((i for i, line in enumerate(lines) if line.strip() == title), None)
    for number, line in enumerate(lines[start + 3 :] if start is not None else (), start=1):
        if not line.strip():
            return
        row = _ROW.fullmatch(line.strip())
        if row is None or int(row[1]) != number:
            raise ValueError(f"row {number} below '{title}' reads '{line.strip()[:60]}'")
        yield _Entry(_real(row[2].split(",")[0]), row[3] == "T", row[5])


def _matrix(lines: Sequence[str], name: str, shape: tuple[int, int]) -> FloatArray:
    """Return the matrix under its name; one without entries need not be there."""
    if 0 in shape:
        return np.zeros(shape)
    title = re.compile(rf"{name}:\s*{shape[0]} x {shape[1]}\b")
    start = next((i for i, line in enumerate(lines) if title.match(line.strip())), None)
    if start is None:
        raise ValueError(f"it has no matrix {name} of {shape[0]} x {shape[1]}")
    rows = [line.split() for line in lines[start + 1 : start + 1 + shape[0]]]
    if len(rows) < shape[0] or any(len(row) != shape[1] for row in rows):
        raise ValueError(f"its matrix {name} has not {shape[0]} rows of {shape[1]} numbers")
    matrix = np.array([[_real(word) for word in row] for row in rows])
    if not np.isfinite(matrix).all():
        raise ValueError(f"its matrix {name} has NaN or infinite entries")
    return matrix


def _real(word: str) -> float:
    return float(_NO_LETTER.sub("E", word.strip()).replace("D", "E"))


def _signals(entries: Sequence[_Entry]) -> Signals:
    """Return the signals of a table; channels that OpenFAST lists twice are numbered from the second on."""
    total: dict[str, int] = {}
    signals = []
    for entry in entries:
        total[entry.name] = total.get(entry.name, 0) + 1
        name = entry.name if total[entry.name] == 1 else f"{entry.name} [{total[entry.name]}]"
        frame = "turns with the rotor" if entry.rotating else "in the fixed frame"
        signals.append(Signal(name, entry.unit, description=f"{entry.text} ({frame})"))
    return Signals(signals)
