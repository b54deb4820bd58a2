"""Combinations of the states that cannot change to first order, examined by moving the states.

Rates that happen to be zero, are always zero, or on which none depends are distinguished; what is always kept, or by
curving with the states, remains.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError
from fmilin.manifold.rank import TINY
from fmilin.model.capabilities import read_exact_slopes
from fmilin.model.evaluator import evaluate_each
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.numerics.decompositions import null_space
from fmilin.signals import FloatArray
from fmilin.tolerances import RANK, ROUNDING_TOLERANCE

FAR_DISPLACEMENT_SIZE = 0.3  # how far states are moved, in their sizes, to see whether a rate is always zero
NEAR_DISPLACEMENT_SIZE = 1e-4  # how far they are moved to see whether a combination with curvature stays constant
CURVATURE_RATIO = 1e-2
"""The largest rate of a combination that stays constant, relative to terms of second order: rounding and terms of third
order. A combination that does not stay constant has a rate as large as they are.
"""

MAX_STATES = 45  # of more states, the curvature is not computed: N (N + 1) / 2 evaluations are too many for a warning
MIN_SAMPLES = 1_000
"""Random points at which rates are examined, unless two for each state are fewer: of k combinations a few times k tell
which are always kept."""

Speeds = tuple[tuple[int, int], ...]
"""Which state is the speed of which: (position, speed)."""


def examine_combinations(
    candidates: FloatArray,
    model: Model,
    point: OperatingPoint,
    sizes: FloatArray,
    influential: NDArray[np.bool_] | None = None,
) -> FloatArray:
    """Return those combinations (N, k) that are kept far from the point, too, or by curving with the states.

    ``influential`` (N,) are states of which the linear model shows that rates depend on them.
    """
    if not candidates.shape[1]:
        return candidates
    samples = RateSamples(model, point, sizes, candidates.shape[1])
    candidates = _without(candidates, samples.idle(candidates, influential))
    always = samples.always_conserved(candidates)
    bending = candidates @ null_space((np.linalg.pinv(candidates) @ always).T)
    if len(samples.sizes) <= MAX_STATES:
        bending = samples.conserved_by_bending(bending)
    return np.hstack((_without_totals(always, samples), bending))


class RateSamples:
    """A model at random points near one, states and inputs in their sizes."""

    def __init__(self, model: Model, point: OperatingPoint, sizes: FloatArray, combinations: int) -> None:
        self._model, self._point, self.sizes = model, point, sizes
        # any fixed numbers: equal calls give equal results
        self._random = np.random.default_rng(1916)
        n = len(sizes)
        self.reached = np.zeros(n, dtype=bool)
        slopes = self._find_slopes() if n > MAX_STATES else None
        if slopes is not None:
            # How rates change along each state says at one point what many samples of the rates would.
            self._f = slopes[:, :n].T
            self.reached = np.abs(slopes[:, n:]).max(axis=1, initial=0.0) > 0
            return
        # ten more rows than unknowns: some evaluations fail, and the rank needs a gap
        count = min(2 * n, max(MIN_SAMPLES, 4 * combinations)) + 10
        x, f = self._samples(count, FAR_DISPLACEMENT_SIZE)
        self._f = f
        if len(point.inputs) and len(x):
            base_rates, excited = self._rates([(x[0], point.inputs), (x[0], self._inputs())])
            self.reached = np.abs(excited - base_rates) > ROUNDING_TOLERANCE * np.abs(base_rates)

    def _inputs(self) -> FloatArray:
        u = self._point.inputs
        return u + self._model.inputs.scales(u) * self._random.uniform(-1.0, 1.0, len(u))

    def _find_slopes(self) -> FloatArray | None:
        """Return exact derivatives of the rates at one random point, along states and inputs (N, N + nu), or None."""
        x = FAR_DISPLACEMENT_SIZE * self._random.uniform(-1.0, 1.0, len(self.sizes))
        point, sizes = self._point, self.sizes
        try:
            procedure = read_exact_slopes(self._model, point.time, point.states + x * sizes, self._inputs())
            tangent = None if procedure is None else procedure.along(range(len(x)))
        except FmilinError:
            return None  # the model cannot be evaluated there
        if tangent is None or not np.isfinite(tangent.derivatives).all():
            return None
        units = np.concatenate((sizes, self._model.inputs.scales(point.inputs)))
        return np.asarray(tangent.derivatives * units / sizes[:, None])

    def _rates(self, points: Sequence[tuple[FloatArray, FloatArray]]) -> list[FloatArray]:
        """Return the rates at displacements and inputs (x, u); NaN where the model rejects them."""
        moved = [(self._point.states + x * self.sizes, u) for x, u in points]
        evaluations = evaluate_each(self._model, self._point.time, moved)
        nothing = np.full(len(self.sizes), np.nan)
        return [e.derivatives / self.sizes if isinstance(e, Evaluation) else nothing for e in evaluations]

    def _samples(self, count: int, size: float, *, excited: bool = True) -> tuple[FloatArray, FloatArray]:
        """Return displacements and rates, each (m, N), where the model has an answer."""
        x = size * self._random.uniform(-1.0, 1.0, (count, len(self.sizes)))
        f = np.array(self._rates([(s, self._inputs() if excited else self._point.inputs) for s in x]))
        fine = np.isfinite(f).all(axis=1)
        return x[fine], f[fine]

    def idle(self, candidates: FloatArray, influential: NDArray[np.bool_] | None = None) -> list[int]:
        """Return states that never change, and those that no rate depends on, among those in the candidates.

        Of ``influential`` states (N,) it is certain that rates depend on them.
        """
        if not len(self._f):
            return []
        origin = FAR_DISPLACEMENT_SIZE * self._random.uniform(-1.0, 1.0, len(self.sizes))
        states = np.flatnonzero(np.abs(candidates).max(axis=1) > RANK).tolist()
        changing = [i for i in states if self._f[:, i].any()]
        moving = {i for i in changing if influential is not None and influential[i]}
        doubtful = [i for i in changing if i not in moving]
        moved = [origin + FAR_DISPLACEMENT_SIZE * (np.arange(len(origin)) == i) for i in doubtful]
        here, *displaced = self._rates([(x, self._point.inputs) for x in (origin, *moved)])
        moving |= {i for i, rates in zip(doubtful, displaced, strict=True) if not np.array_equal(rates, here)}
        return [i for i in states if i not in moving]

    def always_conserved(self, candidates: FloatArray) -> FloatArray:
        """Return the combinations with rates of zero far from the point, too: sums with constant factors."""
        if not candidates.shape[1] or not len(self._f):
            return candidates[:, :0]
        rates = self._f @ candidates / np.maximum(np.linalg.norm(self._f, axis=1, keepdims=True), TINY)
        _, s, vt = np.linalg.svd(rates)
        s = np.concatenate((s, np.zeros(len(vt) - len(s))))
        return np.asarray(candidates @ vt[s <= RANK].T)

    def conserved_by_bending(self, candidates: FloatArray) -> FloatArray:
        """Return combinations w with (w + S x)' f = 0 close to the point, to second order, for a symmetric S."""
        n, k = candidates.shape
        if not k:
            return candidates
        upper = np.triu_indices(n)
        # twenty more rows than unknowns: some evaluations fail, and the rank needs a gap
        x, f = self._samples(len(upper[0]) + k + 20, NEAR_DISPLACEMENT_SIZE, excited=False)
        # Too few evaluations succeeded for a rank: no combination is excluded.
        if len(x) <= len(upper[0]) + k:
            return candidates
        products = x[:, :, None] * f[:, None, :]
        bent = (products + np.transpose(products, (0, 2, 1)))[:, upper[0], upper[1]]
        norms = np.linalg.norm(bent, axis=0)
        if not norms.any():
            return candidates
        columns, s, _ = np.linalg.svd(bent[:, norms > 0] / norms[norms > 0], full_matrices=False)
        columns = columns[:, s > CURVATURE_RATIO * NEAR_DISPLACEMENT_SIZE * s[0]]
        rates = f @ candidates
        remainder = rates - columns @ (columns.T @ rates)
        size = NEAR_DISPLACEMENT_SIZE * float(np.linalg.norm(f - f.mean(axis=0)))
        _, s, vt = np.linalg.svd(remainder)
        return np.asarray(candidates @ vt[s <= CURVATURE_RATIO * size].T)


def _without(candidates: FloatArray, states: list[int]) -> FloatArray:
    """Return the part of a span in which these states do not appear."""
    if not states or not candidates.shape[1]:
        return candidates
    return np.asarray(candidates @ null_space(candidates[states], rcond=RANK))


def _without_totals(candidates: FloatArray, samples: RateSamples) -> FloatArray:
    """Leave out what no input acts on and what all adds up with one sign: matter and charge are conserved like that."""
    if not candidates.shape[1]:
        return candidates
    native = candidates / samples.sizes[:, None]
    support = np.abs(candidates).max(axis=1) > RANK
    if not support.any():  # with a state of 1e10, others of 1 leave empty combinations
        return candidates[:, :0]
    if (support & samples.reached).any():
        return candidates
    part = native[support] / np.abs(native[support]).max()
    from scipy import optimize

    program = optimize.linprog(np.zeros(part.shape[1]), A_ub=-part, b_ub=-np.ones(len(part)), bounds=(None, None))
    return candidates[:, :0] if program.status == 0 else candidates
