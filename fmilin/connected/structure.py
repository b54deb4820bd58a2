"""Which derivatives and outputs of a connected system may depend on which states and inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fmilin.connected.members import Members
from fmilin.connected.wires import Wires

__all__ = ["structure_of"]


def structure_of(
    members: Members, wires: Wires, depends: Sequence[NDArray[np.bool_]], count: int
) -> tuple[Any, Any, Any, Any, Any]:
    """Return which entries A, B, C, D may have, and which inputs of members hang on which (states, inputs w).

    Returns tuple of sparse arrays of 0 and 1: A, B, C, D and an array of shape (nv, N + count).
    """
    blocks: list[list[NDArray[np.bool_]]] = [[], [], [], []]
    for part, at_once in zip(members.parts, depends, strict=True):
        model = part.model
        n, declared = len(model.states), model.structure
        shape = (n + len(model.outputs), n + len(model.inputs))
        full = np.ones(shape, dtype=bool) if declared is None else declared.copy()
        for row, copy in model.copies.items():
            full[n + row] = False
            full[n + row, copy.index + (0 if copy.kind == "state" else n)] = True
        if declared is None:
            full[n:, n:] &= at_once
        for block, matrix in zip(blocks, (full[:n, :n], full[:n, n:], full[n:, :n], full[n:, n:]), strict=True):
            block.append(matrix)
    joined: list[Any] = [sparse.block_diag([b.astype(float) for b in block], format="csr") for block in blocks]
    A, B, C, D = joined
    K, L = (abs(matrix) for matrix in wires.selections(members.size[2], count))
    direct = _pattern(sparse.hstack([K @ C, L], format="csr"))
    reached, loop = direct, _pattern(K @ D)
    while True:
        more = _pattern(direct + loop @ reached)
        if more.nnz == reached.nnz:
            return A, B, C, D, reached
        reached = more


def _pattern(matrix: Any) -> Any:
    found = matrix.tocsr()
    found.eliminate_zeros()
    found.data[:] = 1.0
    return found
