"""Linear models made smaller, better scaled or sampled, before they go to another tool."""

from fmilin.linear_model.reduction.gramians import Peak, balanced_truncation, hankel_singular_values
from fmilin.linear_model.reduction.minimal import Conditioning, minimal_realization
from fmilin.linear_model.reduction.modal import error_bound, keep_frequencies, keep_states, modal_form
from fmilin.linear_model.reduction.transformation import balance, discretize

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
