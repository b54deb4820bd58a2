"""Linear models made smaller, better scaled or sampled, before they go to another tool."""

from __future__ import annotations

from fmilin.reduction.frequencies import keep_frequencies
from fmilin.reduction.gramians import balanced_truncation, hankel_singular_values
from fmilin.reduction.minimal import minimal_realization
from fmilin.reduction.modal import modal_form
from fmilin.reduction.procedure import Conditioning
from fmilin.reduction.sampling import discretize
from fmilin.reduction.scaling import balance

__all__ = [
    "Conditioning",
    "balance",
    "balanced_truncation",
    "discretize",
    "hankel_singular_values",
    "keep_frequencies",
    "minimal_realization",
    "modal_form",
]
