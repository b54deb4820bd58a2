"""Random states around a point and the rates there: a model that keeps a constraint keeps it everywhere.

Moving them tells what the states are: constant, cyclic, an angle, a speed; and which ones can meet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from fmilin.ground.errors import ModelError, NumericalError, UsageError
from fmilin.ground.signals import FloatArray
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.numerics.differences.noise import noise_level

REACH = 0.5  # how far around the point samples are taken at first, in sizes of the states

SMALLEST_REACH = 1e-3

FROM_NOISE = 20  # difference of rates, in sizes of the model's noise, that is more than noise

TURNED = 2.0
"""How far around the point angles are sampled, in rad: sums of several sines are nearly dependent on a short way."""


@dataclass
class Sampler:
    """Asks a model for its rates around a point, and counts."""

    model: Model
    point: OperatingPoint
    excite: float = 1.0  # how far inputs are moved, in their sizes
    # visits, refused: points that were asked for, and those at which the model had no answer
    visits: int = 0
    refused: int = 0
    noise: float = 0.0  # of the rates, relative to the largest one; rounding where the model has none of its own
    reach: FloatArray = field(init=False)  # (N,), how far around the point each state is sampled, in its unit
    random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._why = ""
        if isinstance(self.model, Stepped) and (why := self.model.why_not_direct(self.point)):
            raise UsageError(
                f"'{self.model.info.name}' brings its own solver, and constraints are looked for in rates at states of "
                f"our choice. {why} Take its model-exchange interface, or the linear model that is measured."
            )
        self.random = np.random.default_rng(16)
        self.sizes = self.model.states.scales(self.point.states)
        self.reach = REACH * self.sizes
        self.input_sizes = self.excite * self.model.inputs.scales(self.point.inputs)
        self._require_rates()
        self.noise = self._measured_noise()

    def _require_rates(self) -> None:
        """Sample closer to the point where the model cannot answer far from it."""
        while (self.reach > SMALLEST_REACH * self.sizes).any():
            x = self.states(6)
            if np.isfinite(self.rates(x, self.inputs(6))).all(axis=1).sum() >= 4:
                return
            self.reach = self.reach / 4
        why = f" It says: {self._why}" if self._why else ""
        raise NumericalError(
            f"'{self.model.info.name}' gives no rates at states beside its point, so nothing can be found out about "
            f"them. Give another point with --set.{why}"
        )

    def _measured_noise(self) -> float:
        x = self.states(1)[0]
        f = self.held_rates(x[None])[0]
        self.visits += 9
        noise = noise_level(lambda s: self._rates(s, self.point.inputs), x, self.sizes)
        relative = noise / np.maximum(np.abs(f), 1e-3 * np.abs(f).max(initial=1e-300))
        return float(np.nan_to_num(relative.max(initial=0.0), nan=0.0, posinf=0.0))

    def states(self, count: int) -> FloatArray:
        """Return random states around the point, shape (count, N)."""
        return self.point.states + self.reach * self.random.uniform(-1.0, 1.0, (count, len(self.reach)))

    def inputs(self, count: int) -> FloatArray:
        """Return random inputs, shape (count, nu)."""
        moved = self.random.uniform(-1.0, 1.0, (count, len(self.input_sizes)))
        return self.point.inputs + self.input_sizes * moved

    def held_rates(self, x: FloatArray) -> FloatArray:
        """Return the rates at x (m, N) with the inputs of the point, shape (m, N)."""
        return self.rates(x, np.tile(self.point.inputs, (len(x), 1)))

    def rates(self, x: FloatArray, u: FloatArray, *, later: float = 0.0) -> FloatArray:
        """Return the rates (m, N) at x (m, N), u (m, nu), ``later`` s after the point; NaN where there is no answer."""
        self.visits += len(x)
        rates = np.array([self._rates(s, v, later) for s, v in zip(x, u, strict=True)]).reshape(x.shape)
        self.refused += int((~np.isfinite(rates).all(axis=1)).sum())
        return rates

    def _rates(self, x: FloatArray, u: FloatArray, later: float = 0.0) -> FloatArray:
        try:
            return self.model.evaluate(self.point.time + later, x, u).derivatives.copy()
        except (ModelError, NumericalError) as error:
            self._why = str(error)
            return np.full(len(x), np.nan)

    def changed(self, f: FloatArray, held: FloatArray) -> FloatArray:
        """Return f - held, zero where that is no more than noise."""
        change = f - held
        return np.where(np.abs(change) <= FROM_NOISE * self.noise * np.abs(held), 0.0, change)

    def widen(self, angles: frozenset[int]) -> None:
        """Sample angles over most of a turn, where the model can answer there."""
        before = self.reach.copy()
        self.reach[sorted(angles)] = TURNED
        if np.isfinite(self.held_rates(self.states(6))).all(axis=1).sum() < 4:
            self.reach = before

    def crosses_events(self) -> bool:
        """Whether event indicators have another sign at some sampled states than at the point."""
        t, u = self.point.time, self.point.inputs
        try:
            here = self.model.event_indicators(t, self.point.states, u) > 0
            if not len(here):
                return False
            return any(((self.model.event_indicators(t, x, u) > 0) != here).any() for x in self.states(8))
        except (ModelError, NumericalError):
            return False


Mask: TypeAlias = NDArray[np.bool_]

POINTS = 3  # points at which every state is moved alone: equality by chance does not survive
LEAST = 1e-11  # difference of rates, relative to the largest, that is more than rounding
SAME_AGAIN = 1e-7  # change of the rates, relative, that a whole turn of an angle may make: sin(x + 2 pi) is rounded


@dataclass(frozen=True)
class StateKinds:
    """What the states are."""

    # their rates are zero wherever the states are and whatever the inputs do: parameters, in truth
    constant: frozenset[int]
    cyclic: frozenset[int]  # no rate depends on them
    angles: frozenset[int]  # a whole turn changes no rate, a part of it does
    # inputs act on their rates, or they are the rates of other states, or make the rates of positions
    speeds: frozenset[int]
    driven: frozenset[int]  # inputs act on their rates
    reached: frozenset[int]  # inputs act on their rates, or on what their rates depend on
    rate_of: dict[int, int]  # states whose rate is a state, and that state
    groups: tuple[tuple[int, ...], ...]  # states that can meet in one constraint; constant ones in none


def state_kinds(sampler: Sampler) -> StateKinds:
    """Move inputs and states one after the other, and look at the rates."""
    x, u = sampler.states(POINTS), sampler.inputs(POINTS)
    held = sampler.rates(x, np.tile(sampler.point.inputs, (len(x), 1)))
    moved = sampler.rates(x, u)
    fine = np.isfinite(held).all(axis=1) & np.isfinite(moved).all(axis=1)
    x, held, moved = x[fine], held[fine], moved[fine]
    n = len(sampler.point.states)
    least = max(LEAST, FROM_NOISE * sampler.noise)
    driven = _differ(held, moved, least)
    constant: Mask = np.asarray(~(held.any(axis=0) | moved.any(axis=0)))
    rate_of = _pairs(x, held, constant, FROM_NOISE * sampler.noise)
    depends, angle = np.zeros((n, n), dtype=bool), np.zeros(n, dtype=bool)
    for j in np.flatnonzero(~constant):
        step = np.zeros(n)
        step[j] = 0.37 * sampler.reach[j]
        depends[:, j] = _differ(held, sampler.held_rates(x + step), least)
        step[j] = 2 * np.pi
        turned = sampler.held_rates(x + step)
        answers = bool(np.isfinite(turned).all(axis=1).any())
        angle[j] = answers and bool(depends[:, j].any()) and not _differ(held, turned, max(SAME_AGAIN, least)).any()
    cyclic: Mask = ~depends.any(axis=0) & ~constant
    speeds = set(np.flatnonzero(driven).tolist()) | set(rate_of.values())
    positions = (set(np.flatnonzero(cyclic | angle).tolist()) | rate_of.keys()) - speeds
    speeds |= set(np.flatnonzero(depends[sorted(positions)].any(axis=0)).tolist()) - positions
    speeds |= _turning(sampler, x, held, depends, constant, speeds)
    return StateKinds(
        constant=_set(constant),
        cyclic=_set(cyclic),
        angles=_set(angle) - speeds,
        speeds=frozenset(speeds),
        driven=_set(driven),
        reached=_set(_reached(depends, driven)),
        rate_of=rate_of,
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
    noise = noise if noise > LEAST else 0.0
    rate_of: dict[int, int] = {}
    if not len(x):
        return rate_of
    for i in np.flatnonzero(~constant):
        for j in np.flatnonzero((np.abs(f[:, i : i + 1] - x) <= noise * np.abs(x)).all(axis=0)):
            if i != j and j not in rate_of.values():
                rate_of[int(i)] = int(j)
                break
    return rate_of


def _reached(depends: Mask, driven: Mask) -> Mask:
    reached, before = driven.copy(), 0
    while reached.sum() > before:
        before = int(reached.sum())
        reached |= depends[:, reached].any(axis=1)
    return reached


def _turning(
    sampler: Sampler, x: FloatArray, held: FloatArray, depends: Mask, constant: Mask, speeds: set[int]
) -> set[int]:
    """Return states that turn others, as angular speeds do, and hang on each other and on speeds alone."""
    labels = _components(depends, "strong")
    turning: set[int] = set()
    for label in np.unique(labels[~constant]):
        own = set(np.flatnonzero(labels == label).tolist()) - speeds
        moving = np.array(sorted(own | speeds), dtype=np.intp)
        members = np.array(sorted(own), dtype=np.intp)
        still = np.setdiff1d(np.arange(len(labels)), moving)
        turned = still[depends[np.ix_(still, members)].any(axis=1)]
        if not own or not len(turned) or depends[np.ix_(members, still)].any():
            continue
        twice = x.copy()
        twice[:, moving] *= 2  # which is twice the rates of what they turn
        if not _differ(
            2 * held[:, turned], sampler.held_rates(twice)[:, turned], max(SAME_AGAIN, FROM_NOISE * sampler.noise)
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
