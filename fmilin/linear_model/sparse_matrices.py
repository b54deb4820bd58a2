"""The matrices of a linear model in sparse form, and the errors of their entries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fmilin.support.dataclass import dataclass

if TYPE_CHECKING:
    from scipy import sparse

MATRICES = ("A", "B", "C", "D", "T", "T_u")


@dataclass(frozen=True, eq=False)
class SparseErrors:
    """Estimated absolute errors of the entries of A, B, C, D and T. Entries that are not stored have none."""

    A: sparse.csr_array[Any]
    B: sparse.csr_array[Any]
    C: sparse.csr_array[Any]
    D: sparse.csr_array[Any]
    T: sparse.csr_array[Any]


@dataclass(frozen=True, eq=False)
class SparseMatrices:
    """The matrices of a linear model, each a ``scipy.sparse.csr_array``; entries that are not stored are zero.

    >>> import fmilin as fl
    >>> from fmilin.systems import cartesian_pendulum
    >>> fl.linearize(cartesian_pendulum()).sparse.A.nnz
    2
    """

    A: sparse.csr_array[Any]  # (P, P)
    B: sparse.csr_array[Any]  # (P, nu)
    C: sparse.csr_array[Any]  # (ny, P)
    D: sparse.csr_array[Any]  # (ny, nu)
    T: sparse.csr_array[Any]  # (N, P)
    T_u: sparse.csr_array[Any]  # (N, nu)
    errors: SparseErrors

    def select_inputs(self, columns: list[int]) -> SparseMatrices:
        """Return those of some of the inputs."""
        errors = replace(self.errors, B=self.errors.B[:, columns], D=self.errors.D[:, columns])
        return replace(self, B=self.B[:, columns], D=self.D[:, columns], T_u=self.T_u[:, columns], errors=errors)
