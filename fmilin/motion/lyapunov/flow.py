"""The linear model beside a trajectory: at each point x' = f, and dy' = A dy in independent states y."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.signals import FloatArray
from fmilin.manifold.frame import manifold_at
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.selection import select_partition
from fmilin.model.interface import Evaluation, Model, OperatingPoint

__all__ = ["LocalModel", "TangentFlow", "exact_products"]


@dataclass(frozen=True, slots=True)
class LocalModel:
    """The linear model at one point."""

    rates: FloatArray  # (N,), x'
    A: FloatArray  # shape (P, P)
    T: FloatArray  # (N, P), dx = T dy
    condition_number: float  # of the choice of independent states


def exact_products(model: Model, point: OperatingPoint, T: FloatArray) -> Evaluation:
    """Return the directional derivatives along the columns of T, (N, k), inputs held."""
    found = model.products(point.time, point.states, point.inputs, T, np.zeros((len(point.inputs), T.shape[1])))
    if found is None:
        raise UsageError(
            f"The model '{model.info.name}' has no exact directional derivatives, which are needed at every point of a "
            "trajectory. Use a native model, or an FMU that provides them."
        )
    return found


class TangentFlow:
    """The linear models along a trajectory, inputs held: by the model's procedure, else A = R f_x T by exact products.

    ``invariants``: of the model, with the inputs that are held.
    """

    def __init__(self, model: Model, invariants: Invariants) -> None:
        self._model, self._invariants = model, invariants

    def choose(self, t: float, x: FloatArray) -> tuple[int, ...]:
        """Return the states that are the best independent ones at a point."""
        manifold = manifold_at(self._invariants, OperatingPoint(t, x, self._invariants.inputs))[0]
        return select_partition(manifold).kept or ()

    def at(self, t: float, x: FloatArray, independent: Sequence[int]) -> LocalModel:
        """Return the linear model at a point."""
        u, scales, kept = self._invariants.inputs, self._invariants.scales, list(independent)
        manifold, _, _ = manifold_at(self._invariants, OperatingPoint(t, x, u))
        dependent = [i for i in range(len(x)) if i not in set(kept)]
        T, condition = np.zeros((len(x), len(kept))), 1.0
        T[kept, range(len(kept))] = 1.0
        if dependent:
            G = manifold.H / np.linalg.norm(manifold.H * scales, axis=1, keepdims=True)
            inverse = _inverse(G[:, dependent])
            T[dependent] = -inverse @ G[:, kept]
            condition = float(np.linalg.norm(inverse / scales[dependent, None], 1))
        procedure = self._model.exact_slopes(t, x, u)
        if procedure is not None:
            found = procedure.along(kept)
            return LocalModel(procedure.values.derivatives, found.derivatives[kept, : len(kept)], found.T, condition)
        slopes = exact_products(self._model, OperatingPoint(t, x, u), T)
        return LocalModel(self._model.evaluate(t, x, u).derivatives, slopes.derivatives[kept], T, condition)


def _inverse(G: FloatArray) -> FloatArray:
    try:
        return np.linalg.inv(G).astype(np.float64)
    except np.linalg.LinAlgError:
        raise NumericalError(
            "The independent states do not determine the others at this point.", condition_number=np.inf
        ) from None
