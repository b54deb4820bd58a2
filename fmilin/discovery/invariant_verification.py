"""Whether an invariant is kept at further consistent points, under other inputs, along a motion."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from fmilin.discovery.function_library import Library, Term
from fmilin.discovery.invariant import Invariant, project_points
from fmilin.discovery.sampler import Sampler
from fmilin.discovery.states import START_VALUE_TOLERANCE, StateKinds
from fmilin.model.stepping import Stepped
from fmilin.numerics.steps import runge_kutta_step
from fmilin.signals import FloatArray

POINTS = 10
STEPS = 20
MAX_STEP_SIZE = 0.02  # how far the fastest state moves in one step, in its size
LATER_TIME_SECONDS = 0.7
"""Seconds after the point, where the other inputs are examined: what depends on time is kept at one time only."""

MIN_SIZE = 1e-300


class InvariantResiduals(NamedTuple):
    """The largest h along a motion, H f and H f_u, relative to their terms; NaN where nothing could show them."""

    value: float
    along_motion: float
    along_inputs: float


class InvariantVerification:
    """Consistent points that no search has seen, and a short motion with inputs that jump."""

    def __init__(self, sampler: Sampler, manifold: Sequence[Invariant]) -> None:
        self._sampler = sampler
        self._x = project_points(sampler.states(4 * POINTS), manifold, sampler.sizes)[:POINTS]
        self._f = sampler.rates_at_fixed_inputs(self._x)
        later = 0.0 if isinstance(sampler.model, Stepped) else LATER_TIME_SECONDS
        self._excited = sampler.rates(self._x, sampler.inputs(len(self._x)), later=later)
        fine = np.isfinite(self._f).all(axis=1) & np.isfinite(self._excited).all(axis=1)
        self._x, self._f, self._excited = self._x[fine], self._f[fine], self._excited[fine]
        self._motion = self._simulate_motion(manifold)

    def of(self, h: Invariant) -> InvariantResiduals:
        """Return how well h is kept."""
        if not len(self._x):
            return InvariantResiduals(np.nan, np.nan, np.nan)
        size = np.maximum(h.size(self._motion), h.size(self._motion).max(initial=MIN_SIZE))
        value = float((np.abs(h.values(self._motion)) / size).max())
        change = self._sampler.subtract_beyond_noise(self._excited, self._f)
        is_excited = change.any(axis=1)
        noise = self._sampler.estimate_noise(self._f[is_excited])
        input_effect = h.rates(self._x[is_excited], change[is_excited], noise) if is_excited.any() else np.full(1, 0.0)
        return InvariantResiduals(value, float(h.rates(self._x, self._f).max()), float(input_effect.max()))

    def _simulate_motion(self, manifold: Sequence[Invariant]) -> FloatArray:
        """Return the states of a short motion from the point, by Runge's and Kutta's rule."""
        sampler = self._sampler
        x = project_points(sampler.point.states[None], manifold, sampler.sizes)
        path = [x[0] if len(x) else sampler.point.states]
        if not manifold:
            return np.array(path)
        for u in np.repeat(sampler.inputs(STEPS // 5), 5, axis=0):
            x = path[-1]
            rates = partial(self._rates, u)
            k1 = rates(0.0, x)
            h = MAX_STEP_SIZE / max(float((np.abs(k1) / sampler.sizes).max(initial=0.0)), 1.0)
            next_state = runge_kutta_step(rates, 0.0, x, h, k1)
            if not np.isfinite(next_state).all():
                break
            path.append(next_state)
        return np.array(path)

    def _rates(self, u: FloatArray, _: float, x: FloatArray) -> FloatArray:
        return np.asarray(self._sampler.rates(x[None], u[None])[0])


Kind = Literal["constraint", "open", "conserved"]
DISPLACEMENT_SIZE = 0.3  # how far positions are displaced, in sizes or rad
UNIT = 1e-9  # distance from 1 of the norm of a unit vector


@dataclass(frozen=True)
class InvariantVerdict:
    """The classification of an invariant."""

    kind: Kind  # ``"open"``: a constraint if positions follow from it
    reason: str = ""  # what a conserved quantity seems to be


CONSTRAINT, OPEN = InvariantVerdict("constraint"), InvariantVerdict("open")


def _classify_as_conserved(reason: str) -> InvariantVerdict:
    return InvariantVerdict("conserved", reason)


def classify_invariant(h: Invariant, kinds: StateKinds, sampler: Sampler) -> InvariantVerdict:  # noqa: PLR0911 - one case for each kind
    """Judge a function h with h' = 0 for all states and all inputs; ``h`` has its level at the point."""
    if _is_tied_at_start(h, kinds, sampler):
        return OPEN
    # Where inputs are the speeds, sine and cosine are not the energy of an oscillator.
    if h.states <= kinds.driven_positions and _is_unit_vector(h, least_terms=2):
        return CONSTRAINT
    if not any(h.states <= set(group) for group in kinds.groups):
        return _classify_as_conserved("of states that do not act on each other")
    if h.states & kinds.cyclic and not h.states & kinds.speeds:
        return _classify_as_conserved("a cyclic coordinate that nothing moves")
    if not kinds.speeds:
        return (
            CONSTRAINT
            if _is_unit_vector(h)
            else _classify_as_conserved("nothing in the model could break it: no input")
        )
    degree = h.degree(kinds.speeds)
    if degree > 1:
        return _classify_as_conserved("looks like mechanical energy: curved in the speeds")
    if degree == 0:
        return _of_positions(h, kinds)
    cyclic = kinds.cyclic - kinds.speeds
    if h.states & cyclic and any(t.degree(cyclic) for t in h.library.terms):
        return _classify_as_conserved("follows from a cyclic coordinate, which no rate depends on")
    if _is_total_momentum(h, kinds, sampler):
        return _classify_as_conserved("looks like momentum: the whole can be displaced and nothing changes")
    if _is_angular_momentum(h, kinds):
        return _classify_as_conserved("looks like angular momentum")
    return _of_speeds(h, kinds, sampler)


def integrate_speeds(h: Invariant, kinds: StateKinds, sampler: Sampler) -> Invariant | None:
    """Return the sum of positions of which ``h`` is the rate, with its level at the point; None if it is not a rate."""
    position_of = {v: q for q, v in kinds.rate_of.items()}
    if not h.is_linear or not h.states <= position_of.keys():
        return None
    terms = [Term(((position_of[t.powers[0][0]], 1),)) for t in h.library.terms]
    return Invariant(Library(terms), h.coefficients).at(sampler.point.states, START_VALUE_TOLERANCE)


def _is_tied_at_start(h: Invariant, kinds: StateKinds, sampler: Sampler) -> bool:
    """Whether positions of which it is the rate add up to zero at the point, none of them zero, and it does, too."""
    g = integrate_speeds(h, kinds, sampler)
    if g is None or g.level or h.level or _is_total_momentum(h, kinds, sampler):
        return False
    terms = np.abs(g.library.values(sampler.point.states[None])[0] * g.coefficients)
    return bool(terms.min() > START_VALUE_TOLERANCE * sampler.sizes.max())


def _of_positions(h: Invariant, kinds: StateKinds) -> InvariantVerdict:
    if not h.is_linear:
        return CONSTRAINT
    if h.coefficients.min() * h.coefficients.max() > 0 and not h.states & kinds.driven:
        return _classify_as_conserved("looks like a conserved total, as of mass")
    return CONSTRAINT


def _of_speeds(h: Invariant, kinds: StateKinds, sampler: Sampler) -> InvariantVerdict:
    x0 = sampler.point.states[None]
    terms = np.abs(h.library.values(x0)[0] * h.coefficients)
    size = np.abs(h.library.values(x0 + sampler.reach)[0] * h.coefficients).max()
    if abs(h.level) > START_VALUE_TOLERANCE * terms.sum():
        return _classify_as_conserved("linear in the speeds, as momentum is, and not zero at the start")
    if terms.max() > START_VALUE_TOLERANCE * size:
        return CONSTRAINT  # terms that are not zero add up to zero: no accident
    broken_by_nothing = not h.states & kinds.speeds & kinds.reached
    if h.is_linear and broken_by_nothing and h.coefficients.min() * h.coefficients.max() > 0:
        return _classify_as_conserved("looks like a conserved total, as of momentum")
    if not h.is_linear and _is_momentum_of_cyclic(h, kinds, sampler):
        return _classify_as_conserved("looks like the momentum of a cyclic coordinate")
    return OPEN if broken_by_nothing else CONSTRAINT


def _is_momentum_of_cyclic(h: Invariant, kinds: StateKinds, sampler: Sampler) -> bool:
    """Whether the speed of a cyclic coordinate has a factor that keeps its sign, as a mass does.

    A joint fixed to the ground seems to be that, too, but its factor is the same everywhere, and bodies fall or are
    pulled from rest, which a momentum would not survive.
    """
    x = sampler.states(20)
    gradients = h.gradients(x)
    x[:, sorted(kinds.speeds)] = 0.0
    is_pulled = bool(np.nan_to_num(sampler.rates_at_fixed_inputs(x[:3]))[:, sorted(h.states & kinds.speeds)].any())
    for position in kinds.cyclic & kinds.rate_of.keys():
        factor = gradients[:, kinds.rate_of[position]]
        if factor.min() * factor.max() > 0 and not (is_pulled and np.ptp(factor) <= UNIT * np.abs(factor).max()):
            return True
    return False


def _is_unit_vector(h: Invariant, least_terms: int = 3) -> bool:
    """Whether it is a sum of squares that is one; two of them are the energy of an oscillator as well."""
    squares = all(t.powers == ((min(t.states), 2),) and not t.harmonic[0] for t in h.library.terms)
    c = h.coefficients
    return squares and len(c) >= least_terms and bool(np.allclose(c, c[0])) and abs(h.level / c[0] - 1) < UNIT


def _is_total_momentum(h: Invariant, kinds: StateKinds, sampler: Sampler) -> bool:
    """Whether it is a sum of speeds with factors of one sign, and their positions can be displaced alike."""
    position_of = {v: q for q, v in kinds.rate_of.items()}
    c = h.coefficients
    if not h.is_linear or c.min() * c.max() < 0 or not h.states <= {*position_of, *kinds.turned_by.values()}:
        return False
    x = sampler.states(2)
    displaced = x.copy()
    displaced[:, [position_of[v] for v in h.states & position_of.keys()]] += DISPLACEMENT_SIZE * sampler.sizes.max()
    for (sine, cosine), speed in kinds.turned_by.items():
        if speed in h.states:
            displaced[:, sine] = x[:, sine] * np.cos(DISPLACEMENT_SIZE) + x[:, cosine] * np.sin(DISPLACEMENT_SIZE)
            displaced[:, cosine] = x[:, cosine] * np.cos(DISPLACEMENT_SIZE) - x[:, sine] * np.sin(DISPLACEMENT_SIZE)
    other_states = np.setdiff1d(np.arange(x.shape[1]), sorted(i for pair in kinds.turned_by for i in pair))
    before, after = (
        sampler.rates_at_fixed_inputs(x)[:, other_states],
        sampler.rates_at_fixed_inputs(displaced)[:, other_states],
    )
    return bool(np.allclose(before, after, rtol=1e-9, atol=1e-12))


def _is_angular_momentum(h: Invariant, kinds: StateKinds) -> bool:
    """Whether it is a sum of x_i v_j - x_j v_i."""
    pairs = {}
    for term, c in zip(h.library.terms, h.coefficients, strict=True):
        factors = [i for i, _ in term.powers]
        if term.harmonic[0] or term.degree() != 2 or len(factors) != 2:
            return False
        position, speed = sorted(factors, key=lambda i: i in kinds.speeds)
        pairs[position, speed] = c
    rate = kinds.rate_of
    for (i, v), c in pairs.items():
        other = next((q for q, w in rate.items() if w == v), None)
        if i not in rate or other is None or not np.isclose(pairs.get((other, rate[i]), np.nan), -c):
            return False
    return True
