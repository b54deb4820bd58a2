"""The error estimates are honest: nearly every entry is as close as it says, with and without noise in the model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import fmilin as fl
from fmilin.signals import FloatArray
from tests.random_systems import Recipe, hidden_system
from tests.theorems.strategies import GEOMETRIES, MATRICES, ROUNDING, coordinates_of, sizes


@dataclass
class Found:
    """What linearizing many systems by differences came to."""

    inside: list[FloatArray] = field(default_factory=list)
    """Whether each entry's error is within ten times its estimate."""
    excuses: list[FloatArray] = field(default_factory=list)
    """How many times larger than its error each estimate is."""
    summary: list[bool] = field(default_factory=list)
    """Whether the error of each matrix is within ten times what ``lin.accuracy`` says."""
    errors: list[float] = field(default_factory=list)
    """Of each matrix, over its largest entry, rows and columns in their sizes."""

    def add(self, recipe: Recipe) -> None:
        system, model = hidden_system(recipe)
        lin = fl.linearize(model, derivatives="differences")
        assert lin.errors is not None
        known = system.reference(coordinates_of(lin))
        for name, (rows, columns) in sizes(system, known).items():
            per_unit = columns / rows[:, None]
            true, error = getattr(known, name), np.abs(getattr(lin, name) - getattr(known, name))
            estimate, scaled = getattr(lin.errors, name) * per_unit, error * per_unit
            size = np.abs(true) * per_unit
            rounding = ROUNDING * known.condition * np.maximum(np.max(size, axis=1, keepdims=True), 1.0)
            self.inside.append((scaled <= 10 * estimate + rounding).ravel())
            self.excuses.append((estimate / np.maximum(scaled, rounding)).ravel())
            self.errors.append(float(np.max(scaled) / np.max(size)))
            largest = float(np.max(np.abs(true)))
            allowed = (10 * getattr(lin.accuracy, name) + ROUNDING * known.condition) * largest
            self.summary.append(bool(np.max(error) <= allowed))


@pytest.mark.parametrize(("noise", "median", "worst"), [(0.0, 1e-12, 1e-9), (1e-10, 1e-7, 1e-5), (1e-8, 1e-5, 1e-3)])
def test_entries_are_as_close_as_they_say(noise: float, median: float, worst: float) -> None:
    """Within ten times the estimate in 99 % of all entries, and the estimates are no blanket excuse either."""
    found = Found()
    chosen = GEOMETRIES[::2] if noise else GEOMETRIES  # noise costs many evaluations
    for seed, geometry in enumerate(chosen):
        found.add(replace(geometry, seed=seed, noise=noise, at_rest=seed % 3 != 0))
    assert len(found.errors) == len(MATRICES) * len(chosen)
    assert np.mean(np.concatenate(found.inside)) >= 0.99
    assert np.mean(found.summary) >= 0.99
    assert np.median(np.concatenate(found.excuses)) <= 1e3
    assert np.median(found.errors) <= median
    assert np.max(found.errors) <= worst
