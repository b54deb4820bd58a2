"""What a formulation returns: every eigenvalue labelled true or spurious, and the linear model where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.remarks import Remark
from fmilin.linear_model.model import LinearModel

__all__ = ["ComplexArray", "Spectrum"]

ComplexArray = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The eigenvalues of one formulation at one point."""

    formulation: str  # minimal, redundant or unconstrained coordinate set (González et al.)
    # how in words: ``"SVD"``, ``"QZ, Phi_q in A"``, ``"penalty, alpha = 1e+06, xi = 1, omega = 10"``, ``"shift-invert
    # around 10 rad/s"``
    method: str
    eigenvalues: ComplexArray  # (k,), in 1/s; ``inf`` for the infinite ones of a pencil. Sorted by modulus
    is_true: NDArray[np.bool_]  # (k,), which of them belong to the constrained system; the others are spurious
    # (2n, k), right eigenvectors in (dq, dq'), their largest entry 1; zero columns where an eigenvalue moves only
    # multipliers
    vectors: ComplexArray
    # (k,), how far each eigenvector is from Phi_q dq = 0 and Phi_q dq' = 0 (in motion: from Phi_q dq' + Phi_q_dot dq =
    # 0), over |Phi_q| and the length of the vector; NaN for zero columns
    violations: NDArray[np.float64]
    # (k,), estimated absolute error of each eigenvalue from rounding, in 1/s; NaN where nothing is known
    errors: NDArray[np.float64]
    # in independent coordinates, without the spurious eigenvalues. None where the formulation has none
    linear: LinearModel | None = None
    # of the eigenvalue problem and its parts: ``{"n": 5, "m": 4, "order": 14}``
    sizes: Mapping[str, int] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()

    @property
    def true(self) -> ComplexArray:
        """The eigenvalues of the constrained system, slowest first."""
        return self.eigenvalues[self.is_true]

    @property
    def spurious(self) -> ComplexArray:
        """The eigenvalues that the formulation added, slowest first."""
        return self.eigenvalues[~self.is_true]

    @property
    def labels(self) -> tuple[str, ...]:
        """``"true"`` or ``"spurious"`` for each eigenvalue."""
        return tuple("true" if t else "spurious" for t in self.is_true)

    def nearest(self, values: ComplexArray) -> ComplexArray:
        """Return, for each of ``values``, the true eigenvalue nearest to it."""
        if not len(self.true):
            return np.full(len(values), np.nan, dtype=np.complex128)
        found = np.abs(self.true[:, None] - np.asarray(values)[None, :]).argmin(axis=0)
        nearest: ComplexArray = self.true[found]
        return nearest
