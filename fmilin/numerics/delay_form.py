"""A linear system with internal delays in linear fractional form.

    x' = A x + B1 u + B2 w,    y = C1 x + D11 u + D12 w,    z = C2 x + D21 u + D22 w,    w_i(t) = z_i(t - tau_i)

This is MATLAB's ``InternalDelay``. With P = D + C (s I - A)^-1 B in blocks and E(s) = diag(exp(-s tau_i)) the transfer
matrix is P11 + P12 E (I - P22 E)^-1 P21.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import NumericalError
from fmilin.numerics.components import strong_components
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import MAX_SEPARATION_CONDITION_NUMBER

Complex = NDArray[np.complex128]

NUMBERS_PER_BATCH = 2**21  # complex numbers in one batch of frequencies: 32 MiB


@dataclass(frozen=True, eq=False)
class DelayForm:
    """The matrices of a system with internal delays, continuous in time."""

    A: FloatArray  #: shape (n, n)
    B1: FloatArray  #: shape (n, nu)
    B2: FloatArray  #: shape (n, m)
    C1: FloatArray  #: shape (ny, n)
    C2: FloatArray  #: shape (m, n)
    D11: FloatArray  #: shape (ny, nu)
    D12: FloatArray  #: shape (ny, m)
    D21: FloatArray  #: shape (m, nu)
    D22: FloatArray  #: shape (m, m)
    delays: FloatArray  #: shape (m,), in seconds
    #: shape (n + m, n + m): estimated absolute errors of the entries of [[A, B2], [C2, D22]]
    errors: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    def __post_init__(self) -> None:
        size = len(self.A) + len(self.delays)
        if self.errors.shape != (size, size):
            object.__setattr__(self, "errors", np.zeros((size, size)))

    @property
    def loop(self) -> FloatArray:
        """[[A, B2], [C2, D22]], of which the eigenvalues are made, shape (n + m, n + m)."""
        return np.block([[self.A, self.B2], [self.C2, self.D22]])

    def select_loop(self, states: list[int], channels: list[int]) -> DelayForm:
        """Return the autonomous part of some states and channels, without inputs and outputs."""
        n = len(self.A)
        both = [*states, *(n + i for i in channels)]
        k, m = len(states), len(channels)
        loop = self.loop[np.ix_(both, both)]
        return DelayForm(
            A=loop[:k, :k],
            B1=np.zeros((k, 0)),
            B2=loop[:k, k:],
            C1=np.zeros((0, k)),
            C2=loop[k:, :k],
            D11=np.zeros((0, 0)),
            D12=np.zeros((0, m)),
            D21=np.zeros((m, 0)),
            D22=loop[k:, k:],
            delays=self.delays[channels],
            errors=self.errors[np.ix_(both, both)],
        )

    def close_undelayed(self) -> DelayForm:
        """Return the same system without channels of zero delay: there w = z.

        NumericalError where they form an algebraic loop without a solution.
        """
        closed = np.flatnonzero(self.delays == 0)
        if not len(closed):
            return self
        open_channels = np.flatnonzero(self.delays != 0)
        gap = np.eye(len(closed)) - self.D22[np.ix_(closed, closed)]
        if np.linalg.cond(gap) > MAX_SEPARATION_CONDITION_NUMBER:
            raise NumericalError(
                "With a delay of zero an algebraic loop has no single solution: det(I - D22) = 0. Give the delay a "
                "positive value, or put a filter into the loop."
            )
        M = np.linalg.inv(gap)
        # w_c = M (C2c x + D21c u + D22ck w_k)
        from_x, from_u = M @ self.C2[closed], M @ self.D21[closed]
        from_w = M @ self.D22[np.ix_(closed, open_channels)]
        into_x, into_y = self.B2[:, closed], self.D12[:, closed]
        into_z = self.D22[np.ix_(open_channels, closed)]
        n, E = len(self.A), self.errors
        rows, gone = [*range(n), *(n + open_channels)], list(n + closed)
        from_channels = np.abs(np.vstack((into_x, into_z)))
        right = np.abs(np.hstack((from_x, from_w)))
        spread = E[np.ix_(rows, gone)] @ right + from_channels @ np.abs(M) @ E[np.ix_(gone, rows)]
        spread += from_channels @ np.abs(M) @ E[np.ix_(gone, gone)] @ right
        return DelayForm(
            A=self.A + into_x @ from_x,
            B1=self.B1 + into_x @ from_u,
            B2=self.B2[:, open_channels] + into_x @ from_w,
            C1=self.C1 + into_y @ from_x,
            C2=self.C2[open_channels] + into_z @ from_x,
            D11=self.D11 + into_y @ from_u,
            D12=self.D12[:, open_channels] + into_y @ from_w,
            D21=self.D21[open_channels] + into_z @ from_u,
            D22=self.D22[np.ix_(open_channels, open_channels)] + into_z @ from_w,
            delays=self.delays[open_channels],
            errors=E[np.ix_(rows, rows)] + spread,
        )

    def with_delays(self, delays: FloatArray) -> DelayForm:
        """Return the same with other delays."""
        return replace(self, delays=np.asarray(delays, dtype=np.float64))

    def find_neutral_channels(self) -> list[int]:
        """Return the channels on a loop through D22 alone: z(t) depends on its own past at once, not through a state.

        Such a system is neutral (or a difference equation): infinitely many of its eigenvalues lie near a vertical
        line, and jumps never become smooth.
        """
        channels: list[int] = []
        pattern = self.D22 != 0
        for part in strong_components(pattern):
            members = [int(i) for i in part]
            if len(members) > 1 or pattern[members[0], members[0]]:
                channels += members
        return sorted(channels)

    def evaluate(self, points: Complex) -> Complex:
        """Return the transfer matrix at complex frequencies in 1/s, shape (k, ny, nu)."""
        points = np.asarray(points, dtype=np.complex128)
        n, m, nu = len(self.A), len(self.delays), self.B1.shape[1]
        result = np.empty((len(points), len(self.C1), nu), dtype=np.complex128)
        B, C, D = self._join()
        step = max(1, NUMBERS_PER_BATCH // max(1, (n + m) ** 2))
        for first in range(0, len(points), step):
            s = points[first : first + step]
            resolvent = s[:, None, None] * np.eye(n) - self.A
            P = C @ np.linalg.solve(resolvent, np.broadcast_to(B, (len(s), *B.shape))) + D if n else _tile(D, len(s))
            P11, P12, P21, P22 = _split(P, len(self.C1), nu)
            E = np.exp(-s[:, None] * self.delays)[:, None, :]
            inner = np.linalg.solve(np.eye(m) - P22 * E, P21) if m else P21
            result[first : first + step] = P11 + (P12 * E) @ inner
        return result

    def evaluate_loop(self, points: Complex) -> Complex:
        """Return F(s), shape (k, n + m, n + m): the system has an eigenvalue where its determinant is zero.

        Its last columns act on z where Re s >= 0 and on w elsewhere, so that no entry overflows:
        [[s I - A, -B2 E], [-C2, I - D22 E]] and [[s I - A, -B2], [-C2, E^-1 - D22]].
        """
        points = np.asarray(points, dtype=np.complex128)
        n, m = len(self.A), len(self.delays)
        right = points.real >= 0
        exponent = points[:, None] * self.delays
        decay = np.exp(np.where(right[:, None], -exponent, exponent))
        on_w = np.where(right[:, None], decay, 1.0)
        F = np.zeros((len(points), n + m, n + m), dtype=np.complex128)
        F[:, :n, :n] = points[:, None, None] * np.eye(n) - self.A
        F[:, :n, n:] = -self.B2 * on_w[:, None, :]
        F[:, n:, :n] = -self.C2
        F[:, n:, n:] = -self.D22 * on_w[:, None, :]
        diagonal = np.arange(n, n + m)
        F[:, diagonal, diagonal] += np.where(right[:, None], 1.0, decay)
        return F

    def differentiate_loop(self, points: Complex) -> Complex:
        """Return dF/ds, shape (k, n + m, n + m)."""
        points = np.asarray(points, dtype=np.complex128)
        n, m = len(self.A), len(self.delays)
        right = points.real >= 0
        exponent = points[:, None] * self.delays
        factors = self.delays * np.exp(np.where(right[:, None], -exponent, exponent))
        on_w = np.where(right[:, None], factors, 0.0)
        slope = np.zeros((len(points), n + m, n + m), dtype=np.complex128)
        slope[:, :n, :n] = np.eye(n)
        slope[:, :n, n:] = self.B2 * on_w[:, None, :]
        slope[:, n:, n:] = self.D22 * on_w[:, None, :]
        diagonal = np.arange(n, n + m)
        slope[:, diagonal, diagonal] += np.where(right[:, None], 0.0, factors)
        return slope

    def compute_characteristic_phases(self, points: Complex) -> FloatArray:
        """Return the arguments of det [[s I - A, -B2 E], [-C2, I - D22 E]], shape (k,)."""
        phases = np.empty(len(points))
        step = max(1, NUMBERS_PER_BATCH // max(1, len(self.A) + len(self.delays)) ** 2)
        for first in range(0, len(points), step):
            signs, _ = np.linalg.slogdet(self.evaluate_loop(points[first : first + step]))
            phases[first : first + step] = np.angle(signs)
        is_left = points.real < 0  # there the columns are those of w: the determinant has the factor exp(s tau)
        phases[is_left] -= points.imag[is_left] * self.delays.sum()
        return phases

    def compute_logarithmic_slopes(self, points: Complex) -> Complex:
        """Return d/ds log det [[s I - A, -B2 E], [-C2, I - D22 E]], shape (k,). LinAlgError at an eigenvalue."""
        slopes = np.empty(len(points), dtype=np.complex128)
        step = max(1, NUMBERS_PER_BATCH // max(1, len(self.A) + len(self.delays)) ** 2)
        for first in range(0, len(points), step):
            s = points[first : first + step]
            ratio = np.linalg.solve(self.evaluate_loop(s), self.differentiate_loop(s))
            slopes[first : first + step] = np.trace(ratio, axis1=1, axis2=2)
        slopes[points.real < 0] -= self.delays.sum()  # of the factor exp(s tau)
        return slopes

    def _join(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        B = np.hstack((self.B1, self.B2))
        C = np.vstack((self.C1, self.C2))
        return B, C, np.block([[self.D11, self.D12], [self.D21, self.D22]])


def _tile(D: FloatArray, count: int) -> FloatArray:
    return np.broadcast_to(D, (count, *D.shape))


def _split(P: NDArray[Any], rows: int, columns: int) -> tuple[Complex, Complex, Complex, Complex]:
    top, bottom = P[:, :rows], P[:, rows:]
    return top[:, :, :columns], top[:, :, columns:], bottom[:, :, :columns], bottom[:, :, columns:]
