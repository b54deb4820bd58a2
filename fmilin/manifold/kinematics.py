"""Positions and speeds: which states are the rates of others, and in which the constraints are linear."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fmilin.ground.errors import ModelError, NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.manifold.invariants import Invariants
from fmilin.model.interface import Model, OperatingPoint

PERTURBATION = 1e-6
"""Relative to the states' scales: enough to tell equal from equal by chance, too little to leave the model's domain."""


def kinematic_pairs(model: Model, point: OperatingPoint) -> Mapping[int, int]:
    """Return ``{i: j}`` where the derivative of state i is state j itself, bitwise, at the point and at two near it."""
    # A model that cannot be evaluated off its manifold has no pairs by this test: nothing is lost but the short cut.
    random = np.random.default_rng(20160901)
    scales = model.states.scales(point.states)
    candidates: set[tuple[int, int]] | None = None
    for amount in (0.0, PERTURBATION, PERTURBATION):
        x = point.states + amount * scales * random.uniform(0.5, 1.0, len(scales)) * random.choice(
            [-1.0, 1.0], len(scales)
        )
        try:
            rates = model.evaluate(point.time, x, point.inputs).derivatives
        except (ModelError, NumericalError):
            return {}
        rows, columns = np.nonzero(rates[:, None] == x[None, :])
        here = {(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if i != j}
        candidates = here if candidates is None else candidates & here
    pairs: dict[int, int] = {}
    for i, j in sorted(candidates or ()):
        if j not in pairs.values():
            pairs[i] = j
    return pairs


def linear_states(invariants: Invariants, t: float, x: FloatArray) -> np.ndarray:
    """Return which states enter all velocity-level invariants linearly, as speeds do: array of bool, shape (N,)."""
    n = len(x)
    velocity = ~np.array(invariants.is_position_level, dtype=bool)
    if not velocity.any():
        return np.ones(n, dtype=bool)
    structure, linear = invariants.connections, np.ones(n, dtype=bool)
    entering = np.arange(n) if structure is None else np.flatnonzero(structure[velocity].any(axis=0))
    steps = np.diag(0.1 * invariants.scales)[entering]
    h = invariants.values_at(t, np.concatenate((x[None], x + steps, x - steps)))
    h0, ahead, behind = np.split(h[:, velocity], (1, 1 + len(entering)))
    bend, size = np.abs(ahead + behind - 2 * h0), np.maximum(np.abs(ahead), np.abs(behind)) + np.abs(h0)
    linear[entering] = (bend <= 1e-9 * np.maximum(size, 1e-300)).all(axis=1)  # NaN is not
    return linear
