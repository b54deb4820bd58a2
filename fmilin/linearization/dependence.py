"""States that were all taken for independent and seem as if they were not.

Constraints that were differentiated until the accelerations follow keep their second derivative at zero, wherever the
states are: combinations w of the states with ``w' f = 0``, which no input moves, left null vectors of ``[A B f0]``.
Moving the states distinguishes rates that happen to be zero, are always zero, or on which none depends.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import join_first
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.sparse import is_sparse
from fmilin.linearization.combinations import FAR_DISPLACEMENT_SIZE, Speeds, examine_combinations
from fmilin.linearization.sparse_dependence import find_sparse_combinations, find_sparse_speeds
from fmilin.manifold.rank import TINY, is_regular, singular_values
from fmilin.model.evaluator import evaluate_each
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.numerics.sparse_rank import find_left_null_space
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import EQUILIBRIUM_RATE_TOLERANCE, RANK, ROUNDING_TOLERANCE, SMALLEST_DIVISOR

MAX_NAMED_STATES = 8
MIN_LARGE_STATES = 200  # from which the rank of [A B f0] is decided without singular values, where that can be done
MANY_ROWS = 64  # from so many on, rows with one entry are eliminated before singular values are computed
MAX_SPARSE_FRACTION = 0.1  # part of its entries up to which it is factorized as a sparse matrix


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
    # The states of a moving point change without any input: the motion is a column of its own.
    if fastest > EQUILIBRIUM_RATE_TOLERANCE:
        moving = np.where(np.abs(rates) > RANK * fastest, rates, 0.0)
        both = np.concatenate((both, moving[:, None]), axis=1)
        error = np.concatenate((error, np.zeros((len(rates), 1))), axis=1)
    entries = np.abs(both)
    rounding = ROUNDING_TOLERANCE * entries.max(axis=1, keepdims=True, initial=0.0)  # each row has its own size
    visible = entries > np.maximum(error, rounding)
    rows = visible.any(axis=1)
    # Larger matrices are factorized as sparse ones instead.
    chosen = list(columns) if len(sizes) < MIN_LARGE_STATES else []
    if chosen and rows.all() and visible[:, chosen].any(axis=0).all() and is_regular(both[:, chosen]):
        return np.zeros((len(sizes), 0))
    still = np.eye(len(sizes))[:, ~rows]
    used = np.ix_(rows, visible.any(axis=0))
    moving = both[used]
    if not moving.size:
        return still
    weights = np.ones((len(moving), 1))
    # Rows and columns in turn: after three rounds both have nearly length one.
    for axis in (1, 0, 1, 0, 1, 0):
        norms = np.maximum(np.sqrt((moving * moving).sum(axis=axis, keepdims=True)), TINY)
        moving = moving / norms
        weights = weights / norms if axis == 1 else weights
    null = find_null_combinations(moving, visible[used])
    if not null.shape[1]:
        return still
    null = null * weights
    embedded = np.zeros((len(sizes), null.shape[1]))
    embedded[rows] = null / np.maximum(np.linalg.norm(null, axis=0), TINY)
    return np.hstack((still, embedded))


def find_null_combinations(matrix: FloatArray, visible: NDArray[np.bool_]) -> FloatArray:
    """Return combinations (m, r) of the rows of a matrix, which have length one, that are zero to working accuracy.

    A large matrix with few entries is factorized as a sparse one; singular values take the cube of its size.
    """
    if len(matrix) >= MIN_LARGE_STATES and np.count_nonzero(matrix) <= MAX_SPARSE_FRACTION * matrix.size:
        from scipy import sparse

        combinations = find_left_null_space(sparse.csr_array(matrix), RANK)
        if combinations is not None:
            return combinations
    m = len(matrix)
    if m >= MANY_ROWS:
        alone = np.flatnonzero(np.count_nonzero(visible, axis=1) == 1)
        pivots, first = np.unique(visible[alone].argmax(axis=1), return_index=True)
        # With fewer of such rows the elimination gains little.
        if 4 * len(pivots) >= m:
            return find_by_elimination(matrix, alone[first], pivots)
    if m >= MIN_LARGE_STATES and matrix.shape[1] >= m and is_regular(matrix[:, :m]):
        return np.zeros((m, 0))
    return find_by_singular_values(matrix, 0.0)


def find_by_elimination(matrix: FloatArray, alone: NDArray[np.intp], pivots: NDArray[np.intp]) -> FloatArray:
    """Return the same where rows ``alone`` have one entry each, in columns ``pivots``, as rates of positions have.

    For what remains without them singular values take an eighth of the time.
    """
    other_rows = np.delete(np.arange(len(matrix)), alone)
    null = find_by_singular_values(np.delete(matrix[other_rows], pivots, axis=1), 1.0)
    combinations = np.zeros((len(matrix), null.shape[1]))
    combinations[other_rows] = null
    combinations[alone] = -(matrix[np.ix_(other_rows, pivots)].T @ null) / matrix[alone, pivots][:, None]
    return combinations


def find_by_singular_values(matrix: FloatArray, least: float) -> FloatArray:
    """Return orthonormal combinations (m, r) of rows, zero relative to the largest singular value or ``least``."""
    m = len(matrix)
    if not matrix.size:
        return np.eye(m)
    s = singular_values(matrix)
    rank = int(np.count_nonzero(s > RANK * max(s[0], least)))
    return np.zeros((m, 0)) if rank == m else np.asarray(np.linalg.svd(matrix)[0][:, rank:])


def find_combinations(linear: LinearModel, model: Model, point: OperatingPoint) -> FloatArray:
    """Return the gradients of what seems to be kept of a model's states, from sparse matrices if there are such."""
    if is_sparse(linear):
        combinations = find_sparse_combinations(linear, model, point)
        if combinations is not None:
            return combinations
    return dependent_combinations(linear, model, point)


def dependent_combinations(linear: LinearModel, model: Model, point: OperatingPoint) -> FloatArray:
    """Return the gradients of what seems to be kept of a model's states, shape (N, k), for states in their sizes."""
    sizes, errors = linear.states.scales(linear.y0), (linear.errors.A, linear.errors.B)
    candidates = find_unmovable((linear.A, linear.B), errors, linear.f0, sizes, linear.inputs.scales())
    influential: NDArray[np.bool_] = np.asarray((np.abs(linear.A) > errors[0]).any(axis=0))
    return examine_combinations(candidates, model, point, sizes, influential)


@dataclass(frozen=True, eq=False)
class StateDependence:
    """Combinations of states, and speeds, that appear to be constant."""

    combinations: FloatArray  # gradients (N, k), for states in their sizes
    free_speeds: Speeds = ()  # speeds of positions that no undeclared loop contains


def find_dependence(
    linear: LinearModel, model: Model, point: OperatingPoint, free_speeds: Speeds = ()
) -> StateDependence:
    """Return combinations of the states of a model without constraints that seem as if they could not change.

    ``free_speeds`` are those that no loop contains, as another point has shown.
    """
    combinations = find_combinations(linear, model, point)
    if combinations.shape[1] or model.freedoms_known:
        return StateDependence(combinations, free_speeds)
    speeds = find_speeds(linear)
    count = len(speeds)
    has_few_functions = count >= 2 and count_functions(count) <= MAX_FUNCTIONS
    sizes = linear.states.scales(linear.y0)
    is_moving = np.abs(linear.f0 / sizes).max(initial=0.0) > EQUILIBRIUM_RATE_TOLERANCE
    # At rest the linear model shows all loops; another point has shown that there is none; or a search takes too long.
    if speeds == free_speeds or not is_moving or not has_few_functions:
        return StateDependence(combinations, free_speeds)
    loops = hidden_loops(model, point, sizes, speeds)
    return StateDependence(loops, free_speeds) if loops.shape[1] else StateDependence(loops, speeds)


def describe_dependence(linear: LinearModel, model: Model, combinations: FloatArray) -> tuple[Remark, ...]:
    """Return a diagnostic if combinations (N, k) of the states seem as if they could not change."""
    count = combinations.shape[1]
    if not count:
        return ()
    part = np.abs(combinations).max(axis=1)
    # parts below a millionth are rounding of the combination
    taking = [name for name, p in zip(linear.states.names, part, strict=True) if p > 1e-6 * part.max()]
    them = f"{join_first(taking, MAX_NAMED_STATES)} take part"
    remark = Remark(
        "dependent-states",
        f"All {len(linear.states)} states were treated as independent, but {count} "
        f"{'combination of them cannot' if count == 1 else 'combinations of them cannot'} change, to first order, "
        f"whatever the inputs do ({them}). Either momentum or the like is conserved, and zero eigenvalues belong to "
        "true rigid motions, or states depend on each other, and some eigenvalues are spurious. fl.discover(model) "
        'distinguishes these cases and finds the constraints; or declare them: constraints=["x^2 + y^2 - L^2"].',
    )
    if model.freedoms_known:
        remark = Remark(
            "conserved-quantity",
            f"{count} combination{'s' * (count > 1)} of the states cannot change, to first order, whatever the inputs "
            f"do ({them}): momentum, or at a moving point energy, is conserved, for these states do not depend on each "
            "other. Zero eigenvalues belong to true rigid motions.",
        )
    return (remark,)


# Undeclared loops, off equilibrium: functions g of positions with g'' = v' D2g v + Dg v' = 0 wherever the
# states are, of which the linear model shows nothing, as where a mechanism falls from a dead centre.

MAX_FUNCTIONS = 300  # one evaluation for each is too many for a warning beyond these


def find_speeds(linear: LinearModel) -> Speeds:
    """Return (position, speed) of the states with another state as rate."""
    n = len(linear.states)
    if not n:
        return ()
    if is_sparse(linear):
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
    # Too few evaluations succeeded for a rank: no loop is claimed.
    if len(rows) <= rows.shape[1]:
        return nothing
    norms = np.maximum(np.linalg.norm(rows, axis=0), SMALLEST_DIVISOR)
    if _are_independent(rows / norms):
        return nothing
    _, s, vt = np.linalg.svd(rows / norms, full_matrices=False)
    conserved = vt[s <= RANK * s[0]] / norms
    conserved = conserved / np.abs(conserved).max(axis=1, keepdims=True, initial=SMALLEST_DIVISOR)
    _, s, vt = np.linalg.svd(conserved[:, p:], full_matrices=False)  # sums of positions alone move on, as momentum does
    bends = np.abs(vt[s > RANK])
    products = zip(*(each.tolist() for each in np.triu_indices(p)), strict=True)
    members = [*products, *((k, k) for k in (*range(p), *range(p)))]
    parts = np.zeros((n, len(bends)))
    for (i, j), part in zip(members, bends.T, strict=True):
        parts[[q[i], q[j], v[i], v[j]]] += part
    return parts


FURTHER_SAMPLES = 10  # more than functions: some evaluations fail, and a rank needs a gap


def count_functions(count: int) -> int:
    """Return the number of the functions q_i, q_i q_j, sin q_i and cos q_i of so many positions."""
    return 3 * count + count * (count + 1) // 2


def _second_rates(model: Model, point: OperatingPoint, sizes: FloatArray, q: FloatArray, v: FloatArray) -> FloatArray:
    """Return g'' of q_i, q_i q_j, sin q_i and cos q_i at random states and inputs, each row in its size."""
    n, input_sizes = len(sizes), model.inputs.scales(point.inputs)
    count = count_functions(len(q)) + FURTHER_SAMPLES
    # any fixed numbers: equal calls give equal results
    moved = np.random.default_rng(1974).uniform(-1.0, 1.0, (count, n + len(input_sizes)))
    states = point.states + FAR_DISPLACEMENT_SIZE * sizes * moved[:, :n]
    inputs = point.inputs + input_sizes * moved[:, n:]
    evaluations = evaluate_each(model, point.time, list(zip(states, inputs, strict=True)))
    answers = [(x, e.derivatives) for x, e in zip(states, evaluations, strict=True) if isinstance(e, Evaluation)]
    if not answers:
        return np.empty((0, count - FURTHER_SAMPLES))
    x_all, f = (np.array(part) for part in zip(*answers, strict=True))
    x, w, a = x_all[:, q], x_all[:, v], f[:, v]
    i, j = np.triu_indices(len(q))
    products = x[:, i] * a[:, j] + 2 * w[:, i] * w[:, j] + x[:, j] * a[:, i]
    sines = np.cos(x) * a - np.sin(x) * w * w
    cosines = -np.sin(x) * a - np.cos(x) * w * w
    rows = np.concatenate((a, products, sines, cosines), axis=1)
    rows = rows[np.isfinite(rows).all(axis=1)]
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), SMALLEST_DIVISOR))


def _are_independent(columns: FloatArray) -> bool:
    """Whether columns are independent beyond doubt, by R of their QR decomposition: singular values take longer."""
    R = np.linalg.qr(columns, mode="r")
    try:
        inverse = np.linalg.inv(R)
    except np.linalg.LinAlgError:
        return False
    return bool(np.linalg.norm(R) * np.linalg.norm(inverse) < 1 / RANK)
