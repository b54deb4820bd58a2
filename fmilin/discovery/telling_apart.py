"""Constraint or conserved quantity? Both stay what they are; what each looks like, and what could have broken it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fmilin.discovery.character import Character
from fmilin.discovery.invariant import Invariant
from fmilin.discovery.sampling import Sampler

__all__ = ["Verdict", "told_apart"]

Kind = Literal["constraint", "open", "conserved"]

UNIT = 1e-9
"""Distance from 1 of the norm of a unit vector."""

HELD_AT_START = 1e-6
"""Value at the point, relative to the size of the terms, that is zero: start values are consistent to this."""


@dataclass(frozen=True)
class Verdict:
    """What an invariant is taken for."""

    kind: Kind  # ``"open"``: a constraint if positions follow from it
    reason: str = ""  # what a conserved quantity looks like


CONSTRAINT, OPEN = Verdict("constraint"), Verdict("open")


def _conserved(reason: str) -> Verdict:
    return Verdict("conserved", reason)


def told_apart(found: Invariant, character: Character, sampler: Sampler) -> Verdict:
    """Judge a function h with h' = 0 for all states and all inputs; ``found`` has its level at the point."""
    if found.states & character.cyclic and not found.states & character.speeds:
        return _conserved("a cyclic coordinate that nothing moves")
    if not character.speeds:
        return CONSTRAINT if _is_unit_vector(found) else _conserved("nothing in the model could break it: no input")
    degree = found.degree(character.speeds)
    if degree > 1:
        return _conserved("looks like mechanical energy: curved in the speeds")
    if degree == 0:
        return _of_positions(found, character)
    if found.states & character.cyclic - character.speeds and not _only_harmonic(found, character):
        return _conserved("follows from a cyclic coordinate, which no rate depends on")
    if _is_total_momentum(found, character, sampler):
        return _conserved("looks like momentum: the whole can be displaced and nothing changes")
    if _is_angular_momentum(found, character):
        return _conserved("looks like angular momentum")
    return _of_speeds(found, character, sampler)


def _only_harmonic(found: Invariant, character: Character) -> bool:
    """Whether cyclic coordinates stand in it as arguments of sines only."""
    return all(not t.degree(character.cyclic - character.speeds) for t in found.library.terms)


def _of_positions(found: Invariant, character: Character) -> Verdict:
    if not found.is_linear:
        return CONSTRAINT
    if found.coefficients.min() * found.coefficients.max() > 0 and not found.states & character.driven:
        return _conserved("looks like a conserved total, as of mass")
    return CONSTRAINT


def _of_speeds(found: Invariant, character: Character, sampler: Sampler) -> Verdict:
    x0 = sampler.point.states[None]
    terms = np.abs(found.library.values(x0)[0] * found.coefficients)
    size = np.abs(found.library.values(x0 + sampler.reach)[0] * found.coefficients).max()
    if abs(found.level) > HELD_AT_START * terms.sum():
        return _conserved("linear in the speeds, as momentum is, and not zero at the start")
    if terms.max() > HELD_AT_START * size:
        return CONSTRAINT  # terms that are not zero add up to zero: no accident
    broken_by_nothing = not found.states & character.speeds & character.reached
    if found.is_linear and broken_by_nothing and found.coefficients.min() * found.coefficients.max() > 0:
        return _conserved("looks like a conserved total, as of momentum")
    if not found.is_linear and _is_momentum_of_cyclic(found, character, sampler):
        return _conserved("looks like the momentum of a cyclic coordinate")
    return OPEN if broken_by_nothing else CONSTRAINT


def _is_momentum_of_cyclic(found: Invariant, character: Character, sampler: Sampler) -> bool:
    """Whether the speed of a cyclic coordinate has a factor that keeps its sign, as a mass does.

    A joint fixed to the ground looks like that, too, but there its factor is the same everywhere and bodies fall or are
    pulled from rest, which a momentum would not survive.
    """
    x = sampler.states(20)
    gradients = found.gradients(x)
    x[:, sorted(character.speeds)] = 0.0
    is_pulled = bool(np.nan_to_num(sampler.held_rates(x[:3]))[:, sorted(found.states & character.speeds)].any())
    for position in character.cyclic & character.rate_of.keys():
        factor = gradients[:, character.rate_of[position]]
        if factor.min() * factor.max() > 0 and not (is_pulled and np.ptp(factor) <= UNIT * np.abs(factor).max()):
            return True
    return False


def _is_unit_vector(found: Invariant) -> bool:
    squares = all(t.powers == ((min(t.states), 2),) and not t.harmonic[0] for t in found.library.terms)
    c = found.coefficients
    return squares and len(c) >= 3 and bool(np.allclose(c, c[0])) and abs(found.level / c[0] - 1) < UNIT


def _is_total_momentum(found: Invariant, character: Character, sampler: Sampler) -> bool:
    """Whether it is a sum of speeds with factors of one sign, and all their positions can be displaced alike."""
    position_of = {v: q for q, v in character.rate_of.items()}
    c = found.coefficients
    if not found.is_linear or c.min() * c.max() < 0 or not found.states <= position_of.keys():
        return False
    x = sampler.states(2)
    step = np.zeros(x.shape[1])
    step[[position_of[v] for v in found.states]] = 0.3 * sampler.sizes.max()
    return bool(np.allclose(sampler.held_rates(x), sampler.held_rates(x + step), rtol=1e-9, atol=1e-12))


def _is_angular_momentum(found: Invariant, character: Character) -> bool:
    """Whether it is a sum of x_i v_j - x_j v_i."""
    pairs = {}
    for term, c in zip(found.library.terms, found.coefficients, strict=True):
        factors = [i for i, _ in term.powers]
        if term.harmonic[0] or term.degree() != 2 or len(factors) != 2:
            return False
        position, speed = sorted(factors, key=lambda i: i in character.speeds)
        pairs[position, speed] = c
    rate = character.rate_of
    for (i, v), c in pairs.items():
        other = next((q for q, w in rate.items() if w == v), None)
        if i not in rate or other is None or not np.isclose(pairs.get((other, rate[i]), np.nan), -c):
            return False
    return True
