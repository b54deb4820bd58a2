"""Reduction by frequency: the modes of a range stay, the faster ones follow at once, the slower ones go.

In modal blocks, G = sum of C_k (s - A_k)^-1 B_k + D. Faster modes are replaced by what they do at rest,
D - sum of C_k A_k^-1 B_k, so that the static gain stays right; slower ones are left out; what grows is always kept.
The largest difference inside the range is certain, not sampled (:mod:`fmilin.reduction.peak`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.ground.errors import UsageError
from fmilin.ground.remarks import Remark, off_equilibrium
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import GROWS
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.reduction.modal import Block, blocks_of
from fmilin.linear_model.reduction.peak import StateSpace, peak_gain
from fmilin.linear_model.reduction.transformation import is_at_rest, new_states, sizes, transformed

__all__ = ["keep_frequencies"]


def keep_frequencies(linear: LinearModel, low: float, high: float) -> LinearModel:
    """Return a linear model of the modes with eigenvalues of modulus ``low`` to ``high``.

    The states are called ``mode1``, ... as in :func:`fmilin.reduction.modal_form`. A remark of kind ``"reduced"``
    says which modes went and how much the frequency response differs inside the range at most.

    ``low``, ``high``: in rad/s. Returns the same object when all of its modes lie in the range.
    """
    if linear.sample_time > 0:
        raise UsageError("A sampled model cannot be reduced by frequency: reduce the continuous one, then sample it.")
    if not 0 <= low < high:
        raise UsageError(f"{low:g} to {high:g} rad/s is no range of frequencies: write for example 0:100.")
    blocks = blocks_of(linear.A, linear.states.scales(linear.y0))
    fast = [b for b in blocks if np.abs(b.eigenvalues).min() > high and not _grows(b, linear)]
    slow = [b for b in blocks if b.speed < low and not _grows(b, linear)]
    if not fast and not slow:
        return linear
    gone = {id(b) for b in (*fast, *slow)}
    kept = [b for b in blocks if id(b) not in gone]
    V = np.column_stack([b.V for b in (*kept, *fast, *slow)])
    W = np.asarray(np.linalg.inv(V), dtype=np.float64)
    r, f = (sum(b.V.shape[1] for b in group) for group in (kept, fast))
    names = [name for number, block in enumerate(kept, start=1) for name in block.names(number)]
    words = [f"mode of {block.speed:.5g} rad/s" for block in kept for _ in block.eigenvalues]
    reduced = transformed(
        linear, V[:, :r], W[:r], new_states(names, words, linear), coordinates="modes of a range of frequencies"
    )
    V_f, W_f = V[:, r : r + f], W[r : r + f]
    at_rest = np.linalg.solve(W_f @ linear.A @ V_f, W_f) if f else np.zeros((0, len(V)))
    follows = -V_f @ at_rest  # dy of the fast modes, (P, P), for a rate W_f (B du + f0) that they balance
    text = _difference(linear, (V_f, W_f), (V[:, r + f :], W[r + f :]), (low, high))
    remark = Remark("reduced", _sentence(linear, fast, slow, text, follows))
    return replace(
        reduced,
        D=linear.D + linear.C @ follows @ linear.B,
        T_u=linear.T_u + linear.T @ follows @ linear.B,
        warnings=(*reduced.warnings, remark),
    )


def _grows(block: Block, linear: LinearModel) -> bool:
    fastest = float(np.abs(linear.eigenvalues()).max(initial=0.0))
    return bool(np.any(block.eigenvalues.real > GROWS * fastest))


def _difference(
    linear: LinearModel,
    fast: tuple[FloatArray, FloatArray],
    slow: tuple[FloatArray, FloatArray],
    band: tuple[float, float],
) -> str:
    """Say how much the response inside the range changes at most; nothing without inputs and outputs."""
    if not (len(linear.inputs) and len(linear.outputs)):
        return ""
    V, W = np.column_stack((fast[0], slow[0])), np.vstack((fast[1], slow[1]))
    B, C = W @ (linear.B * sizes(linear.inputs)), (linear.C / sizes(linear.outputs)[:, None]) @ V
    A, k = W @ linear.A @ V, fast[0].shape[1]
    A[:k, k:], A[k:, :k] = 0.0, 0.0
    static = C[:, :k] @ np.linalg.solve(A[:k, :k], B[:k]) if k else np.zeros((len(C), B.shape[1]))
    peak = peak_gain(StateSpace(A, B, C, static), *band)
    edge = band[1] if np.isfinite(band[1]) else band[0]
    whole = StateSpace(linear.A, linear.B * sizes(linear.inputs), linear.C / sizes(linear.outputs)[:, None], linear.D)
    return (
        f" Inside the range no frequency response differs by more than {peak.bound:.3g} (the gain at {edge:g} rad/s is "
        f"{whole.gain(edge):.3g}), in nominal values of outputs per nominal value of an input."
    )


def _sentence(linear: LinearModel, fast: list[Block], slow: list[Block], difference: str, follows: FloatArray) -> str:
    counts = [(sum(len(b.eigenvalues) for b in group), group) for group in (fast, slow)]
    what = ["follow at once, as at rest", "were left out"]
    pieces = [
        f"{count} eigenvalue{'' if count == 1 else 's'} of {min(b.speed for b in group):.4g} to "
        f"{max(b.speed for b in group):.4g} rad/s {verb}"
        for (count, group), verb in zip(counts, what, strict=True)
        if count
    ]
    remaining = len(linear.states) - counts[0][0] - counts[1][0]
    text = f"Order {remaining} instead of {len(linear.states)}: {'; '.join(pieces)}.{difference}"
    if is_at_rest(linear) or not len(linear.outputs):
        return text
    offset = float(np.max(np.abs(linear.C @ follows @ linear.f0 / sizes(linear.outputs)), initial=0.0))
    return f"{text} {off_equilibrium(f'what f0 does to the fast modes ({offset:.3g}) is left out', '')}"
