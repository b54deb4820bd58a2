"""The kinds of states, found by perturbing them: constant, cyclic, an angle, a speed; and groups that can meet."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from fmilin.discovery.sampler import NOISE_FACTOR, Sampler
from fmilin.discovery.sparse_null_space import null_space, sparse_basis
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
    rate_of: dict[int, int]  # states with another state as rate, and that state
    turned_by: dict[tuple[int, int], int]  # sines and cosines of one angle, and its speed
    groups: tuple[tuple[int, ...], ...]  # states that can meet in one constraint; constant ones in none


def find_driven_positions(sampler: Sampler) -> frozenset[int]:
    """Return the states of which inputs are the speeds: s' = c u, c' = -s u, th' = u. or None.

    Their rates are zero without inputs and proportional to these, as are those of speeds that forces alone change.
    Factors that change with the states distinguish them, as in all equations of a rotation or of a rolling wheel.
    """
    x, u = sampler.states(POINTS), sampler.inputs(POINTS)
    if not u.shape[1]:
        return frozenset()
    unforced = sampler.rates(x, np.zeros_like(u))
    if unforced.any(axis=0).all():
        return frozenset()
    forced, doubly_forced = sampler.rates(x, u), sampler.rates(x, 2 * u)
    forced_at_other_states = sampler.rates(sampler.states(POINTS), u)
    if not all(np.isfinite(f).all() for f in (unforced, forced, doubly_forced, forced_at_other_states)):
        return frozenset()
    least = max(TURN_RATE_TOLERANCE, NOISE_FACTOR * sampler.noise)
    is_driven: Mask = ~unforced.any(axis=0) & forced.any(axis=0) & ~_differ(2 * forced, doubly_forced, least)
    turns: Mask = is_driven & _differ(forced, forced_at_other_states, least)
    if not turns.any():
        return frozenset()
    for j in np.flatnonzero(is_driven & ~turns):
        displaced = x.copy()
        displaced[:, j] += 0.37 * sampler.reach[j]
        # A state that changes with it and is not driven itself shows that it is a speed.
        is_driven[j] = not _differ(forced, sampler.rates(displaced, u), least)[~is_driven].any()
    return _set(is_driven)


def state_kinds(sampler: Sampler, driven_positions: frozenset[int] = frozenset()) -> StateKinds:
    """Move inputs and states one after the other, and examine the rates."""
    x, u = sampler.states(POINTS), sampler.inputs(POINTS)
    fixed_input_rates = sampler.rates(x, np.tile(sampler.point.inputs, (len(x), 1)))
    excited_rates = sampler.rates(x, u)
    fine = np.isfinite(fixed_input_rates).all(axis=1) & np.isfinite(excited_rates).all(axis=1)
    x, fixed_input_rates, excited_rates = x[fine], fixed_input_rates[fine], excited_rates[fine]
    n = len(sampler.point.states)
    least = max(MIN_RATE_DIFFERENCE, NOISE_FACTOR * sampler.noise)
    driven = _differ(fixed_input_rates, excited_rates, least)
    constant: Mask = np.asarray(~(fixed_input_rates.any(axis=0) | excited_rates.any(axis=0)))
    # s' = c u is c by chance where the point has u = 1.
    rate_of = _match_rates(
        np.vstack((x, x)), np.vstack((fixed_input_rates, excited_rates)), constant, NOISE_FACTOR * sampler.noise
    )
    depends, angle = np.zeros((n, n), dtype=bool), np.zeros(n, dtype=bool)
    for j in np.flatnonzero(~constant):
        step = np.zeros(n)
        step[j] = 0.37 * sampler.reach[j]
        depends[:, j] = _differ(fixed_input_rates, sampler.rates_at_fixed_inputs(x + step), least)
        step[j] = 2 * np.pi
        turned_rates = sampler.rates_at_fixed_inputs(x + step)
        is_finite = bool(np.isfinite(turned_rates).all(axis=1).any())
        angle[j] = (
            is_finite
            and bool(depends[:, j].any())
            and not _differ(fixed_input_rates, turned_rates, max(TURN_RATE_TOLERANCE, least)).any()
        )
    cyclic: Mask = ~depends.any(axis=0) & ~constant
    speeds = set(np.flatnonzero(driven).tolist()) - driven_positions | set(rate_of.values())
    positions = (set(np.flatnonzero(cyclic | angle).tolist()) | rate_of.keys()) - speeds
    speeds |= set(np.flatnonzero(depends[sorted(positions)].any(axis=0)).tolist()) - positions
    directions, turned_by = _directions(sampler, depends, constant)
    for direction in directions:
        speeds |= set(np.flatnonzero(depends[sorted(direction)].any(axis=0)).tolist()) - direction
    speeds |= _find_angular_speeds(sampler, x, fixed_input_rates, depends, speeds, frozenset[int]().union(*directions))
    speeds -= driven_positions
    return StateKinds(
        constant=_set(constant),
        cyclic=_set(cyclic),
        angles=_set(angle) - speeds,
        speeds=frozenset(speeds),
        driven=_set(driven),
        driven_positions=driven_positions,
        reached=_set(find_reachable(driven, depends)),
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


def _match_rates(x: FloatArray, f: FloatArray, constant: Mask, noise: float) -> dict[int, int]:
    """Return states with another state as rate: to the last bit where the model has no noise of its own."""
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


def find_reachable(driven: Mask, depends: Mask) -> Mask:
    """Return the states that are driven (n,), and those that depend (n, n) on these, on and on."""
    reached, previous_count = driven.copy(), 0
    while reached.sum() > previous_count:
        previous_count = int(reached.sum())
        reached |= depends[:, reached].any(axis=1)
    return reached


def _directions(sampler: Sampler, depends: Mask, constant: Mask) -> tuple[list[set[int]], dict[tuple[int, int], int]]:
    """Return unit vectors that other states turn, in proportion, and of each sine and cosine of one angle the speed."""
    moving = np.flatnonzero(~constant)
    x = sampler.states(int(1.2 * len(moving)) + 10)
    f = sampler.rates_at_fixed_inputs(x)
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
        is_proportional = np.allclose(vector[vector != 0], vector[vector != 0][0], rtol=tolerance)
        if not (
            is_proportional
            and len(turning)
            and abs((sampler.point.states[members] ** 2).sum() - 1) < START_VALUE_TOLERANCE
        ):
            continue
        doubled_speeds = x[:POINTS].copy()
        doubled_speeds[:, turning] *= 2
        if _differ(2 * f[:POINTS, members], sampler.rates_at_fixed_inputs(doubled_speeds)[:, members], tolerance).any():
            continue
        directions.append(set(members.tolist()))
        if len(members) == 2 and len(turning) == 1:
            is_sine_first = np.median(f[:, members[0]] * x[:, members[1]] * x[:, turning[0]]) > 0
            sine, cosine = members.tolist() if is_sine_first else members[::-1].tolist()
            turned_by[sine, cosine] = int(turning[0])
    return directions, turned_by


def _find_angular_speeds(
    sampler: Sampler,
    x: FloatArray,
    fixed_input_rates: FloatArray,
    depends: Mask,
    speeds: set[int],
    directions: frozenset[int],
) -> set[int]:
    """Return states that turn others, as angular speeds do, and hang on each other, speeds and directions alone."""
    labels = _components(depends, "strong")
    turning: set[int] = set()
    for label in np.unique(labels):
        candidates = set(np.flatnonzero(labels == label).tolist()) - speeds - directions
        members = np.array(sorted(candidates), dtype=np.intp)
        unrelated = np.setdiff1d(np.arange(len(labels)), sorted(candidates | speeds))
        turned_states = unrelated[depends[np.ix_(unrelated, members)].any(axis=1)]
        candidates &= set(
            np.flatnonzero(depends[unrelated].any(axis=0)).tolist()
        )  # not what is turned itself, and turns nothing
        candidates_and_speeds = np.array(sorted(candidates | speeds), dtype=np.intp)
        if not candidates or not len(turned_states) or depends[np.ix_(members, unrelated)].any():
            continue
        doubled_speeds = x.copy()
        doubled_speeds[:, candidates_and_speeds] *= 2  # which is twice the rates of what they turn
        if not _differ(
            2 * fixed_input_rates[:, turned_states],
            sampler.rates_at_fixed_inputs(doubled_speeds)[:, turned_states],
            max(TURN_RATE_TOLERANCE, NOISE_FACTOR * sampler.noise),
        ).any():
            turning |= candidates
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
