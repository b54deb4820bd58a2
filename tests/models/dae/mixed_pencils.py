"""Linear DAEs of a known index: a Weierstrass form, whose rows and variables are mixed by decimal matrices.

Cancellations in the products are not exact: which entries are zero, and which ranks fall short, is known to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
WORST_CONDITION = 60.0


@dataclass(frozen=True)
class MixedPencil:
    """E x' = F x + G u with x = Q^-1 (y, chain), y' = A y + B u."""

    index: int
    A: Array
    E: Array
    F: Array
    G: Array
    equations: tuple[str, ...]  # of variables x1, x2, ...
    states: tuple[str, ...]  # those whose derivatives occur
    algebraic: tuple[str, ...]

    def transfer(self, s: complex) -> NDArray[np.complex128]:
        """Return the transfer function from u to all variables."""
        result = np.linalg.solve(s * self.E - self.F, self.G)[:, 0]
        return np.asarray(result, dtype=np.complex128)


def mixed_pencil(seed: int) -> MixedPencil:
    """Return one of index ``seed % 6``, its equations with numbers or with each product written out."""
    rng = np.random.default_rng(seed)
    index, n = seed % 6, int(rng.integers(1, 4))
    A, B = np.round(rng.uniform(-2, 2, (n, n)), 1), np.round(rng.uniform(-2, 2, (n, 1)), 1)
    size = n + (index + int(rng.integers(0, 2)) if 0 < index < 5 else index)
    E, F, G = np.eye(size), np.eye(size), np.zeros((size, 1))
    E[n:, n:] = 0.0
    E[n + np.arange(max(index - 1, 0)), n + 1 + np.arange(max(index - 1, 0))] = 1.0
    F[:n, :n], G[:n] = A, B
    if index == 1:
        G[n:] = 0.5
    sparse = 0.6 if rng.random() < 0.6 else 0.0
    P, Q = _mixer(rng, size, sparse), _mixer(rng, size, sparse)
    names = [f"x{j + 1}" for j in range(size)]
    if rng.random() < 0.5:
        mixed = P @ E @ Q, P @ F @ Q, P @ G
        equations = tuple(_row(names, *(M[i] for M in mixed)) for i in range(size))
        moving = (mixed[0] != 0).any(axis=0)
    else:
        equations = tuple(_products(names, P[i], (E, F, G), Q) for i in range(size))
        moving = ((E != 0).astype(int) @ (Q != 0)).any(axis=0)
    states = tuple(name for name, moves in zip(names, moving, strict=True) if moves)
    algebraic = tuple(name for name in names if name not in states)
    return MixedPencil(index, A, P @ E @ Q, P @ F @ Q, P @ G, equations, states, algebraic)


def _mixer(rng: np.random.Generator, n: int, zeros: float) -> Array:
    while True:
        M = np.round(rng.uniform(-1, 1, (n, n)), 1)
        M = np.where(rng.random((n, n)) < zeros, 0.0, M) + (np.eye(n) if zeros else 0.0)
        if np.linalg.cond(M) < WORST_CONDITION:
            return M


def _row(names: list[str], e: Array, f: Array, g: Array) -> str:
    terms = [f"({float(v)!r})*der({x})" for v, x in zip(e, names, strict=True) if v]
    terms += [f"({float(-v)!r})*{x}" for v, x in zip(f, names, strict=True) if v]
    terms += [f"({float(-g[0])!r})*u"] if g[0] else []
    return " + ".join(terms)


def _products(names: list[str], p: Array, parts: tuple[Array, Array, Array], Q: Array) -> str:
    E, F, G = parts
    terms = []
    for k in np.flatnonzero(p).tolist():
        for M, sign, pattern in ((E, 1.0, "der({})"), (F, -1.0, "{}")):
            for m in np.flatnonzero(M[k]).tolist():
                for j in np.flatnonzero(Q[m]).tolist():
                    factor = f"({float(sign * p[k])!r})*({float(M[k, m])!r})*({float(Q[m, j])!r})"
                    terms.append(f"{factor}*{pattern.format(names[j])}")
        terms += [f"({float(-p[k])!r})*({float(G[k, 0])!r})*u"] if G[k, 0] else []
    return " + ".join(terms)
