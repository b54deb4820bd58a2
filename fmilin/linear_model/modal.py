"""Modes and channels: which coordinates take part in a mode, which inputs move it, which outputs show it.

With the spectral projector P of an eigenvalue |P|_kk is the participation factor of coordinate k (Perez-Arriaga,
Verghese, Schweppe, 1982); P b and c P are parts of responses. A mode can be moved where rank [A - lambda I, b] is full
(Popov, Belevitch, Hautus).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.modes import (
    Complex,
    EigenvalueCluster,
    compute_rate,
    compute_shape,
    convert_errors_to_rates,
    eigenvectors,
    find_overlapping_groups,
    lyapunov,
    on_subspace,
)
from fmilin.numerics.eigenvalue_errors import compute_eigenvalue_errors
from fmilin.signals import FloatArray
from fmilin.support.deprecation import DeprecatedAlias
from fmilin.tolerances import EPS

UNCERTAINTY_FACTOR = 10.0  # by how much more than its estimated uncertainty an eigenvalue may be off
NO_COORDINATE_RESPONSE_TOLERANCE = (
    1e-9  # A sum that is smaller than this part of its terms is zero: that coordinate does not answer
)


def energies(linear: LinearModel, single: Sequence[tuple[complex, bool]]) -> tuple[FloatArray, FloatArray]:
    """Return the amplitudes that unit energy of inputs reaches, (modes, nu), and what outputs show, (modes, ny).

    By Gramians of Re z and Im z; NaN for eigenvalues that are not ``single``, infinite where a mode does not decay.
    """
    values, left_vectors, right_vectors = eigenvectors(linear.A)
    nu, ny = len(linear.inputs), len(linear.outputs)
    input_energies, output_energies = np.full((len(single), nu), np.nan), np.full((len(single), ny), np.nan)
    for row, (value, alone) in enumerate(single):
        if not alone:
            continue
        k = int(np.argmin(np.abs(values - value)))
        v = right_vectors[:, k] / compute_shape(linear.T, right_vectors[:, k])[1]
        beta = left_vectors[:, k].conj() @ linear.B / (left_vectors[:, k].conj() @ v)
        pair = abs(value.imag) > 0
        # Of a pair x is 2 Re(v z), so that z counts twice.
        A = np.array([[value.real, -value.imag], [value.imag, value.real]]) if pair else np.array([[value.real]])
        for j, b in enumerate(beta):
            B = 2 * np.array([[b.real], [b.imag]]) if pair else np.array([[b.real]])
            input_energies[row, j] = _largest(A, B, linear.sample_time)
        for i, c in enumerate(linear.C @ v):
            C = np.array([[c.real, -c.imag]]) if pair else np.array([[c.real]])
            output_energies[row, i] = _largest(A.T, C.T, linear.sample_time)
    return input_energies, output_energies


def _largest(A: FloatArray, B: FloatArray, sample_time: float) -> float:
    """Return the root of the largest eigenvalue of the Gramian of (A, B); infinite where A does not decay."""
    if not B.any():
        return 0.0
    values = np.linalg.eigvals(A)
    scale = float(np.abs(values).max(initial=0.0))
    if scale >= 1 - 1e-12 if sample_time > 0 else values.real.max() >= -1e-12 * scale:
        return float("inf")
    gramian = lyapunov(A, B @ B.T / (sample_time or 1.0), sampled=sample_time > 0)
    return float(np.sqrt(max(np.linalg.eigvalsh(gramian)[-1], 0.0)))


PARTICIPATION_TOLERANCE = 1e-12  # participation below it is rounding of eigenvectors: zero


@dataclass(frozen=True)
class ModeGroup:
    """An eigenvalue, or a pair of complex ones; several where their errors overlap."""

    # in 1/s; the one of a pair with positive imaginary part, the mean of several. Of a sampled model log(z) / T
    eigenvalue: complex
    count: int  # eigenvalues that are equal as far as they are known, a pair counting once: 1 as a rule
    is_pair: bool
    error: float = 0.0  # radius of a disc around ``eigenvalue`` in which all of them lie, and the true ones too
    kind: str = "decays"  # whether it grows: see :attr:`Stability.kinds`

    @property
    def cluster(self) -> EigenvalueCluster:
        """The eigenvalues and their error, without what the analysis says of them."""
        return EigenvalueCluster(self.eigenvalue, self.count, self.is_pair, self.error)


@dataclass(frozen=True, eq=False)
class ModalAnalysis:
    """How modes, coordinates, inputs and outputs belong together. Rows are groups, slowest first."""

    groups: tuple[ModeGroup, ...]
    participation: FloatArray  # (groups, P), participation factors of the coordinates, of every group with the sum 1
    # (groups, nu), the share of the mode in the impulse response of the coordinate in which it is largest; 0: not moved
    controllability: FloatArray
    # (groups, ny), the share of the mode in an output's free response from that coordinate for which it is largest
    observability: FloatArray
    # unmoved, unseen: how many eigenvalues of the group this input alone cannot move, this output alone does not show;
    # by the test of Popov, Belevitch and Hautus
    unmoved: NDArray[np.intp]  # shape (groups, nu)
    unseen: NDArray[np.intp]  # shape (groups, ny)
    # uncontrollable, unobservable: (groups,), the same for all inputs, all outputs together
    uncontrollable: NDArray[np.intp]
    unobservable: NDArray[np.intp]
    # (groups, nu), amplitude of the mode that an input of unit energy (the integral of u^2 is 1) can reach, in the unit
    # of the state that moves most: from the controllability Gramian. Infinite without damping; NaN for groups of
    # several
    reachable_amplitudes: FloatArray
    # (groups, ny), root of the energy of an output (the integral of its square) while the mode decays from amplitude 1
    output_norms: FloatArray

    reached = DeprecatedAlias("reachable_amplitudes")
    shown = DeprecatedAlias("output_norms")


@dataclass(frozen=True, eq=False)
class _Subspace:
    """Bases of the left and right invariant subspaces, and the matrix on each, in balanced coordinates."""

    eigenvalue: complex
    pair: bool
    left_basis: Complex
    on_left: Complex
    right_basis: Complex
    on_right: Complex
    uncertainty: float
    error: float  # how far the true eigenvalues may be from ``eigenvalue``

    @property
    def projector(self) -> Complex:
        """V (U'V)^-1 U', shape (P, P)."""
        return np.asarray(
            self.right_basis @ np.linalg.solve(self.left_basis.conj().T @ self.right_basis, self.left_basis.conj().T)
        )


def modal_analysis(linear: LinearModel) -> ModalAnalysis:
    """Return how modes, coordinates, inputs and outputs of a linear model belong together.

    Perez-Arriaga et al., IEEE Trans. PAS 101 (1982); Hamdan and Nayfeh, J. Guidance 12 (1989).
    """
    from scipy.linalg import matrix_balance

    P, nu, ny = len(linear.states), len(linear.inputs), len(linear.outputs)
    if not P:
        none = np.zeros((0, 0))
        return ModalAnalysis(
            (), none, np.zeros((0, nu)), np.zeros((0, ny)), np.zeros((0, nu), np.intp), np.zeros((0, ny), np.intp),
            np.zeros(0, int), np.zeros(0, int), np.zeros((0, nu)), np.zeros((0, ny)),
        )  # fmt: skip
    balanced: Any = matrix_balance(linear.A, permute=False, separate=True)
    A: FloatArray = balanced[0]
    scale: FloatArray = balanced[1][0]
    error = linear.errors.A / scale[:, None] * scale
    B, C = linear.B / scale[:, None], linear.C * scale
    noise_B, noise_C = linear.errors.B / scale[:, None], linear.errors.C * scale
    subspaces = sorted(_subspaces(A, error), key=lambda s: _order(s, linear.sample_time))
    projectors = [s.projector for s in subspaces]
    diagonal = np.abs([np.diag(p) for p in projectors])
    twice = np.array([1.0 + s.pair for s in subspaces])
    size = float(np.linalg.norm(A, 2)) or 1.0

    def one_by_one(s: _Subspace, columns: FloatArray, noise: FloatArray, *, from_outputs: bool = False) -> list[int]:
        return [
            _count_missing_rank(s, columns[:, [k]], noise[:, [k]], size, from_outputs=from_outputs)
            for k in range(columns.shape[1])
        ]

    shares = diagonal / diagonal.sum(axis=1, keepdims=True)
    input_energies, output_energies = energies(linear, [(s.eigenvalue, s.left_basis.shape[1] == 1) for s in subspaces])
    return ModalAnalysis(
        groups=_describe_groups(linear, subspaces),
        participation=np.where(shares > PARTICIPATION_TOLERANCE, shares, 0.0),
        controllability=_shares([p @ B for p in projectors], [np.abs(p) @ np.abs(B) for p in projectors], twice),
        observability=_shares([(C @ p).T for p in projectors], [(np.abs(C) @ np.abs(p)).T for p in projectors], twice),
        unmoved=np.array([one_by_one(s, B, noise_B) for s in subspaces], np.intp),
        unseen=np.array([one_by_one(s, C.T, noise_C.T, from_outputs=True) for s in subspaces], np.intp),
        uncontrollable=np.array([_count_missing_rank(s, B, noise_B, size) for s in subspaces], np.intp),
        unobservable=np.array(
            [_count_missing_rank(s, C.T, noise_C.T, size, from_outputs=True) for s in subspaces], np.intp
        ),
        reachable_amplitudes=input_energies,
        output_norms=output_energies,
    )


# The most alarming kind among the eigenvalues of a group is that of the group.
ALARM = ("decays", "neutral", "undecided", "defective", "unstable")


def _describe_groups(linear: LinearModel, subspaces: Sequence[_Subspace]) -> tuple[ModeGroup, ...]:
    stability = linear.stability()
    values = np.array([s.eigenvalue for s in subspaces])
    errors = convert_errors_to_rates(values, np.array([s.error for s in subspaces]), linear.sample_time)
    kinds = ["decays"] * len(subspaces)
    for value, kind in zip(stability.eigenvalues, stability.kinds, strict=True):
        nearest = int(np.argmin(np.abs(values - complex(value.real, abs(value.imag)))))
        kinds[nearest] = max(kinds[nearest], kind, key=ALARM.index)
    return tuple(
        ModeGroup(compute_rate(s.eigenvalue, linear.sample_time), s.left_basis.shape[1], s.pair, float(error), kind)
        for s, error, kind in zip(subspaces, errors, kinds, strict=True)
    )


def _order(subspace: _Subspace, sample_time: float) -> tuple[float, float]:
    rate = compute_rate(subspace.eigenvalue, sample_time)
    return abs(rate), rate.real


def _subspaces(A: FloatArray, error: FloatArray) -> Iterator[_Subspace]:
    """Yield invariant subspaces, by Schur's form, of groups of eigenvalues (pairs once) that errors keep apart."""
    size = float(np.linalg.norm(A, 2)) or 1.0
    relative = min(max(len(A) * EPS, len(A) * float(error.max()) / size), 1.0)
    values, left_vectors, right_vectors = eigenvectors(A)
    sine = np.abs(np.einsum("ki,ki->i", left_vectors.conj(), right_vectors))
    worst = np.cbrt(relative) * size
    radius = np.minimum(UNCERTAINTY_FACTOR * relative * size / np.maximum(sine, 1e-300), worst)
    errors = compute_eigenvalue_errors(A, error, values)
    # indistinguishable eigenvalues are one group
    radius = np.maximum(radius, np.where(np.isfinite(errors), errors, size))
    for members in find_overlapping_groups(values, radius):
        mean = complex(values[members].mean())
        uncertainty = float(radius[members].max())
        pair = abs(mean.imag) > uncertainty
        if pair and mean.imag < 0:
            continue
        if len(members) == 1:
            k = members[0]
            one = np.array([[values[k]]])
            known_to = float(errors[k])
            yield _Subspace(
                complex(values[k]), pair, left_vectors[:, [k]], one, right_vectors[:, [k]], one, uncertainty, known_to
            )
            continue
        other_values = np.delete(values, members)
        on_right, V = on_subspace(A, values[members], other_values)
        on_left, U = on_subspace(A.T, values[members].conj(), other_values.conj())
        mean = mean if pair else complex(mean.real)
        known_to = float(np.max(np.abs(values[members] - mean) + errors[members]))
        yield _Subspace(mean, pair, U, on_left.conj().T, V, on_right, uncertainty, known_to)


def _shares(parts: list[Complex], terms: list[FloatArray], twice: FloatArray) -> FloatArray:
    """Return the largest share of groups, (groups, channels): ``parts`` in sums of ``terms``, (P, channels) each."""
    sizes = np.abs(np.array(parts)) * twice[:, None, None]
    total, bound = sizes.sum(axis=0), np.einsum("g,gkj->kj", twice, np.array(terms))
    answers = total > NO_COORDINATE_RESPONSE_TOLERANCE * bound
    return np.asarray(np.where(answers, sizes / np.where(answers, total, 1.0), 0.0).max(axis=1, initial=0.0))


def _count_missing_rank(
    s: _Subspace, columns: FloatArray, noise: FloatArray, size: float, *, from_outputs: bool = False
) -> int:
    """Return by how much the rank of [A - lambda I, columns] falls short on the subspace of an eigenvalue."""
    basis, on_it = (s.right_basis, s.on_right.T) if from_outputs else (s.left_basis, s.on_left)
    count = int(basis.shape[1])
    lengths, blur = np.abs(columns).max(axis=0, initial=0.0), noise.max(axis=0, initial=0.0)
    used = lengths > blur
    if not used.any():
        return count if count == 1 else count - _rank(on_it - s.eigenvalue * np.eye(count), s.uncertainty)
    unit = columns[:, used] / lengths[used]
    unit = unit / np.linalg.norm(unit, axis=0)
    blurred = float(np.max(blur[used] / lengths[used]))
    coupling = (basis.T if from_outputs else basis.conj().T) @ unit * size
    block = np.hstack((on_it - s.eigenvalue * np.eye(count), coupling)) if count > 1 else coupling
    return count - _rank(block, max(s.uncertainty, UNCERTAINTY_FACTOR * max(len(basis) * EPS, blurred) * size))


def _rank(block: Complex, tolerance: float) -> int:
    return int(np.count_nonzero(np.linalg.svd(block, compute_uv=False) > tolerance))
