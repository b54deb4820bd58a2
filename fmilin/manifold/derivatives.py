"""The record of derivatives of rates and outputs along the manifold, at one point and at many."""

from __future__ import annotations

from dataclasses import field, replace
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.manifold.neighbourhood import NOTHING_OBSERVED, Observations
from fmilin.manifold.parametrization import LocalParametrization
from fmilin.model.interface import TangentBatch
from fmilin.numerics.differences.differences import Slopes
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass

Source = Literal["procedure", "products", "differences"]
Mask = NDArray[np.bool_]

MAX_SHAPES = 64  # of arrays of one number that are remembered
NUMBERS_IN_CACHE = 2**16  # that several operations run over: they fit into the cache of a core


@lru_cache(maxsize=MAX_SHAPES)
def _zeros(shape: tuple[int, ...]) -> FloatArray:
    """Return zeros that take no memory, not to be written to."""
    return np.broadcast_to(0.0, shape)


@lru_cache(maxsize=MAX_SHAPES)
def _everywhere(shape: tuple[int, int]) -> Mask:
    """Return a mask of all entries that takes no memory, not to be written to."""
    return np.broadcast_to(np.True_, shape)


class RowSizes(NamedTuple):
    """How large rows of derivatives are, in sizes of y and u, each (k, rows)."""

    largest: FloatArray  # the largest entry
    terms: FloatArray  # the sum of the entries

    @classmethod
    def of(cls, derivatives: FloatArray, scales: FloatArray) -> RowSizes:
        """Return those of derivatives (k, rows, P + nu) along variables of sizes ``scales`` (k, P + nu)."""
        count, rows, columns = derivatives.shape
        largest, terms = np.empty((count, rows)), np.empty((count, rows))
        step = max(1, NUMBERS_IN_CACHE // max(1, rows * columns))
        for first in range(0, count, step):
            subset = slice(first, first + step)
            entries = np.abs(derivatives[subset])
            entries *= scales[subset, None]
            largest[subset], terms[subset] = entries.max(axis=2, initial=0.0), entries.sum(axis=2)
        return cls(largest, terms)


@dataclass(frozen=True, eq=False)
class TangentDerivatives:
    """Rates x' and outputs at k points, with derivatives along P coordinates and nu inputs and their estimated errors.

    The error of an entry is that in ``errors`` over the scale of its column. One that is the same in a whole row is
    stored once, so that the arrays of a large batch stay small.
    """

    rates: FloatArray  # (k, N)
    outputs: FloatArray  # (k, ny)
    f: FloatArray  # (k, N, P + nu), of the rates
    c: FloatArray  # (k, ny, P + nu), of the outputs
    T: FloatArray  # (k, N, P), how the states move with the coordinates
    x_u: FloatArray  # (k, N, nu), how they move with the inputs; zeros unless inputs prescribe a motion
    scales: FloatArray  # (k, P + nu), sizes of coordinates and inputs
    errors: FloatArray  # (k, N + ny, P + nu), or (k, N + ny, 1) if the same in each row: errors times scales
    source: Source  # the model's own procedure, its directional derivatives, or differences
    is_exact: Mask  # (N + ny, P + nu), which entries are not differences
    remarks: tuple[Remark, ...] = field(default=())
    observations: Observations = NOTHING_OBSERVED  # what the evaluations near a point have shown

    def __len__(self) -> int:
        return len(self.rates)

    @property
    def order(self) -> int:
        """P, the number of coordinates."""
        return int(self.T.shape[2])

    @property
    def f_y(self) -> FloatArray:
        """Of the rates along the coordinates, shape (k, N, P)."""
        return self.f[..., : self.order]

    @property
    def f_u(self) -> FloatArray:
        """Of the rates along the inputs, shape (k, N, nu)."""
        return self.f[..., self.order :]

    @property
    def c_y(self) -> FloatArray:
        """Of the outputs along the coordinates, shape (k, ny, P)."""
        return self.c[..., : self.order]

    @property
    def c_u(self) -> FloatArray:
        """Of the outputs along the inputs, shape (k, ny, nu)."""
        return self.c[..., self.order :]

    @property
    def J(self) -> FloatArray:
        """Of the rates, then of the outputs, shape (k, N + ny, P + nu)."""
        return np.concatenate((self.f, self.c), axis=1)

    @property
    def f_y_errors(self) -> FloatArray:
        """The absolute errors of ``f_y``, of the same shape."""
        return self._compute_errors(slice(self.rates.shape[1]), slice(self.order))

    @property
    def f_u_errors(self) -> FloatArray:
        """The absolute errors of ``f_u``, of the same shape."""
        return self._compute_errors(slice(self.rates.shape[1]), slice(self.order, None))

    @property
    def c_y_errors(self) -> FloatArray:
        """The absolute errors of ``c_y``, of the same shape."""
        return self._compute_errors(slice(self.rates.shape[1], None), slice(self.order))

    @property
    def c_u_errors(self) -> FloatArray:
        """The absolute errors of ``c_u``, of the same shape."""
        return self._compute_errors(slice(self.rates.shape[1], None), slice(self.order, None))

    @property
    def scaled_f_y_errors(self) -> FloatArray:
        """The errors of ``f_y`` times the sizes of the coordinates, (k, N, P), or (k, N, 1) if the same in each row."""
        errors = self.errors[:, : self.rates.shape[1]]
        return errors if errors.shape[2] == 1 else errors[..., : self.order]

    @property
    def method(self) -> str:
        """How derivatives were taken: ``"exact"``, ``"mixed"`` or ``"differences"``."""
        if self.source == "differences":
            return "differences"
        return "exact" if self.is_exact.all() else "mixed"

    @cached_property
    def rate_sizes(self) -> RowSizes:
        """How large the derivatives of the rates are."""
        return RowSizes.of(self.f, self.scales)

    @cached_property
    def output_sizes(self) -> RowSizes:
        """How large the derivatives of the outputs are."""
        return RowSizes.of(self.c, self.scales)

    def find_finite(self, rows: list[int]) -> Mask:
        """Return where T, all derivatives of the outputs, and rates in ``rows`` with theirs are finite, shape (k,)."""
        T = self.T.sum(axis=(1, 2))[:, None]
        sums = self.rate_sizes.terms[:, rows], self.output_sizes.terms, self.rates[:, rows], T
        return np.asarray(np.isfinite(np.concatenate(sums, axis=1)).all(axis=1))

    @classmethod
    def of_batch(
        cls, tangents: TangentBatch, parametrization: LocalParametrization, source: Source = "products"
    ) -> TangentDerivatives:
        """Return those that a model gave at many points, without errors: exact ones, unless they are differences."""
        k, n, columns = tangents.derivatives.shape
        rows, nu = n + tangents.outputs.shape[1], columns - len(tangents.independent)
        return cls(
            tangents.rates,
            tangents.values,
            tangents.derivatives,
            tangents.outputs,
            tangents.T,
            _zeros((k, n, nu)),
            parametrization.scales,
            _zeros((k, rows, 1)),
            source,
            _everywhere((rows, columns)) if source != "differences" else np.zeros((rows, columns), dtype=bool),
        )

    def with_row_errors(self, errors: FloatArray) -> TangentDerivatives:
        """Return the same with errors (k, N + ny) that are the same in each row, in sizes of y and u."""
        other = object.__new__(TangentDerivatives)
        vars(other).update(vars(self), errors=errors[..., None])  # the sizes of rows are not computed again
        return other

    @property
    def slopes(self) -> Slopes:
        """The derivatives and errors of one point as matrices (N + ny, P + nu)."""
        J = self.J[0]
        none = np.zeros(J.shape)
        return Slopes(J, np.broadcast_to(self.errors[0] / self.scales, J.shape), none, none)

    def with_slopes(self, slopes: Slopes) -> TangentDerivatives:
        """Return the same at one point with other derivatives and errors, matrices (N + ny, P + nu)."""
        n = self.rates.shape[1]
        J = slopes.J[None]
        return replace(self, f=J[:, :n], c=J[:, n:], errors=(slopes.error * self.scales)[None])

    def _compute_errors(self, rows: slice, columns: slice) -> FloatArray:
        errors = self.errors[:, rows]
        if errors.shape[2] != 1:
            errors = errors[..., columns]
        return np.asarray(errors / self.scales[:, None, columns])
