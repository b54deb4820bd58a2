"""Second ways of the numbers of a family: those of its linear models, the worst of each quantity over all points."""

from __future__ import annotations

import re

import numpy as np

from fmilin.auditing.linear import audit_linear_model
from fmilin.auditing.result import Audit, AuditRow, compare, select_worst
from fmilin.families.family import LinearFamily


def audit_family(family: LinearFamily) -> Audit:
    """Return the audit of a family."""
    rows: dict[str, list[AuditRow]] = {}
    eigenvalues = family.eigenvalues.reshape(len(family), -1)
    for number, linear in family.good():
        comparisons = [
            *audit_linear_model(linear, None).rows,
            *_compare_tracked(eigenvalues[number], linear.eigenvalues()),
        ]
        location = ", ".join(f"{name} = {value:g}" for name, value in family.grid.values(number).items())
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
    unchecked = ("A, B, C, D, T and f0 against the model: audit its points, family[k], with model=",)
    return Audit("family", family.template.model.name, tuple(row for row in worst if row is not None), unchecked)


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
    worst = select_worst(comparisons)
    return [] if worst is None else [worst]
