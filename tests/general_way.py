"""A model as one that has no exact procedure: what a procedure is compared with."""

from __future__ import annotations

from copy import copy

from fmilin import Model

__all__ = ["hide_procedure"]


def hide_procedure(model: Model) -> Model:
    """Return the model without its procedure: linearized from exact products, each compared with a difference."""
    general = copy(model)
    general.exact_slopes = lambda *_: None  # type: ignore[attr-defined]
    return general
