"""Floquet's theory of y' = A(t) y: multipliers, exponents, modes over the period, the harmonics they are seen at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import matrix_balance
from scipy.optimize import linear_sum_assignment

from fmilin.diagnostics import Remark
from fmilin.periodic.fourier import ComplexArray, Interpolant, harmonics, with_upper_harmonics_mistaken
from fmilin.periodic.transition import (
    TRANSITION_TOLERANCE,
    condense_factors,
    factors,
    logarithms_of_multipliers,
    product,
)
from fmilin.periodic.verdict import FloquetVerdict, doubt_neutrality, judge_multipliers
from fmilin.signals import FloatArray, Signals
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr
from fmilin.tolerances import EPS

INTEGRATION_ERROR_FACTOR = 4.0  # times the convergence of the transition matrix: what its integration may be off
ENTRY_ERROR_FRACTION = (
    0.3  # of the largest change in its row, or column: what any entry of the monodromy matrix may be off
)
FAST_DECAY_RATIO = 1e8  # modes that decay by more than this in a period are carried backwards
RETURN_TOLERANCE = 1e-5  # relative: how well a direction must come back to itself to have a multiplier 1


@dataclass(frozen=True, eq=False)
class Periodic:
    """y' = A(t) y over one period, from equally spaced samples."""

    A: FloatArray  # (m, P, P), at times 0, T/m, ...
    period: float  # in seconds
    jump: FloatArray  # (P, P), of y at the end of the period, where the coordinates do not come back as they were
    error: FloatArray  # (m, P, P), of the entries of A
    symmetries: dict[str, FloatArray] = field(default_factory=dict)  # deviations (P,) at time 0 that come back
    transitions: FloatArray | None = None  # (m, P, P), from each sample to the next, where A does not say it
    monodromy_error: FloatArray | None = None  # (P, P), what the error of the orbit itself changes after a period

    def equilibrate(self) -> tuple[Periodic, FloatArray]:
        """Return the same in coordinates of comparable sizes, y = D z, and the diagonal of D, shape (P,)."""
        size = np.abs(self.A).mean(axis=0) * self.period + np.abs(self.jump)
        D = matrix_balance(size, permute=False, separate=True)[1][0]
        ratio = D / D[:, None]
        symmetries = {name: vector / D for name, vector in self.symmetries.items()}
        measured = None if self.transitions is None else self.transitions * ratio
        off = None if self.monodromy_error is None else self.monodromy_error * ratio
        equilibrated = Periodic(
            self.A * ratio, self.period, self.jump * ratio, self.error * ratio, symmetries, measured, off
        )
        return equilibrated, D

    def steps(self) -> FloatArray:
        """Return factors of the transition matrix from 0 to T, shape (n, P, P), the jump left out; n as they need."""
        if self.transitions is not None:
            return self.transitions
        samples = self.A
        # Coordinates that come back to within rounding: the samples are those of a periodic matrix.
        if np.allclose(self.jump, np.eye(len(self.jump)), rtol=0, atol=1e-12):
            return factors(Interpolant(samples), self.period, len(samples))
        # Over two periods a reflection has come back to itself; only the first one counts.
        again = np.linalg.solve(self.jump, samples @ self.jump)
        both = Interpolant(np.concatenate((samples, again)))
        return factors(lambda phases: both(phases / 2), self.period, len(samples))

    def perturb_factors(self, steps: FloatArray, by: FloatArray) -> FloatArray:
        """Return what factors become, to first order, when A changes by (m, P, P)."""
        n = len(steps)
        return np.asarray(steps + steps @ np.repeat(by, n // len(by), axis=0) * (self.period / n))


@dataclass(frozen=True, eq=False, repr=False)
class Floquet(TableRepr):
    """The evolution of small deviations from a periodic motion: y(t) = p(t) e^(lambda t), p of the period T."""

    _attributes = ".multipliers, .exponents, .modes, .participation"

    multipliers: ComplexArray  #: shape (P,); mu: by what a mode has grown after a period; largest first
    #: shape (P,); lambda = log(mu)/T in 1/s, imaginary parts in (-pi/T, pi/T]: they are known modulo 2 pi/T
    exponents: ComplexArray
    #: shape (m, P, P); p(t) at the m times of the samples; a column is a mode, of length 1 over the period
    modes: ComplexArray
    period: float  #: in seconds
    states: Signals  #: the P coordinates
    #: ``multipliers`` (absolute, of those about 1; relative of larger ones) and ``exponents`` (in 1/s)
    accuracy: dict[str, float]
    unit: dict[str, int] = field(default_factory=dict)  #: which multiplier 1 belongs to which symmetry
    remarks: tuple[Remark, ...] = ()  #: of the motion
    name: str = ""  #: of the model
    #: Whether no deviation grows; neutral ones may stay. None: the errors leave it open. A multiplier of modulus 1 with
    #: fewer directions than its multiplicity makes deviations grow in proportion to time, and is False.
    stable: bool | None = None
    verdict: str = "cannot be determined"  #: the same in words
    #: Whether the distance from the path, wherever on it, does not grow: neighbouring motions may have other periods.
    orbitally_stable: bool | None = None
    #: shape (P,); how far each multiplier may be off
    multiplier_errors: FloatArray = field(default_factory=lambda: np.zeros(0))

    @implemented_in("fmilin.report.periodic:show_floquet")
    def _print_table(self, page: Sheet) -> None: ...

    @cached_property
    def margin(self) -> float:
        """Largest real part of the exponents in 1/s, those of symmetries left out: negative where deviations die."""
        free_modes = [k for k in range(len(self.exponents)) if k not in self.unit.values()]
        return float(self.exponents.real[free_modes].max(initial=-np.inf))

    @cached_property
    def participation(self) -> FloatArray:
        """How much of each mode is seen at each harmonic, shape (m, P); columns sum to 1, rows as in ``harmonics``."""
        content = np.abs(np.fft.fft(np.nan_to_num(self.modes), axis=0)) ** 2
        share = content.sum(axis=1)
        return np.asarray(share / np.maximum(share.sum(axis=0), 1e-300))  # modes without numbers have no share

    @property
    def harmonics(self) -> NDArray[np.intp]:
        """The harmonics of ``participation``, shape (m,)."""
        return harmonics(len(self.modes))

    @property
    def largest_harmonics(self) -> NDArray[np.intp]:
        """The harmonic that takes most of each mode, shape (P,)."""
        return np.asarray(self.harmonics[np.argmax(self.participation, axis=0)])

    @property
    def frequencies(self) -> FloatArray:
        """At which each mode is mostly seen, in rad/s: that of its exponent and its largest harmonic, shape (P,)."""
        return np.asarray(np.abs(self.exponents.imag + 2 * np.pi / self.period * self.largest_harmonics))


def floquet(periodic: Periodic, states: Signals, remarks: tuple[Remark, ...] = (), *, name: str = "") -> Floquet:
    """Return multipliers, exponents and modes of a system with periodic coefficients."""
    periodic, D = periodic.equilibrate()
    steps = periodic.steps()
    logarithms, unit = _logarithms(periodic, steps)
    order = np.lexsort((logarithms.imag.round(9), -logarithms.real.round(9)))
    logarithms = logarithms[order]
    ranks = {int(k): i for i, k in enumerate(order)}
    with np.errstate(under="ignore"):
        multipliers = np.exp(logarithms)
    error, relative = _errors(periodic, logarithms, steps)
    judged = _judge(periodic, steps, logarithms)
    symmetric = [ranks[k] for k in unit.values()]
    multiplier_errors = _assign_errors(multipliers, judged, symmetric, error)
    if any(remark.kind == "family" for remark in remarks):
        # A motion that decays more slowly than can be resolved passes for one of a family: its multipliers, that of
        # the motion itself included, are 1 within the errors only.
        multiplier_errors = np.maximum(multiplier_errors, judged.error)
        judged = doubt_neutrality(judged)
    error, relative = max(error, judged.error), max(relative, judged.error_of_logarithms)
    # Of a negative multiplier +pi, on whichever side of the cut rounding has put it.
    imaginary = np.where(logarithms.imag <= -np.pi + 1e-12, logarithms.imag + 2 * np.pi, logarithms.imag)
    exponents = (logarithms.real + 1j * imaginary) / periodic.period
    modes, unit = D[:, None] * _modes(periodic, steps, exponents), {text: ranks[k] for text, k in unit.items()}
    accuracy = {"multipliers": error, "exponents": relative / periodic.period}
    return Floquet(
        multipliers, exponents, modes, periodic.period, states, accuracy, unit, remarks, name,
        stable=judged.stable, verdict=judged.text, orbitally_stable=judged.orbitally_stable,
        multiplier_errors=multiplier_errors,
    )  # fmt: skip


def _assign_errors(
    multipliers: ComplexArray, judged: FloquetVerdict, symmetric: Sequence[int], error: float
) -> FloatArray:
    """Return how far each multiplier may be off, shape (P,); ``error`` is that of those about 1 by upper harmonics.

    Multipliers of symmetries, ``symmetric``, were taken out of the matrix that was judged: they are 1 within ``error``.
    """
    errors = error * np.maximum(np.abs(multipliers), 1.0)
    path = [k for k in range(len(multipliers)) if k not in symmetric]
    # Without a verdict on the same multipliers there are no errors to assign one by one.
    if judged.path is None or len(judged.path.eigenvalues) != len(path) or not np.isfinite(multipliers).all():
        return errors
    gaps = np.abs(multipliers[path][:, None] - judged.path.eigenvalues)
    rows, partners = linear_sum_assignment(gaps)
    for row, partner in zip(rows.tolist(), partners.tolist(), strict=True):
        # a multiplier was computed in two ways: both have to be within the error
        errors[path[row]] = max(judged.path.errors[partner], gaps[row, partner])
    return errors


def mismatch(eigenvalues: ComplexArray, exponents: ComplexArray, period: float) -> float:
    """Return how far eigenvalues are from exponents modulo i 2 pi/T, over the largest of them or one turn a period."""
    turn = 2 * np.pi / period
    gaps = eigenvalues[:, None] - exponents
    gaps = gaps - 1j * turn * np.round(gaps.imag / turn)
    gaps = gaps[linear_sum_assignment(np.abs(gaps))]
    size = max(turn, float(np.abs(eigenvalues).max(initial=0.0)))
    return float(np.abs(gaps).max(initial=0.0)) / size


def _logarithms(periodic: Periodic, steps: FloatArray) -> tuple[ComplexArray, dict[str, int]]:
    """Return log(mu) of all multipliers, and which of them belong to symmetries."""
    # A symmetry leads to a multiplier 1, often in a Jordan block with another one, and rounding splits such a pair by
    # the root of itself. Taken out with its own direction, neither of them suffers.
    few: FloatArray = condense_factors(steps)
    returning = _find_returning(periodic, few)
    # Directions are taken out of a matrix: several factors are not multiplied out, as small multipliers would be lost.
    if not returning or len(few) > 1:
        logarithms = logarithms_of_multipliers(few, periodic.jump)
        nearest = np.argsort(np.abs(logarithms))[: len(returning)]
        logarithms[nearest] = 0.0
        return logarithms, dict(zip(returning, nearest.tolist(), strict=True))
    M, k = periodic.jump @ few[0], len(returning)
    Q = np.linalg.qr(np.array(list(returning.values())).T, mode="complete")[0]
    rest = np.linalg.eigvals(Q[:, k:].T @ M @ Q[:, k:]).astype(np.complex128)
    with np.errstate(divide="ignore"):
        return np.concatenate((np.zeros(k, dtype=np.complex128), np.log(rest))), {t: i for i, t in enumerate(returning)}


def _find_returning(periodic: Periodic, few: FloatArray) -> dict[str, FloatArray]:
    """Return the directions of the symmetries that come back as they are."""
    returning: dict[str, FloatArray] = {}
    for text, direction in periodic.symmetries.items():
        length = float(np.linalg.norm(direction))
        S = np.array([*returning.values(), direction / (length or 1.0)]).T  # zeros fail below
        end = S[:, -1]
        for step in (*few, periodic.jump):
            end = step @ end
        # Rounding is relative to the norm of one factor; that of a product of several may be huge, and excuse anything.
        size = np.linalg.norm(few[0], 2) if len(few) == 1 else 1.0
        if (
            # A direction that depends on those before it is the same symmetry once more.
            np.linalg.norm(end - S[:, -1]) <= RETURN_TOLERANCE * size
            and np.linalg.svd(S, compute_uv=False)[-1] > RETURN_TOLERANCE
        ):
            returning[text] = S[:, -1]
    return returning


def _judge(periodic: Periodic, steps: FloatArray, logarithms: ComplexArray) -> FloquetVerdict:
    """Return the verdict on the multipliers, with all errors that are known."""
    few = condense_factors(steps)
    with np.errstate(over="ignore", invalid="ignore"):
        M = periodic.jump @ product(few)
        # The steps of the integration are halved until the product stays within this part of it.
        part = EPS * len(M) + INTEGRATION_ERROR_FACTOR * TRANSITION_TOLERANCE
        error = part * (np.linalg.norm(M) + np.prod(np.linalg.norm(few, axis=(1, 2))))
        off = np.full(M.shape, float(np.nan_to_num(error, nan=np.inf)))
        for samples in _mistaken(periodic):
            changed = periodic.jump @ product(periodic.perturb_factors(steps, samples - periodic.A))
            off += _spread(np.nan_to_num(np.abs(changed - M), nan=np.inf))
    if periodic.monodromy_error is not None:
        off = off + periodic.monodromy_error
    return judge_multipliers(M, off, list(_find_returning(periodic, few).values()), logarithms)


def _spread(change: FloatArray) -> FloatArray:
    """Return the change of a matrix by random errors, with what other signs of theirs could make of an entry."""
    rows, columns = change.max(axis=1, initial=0.0), change.max(axis=0, initial=0.0)
    return np.asarray(np.maximum(change, ENTRY_ERROR_FRACTION * np.minimum(rows[:, None], columns)))


def _mistaken(periodic: Periodic) -> Iterator[FloatArray]:
    """Yield A with the upper harmonics mistaken, and with errors of its entries."""
    random = np.random.default_rng(1883)
    signs = np.sign(random.uniform(-1, 1, periodic.error.shape))
    if periodic.transitions is None:
        yield with_upper_harmonics_mistaken(periodic.A, signs[0])
    if periodic.error.any():
        yield periodic.A + periodic.error * signs


def _errors(periodic: Periodic, logarithms: ComplexArray, steps: FloatArray) -> tuple[float, float]:
    """Return by what multipliers and their logarithms may be off: upper harmonics, and errors of the entries of A."""
    error, relative = 0.0, 0.0
    for samples in _mistaken(periodic):
        # Without upper harmonics nothing is mistaken, and the logarithms are the same.
        if np.array_equal(samples, periodic.A):
            continue
        other = _logarithms(periodic, periodic.perturb_factors(steps, samples - periodic.A))[0]
        a, b = np.exp(logarithms), np.exp(other)
        size = np.maximum(np.abs(a), 1.0)
        gaps = np.abs(a[:, None] - b) / size[:, None]
        rows, columns = linear_sum_assignment(np.where(np.isfinite(gaps), gaps, 1e300))  # SciPy needs numbers
        error = max(error, float(gaps[rows, columns].max(initial=0.0)))
        # A multiplier that is rounding of the largest ones has no logarithm to compare.
        visible = np.abs(a[rows]) > 1e3 * EPS
        if visible.any():
            relative = max(relative, float(np.max((gaps[rows, columns] * size[rows] / np.abs(a[rows]))[visible])))
    rounding = 16 * EPS * max(1.0, len(periodic.A[0]))
    return error + rounding, relative + rounding


def _modes(periodic: Periodic, steps: FloatArray, exponents: ComplexArray) -> ComplexArray:
    """Return p(t) = Phi(t) v e^(-lambda t) at the samples: modes that decay fast are carried backwards."""
    m, order = len(periodic.A), len(periodic.A[0])
    parts = np.array([product(part) for part in steps.reshape(m, -1, order, order)])
    M = periodic.jump @ product(parts)
    values, vectors = np.linalg.eig(M)
    mode = np.zeros((m, order, order), dtype=np.complex128)
    used: list[int] = []
    for j, exponent in enumerate(exponents):
        mu = np.exp(exponent * periodic.period)
        distance = np.abs(values - mu)
        distance[used] = np.inf
        used.append(int(np.argmin(distance)))
        mode[:, :, j] = _propagate_vector(parts, periodic, vectors[:, used[-1]], exponent)
    length = np.sqrt(np.mean(np.sum(np.abs(mode) ** 2, axis=1), axis=0))
    return np.asarray(mode / np.maximum(length, 1e-300))  # a mode of zeros stays zero


def _propagate_vector(parts: FloatArray, periodic: Periodic, vector: ComplexArray, exponent: complex) -> ComplexArray:
    decay = np.exp(-exponent * periodic.period / len(parts))
    # Forwards, the rounding of a mode that decays fast would grow beyond it.
    if exponent.real * periodic.period > -np.log(FAST_DECAY_RATIO):
        columns = [vector]
        for part in parts[:-1]:
            columns.append(part @ columns[-1] * decay)
        return np.array(columns)
    # A mode that has died out within one sample, to below the range of numbers, has no shape that could be shown.
    if not np.isfinite(decay):
        return np.full((len(parts), len(vector)), np.nan, dtype=np.complex128)
    columns = [np.asarray(np.linalg.solve(periodic.jump, vector))]  # at the end of the period
    for part in parts[::-1]:
        columns.append(np.linalg.lstsq(part, columns[-1], rcond=None)[0] / decay)
    return np.array(columns[:0:-1])
