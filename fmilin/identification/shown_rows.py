"""Rows of outputs and of declared states: what is seen of the states and of the inputs of a discrete model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fmilin.identification.discrete_models import Sampled
from fmilin.signals import FloatArray
from fmilin.tolerances import RANK_MEASURED, RELATION_HOLDS

FEW_ROWS = 24  # outputs and states that are compared with each other


@dataclass(frozen=True)
class OutputRows:
    """What outputs and declared states show, each in one row: C x + D u."""

    C: FloatArray  # (r, n)
    D: FloatArray  # (r, nu)
    square: FloatArray | None  # n independent rows of C in which A may have zeros


def find_shown_rows(model: Sampled) -> OutputRows:
    """Return the distinct rows of a discrete model, declared states before outputs, read at the start of steps."""
    n, k = model.B.shape
    C = np.vstack((model.T.reshape(-1, n), model.C))
    D = np.vstack((np.zeros((len(model.T), k)), model.D))
    if model.reading == "end of step" and n:  # y[k] = C x[k+1] + D u[k]
        shown = np.linalg.solve(model.A.T, model.C.T).T
        C, D = np.vstack((model.T.reshape(-1, n), shown)), np.vstack((D[: len(model.T)], model.D - shown @ model.B))
    sizes = np.linalg.norm(C, axis=1)
    seen = np.flatnonzero(sizes > RANK_MEASURED * np.max(sizes, initial=0.0))
    distinct: list[int] = []
    for i in seen.tolist():
        if all(sine_between(np.append(C[i], D[i]), np.append(C[j], D[j])) > RANK_MEASURED for j in distinct):
            distinct.append(i)
    C, D = C[distinct[:FEW_ROWS]], D[distinct[:FEW_ROWS]]
    small = np.abs(D) <= RELATION_HOLDS * np.max(np.abs(D), axis=1, initial=0.0)[:, None]
    return OutputRows(C, np.where(small, 0.0, D), choose_independent(C, n))


def sine_between(one: FloatArray, other: FloatArray) -> float:
    """Return the sine of the angle between two vectors."""
    a, b = (vector / np.linalg.norm(vector) for vector in (one, other))
    return float(np.linalg.norm(a - (a @ b) * b))


def choose_independent(rows: FloatArray, count: int) -> FloatArray | None:
    """Return the first rows that are well independent, as many as ``count``; None where there are fewer."""
    directions: list[FloatArray] = []
    chosen: list[FloatArray] = []
    for row in rows:
        trial = np.array([*directions, row / np.linalg.norm(row)])
        if np.linalg.svd(trial, compute_uv=False)[-1] > RANK_MEASURED:
            directions.append(trial[-1])
            chosen.append(row)
        if len(chosen) == count:
            return np.array(chosen)
    return None
