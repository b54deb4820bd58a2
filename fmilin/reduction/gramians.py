"""Balanced truncation: the states that inputs reach least and outputs show least go, with a bound of what that costs.

|G(jw) - G_r(jw)| <= 2 (s_{r+1} + ... + s_n) for the Hankel singular values s (Glover 1984; Tombs and Postlethwaite
1987). Undamped and unstable modes are retained. The difference is measured with a bound that holds between all samples:
gamma is a singular value of G(jw) if and only if jw is an eigenvalue of

    H = [A + B R^-1 D' C,  B R^-1 B'; -C' (I + D R^-1 D') C,  -(A + B R^-1 D' C)'],  R = gamma^2 I - D' D

(Bruinsma and Steinbuch 1990, after Boyd and Balakrishnan).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import UsageError
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.modes import lyapunov
from fmilin.numerics.feedback import StateSpace
from fmilin.reduction.transformation import is_at_rest, new_states, sizes, transform
from fmilin.signals import FloatArray
from fmilin.support.deprecation import DeprecatedAlias
from fmilin.tolerances import ROUNDING_TOLERANCE

_WIDTH = 1e-3  # relative distance between what was seen and what is certain
_NEAR_AXIS = 1e-6
"""Relative real part of what rounding made of an imaginary eigenvalue: too many crossings cost a look, no result."""


@dataclass(frozen=True)
class Peak:
    """The largest gain in a range."""

    attained: float  # found at ``frequency``
    bound: float  # no frequency of the range has more
    frequency: float  # in rad/s

    seen = DeprecatedAlias("attained")


def peak_gain(system: StateSpace, low: float = 0.0, high: float = float("inf")) -> Peak:
    """Return the largest singular value of G(jw), low <= w <= high in rad/s, where no pole may lie on the axis."""
    if not len(system.A):
        level = system.gain(np.inf)
        return Peak(level, level, low)
    poles = np.linalg.eigvals(system.A)
    candidates = [low, high, *(float(abs(p)) for p in poles), *(float(abs(p.imag)) for p in poles)]
    inside = [w for w in candidates if low <= w <= high]
    attained, frequency = max((system.gain(w), w) for w in inside)
    while attained > 0:
        level = (1 + 2 * _WIDTH) * attained
        # The frequencies in the range where a singular value passes ``level``, and the ends.
        A, B, C, D = system.A, system.B, system.C, system.D
        R = np.linalg.inv(level**2 * np.eye(B.shape[1]) - D.T @ D)
        K = A + B @ R @ D.T @ C
        H = np.block([[K, B @ R @ B.T], [-C.T @ (np.eye(len(C)) + D @ R @ D.T) @ C, -K.T]])
        values = np.linalg.eigvals(H)
        floor = _NEAR_AXIS * float(np.abs(np.diag(A)).max(initial=0.0))
        near = np.abs(values.real) <= _NEAR_AXIS * (np.abs(values) + floor)
        frequencies = sorted({float(abs(v.imag)) for v in values[near]})
        crossings = [low, *(w for w in frequencies if low < w < high), high]
        middles = [np.sqrt(max(a * b, 0.0)) or (a + b) / 2 for a, b in itertools.pairwise(crossings)]
        best, where = max(((system.gain(w), w) for w in middles if np.isfinite(w)), default=(0.0, low))
        if best <= level:
            return Peak(attained, level, frequency)
        attained, frequency = best, where
    return Peak(0.0, 0.0, frequency)


_NOT_DECAYING = tuple(10.0**-k for k in range(8, 3, -1))
"""Decays, relative to the largest eigenvalue, below which a motion may count as undamped: the first that has no
eigenvalue near it, because rounding spreads multiple ones."""

_MAX_MEASURED_STATES = 300  # states up to which the true error is measured, too: the effort grows with the cube


@dataclass(frozen=True)
class _StableSplit:
    """Bases of the two invariant subspaces, V = [kept, stable] and W = V^-1 row by row, and the stable part."""

    V_kept: FloatArray
    W_kept: FloatArray
    V_stable: FloatArray
    W_stable: FloatArray
    stable: StateSpace


def hankel_singular_values(linear: LinearModel) -> FloatArray:
    """Return the Hankel singular values of the stable part, largest first; below 1e-8 of that they are rounding."""
    return _balance(_parts(linear).stable, sampled=linear.sample_time > 0)[1]


def balanced_truncation(linear: LinearModel, order: int) -> LinearModel:
    """Return a linear model of smaller order with nearly the same response to inputs; itself where that is larger.

    The states are called ``kept[1]``, ... (what does not decay) and ``balanced[1]``, ...; ``T`` still leads to all
    states of the model, as nearly as the reduced order can. A diagnostic of kind ``"reduced"`` gives the bound.
    """
    n = len(linear.states)
    if order < 0:
        raise UsageError(f"The order of a linear model cannot be {order}.")
    if order >= n:
        return linear
    if not len(linear.outputs) or not len(linear.inputs):
        raise UsageError(
            "Without inputs and outputs there is no response from which to choose an order. Give the order."
        )
    parts = _parts(linear)
    rest = parts.V_kept.shape[1]
    if order < rest:
        raise UsageError(
            f"{rest} of the {n} eigenvalues do not decay: balanced truncation keeps them, so order {order} is not "
            f"possible. Request {rest} or more, or choose modes by frequency: fl.reduction.keep_frequencies(linear, "
            "LOW, HIGH)."
        )
    (V, W), values = _balance(parts.stable, sampled=linear.sample_time > 0)
    coupled = np.count_nonzero(
        values > ROUNDING_TOLERANCE * values.max(initial=0.0)
    )  # inputs reach these, and outputs show them
    r = min(order - rest, int(coupled))
    bound = 2 * float(values[r:].sum())
    names = [f"kept[{i + 1}]" for i in range(rest)] + [f"balanced[{i + 1}]" for i in range(r)]
    words = ["does not decay"] * rest + [f"Hankel singular value {s:.4g}" for s in values[:r]]
    V_all = np.column_stack((parts.V_kept, parts.V_stable @ V[:, :r]))
    W_all = np.vstack((parts.W_kept, W[:r] @ parts.W_stable))
    states = new_states(names, words, linear)
    reduced = transform(linear, V_all, W_all, states, coordinates="balanced truncation")
    text = _sentence(linear, parts.stable, (V[:, :r], W[:r]), bound)
    text += f" Hankel singular values: {_list_values(values[:r])} kept, {_list_values(values[r:])} dropped."
    remark = Remark("reduced", f"Order {rest + r} instead of {n} by balanced truncation: {text}")
    return replace(reduced, warnings=(*reduced.warnings, remark))


def _list_values(values: FloatArray) -> str:
    texts = [f"{s:.2g}" for s in values]
    return ", ".join(texts if len(texts) <= 6 else [*texts[:3], "...", texts[-1]]) or "none"


def _sentence(linear: LinearModel, stable: StateSpace, projection: tuple[FloatArray, FloatArray], bound: float) -> str:
    measured = ""
    if linear.sample_time == 0 and len(stable.A) <= _MAX_MEASURED_STATES:
        V, W = projection
        projected = StateSpace(W @ stable.A @ V, W @ stable.B, stable.C @ V, stable.D)
        peak, largest = peak_gain(stable.minus(projected)), peak_gain(stable).attained
        if peak.attained > bound:  # rounding has made small singular values too small
            bound = peak.bound
        measured = f" (found: {peak.attained:.3g}; largest gain of the decaying part {largest:.3g})"
    text = f"no frequency response differs by more than {bound:.3g}{measured}"
    return f"{text}, in nominal values of outputs per nominal value of an input."


def _parts(linear: LinearModel) -> _StableSplit:
    """Split the model, in sizes of its signals, into what decays and what does not."""
    from scipy.linalg import schur, solve_sylvester

    S = linear.states.scales(linear.y0)
    A = linear.A * S / S[:, None]
    n = len(A)
    limit = _limit(linear)

    def stays(re: float, im: float = 0.0) -> bool:
        return bool((np.hypot(re, im) - 1 if linear.sample_time > 0 else re) >= -limit)

    form, U, k = schur(A, output="real", sort=stays) if n else (A, np.eye(0), 0)
    X = solve_sylvester(form[:k, :k], -form[k:, k:], -form[:k, k:]) if 0 < k < n else np.zeros((k, n - k))
    V_stable, W_kept = U[:, :k] @ X + U[:, k:], U[:, :k].T - X @ U[:, k:].T
    driving = linear.B * sizes(linear.inputs)
    if not is_at_rest(linear):
        driving = np.column_stack((driving, linear.f0))  # f0 drives the model like one more input
    showing = linear.C / sizes(linear.outputs)[:, None]
    V, W = S[:, None] * V_stable, U[:, k:].T / S
    stable = StateSpace(form[k:, k:], W @ driving, showing @ V, np.zeros((len(showing), driving.shape[1])))
    return _StableSplit(S[:, None] * U[:, :k], W_kept / S, V, W, stable)


def _limit(linear: LinearModel) -> float:
    """Return the decay (1/s, or per sample) from which on a motion counts as decaying, in a gap of the eigenvalues."""
    values = linear.eigenvalues()
    decays, unit = -values.real, float(np.abs(values).max(initial=0.0))
    if linear.sample_time > 0:
        decays, unit = 1 - np.abs(values), 1.0
    for share in _NOT_DECAYING:
        if not np.any((decays > share * unit) & (decays < 10 * share * unit)):
            return 3 * share * unit
    return 3 * _NOT_DECAYING[0] * unit


def _balance(system: StateSpace, *, sampled: bool) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
    """Return V and W = V^-1 that balance a stable system, and its Hankel singular values."""
    A, B, C = system.A, system.B, system.C
    if not len(A):
        return (np.zeros((0, 0)), np.zeros((0, 0))), np.zeros(0)
    return balance_gramians(lyapunov(A, B @ B.T, sampled=sampled), lyapunov(A.T, C.T @ C, sampled=sampled))


def balance_gramians(P: FloatArray, Q: FloatArray) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
    """Return V and W = V^-1 that balance two Gramians, and the singular values of both."""
    L, M = _factor(P), _factor(Q)
    left_vectors, values, right_vectors = np.linalg.svd(M.T @ L)
    scale = np.sqrt(np.maximum(values, np.finfo(float).tiny))
    return (L @ right_vectors.T / scale, (left_vectors.T @ M.T) / scale[:, None]), values


def _factor(gramian: NDArray[np.floating]) -> FloatArray:
    """Return L with L L' = the Gramian, of which rounding may have made a slightly indefinite matrix."""
    values, vectors = np.linalg.eigh((gramian + gramian.T) / 2)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)), dtype=np.float64)
