"""Second ways of descriptor systems: the finite eigenvalues by shifting and inverting."""

from __future__ import annotations

import numpy as np

from fmilin.auditing.result import Audit, AuditRow, compare, compare_claim, keep_worst
from fmilin.linear_model.descriptor import Descriptor

UNCHECKED = "E, A, B, C, D, f0 and difference: audit its linear model, which is compared with their transfer matrix"
DIGITS = 1e-6  # relative: QZ loses digits of finite eigenvalues beside infinite ones
SHIFT = 0.37 + 0.71j  # of the size of the eigenvalues: near none of them, mostly


def audit_descriptor(descriptor: Descriptor) -> Audit:
    """Return the audit of a descriptor system: its finite eigenvalues and their number."""
    rows: list[AuditRow] = []
    E, A = descriptor.E, descriptor.A
    stated = descriptor.eigenvalues()
    if len(A):
        shift = SHIFT * max(float(np.abs(stated).max(initial=0.0)), 1.0)
        inverse = np.linalg.eigvals(np.linalg.solve(A - shift * E, E.astype(np.complex128)))
        largest = inverse[np.argsort(-np.abs(inverse), kind="stable")]
        finite = shift + 1 / largest[: descriptor.order]
        rows += _compare_eigenvalues(stated, finite)
        rest = np.abs(largest[descriptor.order :]).max(initial=0.0)
        least = np.abs(largest[: descriptor.order]).min(initial=np.inf)
        way = "eigenvalues of the shifted inverse"
        rows.append(compare_claim("order, which separates finite from infinite", way, holds=bool(rest < 0.1 * least)))
    return Audit("descriptor system", "", tuple(rows), (UNCHECKED,))


def _compare_eigenvalues(stated: np.ndarray, second: np.ndarray) -> list[AuditRow]:
    from scipy.optimize import linear_sum_assignment

    size = float(np.abs(second).max(initial=0.0)) or 1.0
    pairs = linear_sum_assignment(np.abs(stated[:, None] - second))
    return keep_worst(
        compare(f"eigenvalue {i + 1}", stated[i], second[j], "eigenvalues of the shifted inverse", DIGITS * size)
        for i, j in zip(*pairs, strict=True)
    )
