"""How often each equation of 0 = R(x, w), x' = f(x, w) must be differentiated, from its structure.

With sigma_ij = -(derivatives until w_j appears in R_i) the offsets c_i, d_j >= 0 obey d_j - c_i >= sigma_ij, equal on
a transversal of largest value (Pryce, BIT 41, 2001; Pantelides, SIAM J. Sci. Stat. Comput. 9, 1988): R_i is
differentiated c_i times, and w_j appears up to its d_j-th derivative. The index is max c + 1, or 0 where there is no w.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching, min_weight_full_bipartite_matching

from fmilin.ground.errors import UsageError
from fmilin.native.dae.equations import listed

Pattern = Any  # scipy.sparse.csr_array of booleans


@dataclass(frozen=True)
class Structure:
    """Offsets: see the module's text."""

    c: NDArray[np.intp]  # of the equations
    d: NDArray[np.intp]  # of the unknowns


def pattern(matrix: Any) -> Pattern:
    """Return where a CasADi matrix has entries."""
    rows, columns = matrix.sparsity().get_triplet()
    return csr_array((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=matrix.shape)


def structure_of(
    R: tuple[Pattern, Pattern], f: tuple[Pattern, Pattern], name: str, equations: tuple[str, ...], w: tuple[str, ...]
) -> Structure:
    """Return the offsets, for the entries of R by (x, w) and of f by (x, w).

    Raises
    ------
    UsageError
        When the equations are singular in structure; the message names those that say too much, and what is free.
    """
    delays = _delays(*R, *f)
    count = len(w)
    if not count:
        return Structure(np.zeros(0, np.intp), np.zeros(0, np.intp))
    columns = maximum_bipartite_matching(delays, perm_type="column")
    if (columns < 0).any():
        raise UsageError(_singular(delays, columns, name, equations, w))
    rows, columns = min_weight_full_bipartite_matching(delays)
    sigma = 1 - delays.tocoo().data
    i, j = delays.tocoo().coords
    c, own = np.zeros(count, np.intp), np.zeros(count, np.intp)
    partner = np.empty(count, np.intp)
    partner[rows] = columns
    own[rows] = 1 - delays[rows, columns]
    while True:
        d = np.zeros(count, np.intp)
        np.maximum.at(d, j, c[i] + sigma)
        new = d[partner] - own
        if (new == c).all():
            return Structure(c, d)
        c = np.maximum(c, new)


def _delays(R_x: Pattern, R_w: Pattern, f_x: Pattern, f_w: Pattern) -> Pattern:
    """Return 1 + the derivatives of R_i until w_j appears; nothing where it never does."""
    delays, seen, moved = R_w.astype(bool).astype(np.int32), R_x.astype(bool), R_x.astype(bool)
    for delay in range(1, f_x.shape[0] + 1):
        if not moved.nnz:
            break
        new = (moved.astype(np.int32) @ f_w).astype(bool)
        new = (new.astype(np.int32) - new.multiply(delays.astype(bool)).astype(np.int32)).tocsr()
        new.eliminate_zeros()
        delays = (delays + new * (1 + delay)).tocsr()
        reached = (moved.astype(np.int32) @ f_x).astype(bool)
        fresh = (reached.astype(np.int32) - reached.multiply(seen).astype(np.int32)).tocsr()
        fresh.eliminate_zeros()
        moved, seen = fresh.astype(bool), (seen + fresh.astype(bool)).astype(bool)
    return csr_array(delays)


def _singular(delays: Pattern, columns: NDArray[Any], name: str, equations: tuple[str, ...], w: tuple[str, ...]) -> str:
    """Return what is over-determined and what is free: reached from what has no partner, by alternating paths."""
    partner_of = {int(j): i for i, j in enumerate(columns) if j >= 0}
    by_column = delays.tocsc()
    rows, todo = set(), [i for i, j in enumerate(columns) if j < 0]
    while todo:
        i = todo.pop()
        rows.add(i)
        todo += [partner_of[j] for j in delays.indices[delays.indptr[i] : delays.indptr[i + 1]].tolist()
                 if partner_of[j] not in rows]  # fmt: skip
    free, todo = set(), [j for j in range(len(w)) if j not in partner_of]
    while todo:
        j = todo.pop()
        free.add(j)
        owners = by_column.indices[by_column.indptr[j] : by_column.indptr[j + 1]].tolist()
        todo += [int(columns[i]) for i in owners if columns[i] >= 0 and int(columns[i]) not in free]
    return (
        f"The model '{name}' has no unique motion, whatever its numbers are: the equations "
        f"{listed([equations[i] for i in sorted(rows)])} say too much about each other, and nothing determines "
        f"{listed([w[j] for j in sorted(free)])}. Replace an equation, or declare "
        "what is given from outside as an input."
    )
