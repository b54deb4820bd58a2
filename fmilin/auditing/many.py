"""Second ways of the numbers of a family: those of its linear models, the worst of each quantity over all points."""

from __future__ import annotations

import re

import numpy as np

from fmilin.auditing.linear import audit_linear_model
from fmilin.auditing.result import Audit, AuditRow, compare, keep_worst, select_worst
from fmilin.families.family import LinearFamily
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import Model
from fmilin.report.numbers import values_text


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
        "errors and accuracy: estimates, by which the tolerances of this audit were made",
        "grid and sample_time: nothing else in the result tells them",
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
