"""What the table holds of a linear model, and how much of it may differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import fmilin as fl
from fmilin.signals import FloatArray

__all__ = ["differences_between", "record_of"]

MATRICES = ("A", "B", "C", "D", "T", "T_u")
DESCRIBED = ("E", "A", "B", "C", "D", "f0")
"""Matrices of a descriptor."""
ESTIMATED = ("A", "B", "C", "D", "T")

EXACT = 1e-12
"""Of the largest entry: what the numbers of exact derivatives may differ by."""
FACTOR = 10.0
"""Between two estimates of an error: they are made of a few rounding errors, which other processors round otherwise."""


def record_of(linear: fl.LinearModel) -> dict[str, Any]:
    """Return what the table holds: numbers, names, words and kinds of remarks.

    In a symmetric posture over the enlarged set of velocities several choices of coordinates are equally good and
    rounding decides: of these the characteristic polynomial of A, which is the same in all of them.
    """
    record: dict[str, Any] = {
        "inputs": linear.inputs.names,
        "outputs": linear.outputs.names,
        "derivatives": linear.method.derivatives,
        "coordinates": linear.method.coordinates,
        "sample_time": linear.sample_time,
        "remarks": sorted(remark.kind for remark in linear.warnings),
    }
    if linear.method.coordinates == "enlarged":
        return record | {"characteristic": np.poly(linear.A).tolist()}
    record |= {
        "states": linear.states.names,
        **{name: _plain(getattr(linear, name)) for name in (*MATRICES, "f0", "y0")},
        "accuracy": {name: _rounded(getattr(linear.accuracy, name)) for name in ESTIMATED},
        "constraint_residual": _rounded(linear.accuracy.constraint_residual),
        "conditioning": float(f"{linear.accuracy.conditioning:.4g}"),
        "errors": {name: _plain(getattr(linear.errors, name), digits=2) for name in ESTIMATED},
    }
    if linear.descriptor is not None:
        record["descriptor"] = {name: _plain(getattr(linear.descriptor, name)) for name in DESCRIBED}
        record["descriptor"]["states"] = linear.descriptor.states
    return record


def differences_between(
    record: Mapping[str, Any], expected: Mapping[str, Any], condition: float, *, errors: bool
) -> list[str]:
    """Return in words what of a record is not as expected.

    Parameters
    ----------
    record, expected : mapping
    condition : float
        How much rounding grows on the way to the matrices.
    errors : bool
        Whether estimated errors are compared.
    """
    allowed = max(EXACT, float(np.finfo(float).eps) * condition)
    numbers = (
        "characteristic",
        *MATRICES,
        "f0",
        "y0",
        "accuracy",
        "constraint_residual",
        "conditioning",
        "errors",
        "descriptor",
    )
    differing = [
        f"{key}: {_listed(record[key])}, not {_listed(expected[key])}"
        for key in record.keys() | expected.keys()
        if key not in numbers and _listed(record.get(key)) != _listed(expected.get(key))
    ]
    if "characteristic" in expected:
        allowed *= len(expected["characteristic"])
        differing += _moved("characteristic", record["characteristic"], expected["characteristic"], allowed)
    if differing or "characteristic" in expected:
        return differing
    measured = not expected["derivatives"].startswith("exact")
    for name in MATRICES:
        estimates = expected["errors"].get(name) if measured else None
        differing += _moved(name, record[name], expected[name], allowed, estimates=estimates)
    size = max(_largest(expected["y0"]), 1.0)
    differing += _moved("y0", record["y0"], expected["y0"], allowed, size=size)
    differing += _moved("f0", record["f0"], expected["f0"], allowed, size=_largest(expected["A"]) * size)
    for name in ESTIMATED if errors else ():
        differing += _misjudged(name, record, expected, by_entry=not measured)
        differing += _of_another_size(f"accuracy.{name}", record["accuracy"][name], expected["accuracy"][name])
    for name in ("constraint_residual", "conditioning"):
        differing += _of_another_size(name, record[name], expected[name])
    for name, before in expected.get("descriptor", {}).items():
        if name == "states":
            differing += [] if list(record["descriptor"][name]) == before else ["states of the descriptor"]
        else:
            differing += _moved(f"descriptor.{name}", record["descriptor"][name], before, allowed)
    return differing


def _moved(name: str, ours: Any, before: Any, allowed: float, *, estimates: Any = None, size: float = 0.0) -> list[str]:
    """Compare a matrix: what was measured is told no better than its estimated errors say.

    ``size``: of the terms that cancel in the entries. At an equilibrium f0 is what rounding leaves of the forces there,
    which move by A times the rounding of the point.
    """
    a, b = np.asarray(ours, float), np.asarray(before, float)
    if a.size != b.size:
        return [f"{name}: shape {a.shape}, not {b.shape}"]
    tolerance: FloatArray = np.full(b.shape, allowed * max(_largest(b), size))
    if estimates is not None:
        tolerance = np.maximum(tolerance, np.asarray(estimates, float).reshape(b.shape))
    off = np.abs(a.reshape(b.shape) - b)
    if np.all(off <= tolerance):
        return []
    return [f"{name}: off by {np.max(off):.3g}, where the largest entry is {_largest(b):.3g}"]


def _of_another_size(name: str, ours: float, before: float) -> list[str]:
    a, b = max(ours, EXACT), max(before, EXACT)
    return [] if a <= FACTOR * b and b <= FACTOR * a else [f"{name}: {ours}, not {before}"]


def _misjudged(name: str, record: Mapping[str, Any], expected: Mapping[str, Any], *, by_entry: bool) -> list[str]:
    """Compare the estimated errors of a matrix where they are above what is compared at all.

    Those of differences are noise entry by entry: the largest is what a decision is made on.
    """
    ours, before = (np.asarray(r["errors"][name], float).ravel() for r in (record, expected))
    if not by_entry:
        ours, before = (np.max(errors, initial=0.0, keepdims=True) for errors in (ours, before))
    least = EXACT * (_largest(expected[name]) or 1.0)
    a, b = np.maximum(ours, least), np.maximum(before, least)
    worst = float(np.max(np.maximum(a / b, b / a), initial=1.0))
    if worst <= FACTOR:
        return []
    return [f"errors of {name}: {worst:.3g} times off, up to {np.max(ours):.2g}, not {np.max(before):.2g}"]


def _largest(matrix: Any) -> float:
    return float(np.max(np.abs(np.asarray(matrix, float)), initial=0.0))


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else value


def _rounded(value: float) -> float:
    return float(f"{value:.1e}")


def _plain(matrix: FloatArray, digits: int = 17) -> Any:
    """Return nested lists, whole numbers without a point: most entries are 0."""
    if matrix.ndim == 2:
        return [_plain(row, digits) for row in matrix]
    return [int(x) if x == int(x) and abs(x) < 1e6 else float(f"{x:.{digits}g}") for x in matrix.tolist()]
