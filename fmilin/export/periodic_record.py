"""Periodic models as names with arrays, numbers and texts: the format ``fmilin-floquet/1``; charts as JSON.

They have matrices over the phase, the orbit, and what Floquet's theory says of them.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, cast

import numpy as np

from fmilin.export.archives import describe_read_errors, finite_array, real_array
from fmilin.export.checksum import list_remarks, require_intact
from fmilin.export.files import has_mark, load_result_kind
from fmilin.export.record import (
    Labelled,
    Record,
    Stored,
    describe_restore_errors,
    read_number,
    read_remarks,
    read_texts,
    require_format,
    write_remarks,
)
from fmilin.export.strict_json import decode, text_with_checksum
from fmilin.formats import suffixes
from fmilin.model.interface import ModelInfo, OperatingPoint
from fmilin.periodic.chart import FloquetChart
from fmilin.periodic.floquet import Floquet
from fmilin.periodic.periodic_model import PeriodicModel
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.support.files import read_file

FORMAT = "fmilin-floquet/1"
CHART = "fmilin-floquet-chart/1"
GROUPS = {"states": "state", "full_states": "full_state", "inputs": "input", "outputs": "output"}
MATRICES: dict[str, tuple[str, ...]] = {
    "A": ("phase", "state", "state_"),
    "B": ("phase", "state", "input"),
    "C": ("phase", "output", "state"),
    "D": ("phase", "output", "input"),
    "T": ("phase", "full_state", "state"),
    "error": ("phase", "state", "state_"),
    "transitions": ("phase", "state", "state_"),
    "jump": ("state", "state_"),
    "times": ("phase",),
    "f0": ("phase", "state"),
    "monodromy_error": ("state", "state_"),
}
"""The arrays of a periodic model with the names of their axes; those with three have a matrix for each phase."""

ERRORS = ("error", "monodromy_error")  # estimates, NaN where there is none


def summarize_periodic(periodic: PeriodicModel, floquet: Floquet) -> dict[str, Any]:
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
        "model": asdict(periodic.info),
        "warnings": write_remarks(periodic.remarks),
    }


def to_arrays(periodic: PeriodicModel) -> Record:
    """Return everything in a periodic model, and its multipliers and exponents as pairs of real numbers."""
    floquet = periodic.floquet()
    facts = summarize_periodic(periodic, floquet)
    arrays = {
        name: Labelled(getattr(periodic, name), axes, pages=1 if len(axes) == 3 else 0)
        for name, axes in MATRICES.items()
        if getattr(periodic, name) is not None
    }
    arrays["x"] = Labelled(np.array([point.states for point in periodic.points]), ("phase", "full_state"))
    inputs = np.array([point.inputs for point in periodic.points]).reshape(len(periodic.points), -1)
    arrays["u"] = Labelled(inputs, ("phase", "input_"))
    for name in ("multipliers", "exponents"):
        values = facts.pop(name)
        arrays[name] = Labelled(np.stack((values.real, values.imag), axis=-1), ("mode", "part"))
    arrays["participation"] = Labelled(floquet.participation, ("harmonic", "mode"))
    for group in GROUPS:
        signals = getattr(periodic, group)
        facts[group] = list(signals.names)
        facts[f"{group}_units"] = list(signals.units)
    facts["symmetries"] = {name: vector.tolist() for name, vector in periodic.symmetries.items()}
    facts["parameters"] = dict(periodic.points[0].parameters) if periodic.points else {}
    names = {"period": facts["period"], "states": facts["states"]}
    return Record(FORMAT, arrays, facts, top_level=tuple(arrays), is_packed=True, additions={".mat": lambda: names})


def from_arrays(stored: Stored, origin: str) -> PeriodicModel:
    """Return the periodic model that :func:`to_arrays` described; ``origin`` names the file in messages."""
    require_format(stored, origin, FORMAT, "periodic model")
    with describe_restore_errors(origin):
        return _periodic_model(stored)


def _periodic_model(stored: Stored) -> PeriodicModel:
    facts = stored.facts
    signals: dict[str, Any] = {
        group: Signals(map(Signal, read_texts(facts[group]), read_texts(facts[f"{group}_units"]))) for group in GROUPS
    }
    sizes = {axis: len(signals[group]) for group, axis in GROUPS.items()}
    sizes |= {"phase": np.size(stored.arrays["times"]), "state_": sizes["state"]}
    matrices: dict[str, Any] = {
        name: _read_matrix(stored, name, tuple(sizes[axis] for axis in axes))
        for name, axes in MATRICES.items()
        if name in stored.arrays
    }
    x = finite_array(stored.arrays["x"], "x").reshape(sizes["phase"], sizes["full_state"])
    u = finite_array(stored.arrays["u"], "u").reshape(sizes["phase"], -1)
    return PeriodicModel(
        **matrices,
        **signals,
        period=read_number(facts["period"]),
        points=tuple(
            OperatingPoint(float(time), states, inputs, facts["parameters"])
            for time, states, inputs in zip(matrices["times"], x, u, strict=True)
        ),
        info=ModelInfo(**{f.name: str(facts["model"][f.name]) for f in fields(ModelInfo)}),
        closure=read_number(facts["accuracy"]["closure"]),
        symmetries={name: np.array(vector) for name, vector in facts["symmetries"].items()},
        remarks=(*read_remarks(facts["warnings"]), *list_remarks(stored.integrity)),
    )


def _read_matrix(stored: Stored, name: str, shape: tuple[int, ...]) -> FloatArray:
    convert = real_array if name in ERRORS else finite_array
    if len(shape) == 3:
        return stored.read_array(name, shape, pages=1, convert=convert)
    return convert(stored.arrays[name], name).reshape(shape)


def load(path: str | Path) -> PeriodicModel:
    """Read a periodic model by its suffix; ModelError when the file cannot be read, or holds something else."""
    return cast(PeriodicModel, load_result_kind("periodic model", path))


def load_any(source: str) -> PeriodicModel | FloquetChart | None:
    """Return the periodic model or the chart in a file, by what stands in it; None where there is neither."""
    path = Path(source)
    if not path.is_file() or path.suffix.lower() not in suffixes("periodic model", readable=True):
        return None
    if has_mark(path, CHART):
        return load_chart(path)
    return load(path) if has_mark(path, FORMAT) else None


def _read_stability(chart: FloquetChart, i: tuple[int, ...]) -> bool | None:
    """Return the verdict at a point of a chart; None where it is missing or undecided."""
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
            "stable": _read_stability(chart, i), "margin": float(chart.margin[i]), "multipliers": chart.multipliers[i],
            "exponents": chart.exponents[i], "frequencies": chart.frequencies[i],
        }
        for i in numbers
    ]  # fmt: skip
    axes = {name: np.asarray(values) for name, values in chart.axes.items()}
    return {"format": CHART, "model": chart.name, "axes": axes, "points": points}


def dumps_chart(chart: FloquetChart) -> bytes:
    """Return the content of a .json file of a chart."""
    return text_with_checksum(chart_document(chart)).encode("ascii")


def load_chart(path: Path) -> FloquetChart:
    """Read what :func:`dumps_chart` wrote."""
    with describe_read_errors(str(path), "chart that 'fmilin floquet' wrote"):
        stored = decode(read_file(path))
        require_intact(stored.integrity, str(path))
        document = stored.facts
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
