"""The linear model before the constraints are taken out: a descriptor system with the multipliers among its states.

    E z' = f0 + A z + B (u - u0),    out = g0 + C z + D (u - u0),    z = (dq, dv, dlambda)

(González et al., section 3.2): the constraints add infinite eigenvalues to those of independent coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import UsageError
from fmilin.formats import Holds
from fmilin.linear_model.modes import Complex, eigenvectors, find_overlapping_groups, on_subspace
from fmilin.model.equation_forms import DescriptorForm
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.support.implemented_in import implemented_in


@dataclass(frozen=True, eq=False)
class Descriptor(DescriptorForm):
    """``E z' = f0 + A z + B (u - u0)``, ``out = g0 + C z + D (u - u0)``, z measured from the point.

    :func:`fmilin.descriptor` makes it, and :func:`fmilin.linearize` where asked to. Its states are coordinates,
    velocities, multipliers ``lambda[i]``, and ``der(v)`` for accelerations in outputs.
    """

    file_kind: ClassVar[Holds] = "descriptor system"  #: the formats of files that hold it: ``fmilin.formats``

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    # how well the eigenvalues and modes of that linear model solve ``s E z = A z``: the largest residual of a row over
    # the terms in it. NaN when there was no linear model to compare with
    difference: float = float("nan")

    def eigenvalues(self) -> NDArray[np.complex128]:
        """Return the finite eigenvalues in 1/s by QZ, sorted; it loses digits, those of the linear model are better."""
        from scipy.linalg import eigvals

        if not len(self.A):
            return np.empty(0, np.complex128)
        scale = 1.0 / np.maximum(np.max(np.abs(self.A), axis=1), np.max(np.abs(self.E), axis=1))
        alpha, beta = eigvals(scale[:, None] * self.A, scale[:, None] * self.E, homogeneous_eigvals=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.where(beta == 0, np.inf, alpha / np.where(beta == 0, 1.0, beta)).astype(np.complex128)
        finite = values[np.argsort(np.abs(values), kind="stable")][: self.order]
        return finite[np.lexsort((finite.imag, finite.real))]

    def with_interface(self, inputs: Sequence[str], outputs: Sequence[str]) -> Descriptor:
        """Return the same system with some of its inputs and outputs, in the given order."""
        missing = [n for n in inputs if n not in self.inputs] + [n for n in outputs if n not in self.outputs]
        if missing:
            raise UsageError(f"The descriptor system has no input or output '{missing[0]}'.")
        columns = [self.inputs.index(n) for n in inputs]
        rows = [self.outputs.index(n) for n in outputs]
        return replace(
            self,
            B=self.B[:, columns],
            C=self.C[rows],
            D=self.D[np.ix_(rows, columns)],
            inputs=tuple(inputs),
            outputs=tuple(outputs),
        )

    @implemented_in("fmilin.export.files:save")
    def save(self, path: str | Path) -> None:
        """Write E, A, B, C, D, f0 and the names, for ``dss(A, B, C, D, E)``, atomically to a .mat or .npz file."""
        ...

    @classmethod
    @implemented_in("fmilin.export.files:load_descriptor")
    def load(cls, path: str | Path) -> Descriptor:
        """Read what :meth:`save` wrote."""
        ...


class LazyDescriptor(Descriptor):
    """A descriptor system that is computed when one of its numbers is first asked for.

    Of Modelica models its matrices are large, and most linear models never show them. It is pickled and reduced as what
    it computes, so that neither files nor other processes need the model.
    """

    def __new__(cls, compute: Callable[[], Descriptor] | None = None, **numbers: Any) -> Descriptor:  # type: ignore[misc]
        """Return a descriptor system of numbers where these are given: ``dataclasses.replace`` gives all of them."""
        return Descriptor(**numbers) if compute is None else super().__new__(cls)

    def __init__(self, compute: Callable[[], Descriptor]) -> None:
        object.__setattr__(self, "_compute", compute)

    @property
    def was_read(self) -> bool:
        """Whether its numbers have been used: files hold it then."""
        return "_was_read" in self.__dict__

    def compute(self) -> Descriptor:
        """Return the descriptor system with all its numbers, which does not count as reading it."""
        if "_computed" not in self.__dict__:
            object.__setattr__(self, "_computed", self.__dict__["_compute"]())
            object.__setattr__(self, "_compute", None)
        result: Descriptor = self.__dict__["_computed"]
        return result

    def __getattribute__(self, name: str) -> Any:
        if name in _FIELDS:
            system = object.__getattribute__(self, "compute")()
            object.__setattr__(self, "_was_read", True)
            return getattr(system, name)
        return super().__getattribute__(name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what is computed."""
        system = self.compute()
        return _rebuild, tuple(getattr(system, f.name) for f in fields(Descriptor))

    def with_interface(self, inputs: Sequence[str], outputs: Sequence[str]) -> Descriptor:
        """Return the same system with some of its inputs and outputs, computed as late."""
        return LazyDescriptor(lambda: self.compute().with_interface(inputs, outputs))


_FIELDS = frozenset(f.name for f in fields(Descriptor))


def _rebuild(*values: Any) -> Descriptor:
    return Descriptor(**dict(zip((f.name for f in fields(Descriptor)), values, strict=True)))


# How a linear model changes with a parameter, and what that does to its eigenvalues. Simple eigenvalues: dl/dp = w'
# (dA/dp) v / w' v with the left and right eigenvectors. Those that coincide form a group: with bases W, V of its
# invariant subspaces the eigenvalues of (W' V)^-1 W' (dA/dp) V, where A is a multiple of the unit matrix on it; where
# it is defective, each would move by a root of dp, and only the mean of the group has a derivative.

GROUP_DISTANCE = (
    1e-6  # distance of eigenvalues that belong to one group, relative to the largest; twofold ones split by 1e-8
)
DEFECTIVE_GROUP_TOLERANCE = (
    1e-6  # difference of A on a group from a multiple of the unit matrix, relative to the largest eigenvalue
)


@dataclass(frozen=True, eq=False)
class MatrixErrors:
    """Estimated absolute errors of the entries of a derivative; each array has the shape of its matrix."""

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray


@dataclass(frozen=True, eq=False)
class Derivative:
    """Derivatives by one parameter, per unit of it, the point following where it is trimmed or has to close loops."""

    A: FloatArray  #: shape (P, P)
    B: FloatArray  #: shape (P, nu)
    C: FloatArray  #: shape (ny, P)
    D: FloatArray  #: shape (ny, nu)
    #: shape (N,); how the point's states move, as the trim has it where it was trimmed, else the dependent ones alone
    states: FloatArray
    inputs: FloatArray  #: shape (nu,); how its inputs move that the trim solved for
    value: float  #: the parameter at the point, in its unit
    errors: MatrixErrors = field(repr=False)


def eigenvalue_derivatives(A: FloatArray, slopes: list[FloatArray]) -> tuple[Complex, list[list[int]]]:
    """Return dl/dp, shape (P, k), for sorted eigenvalues and dA/dp, k of them; and the groups that are defective."""
    if not len(A):
        return np.zeros((0, len(slopes)), dtype=np.complex128), []
    values, left_vectors, right_vectors = eigenvectors(A)
    order = np.lexsort((values.imag, values.real))
    values, left_vectors, right_vectors = (a[..., order] for a in (values, left_vectors, right_vectors))
    with np.errstate(divide="ignore", invalid="ignore"):  # of groups, which follow
        sizes = np.einsum("ij,ij->j", np.conj(left_vectors), right_vectors)
        moved = [np.einsum("ij,ij->j", np.conj(left_vectors), slope @ right_vectors) / sizes for slope in slopes]
    derivatives, defective = np.array(moved, dtype=np.complex128).reshape(len(slopes), len(A)).T.copy(), []
    largest = float(np.max(np.abs(values), initial=0.0)) or 1.0
    for group in find_overlapping_groups(values, np.full(len(values), GROUP_DISTANCE * largest / 2)):
        if len(group) == 1:
            continue
        other_values = np.delete(values, group)
        _, V = on_subspace(A, values[group], other_values)
        _, W = on_subspace(A.T, values[group].conj(), other_values.conj())
        projection = np.linalg.solve(np.conj(W).T @ V, np.conj(W).T)
        block = projection @ A @ V
        spread = np.linalg.norm(block - np.trace(block) / len(group) * np.eye(len(group)))
        is_defective = spread > DEFECTIVE_GROUP_TOLERANCE * largest
        if is_defective:
            defective.append(group)
        for j, block in enumerate(projection @ np.reshape(slopes, (-1, *A.shape)) @ V):
            if is_defective:
                derivatives[group, j] = np.trace(block) / len(group)
            else:
                moves = np.linalg.eigvals(block)
                derivatives[group, j] = moves[np.lexsort((moves.imag, moves.real))]
    return derivatives, defective
