"""Minimal realization, by the staircase algorithm: what no input reaches and what no output shows is left out.

Away from an equilibrium the constant rate f0 drives the model like an input, and counts as one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import UsageError, join_first
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.modes import slowness
from fmilin.reduction import transformation
from fmilin.reduction.gramians import balanced_truncation
from fmilin.reduction.modal_reduction import keep_frequencies, keep_states, modal_form
from fmilin.signals import FloatArray
from fmilin.support.deprecation import DeprecatedAlias
from fmilin.tolerances import (
    CANCELLATION_TOLERANCE,
    GROWTH_RATE_TOLERANCE,
    MAX_SEPARATION_CONDITION_NUMBER,
    NO_RESPONSE_TOLERANCE,
    UNCHANGED_STATE_TOLERANCE,
)


@dataclass(frozen=True)
class _Pair:
    """A and B, or A' and C', with the estimated errors of their entries."""

    A: FloatArray
    B: FloatArray
    A_error: FloatArray
    B_error: FloatArray
    errors_known: bool

    def within(self, Q: FloatArray) -> _Pair:
        """Return the pair on the subspace with the orthonormal basis Q."""
        Q_ = np.abs(Q)
        return _Pair(Q.T @ self.A @ Q, Q.T @ self.B, Q_.T @ self.A_error @ Q_, Q_.T @ self.B_error, self.errors_known)


@dataclass(frozen=True)
class _SubspaceSplit:
    basis: FloatArray
    dropped: FloatArray


def minimal_realization(linear: LinearModel, *, tolerance: float | None = None) -> LinearModel:
    """Return the linear model without what no input reaches or no output shows; itself when it is minimal.

    States that stay untouched keep their names; where only combinations can stay they are called ``z[1]``,
    ``z[2]``, ... ``tolerance``, relative to A, B or C in sizes of the signals, is by default ten times what the
    estimated errors can make of zeros, 1e-9 where nothing is known of errors. A diagnostic of kind ``"minimal"`` says
    what went.
    """
    if not len(linear.outputs) or not (len(linear.inputs) or not transformation.is_at_rest(linear)):
        missing = "outputs" if not len(linear.outputs) else "inputs"
        raise UsageError(f"This linear model has no {missing}: its minimal realization is empty.")
    if not len(linear.states):
        return linear
    S = linear.states.scales(linear.y0)
    input_pair, output_pair = _scale_input_pair(linear, S), _scale_output_pair(linear, S)
    A = input_pair.A
    reach = _krylov(input_pair, tolerance)
    A1 = reach.basis.T @ A @ reach.basis
    show = _krylov(output_pair.within(reach.basis), tolerance)
    if show.basis.shape[1] == len(S):
        return linear
    unreached = np.linalg.eigvals(reach.dropped.T @ A @ reach.dropped).astype(np.complex128)
    unseen = np.linalg.eigvals(show.dropped.T @ A1 @ show.dropped).astype(np.complex128)
    V, W, N = reach.basis @ show.basis, (reach.basis @ show.basis).T, reach.basis @ show.dropped
    remark = Remark("minimal", _sentence(linear, unreached, unseen))
    positions = _find_untouched_states(V, N)
    if positions is not None:
        G = np.linalg.inv(V[positions])  # so that V[positions] becomes the identity
        V, W = V @ G, V[positions] @ W
        states, z0, unit = linear.states.select(positions), linear.y0[positions], S[positions]
    else:
        count = V.shape[1]
        words = ["combination of states that inputs reach and outputs show"] * count
        states = transformation.new_states([f"z[{i + 1}]" for i in range(count)], words, linear)
        z0, unit = np.zeros(count), np.ones(count)
    kind = "minimal realization" if positions is None else linear.method.coordinates
    V, W = S[:, None] * V / unit, unit[:, None] * W / S
    return transformation.transform(linear, V, W, states, z0=z0, coordinates=kind, remarks=[remark])


def _scale_input_pair(linear: LinearModel, S: FloatArray) -> _Pair:
    """Return A and B in sizes of the signals; away from an equilibrium f0 drives, too."""
    E, u = linear.errors, transformation.sizes(linear.inputs)
    B, B_error = linear.B * u, E.B * u
    if not transformation.is_at_rest(linear):
        B, B_error = np.column_stack((B, linear.f0)), np.column_stack((B_error, np.zeros(len(S))))
    is_estimated = bool(np.isfinite(linear.accuracy.A) and np.isfinite(linear.accuracy.B))
    return _Pair(linear.A * S / S[:, None], B / S[:, None], E.A * S / S[:, None], B_error / S[:, None], is_estimated)


def _scale_output_pair(linear: LinearModel, S: FloatArray) -> _Pair:
    """Return A' and C' in sizes of the signals."""
    E, out = linear.errors, transformation.sizes(linear.outputs)[:, None]
    is_estimated = bool(np.isfinite(linear.accuracy.A) and np.isfinite(linear.accuracy.C))
    A, A_error = linear.A * S / S[:, None], E.A * S / S[:, None]
    return _Pair(A.T, (linear.C * S / out).T, A_error.T, (E.C * S / out).T, is_estimated)


def _krylov(pair: _Pair, tolerance: float | None) -> _SubspaceSplit:
    """Return orthonormal bases of span(B, AB, ...) and of its complement."""
    n = len(pair.A)
    basis = np.zeros((n, 0))
    share = (
        tolerance if tolerance is not None else CANCELLATION_TOLERANCE if pair.errors_known else NO_RESPONSE_TOLERANCE
    )
    news, terms, noise = pair.B, np.abs(pair.B), pair.B_error
    while news.shape[1] and basis.shape[1] < n and terms.any():
        outside = np.abs(np.eye(n) - basis @ basis.T)  # errors along what is found already do no harm
        for _ in range(2):  # once more, for what rounding left
            news = news - basis @ (basis.T @ news)
        U, s, _ = np.linalg.svd(news, full_matrices=False)
        limit = share * np.linalg.norm(terms)
        if tolerance is None and pair.errors_known:
            limit += 10 * np.linalg.norm(outside @ noise)
        fresh = U[:, s > limit]
        basis = np.column_stack((basis, fresh))
        size = np.abs(fresh)
        news, terms, noise = pair.A @ fresh, np.abs(pair.A) @ size, pair.A_error @ size
    return _SubspaceSplit(basis, _complement(basis))


def _complement(Q: FloatArray) -> FloatArray:
    n, r = Q.shape
    return np.asarray(np.linalg.qr(Q, mode="complete")[0][:, r:] if r else np.eye(n), dtype=np.float64)


def _find_untouched_states(V: FloatArray, N: FloatArray) -> NDArray[np.intp] | None:
    """Return states that can be z = y[positions], in order: V independent, hidden N zero; None when too few can."""
    from scipy.linalg import qr

    clean = np.flatnonzero(np.abs(N).max(axis=1, initial=0.0) <= UNCHANGED_STATE_TOLERANCE)
    r = V.shape[1]
    if r == 0 or len(clean) < r:
        return None
    R, pivots = qr(V[clean].T, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R[:, :r]))
    if diagonal[-1] * MAX_SEPARATION_CONDITION_NUMBER <= diagonal[0]:
        return None
    return np.asarray(np.sort(clean[pivots[:r]]), dtype=np.intp)


def _sentence(linear: LinearModel, unreached: NDArray[np.complex128], unseen: NDArray[np.complex128]) -> str:
    n = len(linear.states)
    small = GROWTH_RATE_TOLERANCE * float(np.abs(linear.eigenvalues()).max(initial=0.0))
    pieces = []
    if len(unreached):
        pieces.append(f"no input reaches the eigenvalues {_list_eigenvalues(unreached, small)}")
    if len(unseen):
        pieces.append(f"no output shows the eigenvalues {_list_eigenvalues(unseen, small)}")
    gone = np.concatenate((unreached, unseen))
    grows = np.any(np.abs(gone) > 1 + GROWTH_RATE_TOLERANCE) if linear.sample_time > 0 else np.any(gone.real > small)
    warning = " A part of it grows, which no controller can stabilize." if grows else ""
    return f"{len(gone)} of {n} states were dropped: {'; '.join(pieces)}.{warning}"


def _list_eigenvalues(values: NDArray[np.complex128], small: float) -> str:
    """Return the eigenvalues, slowest first; what is ``small`` is zero, since rounding spreads double ones that far."""
    plain = np.where(np.abs(values) <= small, 0.0, values)
    upper = sorted((complex(v) for v in plain if v.imag >= 0), key=slowness)
    texts = [f"{v.real:.5g} ± {v.imag:.5g} i" if v.imag > 0 else f"{v.real:.5g}" for v in upper]
    return join_first(texts, 6)


@dataclass(frozen=True, slots=True)
class Conditioning:
    """The operations on a linear model before it goes to another tool; none by default."""

    minimal: bool = False  # leave out what no input reaches or no output shows
    frequencies: tuple[float, float] | None = None  # keep the modes of this range, in rad/s
    order: int | None = None  # truncate to this order
    states: tuple[str, ...] = ()  # keep these states of the model
    hold: transformation.Hold | None = None  # sample, with ``sample_time``
    sample_time: float | None = None  # in seconds
    modal: bool = False  # one state per eigenvalue
    balance: Literal["nominals", "norms"] | None = None  # divide states by sizes

    def __post_init__(self) -> None:
        if (self.hold is None) != (self.sample_time is None):
            raise UsageError(
                "Sampling a linear model needs a method and a sample time, for example Conditioning(hold='zoh', "
                "sample_time=0.01)."
            )
        forms = {
            "modal=True": self.modal,
            "balance=...": self.balance,
            "states=[...]": self.states,
        }
        if len(named_forms := [f"Conditioning({form})" for form, is_set in forms.items() if is_set]) > 1:
            raise UsageError(
                "States are modal, balanced by their sizes, or those of the model: leave "
                f"{' or '.join(named_forms)} out."
            )
        if self.order is not None and self.order < 0:
            raise UsageError(f"Conditioning(order={self.order}): the order must not be negative.")

    applied = DeprecatedAlias("apply")

    def apply(self, linear: LinearModel) -> LinearModel:
        """Return the linear model after all steps."""
        if self.order is not None and self.order > len(linear.states):
            raise UsageError(
                f"Conditioning(order={self.order}): the linear model has order {len(linear.states)}, and the reduced "
                "order must be smaller."
            )
        if self.minimal:
            linear = minimal_realization(linear)
        if self.frequencies is not None:
            linear = keep_frequencies(linear, *self.frequencies)
        if self.order is not None:
            linear = balanced_truncation(linear, self.order)
        if self.states:
            linear = keep_states(linear, self.states)
        if self.hold is not None and self.sample_time is not None:
            linear = transformation.discretize(linear, self.sample_time, self.hold)
        if self.modal:
            linear = modal_form(linear)
        if self.balance is not None:
            linear = transformation.balance(linear, self.balance)
        return linear
