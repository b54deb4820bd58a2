"""Linear models between the points of a grid, and how far off they are where the answer is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.remarks import Remark
from fmilin.signals import FloatArray

if TYPE_CHECKING:
    from fmilin.families.family import LinearFamily

__all__ = ["LeftOut", "interpolated", "left_out"]


@dataclass(frozen=True)
class LeftOut:
    r"""Interpolation at points of the grid from the points on both sides, against the linear model there.

    Attributes
    ----------
    A, B, C, D : array, shape (\\*shape)
        Largest error over the largest entry of the matrix, the largest over all axes; NaN at the ends of all axes and
        beside failed points. With half as many points as the family has: of the family itself it is a bound.
    """

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray

    @property
    def largest(self) -> float:
        """Of all matrices and points; NaN where no point could be left out."""
        values = np.concatenate([np.ravel(getattr(self, f.name)) for f in fields(self)])
        return float(np.nanmax(values)) if np.isfinite(values).any() else float("nan")


def left_out(family: LinearFamily) -> LeftOut:
    """Return the error of linear interpolation at every point inside the grid."""
    chosen = _names_chosen(family)
    found = {name: np.full(family.shape, np.nan) for name in "ABCD"}
    for d, values in enumerate(_lines(family)):
        if len(values) < 3:
            continue
        inner = (values[1:-1] - values[:-2]) / (values[2:] - values[:-2])
        weight = inner.reshape(-1, *[1] * (len(family.shape) - d - 1))
        same = np.moveaxis(chosen, d, 0)
        usable = (same[1:-1] == same[:-2]) & (same[1:-1] == same[2:]) & (same[1:-1] >= 0)
        for name in "ABCD":
            matrices = np.moveaxis(family.array(name), d, 0)
            if not matrices.size:
                found[name] = np.where(np.isnan(found[name]) & family.ok, 0.0, found[name])
                continue
            w = np.moveaxis(np.broadcast_to(weight, np.moveaxis(usable, 0, d).shape), d, 0)[..., None, None]
            error = np.abs((1 - w) * matrices[:-2] + w * matrices[2:] - matrices[1:-1]).max(axis=(-2, -1))
            size = np.abs(matrices[1:-1]).max(axis=(-2, -1))
            relative = np.where(usable, error / np.where(size > 0, size, 1.0), np.nan)
            target = np.moveaxis(found[name], d, 0)
            target[1:-1] = np.fmax(target[1:-1], relative)
    return LeftOut(**found)


def interpolated(family: LinearFamily, values: Mapping[str, float]) -> LinearModel:
    """Return the linear model at ``values``, linear in every axis; see :meth:`LinearFamily.interpolate`."""
    corners = _corners(family, values)
    numbers = [int(np.ravel_multi_index(place, family.shape)) for place, _ in corners]
    if bad := [k for k in numbers if not family.ok.flat[k]]:
        family.linear_model(bad[0])  # raises the reason
    names = _names_chosen(family).reshape(-1)
    if len({int(names[k]) for k in numbers}) > 1:
        raise NumericalError(
            "The points around have different independent coordinates: there is nothing to interpolate between. Name "
            "coordinates that are regular at all points (independent=), or take tangent ones."
        )
    weights = np.array([w for _, w in corners])
    row = weights @ family.rows[numbers]
    k = numbers[int(np.argmax(weights))]
    choice = family.choices[family.chosen[k]]
    linear = family.layout.unpacked(row, choice.states, choice.method, family.remarks.get(k, ()))
    if len(numbers) == 1:
        return linear
    errors = left_out(family)
    worst = {m: _worst([float(getattr(errors, m).flat[n]) for n in numbers]) for m in "ABCD"}
    said = ", ".join(f"{m} {e:.2g}" for m, e in worst.items())
    text = (
        f"Interpolated between {len(numbers)} points; where one of those is left out, it is off by (relative): {said}."
    )
    accuracy = replace(linear.accuracy, **worst)
    return replace(linear, accuracy=accuracy, warnings=(*linear.warnings, Remark("interpolated", text)))


def _worst(errors: list[float]) -> float:
    """Return the largest error that is known; NaN where none is."""
    known = [e for e in errors if np.isfinite(e)]
    return max(known) if known else float("nan")


def _corners(family: LinearFamily, values: Mapping[str, float]) -> list[tuple[tuple[int, ...], float]]:
    """Return the points around, and their weights."""
    axes = family.axes
    for name in values:
        if name not in axes:
            raise UnknownNameError.among(name, axes, "an axis of the family")
    if missing := [name for name in axes if name not in values]:
        raise UsageError(f"The value of '{missing[0]}' is missing: the family runs over {', '.join(axes)}.")
    if family.grid.zipped and len(axes) > 1:
        raise UsageError("A family along a list of points has nothing between them: interpolate in one over a grid.")
    sides = [_side(name, np.asarray(axis), float(values[name])) for name, axis in axes.items()]
    return [(tuple(i for i, _ in corner), float(np.prod([w for _, w in corner]))) for corner in product(*sides)]


def _side(name: str, axis: FloatArray, value: float) -> list[tuple[int, float]]:
    order = np.argsort(axis)
    low, high = axis[order[0]], axis[order[-1]]
    if not low <= value <= high:
        raise UsageError(f"{name} = {value:g} is outside the family, which has {low:g} to {high:g}.")
    i = int(np.searchsorted(axis[order], value))
    if axis[order[i]] == value:
        return [(int(order[i]), 1.0)]
    a, b = int(order[i - 1]), int(order[i])
    w = float((value - axis[a]) / (axis[b] - axis[a]))
    return [(a, 1 - w), (b, w)]


def _lines(family: LinearFamily) -> list[FloatArray]:
    """Return the values along every dimension of the arrays."""
    if family.grid.zipped and len(family.axes) > 1:
        return [np.arange(len(family), dtype=np.float64)]
    return [np.asarray(values) for values in family.axes.values()]


def _names_chosen(family: LinearFamily) -> FloatArray:
    r"""Return a number for the coordinates of every point, shape (\\*shape); -1 where there are none."""
    numbers: dict[tuple[str, ...], int] = {}
    of_choice = [numbers.setdefault(c.states.names, len(numbers)) for c in family.choices]
    return np.array([*of_choice, -1], dtype=np.float64)[family.chosen].reshape(family.shape)
