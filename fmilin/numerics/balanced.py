"""Matrices divided by the lengths of their rows and columns, their Newton steps, and what is an equilibrium."""

import numpy as np

from fmilin.numerics.decompositions import decompose_by_singular_values
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import (
    CLEAR_GAP,
    EPS,
    EQUILIBRIUM_RATE_TOLERANCE,
    EXACT_BALANCE_TOLERANCE,
    RANK,
    ROUNDING_TOLERANCE,
    TRIM_DISTANCE_TOLERANCE,
)

TERMS_ROUNDED = 64 * EPS
"""Rounding of a sum of terms, relative to the sum of their absolute values."""

ROUNDS = 4  # how often rows and columns are divided by their lengths in turn (Ruiz)


@dataclass(frozen=True, eq=False)
class Balanced:
    """J = W^-1 E S^-1 with an E that has rows and columns of lengths near one."""

    E: FloatArray  # shape (m, n)
    rows: FloatArray  # (m,), the weights W; those of rows without an entry are 0
    columns: FloatArray  # (n,), the sizes S of the unknowns; 1 for columns without an entry
    # U, sigma, Vt: the singular value decomposition of E, thin
    U: FloatArray
    sigma: FloatArray
    Vt: FloatArray

    @property
    def regularity(self) -> float:
        """The smallest singular value over the largest; 0 where there are fewer rows than columns, 1 of nothing."""
        if not self.E.shape[1]:
            return 1.0
        if len(self.sigma) < self.E.shape[1] or self.sigma[0] == 0.0:
            return 0.0
        return float(self.sigma[-1] / self.sigma[0])

    def rank(self, limit: float) -> int:
        """Return how many singular values exceed ``limit`` of the largest if a gap follows, else all but rounding."""
        sigma = self.sigma
        if not len(sigma) or sigma[0] == 0.0:
            return 0
        large = int(np.count_nonzero(sigma > limit * sigma[0]))
        if large < len(sigma) and sigma[large] > 0.0 and sigma[large - 1] < CLEAR_GAP * sigma[large]:
            return int(np.count_nonzero(sigma > ROUNDING_TOLERANCE * sigma[0]))
        return large

    def step(self, r: FloatArray, damping: float = 0.0, drop: float = 0.0) -> FloatArray:
        """Return the shortest step, shape (n,), that makes |W (r + J dz)| small, with Marquardt's damping."""
        if not len(self.sigma):
            return np.zeros(len(self.columns))
        sigma = self.sigma
        retained = sigma > drop * sigma[0]
        gain = np.where(retained, sigma / np.where(retained, sigma**2 + damping, 1.0), 0.0)
        return -self.columns * (self.Vt.T @ (gain * (self.U.T @ (self.rows * r))))

    def inverse(self, rank: int) -> FloatArray:
        """Return the pseudo-inverse (n, m) of the largest singular values, in the units of J."""
        V = self.columns[:, None] * self.Vt[:rank].T
        inverse: FloatArray = (V / self.sigma[:rank]) @ (self.U[:, :rank].T * self.rows)
        return inverse

    def compute_unremovable_part(self, r: FloatArray, limit: float) -> FloatArray:
        """Return the part of W r that no step can remove, shape (m,)."""
        U = self.U[:, : int(np.count_nonzero(self.sigma > limit * max(float(np.max(self.sigma, initial=0.0)), 1e-300)))]
        weighted = self.rows * r
        return weighted - U @ (U.T @ weighted)

    def null_space(self, limit: float) -> FloatArray:
        """Return a basis of what :meth:`rank` leaves, in sizes ``columns``, shape (n, n - rank)."""
        n = self.E.shape[1]
        if not len(self.E):
            return np.eye(n)
        return decompose_by_singular_values(self.E)[2][self.rank(limit) :].T


def equilibrate_jacobian(J: FloatArray, entry_sizes: FloatArray | None = None) -> Balanced:
    """Return the equilibrated form of a finite J (m, n); ``entry_sizes`` (m, n) are the largest at several points."""
    m, n = J.shape
    rows, columns = np.ones(m), np.ones(n)
    # Where a force is largest its slope vanishes: a row that is short by chance must not be magnified.
    size = np.abs(J) if entry_sizes is None else entry_sizes
    for _ in range(ROUNDS):
        lengths = np.sqrt(np.square(size * columns) @ np.ones(n)) if n else np.zeros(m)
        rows = np.divide(1.0, lengths, out=np.zeros(m), where=lengths > 0)
        lengths = np.sqrt(np.ones(m) @ np.square(size * rows[:, None])) if m else np.zeros(n)
        columns = np.divide(1.0, lengths, out=np.ones(n), where=lengths > 0)
    E = rows[:, None] * J * columns
    if not E.size:
        return Balanced(E, rows, columns, np.zeros((m, 0)), np.empty(0), np.zeros((0, n)))
    U, sigma, Vt = decompose_by_singular_values(E, full_matrices=False)
    return Balanced(E, rows, columns, U, sigma, Vt)


HIDDEN_ROUNDING_RATE = 1e-13  # of a size per second: rates that may be rounding of terms which no slope shows
MAX_DIFFERENCE_STEP = (
    1e-3  # of a size: the longest steps over which derivatives are measured; their errors are the noise of rates
)
NONZERO_ERROR_FACTOR = 10.0  # times its error, that an entry of the derivatives is not zero


@dataclass(frozen=True, eq=False)
class NewtonStep:
    """The step that removes rates to first order, in sizes of the unknowns."""

    step: FloatArray  # (n,)
    noise: FloatArray  # (n,), of the step: rounding of the rates
    balances: bool  # whether it removes all of them

    def has_near_equilibrium(self, limit: float) -> bool:
        """Whether an equilibrium lies so near."""
        return self.balances and bool((np.abs(self.step) <= limit + self.noise).all())


def newton_step(rates: FloatArray, sizes: FloatArray, slopes: FloatArray, errors: FloatArray) -> NewtonStep:
    """Return the Newton step from rates (N,) with derivatives and errors (N, n) along unknowns in their sizes."""
    terms = np.abs(slopes)
    most, noise = terms.max(axis=1, initial=0.0), _noise(sizes, slopes, errors)
    if (np.abs(rates) <= noise).all():
        return NewtonStep(np.zeros(slopes.shape[1]), np.zeros(slopes.shape[1]), balances=True)
    form = equilibrate_jacobian(
        np.where(terms > NONZERO_ERROR_FACTOR * errors + ROUNDING_TOLERANCE * most[:, None], slopes, 0.0)
    )
    blurred = float(np.linalg.norm(form.rows[:, None] * errors * form.columns))
    P = form.inverse(form.rank(max(RANK, blurred / max(float(form.sigma.max(initial=0.0)), 1e-300))))
    step = -P @ rates
    return NewtonStep(step, np.abs(P) @ noise, bool((np.abs(rates + slopes @ step) <= noise).all()))


def is_equilibrium(rates: FloatArray, sizes: FloatArray, slopes: FloatArray, errors: FloatArray, states: int) -> bool:
    """Whether an equilibrium is so near to a point that it is one.

    ``slopes`` and ``errors`` (N, n) are along unknowns in their sizes, the first ``states`` of them coordinates.
    """
    if not np.isfinite(slopes).all():
        return False
    slow = bool((np.abs(rates) <= EQUILIBRIUM_RATE_TOLERANCE * sizes).all())
    if slow and newton_step(rates, sizes, slopes[:, :states], errors[:, :states]).has_near_equilibrium(
        TRIM_DISTANCE_TOLERANCE / 2
    ):
        return True
    noise = _noise(sizes, slopes, errors)
    rows = 1.0 / np.maximum(np.abs(slopes).sum(axis=1), noise)
    step = np.linalg.lstsq(slopes * rows[:, None], -rates * rows, rcond=RANK)[0]
    return bool((np.abs(step) <= EXACT_BALANCE_TOLERANCE).all() and (np.abs(rates + slopes @ step) <= noise).all())


def _noise(sizes: FloatArray, slopes: FloatArray, errors: FloatArray) -> FloatArray:
    """Return the rates that say nothing, shape (N,)."""
    rounding = np.maximum(HIDDEN_ROUNDING_RATE * sizes, ROUNDING_TOLERANCE * np.abs(slopes).sum(axis=1))
    noise: FloatArray = np.maximum(rounding, MAX_DIFFERENCE_STEP * errors.max(axis=1, initial=0.0))
    return noise
