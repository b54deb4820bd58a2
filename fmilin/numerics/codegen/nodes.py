"""Nodes of a CasADi graph: scalar operations, and matrices of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import casadi as ca

__all__ = ["minus", "over", "plus", "sharing", "sparse", "times"]

SX = Any  # casadi.SX: casadi ships no types

LARGEST_SHARED = 5_000
"""Entries up to which common parts are looked for: time and memory of CasADi's search grow with their square."""

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


def sharing(*results: SX) -> dict[str, bool]:
    """Return the option by which a function of these results computes once what they have in common."""
    return {"cse": sum(result.nnz() for result in results) <= LARGEST_SHARED}
