"""Nodes of a CasADi graph: scalar operations, and matrices of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import casadi as ca

__all__ = ["minus", "over", "plus", "sparse", "times"]

SX = Any  # casadi.SX: casadi ships no types

Operation = Callable[[SX, SX], SX]

plus: Operation = partial(ca.SX.binary, ca.OP_ADD)
"""The operations on scalars without the conversions of the operators, which take seven times as long."""
minus: Operation = partial(ca.SX.binary, ca.OP_SUB)
times: Operation = partial(ca.SX.binary, ca.OP_MUL)
over: Operation = partial(ca.SX.binary, ca.OP_DIV)


def sparse(entries: Mapping[tuple[int, int], SX], shape: tuple[int, int]) -> SX:
    """Return a matrix of the nodes at their places (row, column), without those that are zero."""
    places = sorted(entries, key=lambda place: place[::-1])  # column by column, as CasADi keeps them
    rows, columns = [i for i, _ in places], [j for _, j in places]
    nonzeros = ca.vertcat(ca.SX(0, 1), *(entries[place] for place in places))
    return ca.sparsify(ca.SX(ca.Sparsity.triplet(*shape, rows, columns), nonzeros))
