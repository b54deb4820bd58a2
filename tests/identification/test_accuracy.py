"""How accurate an identified model must be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fmilin as fl
from fmilin.identification.validation import with_accuracy_required
from tests.hand_made import pendulum


def doubtful(part: float) -> fl.LinearModel:
    """A pendulum of which an entry is known to a part of the largest of its row."""
    linear = pendulum()
    E = np.zeros(linear.A.shape)
    E[1, 0] = part * np.abs(linear.A[1]).max()
    return replace(linear, errors=replace(linear.errors, A=E), warnings=())


def test_an_accurate_model_is_returned_as_it_is() -> None:
    linear = doubtful(1e-4)
    assert with_accuracy_required(linear, keep=False) is linear


def test_a_doubtful_entry_is_named() -> None:
    linear = with_accuracy_required(doubtful(1e-2), keep=False)
    [message] = [str(w) for w in linear.warnings if w.kind == "accuracy"]
    assert "is accurate to +-" in message


def test_an_inaccurate_entry_is_refused_unless_it_is_wanted() -> None:
    with pytest.raises(fl.NumericalError, match=r"cannot be determined.*keep_inaccurate=True"):
        with_accuracy_required(doubtful(0.5), keep=False)
    assert "accuracy" in [w.kind for w in with_accuracy_required(doubtful(0.5), keep=True).warnings]


def test_a_row_of_rounding_is_no_doubtful_one() -> None:
    """An output that nothing moves is known to be nothing, whatever its entries are known to among themselves."""
    linear = doubtful(0.0)
    C, E = np.ones(linear.C.shape), np.zeros(linear.C.shape)
    C[0], E[0] = 1e-17, 1e-16
    assert with_accuracy_required(replace(linear, C=C, errors=replace(linear.errors, C=E)), keep=False).warnings == ()
