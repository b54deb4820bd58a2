"""Linear models of large systems: matrices and errors in sparse form, and as arrays from when these are asked for.

``lin.sparse.A`` is a SciPy array of the entries that are not zero by the structure of the model. ``lin.A`` is the same
as a NumPy array for every linear model; of a large one it is made when it is first read, and remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeGuard

from fmilin.linear_model.model import DelayedLinearModel, EntryErrors, LinearModel, relative_error
from fmilin.linear_model.sparse_matrices import MATRICES, SparseErrors, SparseMatrices


class _LazyErrors(EntryErrors):
    """Errors of which each array is made when it is first read."""

    @classmethod
    def of_stored(cls, stored: SparseErrors) -> _LazyErrors:
        """Return the errors in arrays that are made of stored entries."""
        errors = object.__new__(cls)
        errors.__dict__["stored"] = stored
        return errors

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in ERRORS or "stored" not in self.__dict__:
                raise AttributeError(name)
            value = self.__dict__[name] = getattr(self.__dict__["stored"], name).toarray()
            return value


ERRORS = tuple(f.name for f in fields(SparseErrors))


class SparseLinearModel(LinearModel):
    """A linear model of sparse matrices: its arrays are made when they are first read.

    ``dataclasses.replace`` reads them, and returns a model of arrays; :meth:`with_fields` does not.
    """

    @classmethod
    def of_matrices(cls, matrices: SparseMatrices, values: Mapping[str, Any]) -> SparseLinearModel:
        """Return the linear model with these matrices and ``values`` for the other fields."""
        linear = object.__new__(cls)
        state = linear.__dict__
        state.update(warnings=(), sample_time=0.0, descriptor=None, derivatives={}, discrete=None)
        state.update(values)
        state["stored"] = matrices
        state["errors"] = _LazyErrors.of_stored(matrices.errors)
        return linear

    @property
    def is_sparse(self) -> bool:
        """Whether the matrices are stored in sparse form."""
        return "stored" in self.__dict__

    def with_fields(self, **changes: Any) -> LinearModel:
        """Return the same with other values of fields that are not matrices, in sparse form."""
        if not self.is_sparse or changes.keys() & {*MATRICES, "errors"}:
            return replace(self, **changes)
        return self._replace_fields(self.sparse, changes)

    def with_matrices(self, matrices: SparseMatrices, **changes: Any) -> SparseLinearModel:
        """Return the same with other matrices and errors, the accuracy that follows, and other values of fields."""
        accuracy = replace(self.accuracy, **find_relative_errors(matrices))
        return self._replace_fields(matrices, {"accuracy": accuracy, **changes})

    def _replace_fields(self, matrices: SparseMatrices, changes: Mapping[str, Any]) -> SparseLinearModel:
        values = {name: value for name, value in self.__dict__.items() if name not in _COMPUTED}
        return SparseLinearModel.of_matrices(matrices, {**values, **changes})

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name not in MATRICES or "stored" not in self.__dict__:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            value = self.__dict__[name] = getattr(self.__dict__["stored"], name).toarray()
            return value


def change_fields(linear: LinearModel, **changes: Any) -> LinearModel:
    """Return a linear model with other values of fields that are not matrices, in the form that it has."""
    if isinstance(linear, SparseLinearModel | DelayedLinearModel):
        return linear.with_fields(**changes)
    return replace(linear, **changes)


def extract_sparse_matrices(linear: LinearModel) -> SparseMatrices:
    """Return the matrices of a linear model in sparse form."""
    from scipy import sparse

    stored: SparseMatrices | None = vars(linear).get("stored")
    if stored is not None:
        return stored
    matrices = {name: sparse.csr_array(getattr(linear, name)) for name in MATRICES}
    errors = {name: sparse.csr_array(getattr(linear.errors, name)) for name in ERRORS}
    return SparseMatrices(**matrices, errors=SparseErrors(**errors))


def find_relative_errors(matrices: SparseMatrices) -> dict[str, float]:
    """Return the largest error over the largest entry of A, B, C, D and T."""
    return {name: relative_error(getattr(matrices.errors, name).data, getattr(matrices, name).data) for name in ERRORS}


def is_sparse(linear: LinearModel) -> TypeGuard[SparseLinearModel]:
    """Return whether the matrices of a linear model are stored in sparse form."""
    return isinstance(linear, SparseLinearModel) and linear.is_sparse


_COMPUTED = frozenset({*MATRICES, "stored", "errors"})
