"""Second-order equations with constraints, as numbers at one point, and the velocities that the constraints leave free.

González et al., eq. (1), with the constraint reactions -Phi_q' lambda, and its derivatives, with q'' and lambda
constant in K:

    M(q) q'' + Phi_q' lambda = f(q, q', t, u),    Phi(q, t) = 0
    M dq'' + C dq' + K dq + Phi_q' dlambda = B du,    C = -df/dq',    B = df/du
    K = d(M q'' + Phi_q' lambda - f)/dq

Matrices may be dense or sparse (scipy.sparse arrays); nothing here makes one from the other unasked. The velocity
projections R with Phi_q R = 0 (eq. 2) are those of the five methods that the paper names; each belongs to coordinates
z = S q, S R = I, and N spans what S does not see (S N = 0). Columns of Phi_q are multiplied with the sizes D of the
coordinates first, so that units do not decide: R = D V.

- ``coordinates``: independent ones named or chosen by QR with column pivoting; S selects them;
- ``zero-eigenvalue``: eigenvectors of Phi_q' Phi_q with eigenvalue zero (Kamman and Huston);
- ``svd``: right singular vectors (Singh and Likins; Mani, Haug and Atkinson);
- ``qr``: Phi_q' = Q [U; 0], the last columns of Q (Kim and Vanderploeg);
- ``gram-schmidt``: unit vectors made orthogonal to the rows of Phi_q and to each other (Liang and Lance; Agrawal and
  Saigal).

A moving point adds terms: an eigenvalue problem with constant matrices makes dq' and dv' of the same small vectors,
while the tangent space turns, Phi_q dv + Phi_q_dot dq = 0 and Phi_q a + gamma_q dq + gamma_v dv = 0. The difference is
a motion of the coordinates along N:

    dq' = dv + N P dq,    dv' = a - N (Q dq + W dv)
    P = (Phi_q N)^+ Phi_q_dot,   W = (Phi_q N)^+ (Phi_q_dot - gamma_v),   Q = (Phi_q N)^+ (Phi_q_dot N P - gamma_q)

With these terms, which vanish at an equilibrium, the vectors (dq, dv) that satisfy the constraints are an invariant
subspace of every formulation, and on it z = S q obeys the same A as the general procedure (Spencer section 2.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.signals import FloatArray
from fmilin.tolerances import MAX_COORDINATE_CONDITION_NUMBER, RANK

Matrix = Any  # A dense array of float, or a scipy.sparse array of the same shape

Lift = Callable[[Matrix], Matrix]
"""Returns the X (n, k) with Phi_q X = right (m, k) that no independent coordinate sees, S X = 0."""


@dataclass(frozen=True, eq=False)
class Basis:
    """Independent coordinates z = S q and the velocities R that the constraints leave free."""

    method: str
    R: FloatArray  # (n, p), Phi_q R = 0
    S: FloatArray  # (p, n), S R = I
    N: FloatArray  # (n, n - p), S N = 0, and Phi_q N has full column rank
    chosen: tuple[int, ...] = ()  # the independent coordinates where S selects some; else empty

    def lift(self, Phi_q: FloatArray) -> Lift:
        """Return the function that solves Phi_q X = right for X = N (...), by least squares where rows depend."""
        G = np.zeros((len(self.N), len(Phi_q)))
        if self.N.size:
            G = self.N @ np.linalg.pinv(Phi_q @ self.N)
        return lambda right: G @ right


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
            f"Independent coordinates ({', '.join(independent)}) require the method 'coordinates', not '{method}': "
            "leave them out or choose that method."
        )
    V = METHODS[method](scaled)
    # z = V' D^-1 q: N spans D times the row space of Phi_q D, to which V is orthogonal.
    rows = linalg.qr(independent_rows(scaled).T, mode="economic")[0]
    return Basis(method, D[:, None] * V, V.T / D, D[:, None] * rows)


def require_method(method: str) -> None:
    """Reject an unknown method."""
    if method not in METHODS:
        raise UsageError(f"'{method}' is not a way to find the free velocities. Choose one of: {', '.join(METHODS)}.")


def find_rank(Phi_q: FloatArray) -> int:
    """Return the number of independent rows: singular values above 1e-8 of the largest."""
    sigma = linalg.svdvals(Phi_q) if Phi_q.size else np.zeros(0)
    return int(np.count_nonzero(sigma > RANK * np.max(sigma, initial=0.0)))


def independent_rows(Phi_q: FloatArray) -> FloatArray:
    """Return U1' Phi_q, (r, n): as many combinations of the rows as are independent."""
    return combinations_of_rows(Phi_q).T @ Phi_q


def combinations_of_rows(Phi_q: FloatArray) -> FloatArray:
    """Return U1, (m, r): the left singular vectors that belong to the rank r; the identity when no row depends."""
    m, r = len(Phi_q), find_rank(Phi_q)
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
    if not condition < MAX_COORDINATE_CONDITION_NUMBER:
        raise NumericalError(
            f"The coordinates {', '.join(independent)} do not determine the others at this point (condition number "
            f"{condition:.3g}). Use {', '.join(names[i] for i in best) or 'others'}.",
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
    "zero-eigenvalue": lambda Phi: linalg.eigh(Phi.T @ Phi)[1][:, : Phi.shape[1] - find_rank(Phi)],
    "svd": lambda Phi: linalg.svd(Phi)[2][find_rank(Phi) :].T,
    "qr": lambda Phi: np.asarray(linalg.qr(Phi.T, pivoting=True)[0][:, find_rank(Phi) :], dtype=np.float64),
    "gram-schmidt": _gram_schmidt,
}


@dataclass(frozen=True, eq=False)
class ConstraintMotion:
    """The terms of the constraints where the point moves or accelerates: Phi'' = Phi_q q'' + gamma = 0."""

    velocities: FloatArray  # (n,), q'
    accelerations: FloatArray  # (n,), q''
    Phi_q_dot: Matrix  # (m, n), d(Phi')/dq = d(Phi_q q' + Phi_t)/dq
    gamma_q: Matrix  # (m, n), d(Phi'')/dq with q' and q'' held
    gamma_v: Matrix  # (m, n), d(Phi'')/dq'; twice Phi_q_dot


@dataclass(frozen=True, eq=False)
class ConstrainedForm:
    """M q'' + Phi_q' lambda = f and Phi = 0 at one point, with their derivatives; n coordinates, m constraints."""

    M: Matrix  # (n, n), symmetric; definite on the velocities with Phi_q v = 0 at least
    C: Matrix  # (n, n), -df/dq'
    K: Matrix  # (n, n), d(M q'' + Phi_q' lambda - f)/dq with q'' and lambda held
    Phi_q: Matrix  # (m, n), the Jacobian of the constraints, redundant ones included
    B: Matrix  # (n, nu), df/du
    multipliers: FloatArray  # (m,), lambda at the point; of least norm where the constraints depend on each other
    names: tuple[str, ...] = ()  # of the coordinates, n of them, or empty
    motion: ConstraintMotion | None = None  # None at an equilibrium

    @property
    def n(self) -> int:
        """The number of coordinates."""
        return int(self.M.shape[0])

    @property
    def m(self) -> int:
        """The number of constraints, redundant ones included."""
        return int(self.Phi_q.shape[0])

    @property
    def is_equilibrium(self) -> bool:
        """Whether nothing moves or accelerates."""
        return self.motion is None

    @property
    def is_sparse(self) -> bool:
        """Whether the matrices are scipy.sparse arrays."""
        return bool(sparse.issparse(self.M))

    def dense(self) -> ConstrainedForm:
        """Return the same form with dense matrices."""
        return self._with(_dense) if self.is_sparse else self

    def sparse(self) -> ConstrainedForm:
        """Return the same form with sparse matrices."""
        return self if self.is_sparse else self._with(sparse.csc_array)

    def zeros(self, rows: int, columns: int) -> Matrix:
        """Return a matrix of zeros, dense or sparse as those of the form are."""
        return sparse.csc_array((rows, columns)) if self.is_sparse else np.zeros((rows, columns))

    def _with(self, kind: Callable[[Matrix], Matrix]) -> ConstrainedForm:
        M, C, K, Phi_q, B = (kind(a) for a in (self.M, self.C, self.K, self.Phi_q, self.B))
        motion = self.motion
        if motion is not None:
            rows = (kind(a) for a in (motion.Phi_q_dot, motion.gamma_q, motion.gamma_v))
            motion = ConstraintMotion(motion.velocities, motion.accelerations, *rows)
        return replace(self, M=M, C=C, K=K, Phi_q=Phi_q, B=B, motion=motion)

    def constraint_rates(self, velocities: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """Return by how much columns (dq, dv), shape (2n, k), violate the constraints of velocity, shape (m, k)."""
        rate: NDArray[np.complex128] = self.Phi_q @ velocities[self.n :]
        return rate if self.motion is None else rate + self.motion.Phi_q_dot @ velocities[: self.n]


def _dense(matrix: Matrix) -> FloatArray:
    return np.asarray(matrix if isinstance(matrix, np.ndarray) else matrix.toarray(), dtype=np.float64)
