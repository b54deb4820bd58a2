"""Smaller, better scaled or sampled linear models.

Takes: linear models.
Returns: linear models, Gramians, Hankel singular values, error bounds.
Does not depend on: where a linear model comes from.
"""

from fmilin.reduction.gramians import Peak, balanced_truncation, hankel_singular_values
from fmilin.reduction.minimal import Conditioning, minimal_realization
from fmilin.reduction.modal_reduction import error_bound, keep_frequencies, keep_states, modal_form
from fmilin.reduction.transformation import balance, discretize

__all__ = [
    "Conditioning",
    "Peak",
    "balance",
    "balanced_truncation",
    "discretize",
    "error_bound",
    "hankel_singular_values",
    "keep_frequencies",
    "keep_states",
    "minimal_realization",
    "modal_form",
]
