"""What hypothesis draws from, and how results are compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from fmilin import LinearModel
from fmilin.signals import FloatArray
from tests.random_systems import Chosen, Family, HiddenSystem, Level, Recipe, Reference, relative_error

MATRICES = ("A", "B", "C", "D", "T")

FAMILIES: list[Family] = ["first order", "second order", "speeds"]

SEEDS = st.integers(0, 10**6)

SHAPES: list[tuple[int, int, float, int, Level, bool]] = [
    (1, 1, 0.0, 1, "position", False),
    (2, 1, 6.0, 0, "velocity", False),
    (1, 2, 0.0, 0, "position", True),
    (3, 2, 3.0, 1, "velocity", False),
    (4, 3, 6.0, 0, "position", False),
    (2, 2, 3.0, 1, "position", True),
    (6, 1, 0.0, 2, "position", False),
]
"""p, m, decades, repeated, level, moving."""

GEOMETRIES = [
    Recipe(family, p, m, geometry=i, decades=decades, repeated=repeated, level=level, moving=moving)
    for family in FAMILIES
    for i, (p, m, decades, repeated, level, moving) in enumerate(SHAPES)
]
"""Constraints as expressions take a while to compile: many systems share each of these."""

ROUNDING = 1e-15
"""Of the known answer and of the numbers that both are computed from, relative to the largest entry of a row."""


def run(examples: int) -> settings:
    """Return the settings of a property test: half of the examples, the same every time; all, others, in a search."""
    same: bool = settings.default.derandomize  # type: ignore[union-attr]
    return settings(max_examples=examples // 2 if same else examples, derandomize=same, deadline=None, database=None)


def measured_recipes(**fixed: Any) -> st.SearchStrategy[Recipe]:
    """Return a strategy for systems that compute their constraints themselves; ``fixed`` holds some entries."""
    entries: dict[str, st.SearchStrategy[Any]] = {
        "family": st.sampled_from(FAMILIES),
        "p": st.integers(1, 4),
        "m": st.integers(1, 4),
        "geometry": SEEDS,
        "seed": SEEDS,
        "at_rest": st.booleans(),
        "decades": st.sampled_from([0.0, 3.0, 6.0]),
        "repeated": st.integers(0, 2),
        "level": st.sampled_from(["position", "velocity"]),
        "moving": st.sampled_from([False, False, False, True]),
    }
    fixed = {"measured": True} | fixed
    return st.builds(Recipe, **entries | {name: st.just(value) for name, value in fixed.items()})


def recipes(*, at_rest: bool | None = None, noise: float = 0.0) -> st.SearchStrategy[Recipe]:
    """Return a strategy for systems whose constraints are expressions, out of :data:`GEOMETRIES`."""
    known = [g for g in GEOMETRIES if not (at_rest and g.moving)]
    rest = st.booleans() if at_rest is None else st.just(at_rest)
    return st.builds(
        lambda geometry, seed, rest: replace(geometry, seed=seed, at_rest=rest, noise=noise),
        st.sampled_from(known),
        SEEDS,
        rest,
    )


def coordinates_of(lin: LinearModel) -> FloatArray:
    """Return R of a model whose coordinates are states."""
    return np.eye(len(lin.full_states))[[lin.full_states.index_of(name) for name in lin.states.names]]


def scaled_errors(system: HiddenSystem, lin: LinearModel, coordinates: Chosen | FloatArray) -> dict[str, float]:
    """Return the error of each matrix over its largest entry, rows and columns in sizes of their quantities."""
    known = system.reference(coordinates)
    return {
        name: relative_error(getattr(lin, name), getattr(known, name), rows, columns)
        for name, (rows, columns) in sizes(system, known).items()
    }


def sizes(system: HiddenSystem, known: Reference) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the sizes of rows and columns of each matrix."""
    y, u, out = known.sizes, system.input_sizes, np.ones(3)
    return {"A": (y, y), "B": (y, u), "C": (out, y), "D": (out, u), "T": (system.scales, y)}


def distance_between_spectra(one: NDArray[np.complex128], other: NDArray[np.complex128]) -> float:
    """Return the largest distance in the best matching, relative to the largest eigenvalue."""
    gaps = np.abs(one[:, None] - other[None, :])
    pairs = linear_sum_assignment(gaps)
    return float(np.max(gaps[pairs], initial=0.0) / np.max(np.abs(other), initial=1e-300))
