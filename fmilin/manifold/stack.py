"""A stack of points on the manifold in the same coordinates: its geometry, and points displaced from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import FmilinError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import INVARIANT, ON_MANIFOLD, RANK
from fmilin.manifold.facts import VerifiedFacts
from fmilin.manifold.many_points import constraints_at
from fmilin.model.interface import Model, TangentStack

__all__ = ["PointStack", "StackGeometry", "StackSurroundings"]

EPS = float(np.finfo(np.float64).eps)

NOTHING = 1e-12
"""Rows of the gradient below this part of the largest are rounding of terms that cancel."""

NEWTON = 8
"""Steps of Newton's iteration back to the manifold; one whose size is below :data:`SQUARED` is the last."""

SQUARED = 1e-9

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PointStack:
    """Points of one model: times (k,), states (k, N), inputs (k, nu), and parameters (k,) that differ, by name."""

    time: FloatArray
    states: FloatArray
    inputs: FloatArray
    parameters: Mapping[str, FloatArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, some: Any) -> PointStack:
        parameters = {name: values[some] for name, values in self.parameters.items()}
        return PointStack(self.time[some], self.states[some], self.inputs[some], parameters)


class StackGeometry:
    """Sizes, distances and conditioning of a stack, its coordinates being kept states.

    Parameters
    ----------
    model : Model
    points : PointStack
    tangents : TangentStack
        There.
    rows : sequence of int
        As many invariants as there are dependent states, independent of each other where the coordinates were chosen.
    """

    def __init__(self, model: Model, points: PointStack, tangents: TangentStack, rows: Sequence[int]) -> None:
        self._tangents, self._rows = tangents, list(rows)
        self.sizes = model.states.scales(points.states)
        """Of the states, shape (k, N)."""
        self.y_sizes = self.sizes[:, list(tangents.kept)]
        self.u_sizes = model.inputs.scales(points.inputs)
        self.others = sorted(set(range(self.sizes.shape[1])).difference(tangents.kept))

    @cached_property
    def _scaled(self) -> FloatArray:
        return self._tangents.gradient * self.sizes[:, None]

    @cached_property
    def _norms(self) -> FloatArray:
        """Of the rows of the scaled gradient, shape (k, m); of rows that are rounding, of the largest."""
        norms = np.sqrt(np.einsum("kmn,kmn->km", self._scaled, self._scaled))
        largest = norms.max(axis=1, initial=0.0, keepdims=True)
        return np.where(norms > NOTHING * largest, norms, np.where(largest > 0, largest, 1.0))

    @cached_property
    def distance(self) -> FloatArray:
        """How far the points are from the manifold, in sizes of the states, shape (k,)."""
        return np.asarray((np.abs(self._tangents.residuals) / self._norms).max(axis=1, initial=0.0))

    @cached_property
    def condition_number(self) -> FloatArray:
        """A bound (k,) of the condition number of (R; H), scaled, from Frobenius norms; infinite where singular.

        The rows of R are unit vectors: |(R; H)|^2 <= 1 + M and |(R; H)^-1|^2 <= 1 + |H_z^-1 H_y|^2 +
        |H_z^-1|^2.
        """
        if not self._rows:
            return np.ones(len(self.sizes))
        Hz = (self._scaled[:, self._rows] / self._norms[:, self._rows, None])[:, :, self.others]
        try:
            inverse = np.linalg.inv(Hz)
        except np.linalg.LinAlgError:
            return np.full(len(self.sizes), np.inf)
        bend = self._tangents.T[:, self.others] * self.y_sizes[:, None] / self.sizes[:, self.others, None]
        size = 1 + np.einsum("kij,kij->k", inverse, inverse) + np.einsum("kij,kij->k", bend, bend)
        bound = np.sqrt((1 + len(self._rows)) * size)
        return np.where(np.isfinite(bound), bound, np.inf)

    def is_regular(self, rates: FloatArray | None) -> Mask:
        """Say where the points lie on the manifold, as many constraints are independent, and the motion keeps them.

        Parameters
        ----------
        rates : array, shape (N,), or None
            The largest rates that were seen where the motion was found to keep the constraints.
        """
        t = self._tangents
        regular = np.asarray(self.distance <= ON_MANIFOLD)
        if not t.gradient.shape[1]:
            return regular
        rest = sorted(set(range(t.gradient.shape[1])).difference(self._rows))
        if rest:
            turned = np.abs(t.gradient[:, rest] @ (t.T * self.y_sizes[:, None])).max(axis=2, initial=0.0)
            regular &= (turned <= RANK * self._norms[:, rest]).all(axis=1)
        typical = np.abs(t.rates) if rates is None else np.maximum(np.abs(t.rates), rates)
        return regular & self._keeps(t.rates[..., None], typical[..., None]) & self._keeps_inputs()

    def _keeps(self, rates: FloatArray, typical: FloatArray) -> Mask:
        """Whether H f is zero beside its terms, f (k, N, 1)."""
        H, sizes = self._tangents.gradient, np.abs(self._tangents.gradient)
        fastest = (typical[..., 0] / self.sizes).max(axis=1, initial=0.0)
        reference = (sizes @ self.sizes[..., None])[..., 0]
        size = (sizes @ np.maximum(np.abs(rates), 1e-3 * typical))[..., 0]
        size = np.maximum(size, 1e-3 * fastest[:, None] * reference)
        return np.asarray((np.abs((H @ rates)[..., 0]) <= INVARIANT * size).all(axis=1))

    def _keeps_inputs(self) -> Mask:
        H, f_u = self._tangents.gradient[:, self._rows], self._tangents.derivatives[..., len(self._tangents.kept) :]
        return np.asarray((np.abs(H @ f_u) <= INVARIANT * (np.abs(H) @ np.abs(f_u))).all(axis=(1, 2)))

    @cached_property
    def T_error(self) -> FloatArray:
        """Estimated absolute error of T, shape (k, N, P)."""
        terms = np.maximum((np.abs(self._tangents.T) * self.y_sizes[:, None]).max(axis=2, initial=0.0), self.sizes)
        return np.asarray(EPS * (self.condition_number[:, None] * terms)[..., None] / self.y_sizes[:, None])


class StackSurroundings:
    """The model beside a stack of points, at other values of the kept states and inputs.

    Parameters
    ----------
    model : Model
    rows : sequence of int
        Invariants from which the other states follow.
    facts : VerifiedFacts
    """

    def __init__(self, model: Model, rows: Sequence[int], facts: VerifiedFacts) -> None:
        self._model, self._rows, self._facts = model, list(rows), facts

    def reached(
        self, points: PointStack, kept: Sequence[int], guess: FloatArray, sizes: FloatArray
    ) -> tuple[PointStack, Mask]:
        """Return points of the manifold with the kept states of a guess (k, N), and where they were reached."""
        others = [i for i in range(guess.shape[1]) if i not in set(kept)]
        x, size = guess.copy(), np.full(len(guess), np.inf)
        if not others:
            return PointStack(points.time, x, points.inputs, points.parameters), np.ones(len(x), dtype=bool)
        for _ in range(NEWTON):
            try:
                h, H = self._constraints(PointStack(points.time, x, points.inputs, points.parameters), kept)
                step = np.linalg.solve(H[:, self._rows][:, :, others], h[:, self._rows, None])[..., 0]
            except (FmilinError, np.linalg.LinAlgError):
                return PointStack(points.time, x, points.inputs, points.parameters), np.zeros(len(x), dtype=bool)
            x[:, others] -= step
            size = (np.abs(step) / sizes[:, others]).max(axis=1, initial=0.0)
            if not (size > SQUARED).any():
                break
        return PointStack(points.time, x, points.inputs, points.parameters), np.asarray(size <= SQUARED)

    def _constraints(self, points: PointStack, kept: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        model = self._model
        known = not (points.parameters or model.constraints.time_dependent)
        answer = constraints_at(model, float(points.time[0]), points.states, points.inputs) if known else None
        if answer is not None:
            return answer
        found = model.tangents(points.time, points.states, points.inputs, kept, points.parameters)
        assert found is not None  # noqa: S101 - it answered at the points themselves
        return found.residuals, found.gradient

    def visited(self, points: PointStack, kept: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return rates (k, N) and outputs (k, ny); NaN where the model cannot be evaluated."""
        model, single = self._model, len(set(points.time.tolist())) <= 1 and not points.parameters
        try:
            if single and model.batches:
                visit = model.evaluate(float(points.time[0]), points.states, points.inputs)
                return visit.derivatives, visit.outputs
            found = model.tangents(points.time, points.states, points.inputs, kept, points.parameters)
        except (FmilinError, np.linalg.LinAlgError):
            found = None
        if found is None:
            nothing = np.full((len(points), len(model.states)), np.nan)
            return nothing, np.full((len(points), len(model.outputs)), np.nan)
        return found.rates, found.values
