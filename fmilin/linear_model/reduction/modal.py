"""Modal form: A as blocks along its diagonal, one for each mode.

A pair of complex eigenvalues s +- w i becomes [[s, w], [-w, s]]. Eigenvalues that cannot be taken apart (a double
zero of a mechanism that can drift, for example) stay together in one triangular block: blocks are joined until the
transformation is well conditioned.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import NumericalError
from fmilin.ground.remarks import Remark
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import INSEPARABLE
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.reduction.transformation import new_states, transformed

__all__ = ["Block", "blocks_of", "modal_form"]


@dataclass(frozen=True)
class Block:
    """An invariant subspace of A."""

    eigenvalues: NDArray[np.complex128]  # shape (k,)
    V: FloatArray  # (P, k), its basis

    @property
    def is_pair(self) -> bool:
        """Whether this is one pair of complex eigenvalues."""
        return len(self.eigenvalues) == 2 and self.eigenvalues[0].imag != 0

    def names(self, number: int) -> list[str]:
        """Return what its coordinates are called: ``mode1``, ``mode2.re``, ``mode3[1]``."""
        k = len(self.eigenvalues)
        parts = [""] if k == 1 else [".re", ".im"] if self.is_pair else [f"[{i + 1}]" for i in range(k)]
        return [f"mode{number}{part}" for part in parts]

    @property
    def speed(self) -> float:
        """The largest modulus of its eigenvalues."""
        return float(np.abs(self.eigenvalues).max())


def modal_form(linear: LinearModel) -> LinearModel:
    """Return the linear model with one state per real eigenvalue and two per pair, slowest first.

    The states are called ``mode1``, or ``mode2.re`` and ``mode2.im``, or ``mode3[1]``, ``mode3[2]``, ... where
    eigenvalues cannot be taken apart, which a remark of kind ``"modal"`` says. Of a sampled model the order is that
    of the moduli of the eigenvalues of A.
    """
    blocks = blocks_of(linear.A, linear.states.scales(linear.y0))
    if not blocks:
        return linear
    V = np.column_stack([block.V for block in blocks])
    names: list[str] = []
    descriptions, remarks = [], []
    for number, block in enumerate(blocks, start=1):
        size, text = len(block.eigenvalues), _text(block)
        names += block.names(number)
        descriptions += [f"eigenvalue{'' if size == 1 else 's'} {text}"] * size
        if size > 1 and not block.is_pair:
            sentence = f"The eigenvalues {text} cannot be taken apart safely: mode {number} has {size} states."
            remarks.append(Remark("modal", sentence))
    states = new_states(names, descriptions, linear)
    W = np.asarray(np.linalg.inv(V), dtype=np.float64)
    return transformed(linear, V, W, states, coordinates="modal form", remarks=remarks)


def blocks_of(A: FloatArray, scales: FloatArray) -> list[Block]:
    """Return invariant subspaces that together are the whole space, slowest first.

    Shapes: A (P, P). ``scales`` (P,): sizes of the states: what well conditioned means.
    """
    if not len(A):
        return []
    scaled = A * scales / scales[:, None]
    values, vectors = np.linalg.eig(scaled)
    groups = [[i] for i in range(len(values)) if values[i].imag >= 0]
    while len(groups) > 1:
        bases = [_basis(scaled, values, vectors, group) for group in groups]
        if np.linalg.cond(np.column_stack(bases)) <= INSEPARABLE:
            break
        groups = _joined(groups, bases)
    blocks = [_block(scaled, values, vectors, group, scales) for group in groups]
    return sorted(blocks, key=lambda b: (b.speed, float(b.eigenvalues[0].real)))


def _block(
    A: FloatArray,
    values: NDArray[np.complex128],
    vectors: NDArray[np.complex128],
    group: list[int],
    scales: FloatArray,
) -> Block:
    own = [v for i in group for v in ([values[i], values[i].conjugate()] if values[i].imag > 0 else [values[i]])]
    return Block(np.array(own, dtype=np.complex128), scales[:, None] * _basis(A, values, vectors, group))


def _basis(
    A: FloatArray, values: NDArray[np.complex128], vectors: NDArray[np.complex128], group: list[int]
) -> FloatArray:
    """Return a real basis of the invariant subspace of some eigenvalues, columns of length 1."""
    if len(group) > 1:
        return _schur_basis(A, values, group)
    value, vector = values[group[0]], vectors[:, group[0]]
    if value.imag == 0:
        return np.asarray(vector.real / np.linalg.norm(vector.real), dtype=np.float64)[:, None]
    # Turned so that its real and imaginary part are orthogonal, A [Re v, Im v] = [Re v, Im v] [[s, w], [-w, s]].
    turned = vector * np.exp(-0.5j * np.angle(np.sum(vector**2)))
    basis = np.column_stack((turned.real, turned.imag))
    return np.asarray(basis * (np.sqrt(2) / np.linalg.norm(turned)), dtype=np.float64)


def _schur_basis(A: FloatArray, values: NDArray[np.complex128], group: list[int]) -> FloatArray:
    """Return an orthonormal basis, from a real Schur form that has the group's eigenvalues first."""
    from scipy.linalg import schur

    inside = values[group]
    outside = np.array([v for i, v in enumerate(values) if v.imag >= 0 and i not in group])

    def belongs(re: float, im: float = 0.0) -> bool:
        z = complex(re, abs(im))
        if not len(outside):
            return True
        return bool(np.min(np.abs(inside - z)) <= np.min(np.abs(outside - z)))

    _, Z, count = schur(A, output="real", sort=belongs)
    if count != sum(1 if v.imag == 0 else 2 for v in inside):
        raise NumericalError(
            f"The eigenvalues near {inside[0]:.6g} cannot be separated from the others: rounding moves them too far. "
            "Reduce the model without taking its modes apart (--minimal, --reduce)."
        )
    return np.asarray(Z[:, :count], dtype=np.float64)


def _joined(groups: list[list[int]], bases: list[FloatArray]) -> list[list[int]]:
    """Join the two groups whose subspaces are closest to each other."""
    orthonormal = [np.linalg.qr(basis)[0] for basis in bases]
    cosine, a, b = max(
        (float(np.linalg.norm(orthonormal[i].T @ orthonormal[j], 2)), i, j)
        for i in range(len(groups))
        for j in range(i)
    )
    del cosine
    return [*(g for k, g in enumerate(groups) if k not in (a, b)), sorted(groups[a] + groups[b])]


def _text(block: Block) -> str:
    upper = [v for v in block.eigenvalues if v.imag >= 0]
    pieces = [f"{v.real:.6g} ± {v.imag:.6g} i" if v.imag > 0 else f"{v.real:.6g}" for v in upper]
    return ", ".join(pieces[:4]) + (", ..." if len(pieces) > 4 else "")
