"""States that were all taken for independent and look as if they were not.

Constraints that were differentiated until the accelerations follow keep their second derivative at zero, wherever the
states are: combinations w of the states with ``w' f = 0``, which no input moves, left null vectors of ``[A B f0]``.
Rates that happen to be zero, are always zero, or on which none depends are told apart by moving the states.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import join_first
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.sparse import is_sparse
from fmilin.manifold.rank import TINY, is_regular, singular_values
from fmilin.model.evaluator import evaluate_each
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.numerics.decompositions import null_space
from fmilin.signals import FloatArray
from fmilin.tolerances import EQUILIBRIUM, RANK, ROUNDING

FAR = 0.3  # how far states are moved, in their sizes, to see whether a rate is always zero
CLOSE = 1e-4  # how far they are moved to see whether a combination bends so that it stays unmoved
BENDS = 1e-2
"""What is left of the rate of a combination that stays unmoved, relative to terms of second order: rounding and terms
of third order. The rate of one that does not is as large as they are."""

MOST_STATES = 45  # of more states, the curvature is not looked at: N (N + 1) / 2 visits are too many for a remark
MOST_NAMED = 8
MIN_SAMPLES = 1_000
"""Random points at which rates are looked at, unless two for each state are fewer: of k combinations a few times k tell
which are always kept."""

Speeds = tuple[tuple[int, int], ...]
"""Which state is the speed of which: (position, speed)."""


def find_unmovable(
    matrices: tuple[FloatArray, FloatArray],
    errors: tuple[FloatArray, FloatArray],
    f0: FloatArray,
    sizes: FloatArray,
    input_sizes: FloatArray,
    columns: Sequence[int] = (),
) -> FloatArray:
    """Return combinations w (N, r), for states in their sizes, that cannot change to first order.

    ``matrices`` are A (N, N) and B (N, nu), and ``errors`` theirs. Where N ``columns`` of both are regular, there are
    no such combinations: the inverse shows that in less time than singular values take.
    """
    # Left null vectors survive any scaling: units, and a mixture of fast and slow states, have no part in the answer.
    units = np.concatenate((sizes, input_sizes))
    both = np.concatenate(matrices, axis=1) * units / sizes[:, None]
    error = np.concatenate(errors, axis=1) * units / sizes[:, None]
    rates = f0 / sizes
    fastest = float(np.abs(rates).max(initial=0.0))
    if fastest > EQUILIBRIUM:
        moving = np.where(np.abs(rates) > RANK * fastest, rates, 0.0)
        both = np.concatenate((both, moving[:, None]), axis=1)
        error = np.concatenate((error, np.zeros((len(rates), 1))), axis=1)
    entries = np.abs(both)
    rounding = ROUNDING * entries.max(axis=1, keepdims=True, initial=0.0)  # each row has its own size
    visible = entries > np.maximum(error, rounding)
    rows = visible.any(axis=1)
    chosen = list(columns)
    if chosen and rows.all() and visible[:, chosen].any(axis=0).all() and is_regular(both[:, chosen]):
        return np.zeros((len(sizes), 0))
    still = np.eye(len(sizes))[:, ~rows]
    moving = both[np.ix_(rows, visible.any(axis=0))]
    if not moving.size:
        return still
    weights = np.ones((len(moving), 1))
    for axis in (1, 0, 1, 0, 1, 0):
        norms = np.maximum(np.sqrt((moving * moving).sum(axis=axis, keepdims=True)), TINY)
        moving = moving / norms
        weights = weights / norms if axis == 1 else weights
    s = singular_values(moving)
    rank = int(np.count_nonzero(s > RANK * s[0]))
    if rank == len(moving):
        return still
    null = np.linalg.svd(moving)[0][:, rank:] * weights
    embedded = np.zeros((len(sizes), null.shape[1]))
    embedded[rows] = null / np.maximum(np.linalg.norm(null, axis=0), TINY)
    return np.hstack((still, embedded))


def find_combinations(linear: LinearModel, model: Model, point: OperatingPoint) -> FloatArray:
    """Return the gradients of what seems to be kept of a model's states, from sparse matrices if there are such."""
    if is_sparse(linear):
        from fmilin.linearization.sparse_dependence import find_sparse_combinations

        combinations = find_sparse_combinations(linear, model, point)
        if combinations is not None:
            return combinations
    return dependent_combinations(linear, model, point)


def dependent_combinations(linear: LinearModel, model: Model, point: OperatingPoint) -> FloatArray:
    """Return the gradients of what seems to be kept of a model's states, shape (N, k), for states in their sizes."""
    sizes, errors = linear.states.scales(linear.y0), (linear.errors.A, linear.errors.B)
    candidates = find_unmovable((linear.A, linear.B), errors, linear.f0, sizes, linear.inputs.scales())
    return examine_combinations(candidates, model, point, sizes)


def examine_combinations(
    candidates: FloatArray,
    model: Model,
    point: OperatingPoint,
    sizes: FloatArray,
    influential: NDArray[np.bool_] | None = None,
) -> FloatArray:
    """Return those combinations (N, k) that are kept far from the point, too, or by bending with the states.

    ``influential`` (N,) are states of which the linear model shows that rates depend on them.
    """
    if not candidates.shape[1]:
        return candidates
    samples = _Samples(model, point, sizes, candidates.shape[1])
    candidates = _without(candidates, samples.idle(candidates, influential))
    always = samples.always_conserved(candidates)
    bending = candidates @ null_space((np.linalg.pinv(candidates) @ always).T)
    if len(samples.sizes) <= MOST_STATES:
        bending = samples.conserved_by_bending(bending)
    return np.hstack((_without_totals(always, samples), bending))


class _Samples:
    """A model at random points near one, states and inputs in their sizes."""

    def __init__(self, model: Model, point: OperatingPoint, sizes: FloatArray, combinations: int) -> None:
        self._model, self._point, self.sizes = model, point, sizes
        self._random = np.random.default_rng(1916)
        n = len(sizes)
        count = min(2 * n, max(MIN_SAMPLES, 4 * combinations)) + 10
        x, f = self._samples(count, FAR)
        self._f = f
        self.reached = np.zeros(n, dtype=bool)
        if len(point.inputs) and len(x):
            held, excited = self._rates([(x[0], point.inputs), (x[0], self._inputs())])
            self.reached = np.abs(excited - held) > ROUNDING * np.abs(held)

    def _inputs(self) -> FloatArray:
        u = self._point.inputs
        return u + self._model.inputs.scales(u) * self._random.uniform(-1.0, 1.0, len(u))

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
        origin = FAR * self._random.uniform(-1.0, 1.0, len(self.sizes))
        states = np.flatnonzero(np.abs(candidates).max(axis=1) > RANK).tolist()
        changing = [i for i in states if self._f[:, i].any()]
        moving = {i for i in changing if influential is not None and influential[i]}
        doubtful = [i for i in changing if i not in moving]
        moved = [origin + FAR * (np.arange(len(origin)) == i) for i in doubtful]
        here, *displaced = self._rates([(x, self._point.inputs) for x in (origin, *moved)])
        moving |= {i for i, rates in zip(doubtful, displaced, strict=True) if not np.array_equal(rates, here)}
        return [i for i in states if i not in moving]

    def always_conserved(self, candidates: FloatArray) -> FloatArray:
        """Return the combinations whose rates are zero far from the point, too: sums with constant factors."""
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
        x, f = self._samples(len(upper[0]) + k + 20, CLOSE, excited=False)
        if len(x) <= len(upper[0]) + k:
            return candidates
        products = x[:, :, None] * f[:, None, :]
        bent = (products + np.transpose(products, (0, 2, 1)))[:, upper[0], upper[1]]
        norms = np.linalg.norm(bent, axis=0)
        if not norms.any():
            return candidates
        columns, s, _ = np.linalg.svd(bent[:, norms > 0] / norms[norms > 0], full_matrices=False)
        columns = columns[:, s > BENDS * CLOSE * s[0]]
        rates = f @ candidates
        left = rates - columns @ (columns.T @ rates)
        size = CLOSE * float(np.linalg.norm(f - f.mean(axis=0)))
        _, s, vt = np.linalg.svd(left)
        return np.asarray(candidates @ vt[s <= BENDS * size].T)


def _without(candidates: FloatArray, states: list[int]) -> FloatArray:
    """Return the part of a span in which these states do not appear."""
    if not states or not candidates.shape[1]:
        return candidates
    return np.asarray(candidates @ null_space(candidates[states], rcond=RANK))


def _without_totals(candidates: FloatArray, samples: _Samples) -> FloatArray:
    """Leave out what no input acts on and what all adds up with one sign: matter and charge are conserved like that."""
    if not candidates.shape[1]:
        return candidates
    native = candidates / samples.sizes[:, None]
    support = np.abs(candidates).max(axis=1) > RANK
    if not support.any():  # a state of 1e10 beside others of 1 leaves combinations of nothing
        return candidates[:, :0]
    if (support & samples.reached).any():
        return candidates
    part = native[support] / np.abs(native[support]).max()
    from scipy import optimize

    program = optimize.linprog(np.zeros(part.shape[1]), A_ub=-part, b_ub=-np.ones(len(part)), bounds=(None, None))
    return candidates[:, :0] if program.status == 0 else candidates


@dataclass(frozen=True, eq=False)
class StateDependence:
    """What looks as if it could not change."""

    combinations: FloatArray  # gradients (N, k), for states in their sizes
    free_speeds: Speeds = ()  # speeds of positions that no undeclared loop contains


def find_dependence(
    linear: LinearModel, model: Model, point: OperatingPoint, free_speeds: Speeds = ()
) -> StateDependence:
    """Return combinations of the states of a model without constraints that look as if they could not change.

    ``free_speeds`` are those that no loop contains, as another point has shown.
    """
    combinations = find_combinations(linear, model, point)
    if combinations.shape[1] or model.freedoms_known:
        return StateDependence(combinations, free_speeds)
    speeds = find_speeds(linear)
    count = len(speeds)
    has_few_functions = count >= 2 and count * (count + 7) // 2 <= MOST_FUNCTIONS
    sizes = linear.states.scales(linear.y0)
    is_moving = np.abs(linear.f0 / sizes).max(initial=0.0) > EQUILIBRIUM
    if speeds == free_speeds or not is_moving or not has_few_functions:
        return StateDependence(combinations, free_speeds)
    loops = hidden_loops(model, point, sizes, speeds)
    return StateDependence(loops, free_speeds) if loops.shape[1] else StateDependence(loops, speeds)


def describe_dependence(linear: LinearModel, model: Model, combinations: FloatArray) -> tuple[Remark, ...]:
    """Return a diagnostic if combinations (N, k) of the states look as if they could not change."""
    count = combinations.shape[1]
    if not count:
        return ()
    part = np.abs(combinations).max(axis=1)
    taking = [name for name, p in zip(linear.states.names, part, strict=True) if p > 1e-6 * part.max()]
    them = f"{join_first(taking, MOST_NAMED)} take part"
    remark = Remark(
        "dependent-states",
        f"All {len(linear.states)} states were treated as independent, but {count} "
        f"{'combination of them cannot' if count == 1 else 'combinations of them cannot'} change, to first order, "
        f"whatever the inputs do ({them}). Either momentum or the like is conserved, and zero eigenvalues belong to "
        "true rigid motions, or states depend on each other, and some of the eigenvalues belong to no motion. "
        "fl.discover(model) distinguishes these cases and finds the constraints; or declare them: "
        'constraints=["x^2 + y^2 - L^2"].',
    )
    if model.freedoms_known:
        remark = Remark(
            "conserved-quantity",
            f"{count} combination{'s' * (count > 1)} of the states cannot change, to first order, whatever the inputs "
            f"do ({them}): momentum, or at a moving point energy, is conserved, for these states do not depend on each "
            "other. Zero eigenvalues belong to true rigid motions.",
        )
    return (remark,)


# Loops that nobody declared, off equilibrium: functions g of positions with g'' = v' D2g v + Dg v' = 0 wherever the
# states are, of which the linear model shows nothing, as where a mechanism falls from a dead centre.

MOST_FUNCTIONS = 300  # one visit for each is too many for a remark beyond these


def find_speeds(linear: LinearModel) -> Speeds:
    """Return (position, speed) of the states whose rate is another state."""
    n = len(linear.states)
    if not n:
        return ()
    if is_sparse(linear):
        from fmilin.linearization.sparse_dependence import find_sparse_speeds

        return find_sparse_speeds(linear)
    A = linear.A
    rows, other = np.arange(n), A.argmax(axis=1)
    is_alone = (A[rows, other] == 1) & (np.count_nonzero(A, axis=1) == 1) & (rows != other)
    is_speed = is_alone & ~linear.B.any(axis=1) & (linear.f0 == linear.y0[other])
    return tuple((i, int(other[i])) for i in np.flatnonzero(is_speed).tolist())


def hidden_loops(model: Model, point: OperatingPoint, sizes: FloatArray, speeds: Speeds) -> FloatArray:
    """Return how much each state takes part in each loop, shape (N, k): products, sines and cosines of positions."""
    n, p = len(sizes), len(speeds)
    nothing = np.zeros((n, 0))
    q, v = np.array(speeds).T
    rows = _second_rates(model, point, sizes, q, v)
    if len(rows) <= rows.shape[1]:
        return nothing
    norms = np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
    if _are_independent(rows / norms):
        return nothing
    _, s, vt = np.linalg.svd(rows / norms, full_matrices=False)
    kept = vt[s <= RANK * s[0]] / norms
    kept = kept / np.abs(kept).max(axis=1, keepdims=True, initial=1e-300)
    _, s, vt = np.linalg.svd(kept[:, p:], full_matrices=False)  # sums of positions alone move on, as momentum does
    bends = np.abs(vt[s > RANK])
    products = zip(*(each.tolist() for each in np.triu_indices(p)), strict=True)
    members = [*products, *((k, k) for k in (*range(p), *range(p)))]
    parts = np.zeros((n, len(bends)))
    for (i, j), part in zip(members, bends.T, strict=True):
        parts[[q[i], q[j], v[i], v[j]]] += part
    return parts


def _second_rates(model: Model, point: OperatingPoint, sizes: FloatArray, q: FloatArray, v: FloatArray) -> FloatArray:
    """Return g'' of q_i, q_i q_j, sin q_i and cos q_i at random states and inputs, each row in its size."""
    n, input_sizes = len(sizes), model.inputs.scales(point.inputs)
    count = len(q) * (len(q) + 7) // 2 + 10
    moved = np.random.default_rng(1974).uniform(-1.0, 1.0, (count, n + len(input_sizes)))
    states = point.states + FAR * sizes * moved[:, :n]
    inputs = point.inputs + input_sizes * moved[:, n:]
    evaluations = evaluate_each(model, point.time, list(zip(states, inputs, strict=True)))
    answers = [(x, e.derivatives) for x, e in zip(states, evaluations, strict=True) if isinstance(e, Evaluation)]
    if not answers:
        return np.empty((0, count - 10))
    x_all, f = (np.array(part) for part in zip(*answers, strict=True))
    x, w, a = x_all[:, q], x_all[:, v], f[:, v]
    i, j = np.triu_indices(len(q))
    products = x[:, i] * a[:, j] + 2 * w[:, i] * w[:, j] + x[:, j] * a[:, i]
    sines = np.cos(x) * a - np.sin(x) * w * w
    cosines = -np.sin(x) * a - np.cos(x) * w * w
    rows = np.concatenate((a, products, sines, cosines), axis=1)
    rows = rows[np.isfinite(rows).all(axis=1)]
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))


def _are_independent(columns: FloatArray) -> bool:
    """Whether columns are independent beyond doubt, by R of their QR decomposition: singular values take longer."""
    R = np.linalg.qr(columns, mode="r")
    try:
        inverse = np.linalg.inv(R)
    except np.linalg.LinAlgError:
        return False
    return bool(np.linalg.norm(R) * np.linalg.norm(inverse) < 1 / RANK)
