"""Wrong values at public functions are answered in words; ``python -m tests.fuzz.wrong_values`` tries all."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import DaeModel, LagrangeModel, OdeModel
from tests.fuzz.public_calls import CALLS, linear, loop
from tests.fuzz.wrong_values import VALUES, attempt, is_wrong


def test_wrong_values_end_in_results_or_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of the 10,000 calls: one argument is wrong in each."""
    monkeypatch.chdir(tmp_path)
    every = [
        (name, argument, value) for name, call in CALLS().items() for argument in call.arguments for value in VALUES
    ]
    sample = random.Random(0).sample(every, 300)
    wrong = [outcome for outcome in (attempt(*given) for given in sample) if is_wrong(outcome)]
    assert wrong == []


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        ([[np.nan, 1.0]], "The gain of 'u' for the state 'x' is nan: all entries must be finite numbers"),
        ([[1.0, np.inf]], "The gain of 'u' for the state 'v' is inf"),
        ([[1.0]], r"The gain has the shape \(1, 1\)"),
        ([["a", "b"]], "entries that are not numbers"),
    ],
)
def test_gains_are_finite_and_fit(gain: Any, words: str) -> None:
    with pytest.raises(fl.UsageError, match=words):
        fl.design.state_feedback(linear(), gain, 0.1)


@pytest.mark.parametrize(
    "matrix", [[[np.nan, 0.0], [0.0, 1.0]], [[1.0, 2.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]], [[1.0]]]
)
def test_covariances_are_finite_symmetric_and_positive(matrix: list[list[float]]) -> None:
    """By rows: not a number, not symmetric, not positive, of another shape."""
    Q = np.array(matrix)
    design = fl.design
    with pytest.raises(fl.UsageError):
        design.kalman_filter(linear(), 0.1, process=Q, measured={"y": 1.0})
    with pytest.raises(fl.UsageError):
        design.sampled_noise(-np.eye(2), np.eye(2), Q, 0.1)
    with pytest.raises(fl.UsageError):
        design.kalman_filter(linear(), 0.1, process={"u": 1.0}, measured=-Q)


def test_models_are_named_by_any_keyword() -> None:
    assert fl.loop_transfer(system=loop(), wires="k.e").A.shape == (1, 1)


@pytest.mark.parametrize("matrix", [1.0, [1.0], {0: 1.0}, "text", len])
def test_a_mass_matrix_is_a_matrix(matrix: object) -> None:
    with pytest.raises(fl.UsageError, match="mass matrix"):
        LagrangeModel("m", {"q": "v"}, matrix, ["-q"])
    with pytest.raises(fl.UsageError, match="mass matrix"):
        OdeModel("m", {"x": "-x"}, mass_matrix=matrix)


def test_a_name_that_is_declared_twice_is_named() -> None:
    with pytest.raises(fl.UsageError, match="declared twice"):
        DaeModel("m", ["der(x) = -x + u"], inputs=["u", "u"])
