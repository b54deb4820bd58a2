"""What fmilin says of a model whose truth is known, and whether that is honest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import fmilin as fl
from tests.hard_models import Case

__all__ = ["Verdict", "judged"]

TENFOLD = 10.0
"""Times its estimate, that an entry may be wrong by."""

SEEN = 100.0
"""Units of rounding by which something hard must move a value at least, to be told from rounding in a few visits."""


@dataclass(frozen=True)
class Verdict:
    """What was said of one model, against what is true."""

    case: Case
    refusal: str
    remarks: tuple[str, ...]
    error: float
    """Largest of A, B, C, D, each row relative to its largest true entry; nan when refused."""
    said: float
    """Largest estimate, likewise."""
    honest: bool
    """Every entry within ten times its estimate, of one of the truths."""
    visits: int
    hidden: bool = False
    """Whether what is wrong, without a word, moves no value by more than :data:`SEEN` units of rounding."""

    @property
    def silent(self) -> bool:
        """Whether a wrong number was let through without a word, though it could be seen."""
        return not (self.hidden or self.refusal or self.honest or {"accuracy", "memory"} & set(self.remarks))

    @property
    def refused_in_vain(self) -> bool:
        """Whether the model could have been differenced."""
        return bool(self.refusal) and self.case.attainable <= 1e-6


def judged(case: Case) -> Verdict:
    """Linearize one model by differences and compare."""
    try:
        linear = fl.linearize(case.make())
    except fl.NumericalError as error:
        return Verdict(case, str(error), (), np.nan, np.nan, True, 0)
    found, said = _blocks(linear.A, linear.B, linear.C, linear.D), linear.errors
    estimates = _blocks(said.A, said.B, said.C, said.D)
    kinds = tuple(w.kind for w in linear.warnings)
    best: tuple[float, float, bool, bool] = (np.inf, np.inf, False, False)
    for truth in case.truths:
        wrong = np.abs(found - truth)
        honest = bool((wrong <= TENFOLD * estimates + np.finfo(float).eps * np.abs(truth)).all())
        sizes = np.ones(truth.shape[1])
        sizes[: len(case.sizes)] = case.sizes
        largest = np.max(np.abs(truth) * sizes, axis=1, keepdims=True)
        largest[largest == 0] = 1.0
        moved = np.where(wrong > TENFOLD * estimates, wrong * min(case.reach, 1e150), 0.0)
        levels = case.levels if len(case.levels) else largest[:, 0]
        hidden = bool((moved.max(axis=1) <= SEEN * np.finfo(float).eps * levels).all()) and not honest
        score = float(np.max(wrong * sizes / largest)), float(np.max(estimates * sizes / largest)), honest, hidden
        best = min(best, score, key=lambda s: (not s[2], s[0]))
    word = bool({"accuracy", "memory"} & set(kinds))
    return Verdict(case, "", kinds, *best[:3], linear.method.evaluations, best[3] and not word)


def _blocks(
    A: NDArray[np.float64], B: NDArray[np.float64], C: NDArray[np.float64], D: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.block([[A, B], [C, D]])
