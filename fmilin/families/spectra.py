"""Errors of the eigenvalues of a family, and whether each mode grows: in the columns of its followed eigenvalues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from fmilin.families.tracking import Tracks
from fmilin.linear_model.arrays import LinearArrays
from fmilin.linear_model.stability import judge_stability
from fmilin.signals import FloatArray


@dataclass(frozen=True, eq=False)
class FamilySpectra:
    """What is known of the eigenvalues of a family, shape (number of points, P), columns as in :class:`Tracks`."""

    errors: FloatArray  # how far each eigenvalue may be off; NaN where there is not a linear model
    kinds: NDArray[np.str_]  # as in :attr:`fmilin.linear_model.stability.Stability.kinds`; "" where there is none


def judge_family(models: LinearArrays, tracks: Tracks, *, sampled: bool) -> FamilySpectra:
    """Return the errors of all followed eigenvalues, and the verdict of ``judge_stability`` on each."""
    errors = np.full(tracks.eigenvalues.shape, np.nan)
    kinds = np.full(tracks.eigenvalues.shape, "", dtype="U9")
    for block in models.list_blocks():
        part = models[block]
        for offset, (A, E) in enumerate(zip(part.read("A"), part.read("error_A"), strict=True)):
            k = block.start + offset
            followed = tracks.eigenvalues[k]
            if not np.isfinite(followed).all():
                continue
            judged = judge_stability(A, E, sampled=sampled)
            gaps = np.abs(followed[:, None] - judged.eigenvalues)
            mode, partner = linear_sum_assignment(gaps)
            # the two ways of computing an eigenvalue may differ by part of its error
            errors[k, mode] = np.maximum(judged.errors[partner], gaps[mode, partner])
            kinds[k, mode] = np.array(judged.kinds, dtype="U9")[partner]
    return FamilySpectra(errors, kinds)
