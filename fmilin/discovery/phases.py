"""Relations between an angle and the states that are its sine and cosine: s cos(psi) - c sin(psi) = 0.

A pair (s, c) with s^2 + c^2 constant has the phase phi = atan2(s, c), at the rate (c s' - s c')/(s^2 + c^2). Where that
rate is k1 x1' + k2 x2' + ... for all states and all inputs, phi - psi with psi = k1 x1 + k2 x2 + ... never changes.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import islice
from math import cos, pi, sin

import numpy as np

from fmilin.discovery.function_library import LONGEST_FRACTION, Harmonic, Library, Term
from fmilin.discovery.invariant import Invariant
from fmilin.discovery.sampler import NOISE_FACTOR, Sampler
from fmilin.discovery.states import StateKinds
from fmilin.signals import FloatArray

MAX_ANGLES = 3  # that add up to a phase
MAX_CANDIDATES = 200  # states among which the parts of a phase are searched for
SAMPLES = 10  # more than there are candidates
SAME_RATE = 1e-9  # relative difference of two rates, in the size of the largest, that is rounding
SAME_FACTOR = 1e-10  # relative difference of a factor from a short fraction, or that many degrees in rad
OFFSET_TOLERANCE = 1e-9  # rad


def find_phase_relations(sampler: Sampler, kinds: StateKinds, norms: Sequence[Invariant]) -> list[Invariant]:
    """Return the relations with angles of the pairs with a constant sum of squares, one of ``norms``."""
    relations: list[Invariant] = []
    pairs = [pair for norm in norms if (pair := _read_pair(norm)) is not None]
    if not pairs:
        return relations
    moving = set(range(len(sampler.sizes))) - kinds.constant
    # A sum of speeds that follows a phase is a momentum; only positions are related to it by geometry.
    candidates = moving - kinds.speeds - {i for pair in pairs for i in pair}
    angles = sorted(candidates, key=lambda i: (i not in kinds.rate_of, i not in kinds.cyclic | kinds.angles, i))
    angles = list(islice(angles, MAX_CANDIDATES))
    if not angles:
        return relations
    x, f = _sample_rates(sampler, len(angles) + SAMPLES)
    if len(x) <= len(angles):
        return relations
    for sine, cosine in pairs:
        square = x[:, sine] ** 2 + x[:, cosine] ** 2
        rate = (x[:, cosine] * f[:, sine] - x[:, sine] * f[:, cosine]) / square
        factors = _read_factors(rate, f[:, angles], max(SAME_RATE, NOISE_FACTOR * sampler.noise))
        if factors:
            relations.append(_relate(sampler.point.states, (sine, cosine), {angles[i]: k for i, k in factors.items()}))
    return relations


def _read_pair(norm: Invariant) -> tuple[int, int] | None:
    """Return the two states of a constraint s^2 + c^2 = r^2; None for others."""
    terms, coefficients = norm.library.terms, norm.coefficients
    squares = all(len(t.powers) == 1 and t.powers[0][1] == 2 and not t.harmonic[0] for t in terms)
    if len(terms) != 2 or not squares or not norm.level:
        return None
    if abs(coefficients[0] - coefficients[1]) > SAME_RATE * abs(coefficients[0]):
        return None
    first, second = (t.powers[0][0] for t in terms)
    return first, second


def _sample_rates(sampler: Sampler, count: int) -> tuple[FloatArray, FloatArray]:
    """Return random states and their rates with random inputs, (m, N) each: inputs may move an angle directly."""
    x = sampler.states(count)
    f = sampler.rates(x, sampler.inputs(count))
    finite = np.isfinite(f).all(axis=1)
    return x[finite], f[finite]


def _read_factors(rate: FloatArray, f: FloatArray, tolerance: float) -> dict[int, float]:
    """Return the columns of f (m, n), and their factors, the sum of which is ``rate`` (m,); none where there is none.

    One column is preferred to a sum: where two angles follow the phase, a linear constraint ties them.
    """
    size = float(np.abs(rate).max())
    if not size > 0:
        return {}
    for columns in _supports(rate, f):
        factors = np.linalg.lstsq(f[:, columns], rate, rcond=None)[0]
        missing = np.abs(f[:, columns] @ factors - rate)
        if (missing <= tolerance * size).all():
            return {i: _simplify(float(k)) for i, k in zip(columns, factors, strict=True)}
    return {}


def _supports(rate: FloatArray, f: FloatArray) -> Iterator[list[int]]:
    """Yield each column alone, then the columns with the largest parts of the shortest combination of all."""
    moving = [i for i in range(f.shape[1]) if np.abs(f[:, i]).max() > 0]
    yield from ([i] for i in moving)
    if len(moving) > 1:
        sizes = np.linalg.norm(f[:, moving], axis=0)
        parts = np.abs(np.linalg.lstsq(f[:, moving] / sizes, rate, rcond=None)[0])
        order = np.argsort(-parts)
        for count in range(2, min(MAX_ANGLES, len(moving)) + 1):
            yield sorted(moving[i] for i in order[:count])


def _simplify(factor: float) -> float:
    """Return the short fraction, or that many degrees in rad or rad in degrees, that a factor is but for rounding."""
    for unit in (1.0, pi / 180, 180 / pi):
        nearest = float(Fraction(factor / unit).limit_denominator(LONGEST_FRACTION)) * unit
        if abs(nearest - factor) <= SAME_FACTOR * abs(factor):
            return nearest
    return factor


def _relate(x0: FloatArray, pair: tuple[int, int], factors: dict[int, float]) -> Invariant:
    """Return s cos(psi) - c sin(psi) for the phase of the pair, less its constant difference from psi at x0 (N,)."""
    sine, cosine = pair
    difference = float(np.arctan2(x0[sine], x0[cosine]) - sum(k * x0[i] for i, k in factors.items()))
    difference -= 2 * pi * round(difference / (2 * pi))
    # sin and cos of psi + difference, written with a first angle that counts forwards.
    sign = 1.0 if next(iter(factors.values())) > 0 else -1.0
    angles = tuple((i, sign * k) for i, k in factors.items())
    of_cos: Harmonic = ("cos", angles)
    of_sin: Harmonic = ("sin", angles)
    along, across = cos(difference), sin(difference)
    coefficients = {
        Term(((sine, 1),), of_cos): along,
        Term(((cosine, 1),), of_sin): -sign * along,
        Term(((sine, 1),), of_sin): -sign * across,
        Term(((cosine, 1),), of_cos): -across,
    }
    terms = {term: c for term, c in coefficients.items() if abs(c) > OFFSET_TOLERANCE}
    return Invariant(Library(terms), np.array(list(terms.values())))
