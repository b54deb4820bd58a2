"""Periodic models as files: matrices over the phase, the orbit, and what Floquet's theory says of them.

All formats hold the same arrays, complex ones with a last axis of real and imaginary part; the rest is text.
"""

import io
import json
from pathlib import Path
from typing import Any, cast

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.export import mat5
from fmilin.export.archives import archive_of, arrays_of, reading
from fmilin.export.document import object_in, text_of
from fmilin.export.files import has_mark, load_result_as
from fmilin.formats import suffixes
from fmilin.model.interface import ModelInfo, OperatingPoint
from fmilin.periodic.chart import FloquetChart
from fmilin.periodic.floquet import Floquet
from fmilin.periodic.model import PeriodicModel
from fmilin.signals import Signal, Signals

FORMAT = "fmilin-floquet/1"
CHART = "fmilin-floquet-chart/1"
WRITTEN = "periodic model that 'fmilin floquet -o' wrote"
MATRICES = ("A", "B", "C", "D", "T", "error", "transitions", "jump", "times", "f0", "monodromy_error")
PAGES = MATRICES[:7]  # (m, ., .) each
GROUPS = ("states", "full_states", "inputs", "outputs")
DIMENSIONS = {
    "A": ("phase", "state", "state_"), "B": ("phase", "state", "input"), "C": ("phase", "output", "state"),
    "D": ("phase", "output", "input"), "T": ("phase", "full_state", "state"), "error": ("phase", "state", "state_"),
    "jump": ("state", "state_"), "times": ("phase",), "f0": ("phase", "state"), "x": ("phase", "full_state"),
    "u": ("phase", "input_"), "multipliers": ("mode", "part"), "exponents": ("mode", "part"),
    "participation": ("harmonic", "mode"), "transitions": ("phase", "state", "state_"),
    "monodromy_error": ("state", "state_"),
}  # fmt: skip


def summary_of(periodic: PeriodicModel, floquet: Floquet) -> dict[str, Any]:
    """Return the document of a periodic model, as the command ``fmilin floquet`` prints it."""
    return {
        "format": FORMAT,
        "period": float(periodic.period),
        "order": len(periodic.states),
        "states": list(periodic.states.names),
        "multipliers": floquet.multipliers,
        "exponents": floquet.exponents,
        "accuracy": {**{k: float(v) for k, v in floquet.accuracy.items()}, "closure": float(periodic.closure)},
        "stable": floquet.stable,
        "verdict": floquet.verdict,
        "orbitally_stable": floquet.orbitally_stable,
        "margin": float(floquet.margin),
        "frequencies": floquet.frequencies,
        "harmonics": [int(k) for k in floquet.largest_harmonics],
        "unit": dict(floquet.unit),
        "model": {"name": periodic.info.name, "guid": periodic.info.guid, "tool": periodic.info.tool,
                  "fmi_version": periodic.info.fmi_version},
        "warnings": [{"kind": r.kind, "message": r.message} for r in periodic.remarks],
    }  # fmt: skip


def _document(periodic: PeriodicModel) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    floquet = periodic.floquet()
    texts = summary_of(periodic, floquet)
    matrices = {name: getattr(periodic, name) for name in MATRICES}
    arrays: dict[str, Any] = {name: matrix for name, matrix in matrices.items() if matrix is not None}
    arrays["x"] = np.array([point.states for point in periodic.points])
    arrays["u"] = np.array([point.inputs for point in periodic.points]).reshape(len(periodic.points), -1)
    for name in ("multipliers", "exponents"):
        values = texts.pop(name)
        arrays[name] = np.stack((values.real, values.imag), axis=-1)
    arrays["participation"] = floquet.participation
    texts["frequencies"] = floquet.frequencies.tolist()
    for group in GROUPS:
        signals = getattr(periodic, group)
        texts[group] = list(signals.names)
        texts[f"{group}_units"] = list(signals.units)
    texts["symmetries"] = {name: vector.tolist() for name, vector in periodic.symmetries.items()}
    texts["parameters"] = dict(periodic.points[0].parameters) if periodic.points else {}
    return texts, arrays


def _stable_at(chart: FloquetChart, i: tuple[int, ...]) -> bool | None:
    """Return the verdict at a point of a chart; None where there is none, or it cannot be told."""
    if chart.stable[i]:
        return True
    return False if chart.unstable[i] else None


def chart_document(chart: FloquetChart) -> dict[str, Any]:
    """Return the document of a chart, as the command ``fmilin floquet`` prints it."""
    numbers = np.ndindex(chart.period.shape)
    points = [
        {
            "index": list(i), "ok": bool(chart.ok[i]), "reason": str(chart.reasons[i]),
            "period": float(chart.period[i]),
            "stable": _stable_at(chart, i), "margin": float(chart.margin[i]), "multipliers": chart.multipliers[i],
            "exponents": chart.exponents[i], "frequencies": chart.frequencies[i],
        }
        for i in numbers
    ]  # fmt: skip
    axes = {name: np.asarray(values) for name, values in chart.axes.items()}
    return {"format": CHART, "model": chart.name, "axes": axes, "points": points}


def dumps_chart(chart: FloquetChart) -> bytes:
    """Return the content of a .json file of a chart."""
    return text_of(chart_document(chart)).encode("ascii")


def load_chart(path: Path) -> FloquetChart:
    """Read what :func:`dumps_chart` wrote."""
    document = object_in(path.read_bytes(), str(path), "chart")
    with reading(str(path), "chart that 'fmilin floquet' wrote"):
        axes = {name: np.array(values, dtype=np.float64) for name, values in document["axes"].items()}
        shape, points = tuple(map(len, axes.values())), document["points"]
        pairs = {n: np.array([p[n] for p in points], dtype=np.float64) for n in ("multipliers", "exponents")}
        rows = {n: np.array([p[n] for p in points], dtype=np.float64) for n in ("period", "margin", "frequencies")}
        grid = {n: (v[..., 0] + 1j * v[..., 1]).reshape(*shape, -1) for n, v in pairs.items()}
        grid |= {n: v.reshape(*shape, *v.shape[1:]) for n, v in rows.items()}
        stable, undecided = (
            np.array([p["ok"] and p["stable"] is value for p in points], dtype=bool).reshape(shape)
            for value in (True, None)
        )
        reasons = np.array([p["reason"] for p in points], dtype=object).reshape(shape)
        return FloquetChart(axes, **grid, stable=stable, reasons=reasons, name=document["model"], undecided=undecided)


def dumps_json(periodic: PeriodicModel) -> bytes:
    """Return the content of a .json file."""
    texts, arrays = _document(periodic)
    return text_of(texts | arrays).encode("ascii")


def dumps_npz(periodic: PeriodicModel) -> bytes:
    """Return the content of a .npz file."""
    texts, arrays = _document(periodic)
    return archive_of({**arrays, "fmilin": np.array(json.dumps(texts))})


def dumps_mat(periodic: PeriodicModel) -> bytes:
    """Return the content of a .mat file: the phase is the last axis, as MATLAB's pages are."""
    texts, arrays = _document(periodic)
    top: dict[str, Any] = {n: np.moveaxis(a, 0, -1) if n in PAGES else np.atleast_2d(a) for n, a in arrays.items()}
    for name in ("multipliers", "exponents"):
        top[name] = (arrays[name][:, 0] + 1j * arrays[name][:, 1]).reshape(-1, 1)
    return mat5.write(
        top | {"period": texts["period"], "states": texts["states"], "fmilin": {"texts": json.dumps(texts)}}
    )


def dumps_nc(periodic: PeriodicModel) -> bytes:
    """Return the content of a netCDF file with named dimensions."""
    from fmilin.export.family_arrays import require_installed

    require_installed()
    import h5netcdf

    texts, arrays = _document(periodic)
    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        for name, array in arrays.items():
            for dimension, size in zip(DIMENSIONS[name], array.shape, strict=True):
                if dimension not in file.dimensions:
                    file.dimensions[dimension] = size or None
            variable = file.create_variable(name, DIMENSIONS[name], "f8")
            if array.size:
                variable[...] = array
        file.attrs["fmilin"] = json.dumps(texts)
    return buffer.getvalue()


def load(path: str | Path) -> PeriodicModel:
    """Read a periodic model by its suffix; ModelError when the file cannot be read, or holds something else."""
    return cast(PeriodicModel, load_result_as("periodic model", path))


def load_any(source: str) -> PeriodicModel | FloquetChart | None:
    """Return the periodic model or the chart in a file, by what stands in it; None where there is neither."""
    path = Path(source)
    if not path.is_file() or path.suffix.lower() not in suffixes("periodic model", readable=True):
        return None
    if has_mark(path, CHART):
        return load_chart(path)
    return load(path) if has_mark(path, FORMAT) else None


def loads_json(content: bytes, origin: str) -> PeriodicModel:
    """Read what :func:`dumps_json` wrote."""
    with reading(origin, WRITTEN):
        document = object_in(content, origin, "periodic model")
        arrays = {name: np.array(document[name], dtype=np.float64) for name in DIMENSIONS if name in document}
        return _restored(document, arrays)


def loads_npz(content: bytes, origin: str) -> PeriodicModel:
    """Read what :func:`dumps_npz` wrote."""
    with reading(origin, WRITTEN):
        arrays = arrays_of(content)
        return _restored(json.loads(str(arrays["fmilin"])), arrays)


def loads_mat(content: bytes, origin: str) -> PeriodicModel:
    """Read what :func:`dumps_mat` wrote."""
    with reading(origin, WRITTEN):
        top: dict[str, Any] = dict(mat5.read(content))
        arrays = {name: np.asarray(top[name]) for name in DIMENSIONS if name in top}
        arrays |= {name: np.moveaxis(np.asarray(top[name]), -1, 0) for name in PAGES if name in top}
        return _restored(json.loads(top["fmilin"]["texts"]), arrays)


def loads_nc(content: bytes, origin: str) -> PeriodicModel:
    """Read what :func:`dumps_nc` wrote."""
    with reading(origin, WRITTEN):
        import h5netcdf

        with h5netcdf.File(io.BytesIO(content), "r") as file:
            variables = file.variables
            arrays = {name: np.asarray(variables[name][...]) for name in DIMENSIONS if name in variables}
            texts = json.loads(file.attrs["fmilin"])
        return _restored(texts, arrays)


def _restored(texts: dict[str, Any], arrays: dict[str, Any]) -> PeriodicModel:
    if texts["format"] != FORMAT:
        raise ValueError(f"its format is {texts['format']!r}")
    m = np.asarray(arrays["times"]).size
    signals: dict[str, Any] = {
        g: Signals(Signal(n, u) for n, u in zip(texts[g], texts[f"{g}_units"], strict=True)) for g in GROUPS
    }
    P, N, nu, ny = (len(signals[group]) for group in GROUPS)
    sizes = {"phase": m, "state": P, "state_": P, "full_state": N, "input": nu, "output": ny}
    matrices: dict[str, Any] = {
        name: np.asarray(arrays[name], dtype=np.float64).reshape([sizes[d] for d in DIMENSIONS[name]])
        for name in MATRICES
        if name in arrays
    }
    x, u = np.asarray(arrays["x"]).reshape(m, N), np.asarray(arrays["u"]).reshape(m, -1)
    points = tuple(
        OperatingPoint(float(t), a, b, texts["parameters"]) for t, a, b in zip(matrices["times"], x, u, strict=True)
    )
    return PeriodicModel(
        **matrices, **signals, period=float(texts["period"]), points=points, info=ModelInfo(**texts["model"]),
        closure=float(texts["accuracy"]["closure"]),
        symmetries={name: np.array(vector) for name, vector in texts["symmetries"].items()},
        remarks=tuple(Remark(w["kind"], w["message"], is_read=True) for w in texts["warnings"]),
    )  # fmt: skip
