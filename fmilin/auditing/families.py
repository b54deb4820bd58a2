"""Second ways of families, by their linear models, and of uncertain models, at displaced parameters and by blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, product
from typing import TYPE_CHECKING

import numpy as np

from fmilin.auditing.audit_result import Audit, AuditRow, compare, keep_worst, select_worst
from fmilin.auditing.linear_model_audit import audit_linear_model
from fmilin.families.family import LinearFamily
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import Model
from fmilin.report.numbers import values_text
from fmilin.signals import FloatArray
from fmilin.tolerances import AUDITED_GAIN

if TYPE_CHECKING:
    from fmilin.model.interface import Model
    from fmilin.trimming.uncertainty import Uncertain


def audit_family(family: LinearFamily, model: Model | None = None) -> Audit:
    """Return the audit of a family; with its model A, B, C, D, T and f0 of each point by central differences, too."""
    rows: dict[str, list[AuditRow]] = {}
    eigenvalues = family.eigenvalues.reshape(len(family), -1)
    for number, linear in family.good():
        comparisons = [
            *audit_linear_model(linear, _at_point(model, linear)).rows,
            *_compare_tracked(eigenvalues[number], linear.eigenvalues()),
        ]
        location = values_text(family.grid.values(number))
        for row in comparisons:
            named = AuditRow(
                f"{row.quantity} at {location}",
                row.stated,
                row.second_way,
                row.method,
                row.difference,
                row.tolerance,
                row.agrees,
            )
            rows.setdefault(_group(row), []).append(named)
    worst = [select_worst(group) for group in rows.values()]
    unchecked = [
        "errors and accuracy: estimates, from which the tolerances of this audit follow",
        "grid and sample_time: nothing else in the result determines them",
    ]
    if model is None:
        unchecked.append("A, B, C, D, T and f0 against the model: give it (model=)")
    return Audit("family", family.template.model.name, tuple(row for row in worst if row is not None), tuple(unchecked))


def _at_point(model: Model | None, linear: LinearModel) -> Model | None:
    """Return the model with the parameters of a point."""
    parameters = linear.point.parameters
    return model if model is None or not parameters else model.with_parameters(parameters)


def _group(row: AuditRow) -> str:
    """Return what rows of different points have in common: the quantity without its numbers and names, and the way."""
    kind = re.sub(r"\[.*?\]|\d+", "", row.quantity).split(" from ")[0]
    return f"{kind}|{row.method}"


def _compare_tracked(tracked: np.ndarray, stated: np.ndarray) -> list[AuditRow]:
    """Compare the eigenvalues that are followed along the grid with those of the point, in any order."""
    from scipy.optimize import linear_sum_assignment

    tracked = tracked[np.isfinite(tracked)]
    if len(tracked) != len(stated):
        return [compare("number of eigenvalues", float(len(tracked)), float(len(stated)), "linear model", 0.0)]
    size = float(np.abs(stated).max(initial=0.0)) or 1.0
    pairs = linear_sum_assignment(np.abs(tracked[:, None] - stated))
    comparisons = [
        compare("eigenvalue that is followed", tracked[i], stated[j], "linear model of the point", 1e-7 * size)
        for i, j in zip(*pairs, strict=True)
    ]
    return keep_worst(comparisons)


MAX_CORNERS = 8
UNCHECKED = "remainder and M.y0: a bound from samples of the box, and where the deviations begin"


def audit_uncertain(uncertain: Uncertain, model: Model | None) -> Audit:
    """Return the audit of an uncertain model: of the one in the middle, and of its blocks at corners of the box."""
    nominal = uncertain.nominal
    if model is not None and nominal.point.parameters:
        model = model.with_parameters(dict(nominal.point.parameters))
    audit = audit_linear_model(nominal, model)
    rows = [*_compare_middle(uncertain), *_compare_blocks(uncertain), *audit.rows]
    texts = [UNCHECKED, "nominal.derivatives: give the model (model=)"] if model is None else [UNCHECKED]
    return Audit("uncertain model", audit.name, tuple(rows), (*texts, *audit.unchecked))


def _compare_middle(uncertain: Uncertain) -> Iterator[AuditRow]:
    """Compare the middle of the box with the parameters of the nominal model."""
    for name, (low, high) in uncertain.box.items():
        value = uncertain.nominal.derivatives[name].value
        tolerance = 1e-9 * max(abs(low), abs(high))
        yield compare(f"box[{name}], its middle", (low + high) / 2, value, "value of the derivative", tolerance)


def _compare_blocks(uncertain: Uncertain) -> Iterator[AuditRow]:
    """Compare the upper linear fractional transformation with the affine model at corners of the box."""
    comparisons: dict[str, list[AuditRow]] = {part: [] for part in "ABCD"}
    for corner in islice(product((-1.0, 1.0), repeat=len(uncertain.box)), MAX_CORNERS):
        limits = zip(uncertain.box.items(), corner, strict=True)
        values = {name: (high if side > 0 else low) for (name, (low, high)), side in limits}
        linear = uncertain.at(values)
        sides = dict(zip(uncertain.box, corner, strict=True))
        location = values_text(values)
        for part, matrix in zip("ABCD", _close_blocks(uncertain, sides), strict=True):
            second = getattr(linear, part)
            size = max(float(np.abs(second).max(initial=0.0)), 1e-300)
            comparisons[part] += [
                compare(f"M, box: {part}{list(index)} at {location}", float(matrix[index]), float(second[index]),
                        "affine model", AUDITED_GAIN * size)
                for index in np.ndindex(second.shape)
            ]  # fmt: skip
    for rows in comparisons.values():
        yield from keep_worst(rows)


def _close_blocks(uncertain: Uncertain, sides: dict[str, float]) -> tuple[FloatArray, ...]:
    """Return A, B, C and D of M with its blocks closed, w = d z."""
    M = uncertain.M
    d = np.array([sides[name] for name, size in uncertain.blocks for _ in range(size)])
    k = len(d)
    loop = np.linalg.inv(np.eye(k) - d[:, None] * M.D[:k, :k]) * d
    return (
        M.A + M.B[:, :k] @ loop @ M.C[:k],
        M.B[:, k:] + M.B[:, :k] @ loop @ M.D[:k, k:],
        M.C[k:] + M.D[k:, :k] @ loop @ M.C[:k],
        M.D[k:, k:] + M.D[k:, :k] @ loop @ M.D[:k, k:],
    )
