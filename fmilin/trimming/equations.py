"""What must vanish: the invariants, the rates of the states that rest, and the change of those rates.

An equilibrium satisfies h(t, x) = 0 and f(t, x, u) = 0. In a steady motion the states S may move and the others,
the resting ones Z, must not:

    h(t, x) = 0,    f_Z(t, x, u) = 0,    d/dt f_Z = (f_t + f_x f)_Z = 0

The last row says that they stay at rest while S moves; without it a pendulum that swings through its
lowest point at any speed would pass for a steady motion. Which independent states rest does not decide where
the dependent ones go: those are dragged along by the constraints (the rolling disk's u4 and u6 turn with its spin).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.derivatives.differences import slopes
from fmilin.errors import FmilinError, ModelCrashError, NumericalError
from fmilin.manifold.invariants import Invariants
from fmilin.signals import FloatArray
from fmilin.trimming.resting import change_of_rates
from fmilin.trimming.unknowns import Place, Unknowns

__all__ = ["Equations", "Row"]

FOLLOWING = 32
"""Steps in which a steady motion is followed."""

QUICK_STEP = 2.0**-14
"""For Jacobians that only show the way, in sizes of the unknowns."""

NEGLIGIBLE = 1e-7
"""Entries of such a Jacobian below this fraction of their row are noise."""


@dataclass(frozen=True, slots=True)
class Row:
    """One equation: its name, and what one unit of its scaled residual means."""

    kind: str
    """``"constraint"``, ``"rate"`` or ``"change of rate"``."""
    name: str
    size: float


class Equations:
    """The scaled residuals r(z) and their Jacobian.

    Parameters
    ----------
    unknowns : Unknowns
    resting : sequence of int
        The states Z.
    pairs : mapping of int to int
        States whose derivative is another state.
    moving : bool
        Whether any state may move, so that d/dt f_Z is asked for.

    Attributes
    ----------
    resting : array of int
    rows : tuple of Row
    first_order : array of bool, shape (m,)
        All rows but those of d/dt f_Z.
    state_scales : array, shape (N,)
    """

    def __init__(self, unknowns: Unknowns, resting: Sequence[int], pairs: Mapping[int, int], *, moving: bool) -> None:
        self.unknowns = unknowns
        self.pairs = pairs
        self.moving = moving
        self.resting = np.array(resting, dtype=np.intp)
        start = unknowns.start
        self.state_scales = start.model.states.scales(start.states)
        invariants = self._invariants(start)
        sizes = self._constraint_sizes(invariants, start)
        names = [start.model.states.names[i] for i in resting]
        rows = [Row("constraint", name, float(size)) for name, size in zip(invariants.names, sizes, strict=True)]
        for kind in ("rate", "change of rate") if moving else ("rate",):
            rows += [Row(kind, n, float(self.state_scales[i])) for n, i in zip(names, resting, strict=True)]
        self.rows = tuple(rows)
        self._sizes = np.array([row.size for row in rows])
        self.first_order = ~self.kinds("change of rate")

    def kinds(self, kind: str) -> NDArray[np.bool_]:
        """Return which rows are of a kind."""
        return np.array([row.kind == kind for row in self.rows], dtype=bool)

    def values(self, z: FloatArray) -> FloatArray:
        """Return r, shape (m,), constraints in sizes of the states, rates in sizes per second; NaN where undefined."""
        return self.values_at(self.unknowns.at(z))

    def values_at(self, place: Place) -> FloatArray:
        """Return r at a place."""
        try:
            h = self._invariants(place).values(place.time, place.states)
            f = self._rates(place, 0.0, place.states)
            parts = [h, f[self.resting]]
            if self.moving:
                parts.append(change_of_rates(place, f, self.state_scales)[self.resting])
        except ModelCrashError:
            raise
        except FmilinError:
            return np.full(len(self.rows), np.nan)
        r: FloatArray = np.concatenate(parts) / self._sizes
        return r

    def jacobian(self, z: FloatArray, *, exact: bool = True, quick: bool = False) -> tuple[FloatArray, bool]:
        """Return dr/dz, shape (m, n), and whether all of its first-order rows are exact.

        Parameters
        ----------
        z : array, shape (n,)
        exact : bool
            Whether to take the model's own directional derivatives where it has them.
        quick : bool
            Whether differences may be plain central ones: good enough to find the way.
        """
        n = len(self.unknowns)
        known = self._exact(z) if exact else None
        if known is None:
            return self._measured(z, np.arange(n), quick=quick), False
        J = np.full((len(self.rows), n), np.nan)
        J[: len(known)] = known
        missing = np.flatnonzero(~np.isfinite(J).all(axis=0))
        if not len(missing):
            return J, True
        measured = self._measured(z, missing, quick=quick)
        J[:, missing] = np.where(np.isfinite(J[:, missing]), J[:, missing], measured)
        return J, bool(np.isfinite(known).all())

    def described(self, place: Place) -> tuple[FloatArray, FloatArray | None]:
        """Return the rates f and, for a steady motion, how fast they change, (N,) each."""
        f = self._rates(place, 0.0, place.states)
        return f, change_of_rates(place, f, self.state_scales) if self.moving else None

    def followed(self, place: Place) -> FloatArray | None:
        """Return the rates after a while, when the fastest state has moved by its size; None where that fails.

        The states that rest are held, so that an unstable motion is followed as well as a stable one: what
        their rates have become is the answer. Runge and Kutta's formula for the others.
        """
        f = self._rates(place, 0.0, place.states)
        size = float(np.max(np.abs(f) / self.state_scales, initial=0.0))
        if size == 0.0:
            return f
        h, x = 1.0 / (size * FOLLOWING), place.states
        held = np.zeros(len(x), dtype=bool)
        held[self.resting] = True

        def slope(t: float, x: FloatArray) -> FloatArray:
            return np.where(held, 0.0, self._rates(place, t, x))

        try:
            for t in h * np.arange(FOLLOWING):
                k1 = slope(t, x)
                k2 = slope(t + h / 2, x + h / 2 * k1)
                k3 = slope(t + h / 2, x + h / 2 * k2)
                x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(t + h, x + h * k3))
            f = self._rates(place, FOLLOWING * h, x)
        except ModelCrashError:
            raise
        except FmilinError:
            return None
        return f if np.isfinite(f).all() else None

    # -- the parts -----------------------------------------------------------------------------

    def _rates(self, place: Place, delay: float, x: FloatArray) -> FloatArray:
        return place.model.evaluate(place.time + delay, x, place.inputs).derivatives

    def _invariants(self, place: Place) -> Invariants:
        return Invariants(place.model, place.inputs, self.pairs, self.state_scales)

    def _constraint_sizes(self, invariants: Invariants, start: Place) -> FloatArray:
        if not len(invariants):
            return np.empty(0)
        H = invariants.gradient(start.time, start.states).H * self.state_scales
        size = np.linalg.norm(np.nan_to_num(H), axis=1)
        return np.where(size > 1e-9 * max(float(size.max()), 1e-300), size, 1.0)

    def _exact(self, z: FloatArray) -> FloatArray | None:
        """Return the first-order rows of the Jacobian, NaN where there is no exact answer; None when there is none."""
        unknowns, place = self.unknowns, self.unknowns.at(z)
        t, x, u = place.time, place.states, place.inputs
        columns = np.concatenate((unknowns.state_columns, unknowns.input_columns))
        dx, du = np.zeros((len(x), len(columns))), np.zeros((len(u), len(columns)))
        dx[unknowns.states, unknowns.state_columns] = unknowns.scales[unknowns.state_columns]
        du[unknowns.inputs, unknowns.input_columns] = unknowns.scales[unknowns.input_columns]
        try:
            answer = place.model.products(t, x, u, dx, du)
            if answer is None:
                return None
            invariants = self._invariants(place)
            H = invariants.gradient(t, x).H
        except ModelCrashError:
            raise
        except FmilinError:
            return None
        J = np.full((len(H) + len(self.resting), len(unknowns)), np.nan)
        J[: len(H), unknowns.state_columns] = H @ dx[:, unknowns.state_columns]
        J[len(H) :, columns] = answer.derivatives[self.resting]
        if len(H) and len(unknowns.inputs) and not invariants_see_inputs(invariants):
            J[: len(H), unknowns.input_columns] = 0.0
        result: FloatArray = J / self._sizes[: len(J), None]
        return result

    def _measured(self, z: FloatArray, columns: NDArray[np.intp], *, quick: bool) -> FloatArray:
        """Return some columns of the Jacobian by differences, NaN where that fails.

        Entries that are no larger than their error are zero: noise must not look like a way out.
        """
        base = self.values(z)
        if not np.isfinite(base).all():
            return np.full((len(base), len(columns)), np.nan)

        def line(j: int, s: float) -> FloatArray:
            beside = z.copy()
            beside[columns[j]] += s
            return self.values(beside)

        if quick:
            J = np.stack([_slope(line, base, j) for j in range(len(columns))], axis=1)
            return np.where(np.abs(J) > NEGLIGIBLE * np.max(np.abs(J), axis=1, keepdims=True), J, 0.0)
        try:
            found = slopes(line, base, np.ones(len(columns)))
        except NumericalError:
            return np.full((len(base), len(columns)), np.nan)
        return np.where(np.abs(found.J) > 3 * found.error, found.J, 0.0)


def _slope(line: Callable[[int, float], FloatArray], base: FloatArray, j: int) -> FloatArray:
    """Return a column by a plain central difference, or one-sided where the model ends."""
    ahead, behind = line(j, QUICK_STEP), line(j, -QUICK_STEP)
    right, left = (ahead - base) / QUICK_STEP, (base - behind) / QUICK_STEP
    both = np.isfinite(right) & np.isfinite(left)
    return np.where(both, (right + left) / 2, np.where(np.isfinite(right), right, np.nan_to_num(left)))


def invariants_see_inputs(invariants: Invariants) -> bool:
    """Whether inputs may enter the invariants: in an expression, or through rates that only the model knows."""
    constraints = invariants.model.constraints
    if not constraints.analytic.all():
        return True
    inputs = set(invariants.model.inputs.positions)
    if any(inputs.intersection(row.expression.names) for row in constraints.rows):
        return True
    seen = constraints.structure[invariants.hidden]
    unpaired = np.ones(seen.shape[1], dtype=bool)
    unpaired[list(invariants.pairs)] = False
    return bool(seen[:, unpaired].any())
