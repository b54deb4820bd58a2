"""Modal form, A as blocks along its diagonal; reduction by frequency, and to states of the model; what that costs.

Eigenvalues that cannot be taken apart stay in one triangular block. Faster modes than those of a range are replaced by
D - sum of C_k A_k^-1 B_k, slower ones are left out, what grows is kept. SEREP: r states with rows of T that can be
inverted are coordinates as good as modes (O'Callahan, Avitabile and Riemer, IMAC 7, 1989).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark, off_equilibrium
from fmilin.errors import NumericalError, UsageError, join_first
from fmilin.linear_model.model import LinearModel
from fmilin.numerics.feedback import StateSpace
from fmilin.reduction.gramians import Peak, peak_gain
from fmilin.reduction.transformation import is_at_rest, new_states, sizes, transform
from fmilin.signals import FloatArray
from fmilin.tolerances import GROWTH_RATE_TOLERANCE, MAX_SEPARATION_CONDITION_NUMBER

Complex = NDArray[np.complex128]


@dataclass(frozen=True)
class Block:
    """An invariant subspace of A."""

    eigenvalues: Complex  # shape (k,)
    V: FloatArray  # (P, k), its basis

    @property
    def is_pair(self) -> bool:
        """Whether this is one pair of complex eigenvalues."""
        return len(self.eigenvalues) == 2 and self.eigenvalues[0].imag != 0

    def names(self, number: int) -> list[str]:
        """Return what its coordinates are called: ``mode1``, ``mode2.re``, ``mode3[1]``."""
        k = len(self.eigenvalues)
        parts = [""] if k == 1 else [".re", ".im"] if self.is_pair else [f"[{i + 1}]" for i in range(k)]
        return [f"mode{number}{part}" for part in parts]

    @property
    def speed(self) -> float:
        """The largest modulus of its eigenvalues."""
        return float(np.abs(self.eigenvalues).max())


def modal_form(linear: LinearModel) -> LinearModel:
    """Return the linear model with one state per real eigenvalue and two per pair, slowest (sampled: smallest) first.

    The states are called ``mode1``, or ``mode2.re`` and ``mode2.im``, or ``mode3[1]``, ``mode3[2]``, ... where
    eigenvalues cannot be taken apart, which a diagnostic of kind ``"modal"`` says.
    """
    blocks = split_into_blocks(linear.A, linear.states.scales(linear.y0))
    if not blocks:
        return linear
    V = np.column_stack([block.V for block in blocks])
    names: list[str] = []
    descriptions, remarks = [], []
    for number, block in enumerate(blocks, start=1):
        upper = [v for v in block.eigenvalues if v.imag >= 0]
        pieces = [f"{v.real:.6g} ± {v.imag:.6g} i" if v.imag > 0 else f"{v.real:.6g}" for v in upper]
        size = len(block.eigenvalues)
        text = join_first(pieces, 4)
        names += block.names(number)
        descriptions += [f"eigenvalue{'' if size == 1 else 's'} {text}"] * size
        if size > 1 and not block.is_pair:
            sentence = f"The eigenvalues {text} cannot be separated safely: mode {number} has {size} states."
            remarks.append(Remark("modal", sentence))
    states = new_states(names, descriptions, linear)
    W = np.asarray(np.linalg.inv(V), dtype=np.float64)
    return transform(linear, V, W, states, coordinates="modal form", remarks=remarks)


def split_into_blocks(A: FloatArray, scales: FloatArray) -> list[Block]:
    """Return well conditioned (in ``scales`` of states) invariant subspaces that span the space, slowest first."""
    if not len(A):
        return []
    scaled = A * scales / scales[:, None]
    values, vectors = np.linalg.eig(scaled)
    groups = [[i] for i in range(len(values)) if values[i].imag >= 0]
    while len(groups) > 1:
        bases = [_basis(scaled, values, vectors, group) for group in groups]
        if np.linalg.cond(np.column_stack(bases)) <= MAX_SEPARATION_CONDITION_NUMBER:
            break
        # Join the two groups with the closest subspaces.
        orthonormal = [np.linalg.qr(basis)[0] for basis in bases]
        pairs = [(i, j) for i in range(len(groups)) for j in range(i)]
        a, b = max(pairs, key=lambda p: (float(np.linalg.norm(orthonormal[p[0]].T @ orthonormal[p[1]], 2)), *p))
        groups = [*(g for k, g in enumerate(groups) if k not in (a, b)), sorted(groups[a] + groups[b])]
    blocks = []
    for group in groups:
        block_values = [
            v for i in group for v in ((values[i], values[i].conjugate()) if values[i].imag > 0 else (values[i],))
        ]
        basis = scales[:, None] * _basis(scaled, values, vectors, group)
        blocks.append(Block(np.array(block_values, dtype=np.complex128), basis))
    return sorted(blocks, key=lambda b: (b.speed, float(b.eigenvalues[0].real)))


def _basis(A: FloatArray, values: Complex, vectors: Complex, group: list[int]) -> FloatArray:
    """Return a real basis of the invariant subspace of some eigenvalues, columns of length 1."""
    if len(group) > 1:
        return _schur_basis(A, values, group)
    value, vector = values[group[0]], vectors[:, group[0]]
    if value.imag == 0:
        return np.asarray(vector.real / np.linalg.norm(vector.real), dtype=np.float64)[:, None]
    # Turned so that its real and imaginary part are orthogonal, A [Re v, Im v] = [Re v, Im v] [[s, w], [-w, s]].
    turned = vector * np.exp(-0.5j * np.angle(np.sum(vector**2)))
    basis = np.column_stack((turned.real, turned.imag))
    return np.asarray(basis * (np.sqrt(2) / np.linalg.norm(turned)), dtype=np.float64)


def _schur_basis(A: FloatArray, values: Complex, group: list[int]) -> FloatArray:
    """Return an orthonormal basis, from a real Schur form that has the group's eigenvalues first."""
    from scipy.linalg import schur

    inside = values[group]
    outside = np.array([v for i, v in enumerate(values) if v.imag >= 0 and i not in group])

    def belongs(re: float, im: float = 0.0) -> bool:
        z = complex(re, abs(im))
        return bool(np.min(np.abs(inside - z)) <= np.min(np.abs(outside - z))) if len(outside) else True

    _, Z, count = schur(A, output="real", sort=belongs)
    if count != sum(1 if v.imag == 0 else 2 for v in inside):
        raise NumericalError(
            f"The eigenvalues near {inside[0]:.6g} cannot be separated from the others: rounding moves them too far. "
            "Reduce the model without separating its modes: fl.reduction.balanced_truncation(linear, ORDER)."
        )
    return np.asarray(Z[:, :count], dtype=np.float64)


def keep_frequencies(linear: LinearModel, low: float, high: float) -> LinearModel:
    """Return the modes of modulus ``low`` to ``high`` in rad/s, itself if all; a note has the rest and its cost."""
    if linear.sample_time > 0:
        raise UsageError("A sampled model cannot be reduced by frequency: reduce the continuous one, then sample it.")
    if not 0 <= low < high:
        raise UsageError(f"{low:g} to {high:g} rad/s is not a range of frequencies: write for example 0:100.")
    blocks = split_into_blocks(linear.A, linear.states.scales(linear.y0))
    fast = [b for b in blocks if np.abs(b.eigenvalues).min() > high and not _grows(b, linear)]
    slow = [b for b in blocks if b.speed < low and not _grows(b, linear)]
    if not fast and not slow:
        return linear
    gone = {id(b) for b in (*fast, *slow)}
    remaining = [b for b in blocks if id(b) not in gone]
    V = np.column_stack([b.V for b in (*remaining, *fast, *slow)])
    W = np.asarray(np.linalg.inv(V), dtype=np.float64)
    r, f = (sum(b.V.shape[1] for b in group) for group in (remaining, fast))
    names = [name for number, block in enumerate(remaining, start=1) for name in block.names(number)]
    words = [f"mode of {block.speed:.5g} rad/s" for block in remaining for _ in block.eigenvalues]
    reduced = transform(
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
    return bool(np.any(block.eigenvalues.real > GROWTH_RATE_TOLERANCE * fastest))


Bases = tuple[FloatArray, FloatArray]  # V, and the same rows of its inverse


def _difference(linear: LinearModel, fast: Bases, slow: Bases, band: tuple[float, float]) -> str:
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
    full_system = StateSpace(
        linear.A, linear.B * sizes(linear.inputs), linear.C / sizes(linear.outputs)[:, None], linear.D
    )
    return (
        f" Inside the range no frequency response differs by more than {peak.bound:.3g} (the gain at {edge:g} rad/s is "
        f"{full_system.gain(edge):.3g}), in nominal values of outputs per nominal value of an input."
    )


def _sentence(linear: LinearModel, fast: list[Block], slow: list[Block], difference: str, follows: FloatArray) -> str:
    counts = [(sum(len(b.eigenvalues) for b in group), group) for group in (fast, slow)]
    what = ["follow at once, as in equilibrium", "were left out"]
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
    return f"{text} {off_equilibrium(f'the effect of f0 on the fast modes ({offset:.3g}) is left out', '')}"


CLUSTER_DISTANCE = 1e-6  # relative distance of eigenvalues, of a pair for example, that stay or go together


def keep_states(linear: LinearModel, names: Sequence[str]) -> LinearModel:
    """Return a linear model with these states of the model as its states, of the order of their number.

    Where faster modes follow inputs at once, ``T_u`` has what these add to a state; a diagnostic says so. Raises
    UsageError or UnknownNameError when a name is unknown or occurs twice, there are more than the order, or a pair
    would be torn apart; NumericalError when the motions that stay do not show in these states: others are named.

    Parameters
    ----------
    linear : LinearModel
        One of higher order is reduced first: its slowest modes stay, the faster ones follow at once (static gains stay
        right). Reduced by another function to this order before, it only changes its coordinates.
    names : sequence of str
        Of states of the model, dependent ones, too.
    """
    rows = [linear.full_states.index_of(name, "a state of the model") for name in names]
    if not rows or len(set(rows)) < len(rows) or len(rows) > len(linear.states):
        raise UsageError(
            f"{', '.join(names) or 'No state'}: name each state to be kept once, and at most as many as the order of "
            f"the linear model, {len(linear.states)}."
        )
    small = linear if len(rows) == len(linear.states) else _slowest(linear, len(rows))
    x0 = np.array([linear.point.states[s.name] for s in linear.full_states])
    S = linear.full_states.scales(x0)
    directions = small.T / S[:, None]
    directions = directions / np.linalg.norm(directions, axis=0)
    if np.linalg.cond(directions[rows]) > MAX_SEPARATION_CONDITION_NUMBER:
        from scipy.linalg import qr

        best = qr(directions.T, mode="r", pivoting=True)[1][: len(rows)]
        raise NumericalError(
            f"The {len(rows)} remaining motions cannot be distinguished in {', '.join(names)}. Name other states: "
            f"{', '.join(linear.full_states[int(i)].name for i in best)} distinguish them best."
        )
    W, remarks = small.T[rows], []
    if (shares := np.abs(small.T_u[rows]) > np.abs(linear.T_u[rows])).any():
        share = ", ".join(linear.full_states[rows[i]].name for i in np.flatnonzero(shares.any(axis=1)))
        text = (
            f"The immediate contribution of faster modes to {share}, proportional to the inputs, is in T_u, not in "
            "these states."
        )
        remarks = [Remark("reduced", text)]
    V, states = np.asarray(np.linalg.inv(W)), linear.full_states.select(rows)
    return transform(small, V, W, states, z0=x0[rows], coordinates="states of the model", remarks=remarks)


def _slowest(linear: LinearModel, count: int) -> LinearModel:
    speeds = np.sort(np.abs(linear.eigenvalues()))
    slow, fast = float(speeds[count - 1]), float(speeds[count])
    if fast > (1 + CLUSTER_DISTANCE) * slow:
        small = keep_frequencies(linear, 0.0, (slow + fast) / 2)
        if len(small.states) == count:
            return small
        possible = [len(small.states)]
    else:
        ends = [
            k
            for k in range(len(speeds) + 1)
            if k in (0, len(speeds)) or speeds[k] > (1 + CLUSTER_DISTANCE) * speeds[k - 1]
        ]
        possible = [max(k for k in ends if k < count), min(k for k in ends if k > count)]
    other = " or ".join(str(k) for k in possible if k)
    raise UsageError(
        f"The {count} slowest eigenvalues cannot be separated from others. Name {other} states, or reduce in another "
        f"way before: fl.reduction.balanced_truncation(linear, {count})."
    )


SAME_MODE_TOLERANCE = 1e-7  # relative difference up to which a mode is the same in both models
ON_AXIS = 1e-9  # real part, relative to the largest eigenvalue, of a pole at which a gain has no bound


def error_bound(full: LinearModel, reduced: LinearModel, low: float = 0.0, high: float = float("inf")) -> Peak:
    """Return the largest difference of the frequency responses of two linear models in a band of frequencies.

    Raises UsageError when a model is sampled, inputs or outputs differ, there are none, or the band is not valid.

    Parameters
    ----------
    full, reduced : LinearModel
        Continuous, with the same inputs and outputs: as of any function here, or closed loops.
    low, high : float
        In rad/s.

    Returns
    -------
    Peak
        ``seen`` at ``frequency`` (rad/s), and ``bound``, which no frequency of the band exceeds: the largest singular
        value of G - G_r, in nominal values of outputs per nominal value of an input. Infinite where an undamped motion
        in the band is not the same in both.
    """
    between = difference(full, reduced)
    if not 0 <= low < high:
        raise UsageError(f"{low:g} to {high:g} rad/s is not a range of frequencies: write for example 0, 100.")
    poles = np.linalg.eigvals(between.A)
    near = np.abs(poles.real) <= ON_AXIS * np.abs(poles).max(initial=0.0)
    inside = near & (np.abs(poles.imag) >= low) & (np.abs(poles.imag) <= high)
    if inside.any():
        return Peak(float("inf"), float("inf"), float(np.abs(poles.imag[inside]).min()))
    return peak_gain(between, low, high)


def difference(full: LinearModel, reduced: LinearModel) -> StateSpace:
    """Return G - G_r in sizes of the signals, without the modes that are the same in both."""
    if full.sample_time or reduced.sample_time:
        raise UsageError("Compare continuous linear models: reduce first, then sample.")
    if not (len(full.inputs) and len(full.outputs)):
        raise UsageError("Without inputs and outputs there is no response to compare.")
    for one, other in ((full.inputs.names, reduced.inputs.names), (full.outputs.names, reduced.outputs.names)):
        if one != other:
            raise UsageError(
                f"The models do not have the same inputs and outputs ({', '.join(one)}; {', '.join(other)}): compare "
                "a model with a reduced form of itself."
            )
    size = float(np.abs(full.eigenvalues()).max(initial=0.0)) or 1.0
    ours, theirs = (_modes(linear, full) for linear in (full, reduced))
    D, (n_y, n_u) = in_sizes(full, full).D - in_sizes(reduced, full).D, full.D.shape
    between = StateSpace(np.zeros((0, 0)), np.zeros((0, n_u)), np.zeros((n_y, 0)), D)
    for mode in theirs:
        same = next((candidate for candidate in ours if _is_same(candidate, mode, size)), None)
        if same is None:
            between = between.minus(mode)
        else:
            ours = [candidate for candidate in ours if candidate is not same]
    for candidate in ours:
        between = between.plus(candidate)
    return between


def in_sizes(linear: LinearModel, units: LinearModel) -> StateSpace:
    """Return a linear model in sizes of the inputs and outputs of ``units``."""
    u, y = sizes(units.inputs), sizes(units.outputs)[:, None]
    return StateSpace(linear.A, linear.B * u, linear.C / y, linear.D * u / y)


def _modes(linear: LinearModel, units: LinearModel) -> list[StateSpace]:
    """Return a system for each mode, or group of modes that cannot be taken apart; G is their sum, and D."""
    blocks = split_into_blocks(linear.A, linear.states.scales(linear.y0))
    V = np.hstack([np.zeros((len(linear.A), 0)), *(block.V for block in blocks)])
    W = np.linalg.inv(V)
    G = in_sizes(linear, units)
    A, B, C = W @ G.A @ V, W @ G.B, G.C @ V
    ends = np.cumsum([0, *(block.V.shape[1] for block in blocks)]).tolist()
    nothing = np.zeros(linear.D.shape)
    return [StateSpace(A[i:j, i:j], B[i:j], C[:, i:j], nothing) for i, j in pairwise(ends)]


def _is_same(one: StateSpace, other: StateSpace, size: float) -> bool:
    """Whether two modes have eigenvalues (relative to ``size``) and responses in common."""
    if len(one.A) != len(other.A):
        return False
    a, b = (np.sort_complex(np.linalg.eigvals(mode.A)) for mode in (one, other))
    if np.abs(a - b).max() > np.sqrt(SAME_MODE_TOLERANCE) * size:  # those of a double eigenvalue are that far apart
        return False
    at = size * np.exp(1j * np.array([0.1, 0.7, 1.3]))
    pairs = [(one.response(s), other.response(s)) for s in at]
    return all(np.abs(x - y).max() <= SAME_MODE_TOLERANCE * np.abs(x).max() for x, y in pairs)
