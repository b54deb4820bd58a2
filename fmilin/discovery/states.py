"""The kinds of states, found by perturbing them: constant, cyclic, an angle, a speed; and groups that can meet."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from fmilin.discovery.null_space import null_space, sparse_basis
from fmilin.discovery.sampler import NOISE_FACTOR, Sampler
from fmilin.signals import FloatArray

Mask: TypeAlias = NDArray[np.bool_]
POINTS = 3  # points at which every state is moved alone: equality by chance does not survive
MIN_RATE_DIFFERENCE = 1e-11  # difference of rates, relative to the largest, that is more than rounding
START_VALUE_TOLERANCE = 1e-6
"""Value at the point, relative to the size of the terms, that is zero: start values are consistent to this."""

TURN_RATE_TOLERANCE = (
    1e-7  # change of the rates, relative, that a whole turn of an angle may make: sin(x + 2 pi) is rounded
)


@dataclass(frozen=True)
class StateKinds:
    """The kinds of the states."""

    # their rates are zero wherever the states are and whatever the inputs do: parameters, in truth
    constant: frozenset[int]
    cyclic: frozenset[int]  # no rate depends on them
    angles: frozenset[int]  # a whole turn changes no rate, a part of it does
    # inputs act on their rates, or they are the rates of other states, or make the rates of positions
    speeds: frozenset[int]
    driven: frozenset[int]  # inputs act on their rates
    driven_positions: frozenset[int]  # inputs are their speeds
    reached: frozenset[int]  # inputs act on their rates, or on what their rates depend on
    rate_of: dict[int, int]  # states whose rate is a state, and that state
    turned_by: dict[tuple[int, int], int]  # sines and cosines of one angle, and its speed
    groups: tuple[tuple[int, ...], ...]  # states that can meet in one constraint; constant ones in none


def find_driven_positions(sampler: Sampler) -> frozenset[int]:
    """Return the states of which inputs are the speeds: s' = c u, c' = -s u, th' = u. None where there are none.

    Their rates are zero without inputs and proportional to these, as are those of speeds that forces alone change.
    They are told apart by factors that change with the states, as in all equations of a rotation or of a rolling wheel.
    """
    x, u = sampler.states(POINTS), sampler.inputs(POINTS)
    if not u.shape[1]:
        return frozenset()
    alone = sampler.rates(x, np.zeros_like(u))
    if alone.any(axis=0).all():
        return frozenset()
    once, twice = sampler.rates(x, u), sampler.rates(x, 2 * u)
    elsewhere = sampler.rates(sampler.states(POINTS), u)
    if not all(np.isfinite(f).all() for f in (alone, once, twice, elsewhere)):
        return frozenset()
    least = max(TURN_RATE_TOLERANCE, NOISE_FACTOR * sampler.noise)
    is_driven: Mask = ~alone.any(axis=0) & once.any(axis=0) & ~_differ(2 * once, twice, least)
    turns: Mask = is_driven & _differ(once, elsewhere, least)
    if not turns.any():
        return frozenset()
    for j in np.flatnonzero(is_driven & ~turns):
        moved = x.copy()
        moved[:, j] += 0.37 * sampler.reach[j]
        # A state that changes with it and is not driven itself shows that it is a speed.
        is_driven[j] = not _differ(once, sampler.rates(moved, u), least)[~is_driven].any()
    return _set(is_driven)


def state_kinds(sampler: Sampler, driven_positions: frozenset[int] = frozenset()) -> StateKinds:
    """Move inputs and states one after the other, and look at the rates."""
    x, u = sampler.states(POINTS), sampler.inputs(POINTS)
    held = sampler.rates(x, np.tile(sampler.point.inputs, (len(x), 1)))
    moved = sampler.rates(x, u)
    fine = np.isfinite(held).all(axis=1) & np.isfinite(moved).all(axis=1)
    x, held, moved = x[fine], held[fine], moved[fine]
    n = len(sampler.point.states)
    least = max(MIN_RATE_DIFFERENCE, NOISE_FACTOR * sampler.noise)
    driven = _differ(held, moved, least)
    constant: Mask = np.asarray(~(held.any(axis=0) | moved.any(axis=0)))
    # s' = c u is c by chance where the point has u = 1.
    rate_of = _pairs(np.vstack((x, x)), np.vstack((held, moved)), constant, NOISE_FACTOR * sampler.noise)
    depends, angle = np.zeros((n, n), dtype=bool), np.zeros(n, dtype=bool)
    for j in np.flatnonzero(~constant):
        step = np.zeros(n)
        step[j] = 0.37 * sampler.reach[j]
        depends[:, j] = _differ(held, sampler.held_rates(x + step), least)
        step[j] = 2 * np.pi
        turned = sampler.held_rates(x + step)
        answers = bool(np.isfinite(turned).all(axis=1).any())
        angle[j] = (
            answers and bool(depends[:, j].any()) and not _differ(held, turned, max(TURN_RATE_TOLERANCE, least)).any()
        )
    cyclic: Mask = ~depends.any(axis=0) & ~constant
    speeds = set(np.flatnonzero(driven).tolist()) - driven_positions | set(rate_of.values())
    positions = (set(np.flatnonzero(cyclic | angle).tolist()) | rate_of.keys()) - speeds
    speeds |= set(np.flatnonzero(depends[sorted(positions)].any(axis=0)).tolist()) - positions
    directions, turned_by = _directions(sampler, depends, constant)
    for direction in directions:
        speeds |= set(np.flatnonzero(depends[sorted(direction)].any(axis=0)).tolist()) - direction
    speeds |= _turning(sampler, x, held, depends, speeds, frozenset[int]().union(*directions))
    speeds -= driven_positions
    return StateKinds(
        constant=_set(constant),
        cyclic=_set(cyclic),
        angles=_set(angle) - speeds,
        speeds=frozenset(speeds),
        driven=_set(driven),
        driven_positions=driven_positions,
        reached=_set(reached_from(driven, depends)),
        rate_of=rate_of,
        turned_by=turned_by,
        groups=_groups(depends, constant),
    )


def _set(mask: Mask) -> frozenset[int]:
    return frozenset(np.flatnonzero(mask).tolist())


def _differ(a: FloatArray, b: FloatArray, tolerance: float) -> Mask:
    """Return which columns differ in some row, beyond rounding; NaN does not count."""
    size = np.nanmax(np.abs(np.vstack((a, b))), axis=0, initial=0.0)
    with np.errstate(invalid="ignore"):
        differs: Mask = (np.abs(a - b) > tolerance * size).any(axis=0)
    return differs


def _pairs(x: FloatArray, f: FloatArray, constant: Mask, noise: float) -> dict[int, int]:
    """Return states whose rate is another state: to the last bit where the model has no noise of its own."""
    noise = noise if noise > MIN_RATE_DIFFERENCE else 0.0
    rate_of: dict[int, int] = {}
    if not len(x):
        return rate_of
    for i in np.flatnonzero(~constant):
        for j in np.flatnonzero((np.abs(f[:, i : i + 1] - x) <= noise * np.abs(x)).all(axis=0)):
            if i != j and j not in rate_of.values():
                rate_of[int(i)] = int(j)
                break
    return rate_of


def reached_from(driven: Mask, depends: Mask) -> Mask:
    """Return the states that are driven (n,), and those that depend (n, n) on these, on and on."""
    reached, before = driven.copy(), 0
    while reached.sum() > before:
        before = int(reached.sum())
        reached |= depends[:, reached].any(axis=1)
    return reached


def _directions(sampler: Sampler, depends: Mask, constant: Mask) -> tuple[list[set[int]], dict[tuple[int, int], int]]:
    """Return unit vectors that other states turn, in proportion, and of each sine and cosine of one angle the speed."""
    moving = np.flatnonzero(~constant)
    x = sampler.states(int(1.2 * len(moving)) + 10)
    f = sampler.held_rates(x)
    fine = np.isfinite(f).all(axis=1)
    x, f = x[fine], f[fine]
    if len(x) <= len(moving):
        return [], {}
    tolerance = max(TURN_RATE_TOLERANCE, NOISE_FACTOR * sampler.noise)
    space = null_space(x[:, moving] * f[:, moving], sampler.noise)
    directions: list[set[int]] = []
    turned_by: dict[tuple[int, int], int] = {}
    for vector in sparse_basis(space, range(len(moving))):
        members = moving[vector != 0]
        turning = np.setdiff1d(np.flatnonzero(depends[members].any(axis=0)), members)
        alike = np.allclose(vector[vector != 0], vector[vector != 0][0], rtol=tolerance)
        if not (alike and len(turning) and abs((sampler.point.states[members] ** 2).sum() - 1) < START_VALUE_TOLERANCE):
            continue
        twice = x[:POINTS].copy()
        twice[:, turning] *= 2
        if _differ(2 * f[:POINTS, members], sampler.held_rates(twice)[:, members], tolerance).any():
            continue
        directions.append(set(members.tolist()))
        if len(members) == 2 and len(turning) == 1:
            grows = np.median(f[:, members[0]] * x[:, members[1]] * x[:, turning[0]]) > 0
            sine, cosine = members.tolist() if grows else members[::-1].tolist()
            turned_by[sine, cosine] = int(turning[0])
    return directions, turned_by


def _turning(
    sampler: Sampler, x: FloatArray, held: FloatArray, depends: Mask, speeds: set[int], directions: frozenset[int]
) -> set[int]:
    """Return states that turn others, as angular speeds do, and hang on each other, speeds and directions alone."""
    labels = _components(depends, "strong")
    turning: set[int] = set()
    for label in np.unique(labels):
        own = set(np.flatnonzero(labels == label).tolist()) - speeds - directions
        members = np.array(sorted(own), dtype=np.intp)
        still = np.setdiff1d(np.arange(len(labels)), sorted(own | speeds))
        turned = still[depends[np.ix_(still, members)].any(axis=1)]
        own &= set(np.flatnonzero(depends[still].any(axis=0)).tolist())  # not what is turned itself, and turns nothing
        moving = np.array(sorted(own | speeds), dtype=np.intp)
        if not own or not len(turned) or depends[np.ix_(members, still)].any():
            continue
        twice = x.copy()
        twice[:, moving] *= 2  # which is twice the rates of what they turn
        if not _differ(
            2 * held[:, turned],
            sampler.held_rates(twice)[:, turned],
            max(TURN_RATE_TOLERANCE, NOISE_FACTOR * sampler.noise),
        ).any():
            turning |= own
    return turning


def _components(depends: Mask, connection: Literal["weak", "strong"]) -> NDArray[np.int32]:
    """Return a number for each state, the same for states that hang together."""
    graph = csr_array(np.atleast_2d(depends).astype(np.intp))
    labels: NDArray[np.int32] = connected_components(graph, directed=True, connection=connection)[1]
    return labels


def _groups(depends: Mask, constant: Mask) -> tuple[tuple[int, ...], ...]:
    labels = _components(depends, "weak")
    groups: dict[int, list[int]] = {}
    for i in np.flatnonzero(~constant):
        groups.setdefault(int(labels[i]), []).append(int(i))
    return tuple(tuple(g) for g in groups.values())
