"""Velocity projections: R with Phi_q R = 0 (González et al., eq. 2), by the five methods that the paper names.

Each basis comes with the coordinates that it belongs to: z = S q, S R = I, and N spans what S does not see (S N = 0).
Columns of Phi_q are multiplied with the sizes D of the coordinates first, so that units do not decide: R = D V.

- ``coordinates``: independent ones named or chosen by QR with column pivoting; S selects them;
- ``zero-eigenvalue``: eigenvectors of Phi_q' Phi_q with eigenvalue zero (Kamman and Huston);
- ``svd``: right singular vectors (Singh and Likins; Mani, Haug and Atkinson);
- ``qr``: Phi_q' = Q [U; 0], the last columns of Q (Kim and Vanderploeg);
- ``gram-schmidt``: unit vectors made orthogonal to the rows of Phi_q and to each other (Liang and Lance; Agrawal and
  Saigal).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from fmilin.ground.errors import NumericalError, UnknownNameError, UsageError
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import RANK, REFUSED


@dataclass(frozen=True, eq=False)
class Basis:
    """Independent coordinates z = S q and the velocities R that the constraints leave free."""

    method: str
    R: FloatArray  # (n, p), Phi_q R = 0
    S: FloatArray  # (p, n), S R = I
    N: FloatArray  # (n, n - p), S N = 0, and Phi_q N has full column rank
    chosen: tuple[int, ...] = ()  # the independent coordinates where S selects some; else empty


def basis_of(
    Phi_q: FloatArray,
    method: str = "coordinates",
    *,
    sizes: FloatArray | None = None,
    names: Sequence[str] = (),
    independent: Sequence[str] = (),
) -> Basis:
    """Return R, S and N of Phi_q (m, n), of any rank; the method ``"coordinates"`` keeps ``independent`` ones."""
    require_method(method)
    D = np.ones(Phi_q.shape[1]) if sizes is None else sizes
    scaled = Phi_q * D
    if method == "coordinates":
        return _by_coordinates(scaled, D, list(names), list(independent))
    if independent:
        raise UsageError(
            f"Independent coordinates ({', '.join(independent)}) go with the method 'coordinates' only, not with "
            f"'{method}': leave them out or choose that method."
        )
    V = METHODS[method](scaled)
    # z = V' D^-1 q: N spans D times the row space of Phi_q D, to which V is orthogonal.
    rows = linalg.qr(independent_rows(scaled).T, mode="economic")[0]
    return Basis(method, D[:, None] * V, V.T / D, D[:, None] * rows)


def require_method(method: str) -> None:
    """Refuse an unknown method."""
    if method not in METHODS:
        raise UsageError(f"'{method}' is no way to find the free velocities. Choose one of: {', '.join(METHODS)}.")


def rank_of(Phi_q: FloatArray) -> int:
    """Return the number of independent rows: singular values above 1e-8 of the largest."""
    sigma = linalg.svdvals(Phi_q) if Phi_q.size else np.zeros(0)
    return int(np.count_nonzero(sigma > RANK * np.max(sigma, initial=0.0)))


def independent_rows(Phi_q: FloatArray) -> FloatArray:
    """Return U1' Phi_q, (r, n): as many combinations of the rows as are independent."""
    return combinations_of_rows(Phi_q).T @ Phi_q


def combinations_of_rows(Phi_q: FloatArray) -> FloatArray:
    """Return U1, (m, r): the left singular vectors that belong to the rank r; the identity when no row depends."""
    m, r = len(Phi_q), rank_of(Phi_q)
    return np.eye(m) if r == m else linalg.svd(Phi_q)[0][:, :r]


def _by_coordinates(scaled: FloatArray, D: FloatArray, names: list[str], independent: list[str]) -> Basis:
    rows = independent_rows(scaled)
    r, n = rows.shape
    order = linalg.qr(rows, mode="r", pivoting=True)[1] if r else np.arange(n)
    best = sorted(int(i) for i in order[r:])
    chosen = best
    if independent:
        for name in independent:
            if name not in names:
                raise UnknownNameError.among(name, names, "a position of the model")
        chosen = [names.index(name) for name in independent]
        if len(set(chosen)) != n - r:
            example = ", ".join(names[i] for i in best) or "none"
            raise UsageError(
                f"{len(set(chosen))} independent coordinates were named, but {n} coordinates under {r} independent "
                f"constraints leave {n - r}. For example: {example}."
            )
    dependent = [i for i in range(n) if i not in set(chosen)]
    condition = float(np.linalg.cond(rows[:, dependent])) if r else 1.0
    if not condition < REFUSED:
        raise NumericalError(
            f"The coordinates {', '.join(independent)} do not determine the others at this point (condition number "
            f"{condition:.3g}). {', '.join(names[i] for i in best) or 'Others'} would.",
            condition_number=condition,
        )
    R = np.zeros((n, n - r))
    R[chosen, np.arange(n - r)] = 1.0
    R[dependent] = -linalg.solve(rows[:, dependent], rows[:, chosen] / D[chosen]) if r else 0.0
    R[dependent] *= D[dependent][:, None]
    eye = np.eye(n)
    return Basis("coordinates", R, eye[chosen], eye[:, dependent], tuple(chosen))


def _gram_schmidt(Phi: FloatArray) -> FloatArray:
    n = Phi.shape[1]
    basis: list[FloatArray] = []
    for row in independent_rows(Phi):
        _append_orthogonal(basis, row)
    r = len(basis)
    while len(basis) < n:
        # The unit vector that is farthest from what is there already: largest of the diagonal of I - B B'.
        B = np.array(basis).reshape(-1, n)
        farthest = int(np.argmax(1.0 - np.sum(B**2, axis=0)))
        _append_orthogonal(basis, np.eye(n)[farthest])
    return np.array(basis[r:]).reshape(-1, n).T


def _append_orthogonal(basis: list[FloatArray], vector: FloatArray) -> None:
    """Make ``vector`` orthonormal to the basis, twice for the digits that the first pass leaves behind."""
    for _ in range(2):
        for b in basis:
            vector = vector - (b @ vector) * b
        vector = vector / np.linalg.norm(vector)
    basis.append(vector)


METHODS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "coordinates": lambda Phi: basis_of(Phi).R,
    # The eigenvalues are squares of singular values: of the smallest ones only about half the digits are left.
    "zero-eigenvalue": lambda Phi: linalg.eigh(Phi.T @ Phi)[1][:, : Phi.shape[1] - rank_of(Phi)],
    "svd": lambda Phi: linalg.svd(Phi)[2][rank_of(Phi) :].T,
    "qr": lambda Phi: np.asarray(linalg.qr(Phi.T, pivoting=True)[0][:, rank_of(Phi) :], dtype=np.float64),
    "gram-schmidt": _gram_schmidt,
}
