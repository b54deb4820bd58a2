"""The monodromy matrix of linear systems with periodic coefficients and constant delays, in two ways.

x' = A(t) x + B(t) w, z = C(t) x + D(t) w, w_i(t) = z_i(t - tau_i), all matrices of one period T. The state at time 0 is
x(0) and the history of z. Collocation at Gauss points in windows no longer than the shortest delay (Butcher et al.,
Journal of Vibration and Control 10, 2004, with Chebyshev points) converges faster than any power of the window's length
where the coefficients are smooth; semi-discretization (Insperger and Stepan, International Journal for Numerical
Methods in Engineering 61, 2004) holds coefficients and delayed values over each step, and is of second order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray
from scipy.linalg import expm

from fmilin.signals import FloatArray

Complex = NDArray[np.complex128]


class DelayCoefficients(NamedTuple):
    """The matrices at one time: A (P, P), B (P, m), C (m, P), D (m, m)."""

    A: FloatArray
    B: FloatArray
    C: FloatArray
    D: FloatArray


@dataclass(frozen=True)
class PeriodicDelaySystem:
    """A system with m delays; ``breaks`` are times in (0, T) at which coefficients jump."""

    coefficients: Callable[[float], DelayCoefficients]
    delays: FloatArray  # (m,), positive, in seconds
    period: float  # in seconds
    breaks: tuple[float, ...] = ()
    prepare: Callable[[FloatArray], None] | None = None  # receives the times (k,) at which coefficients are needed next

    def expect(self, times: FloatArray) -> None:
        """Tell the source of the coefficients at which times they are needed next: many at once take less."""
        if self.prepare is not None:
            self.prepare(times)

    def make_mesh(self, window_count: int) -> FloatArray:
        """Return ends of windows from 0 to T, at least so many, none longer than the shortest delay."""
        longest = min(float(self.delays.min()), self.period / window_count)
        ends = [0.0, *sorted(self.breaks), self.period]
        parts = [np.array([0.0])]
        for start, end in pairwise(ends):
            count = max(1, int(np.ceil((end - start) / longest * (1 - 1e-12))))
            parts.append(np.linspace(start, end, count + 1)[1:])
        return np.concatenate(parts)


class GaussRule(NamedTuple):
    """Collocation at n Gauss points of [0, 1]: nodes, the integrals of their polynomials, and barycentric weights."""

    nodes: FloatArray  # (n,)
    integrals: FloatArray  # (n, n); of polynomial j from 0 to node i
    weights: FloatArray  # (n,); of polynomial j from 0 to 1
    barycentric: FloatArray  # (n,)

    def interpolate(self, position: float) -> FloatArray:
        """Return the values (n,) of the polynomials of the nodes at a position in [0, 1]."""
        apart = position - self.nodes
        # At a node its term is infinite.
        hit = np.flatnonzero(np.abs(apart) < 1e-13)
        if len(hit):
            return np.asarray(np.eye(len(self.nodes))[hit[0]])
        terms = self.barycentric / apart
        return np.asarray(terms / terms.sum())


def make_gauss_rule(node_count: int) -> GaussRule:
    """Return the rule of Gauss points, computed with Legendre polynomials."""
    x, weights = legendre.leggauss(node_count)
    inverse = np.linalg.inv(legendre.legvander(x, node_count - 1))
    integrated = [legendre.legint(row, lbnd=-1.0) for row in np.eye(node_count)]
    integrals = np.column_stack([legendre.legval(x, series) for series in integrated]) @ inverse / 2
    apart = x[:, None] - x + np.eye(node_count)
    return GaussRule((x + 1) / 2, integrals, weights / 2, 1 / apart.prod(axis=1))


def collocate_period(system: PeriodicDelaySystem, mesh: FloatArray, node_count: int) -> FloatArray:
    """Return the monodromy matrix in x(0) and the values of z at the nodes of the windows before 0, oldest first."""
    rule = make_gauss_rule(node_count)
    T, tau = system.period, system.delays
    window_count, m = len(mesh) - 1, len(tau)
    ends = mesh.copy()
    while ends[0] > -float(tau.max()) - 1e-12 * T:  # the windows of the history are those of the periods before
        ends = np.concatenate((mesh[:-1] - T * (1 + round(-ends[0] / T)), ends))
    first = int(np.searchsorted(ends, -float(tau.max()) - 1e-12 * T, side="right")) - 1
    ends = ends[first:]
    history_count = len(ends) - 1 - window_count
    times = mesh[:-1, None] + rule.nodes * np.diff(mesh)[:, None]
    system.expect(times.ravel())
    p = len(system.coefficients(float(times[0, 0])).A)
    size = history_count * node_count * m + p
    identity = np.eye(size)
    history = list(identity[: size - p].reshape(history_count, node_count, m, size))
    x = identity[size - p :]
    for k in range(window_count):
        start, h = mesh[k], mesh[k + 1] - mesh[k]
        at = [system.coefficients(float(time)) for time in times[k]]
        w = np.zeros((node_count, m, size))
        for j, c in enumerate(rule.nodes):
            for i in range(m):
                time = start + c * h - tau[i]
                window = int(np.searchsorted(ends, time, side="right")) - 1
                # Rounding may put an instant just outside the windows that are there.
                window = min(max(window, 0), history_count + k - 1)
                position = (time - ends[window]) / (ends[window + 1] - ends[window])
                w[j, i] = np.tensordot(rule.interpolate(position), history[window][:, i], axes=1)
        forced = np.stack([at[j].B @ w[j] for j in range(node_count)])
        right_side = x + h * np.tensordot(rule.integrals, forced, axes=1)
        stage_matrix = np.eye(node_count * p)
        for i in range(node_count):
            for j in range(node_count):
                stage_matrix[i * p : (i + 1) * p, j * p : (j + 1) * p] -= h * rule.integrals[i, j] * at[j].A
        stages = np.linalg.solve(stage_matrix, right_side.reshape(node_count * p, size)).reshape(node_count, p, size)
        rates = np.stack([at[j].A @ stages[j] for j in range(node_count)]) + forced
        history.append(np.stack([at[j].C @ stages[j] + at[j].D @ w[j] for j in range(node_count)]))
        x = x + h * np.tensordot(rule.weights, rates, axes=1)
    newest = np.array(history[len(history) - history_count :]).reshape(size - p, size)
    return np.vstack((newest, x))


def semi_discretize_period(system: PeriodicDelaySystem, step_count: int) -> FloatArray:
    """Return the monodromy matrix in x(0) and z of the steps before, the latest first. Needs D = 0.

    Coefficients are held at the middle of each step; the delayed value there is interpolated between two samples.
    """
    T, tau = system.period, system.delays
    h, m = T / step_count, len(tau)
    lags = np.floor(tau / h + 0.5).astype(int)  # r of the paper: between samples r and r - 1 steps before
    earlier = (tau + h / 2 - lags * h) / h
    depth = int(lags.max())
    system.expect(np.asarray(np.arange(2 * step_count) * (h / 2), dtype=np.float64))
    p = len(system.coefficients(0.0).A)
    size = p + depth * m
    state = np.eye(size)
    for i in range(step_count):
        z = system.coefficients(2 * i * (h / 2)).C @ state[:p]
        middle = system.coefficients((2 * i + 1) * (h / 2))
        samples = np.concatenate((z[None], state[p:].reshape(depth, m, size)))  # 0, 1, ... steps before
        channels = np.arange(m)
        w = earlier[:, None] * samples[lags, channels] + (1 - earlier)[:, None] * samples[lags - 1, channels]
        block = expm(h * np.block([[middle.A, middle.B], [np.zeros((m, p + m))]]))
        x = block[:p, :p] @ state[:p] + block[:p, p:] @ w
        state = np.concatenate((x, samples[:depth].reshape(depth * m, size)))
    return state


def sort_multipliers(monodromy: FloatArray, count: int) -> Complex:
    """Return the largest eigenvalues, largest first; of a pair both or none."""
    values = np.linalg.eigvals(monodromy).astype(np.complex128)
    order = np.lexsort((-values.imag, -values.real, -np.round(np.abs(values), 12)))
    values = values[order]
    last = count
    if last < len(values) and values[last - 1].imag > 0:
        last += 1
    return np.asarray(values[:last])
