"""The linear model beside a trajectory: at each point x' = f, and dy' = A dy in independent states y."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fmilin.errors import NumericalError, UsageError
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.rank import EXACT, decide_rank, independent_rows, scaled
from fmilin.manifold.selection import Manifold, select_partition
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.signals import FloatArray

__all__ = ["GeneralFlow", "Tangent", "TangentFlow", "exact_products"]


@dataclass(frozen=True, slots=True)
class Tangent:
    """The linear model at one point.

    Attributes
    ----------
    rates : array, shape (N,)
        x'.
    A : array, shape (P, P)
    T : array, shape (N, P)
        dx = T dy.
    condition_number : float
        Of the choice of independent states.
    """

    rates: FloatArray
    A: FloatArray
    T: FloatArray
    condition_number: float


class TangentFlow(Protocol):
    """Linear models along a trajectory, inputs held."""

    def choose(self, t: float, x: FloatArray) -> tuple[int, ...]:
        """Return the states that are the best independent ones at a point."""

    def at(self, t: float, x: FloatArray, independent: Sequence[int]) -> Tangent:
        """Return the linear model at a point.

        Raises
        ------
        NumericalError
            When the independent states do not determine the others there.
        """


def exact_products(model: Model, point: OperatingPoint, T: FloatArray) -> Evaluation:
    """Return the directional derivatives along the columns of T, (N, k), inputs held.

    Raises
    ------
    UsageError
        When the model has none.
    """
    found = model.products(point.time, point.states, point.inputs, T, np.zeros((len(point.inputs), T.shape[1])))
    if found is None:
        raise UsageError(
            f"The model '{model.info.name}' has no exact directional derivatives, which are needed at every point of a "
            "trajectory. Use a native model, or an FMU that provides them."
        )
    return found


class GeneralFlow:
    """The linear models of any model with exact directional derivatives: A = R f_x T.

    Parameters
    ----------
    model : Model
    invariants : Invariants
        Of the model, with the inputs that are held.
    """

    def __init__(self, model: Model, invariants: Invariants) -> None:
        self._model, self._invariants = model, invariants

    def choose(self, t: float, x: FloatArray) -> tuple[int, ...]:
        """Return the states that pivoting keeps."""
        H, rows = self._gradient(t, x)
        position = np.array(self._invariants.is_position_level, dtype=bool)[rows]
        manifold = Manifold(
            self._model.states, H, position, np.ones(len(x), dtype=bool), self._invariants.pairs,
            self._invariants.scales, x,
        )  # fmt: skip
        return tuple(self._model.states.positions[name] for name in select_partition(manifold).signals.names)

    def at(self, t: float, x: FloatArray, independent: Sequence[int]) -> Tangent:
        """Return the linear model at a point.

        Raises
        ------
        NumericalError
            When the independent states do not determine the others there.
        UsageError
            When the model has no exact directional derivatives.
        """
        model, u = self._model, self._invariants.inputs
        H, _ = self._gradient(t, x)
        kept = list(independent)
        dependent = [i for i in range(len(x)) if i not in set(kept)]
        T = np.zeros((len(x), len(kept)))
        T[kept, range(len(kept))] = 1.0
        condition = 1.0
        if dependent:
            sizes = np.linalg.norm(H * self._invariants.scales, axis=1, keepdims=True)
            G = H / sizes
            try:
                inverse = np.linalg.inv(G[:, dependent])
            except np.linalg.LinAlgError:
                raise NumericalError(
                    "The independent states do not determine the others at this point.", condition_number=np.inf
                ) from None
            T[dependent] = -inverse @ G[:, kept]
            condition = float(np.linalg.norm(inverse / self._invariants.scales[dependent, None], 1))
        rates = model.evaluate(t, x, u).derivatives
        return Tangent(rates, exact_products(model, OperatingPoint(t, x, u), T).derivatives[kept], T, condition)

    def _gradient(self, t: float, x: FloatArray) -> tuple[FloatArray, list[int]]:
        """Return H, redundant rows left out."""
        gradient = self._invariants.gradient(t, x)
        Hs = scaled(gradient.H, self._invariants.scales, gradient.reference, gradient.error)
        rows = independent_rows(Hs, decide_rank(Hs, EXACT).rank, self._invariants.declared)
        return gradient.H[rows], rows
