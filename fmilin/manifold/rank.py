"""How many of the invariants are independent, and singular configurations, where fewer are than near them.

There, branches of motion cross, and the velocities with G v = 0 are more than those of any branch. The multipliers are
not determined: the self-stress s of the redundant constraints may be added. Along a branch with direction a, G a = 0
and s . D^2 g [a, a] = 0, the frequency is intrinsic, w^2 = - a' (de/dq) a / (a' M a), e = F - G' lambda (González et
al., section 5.1).
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import join_first
from fmilin.model.capabilities import read_second_order_form
from fmilin.model.equation_forms import SecondOrderForm
from fmilin.model.interface import Model, OperatingPoint
from fmilin.numerics.decompositions import column_space, decompose_by_singular_values
from fmilin.numerics.lapack import lapack
from fmilin.signals import FloatArray
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import CLEAR_GAP, RANK, RANK_MEASURED, RANK_UNKNOWN

ROW_ROUNDING_TOLERANCE = 1e-12  # part of its terms up to which a row of a gradient is rounding
MAX_REGULAR_CONDITION_NUMBER = (
    1e-3 / RANK
)  # condition number up to which a matrix is regular beyond doubt: singular values need not tell
TINY = float(np.finfo(float).tiny)


@cache
def fixed_direction(seed: int, low: float, count: int) -> FloatArray:
    """Return a direction with random components from ``low`` to 1, the same every time, shape (count,)."""
    return np.random.default_rng(seed).uniform(low, 1.0, count)


@dataclass(frozen=True, slots=True)
class RankDecision:
    """The rank of a scaled matrix and how clear the case is."""

    rank: int
    gap: float  # smallest accepted over largest rejected; infinite when nothing was rejected
    rejected: float = 0.0  # largest rejected singular value, relative to the largest

    @property
    def is_clear(self) -> bool:
        """Whether the gap leaves no doubt."""
        return self.gap > CLEAR_GAP


def scaled(H: FloatArray, scales: FloatArray, terms: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return H (m, N), columns scaled and rows normalized (0 where rounding), and what each was divided by (m,)."""
    rows = H * scales
    norms = np.linalg.norm(rows, axis=1)
    floor = np.maximum(ROW_ROUNDING_TOLERANCE * terms, TINY)
    # Ten times: the error of a measured gradient is an estimate. A row below that may be zero.
    if error.any():
        floor = np.maximum(floor, 10 * np.linalg.norm(error * scales, axis=1))
    keep = norms > floor
    sizes = np.where(keep, norms, np.where(terms > 0, terms, 1.0))
    return np.where(keep[:, None], rows / sizes[:, None], 0.0), sizes


def row_sizes(H: FloatArray, terms: FloatArray) -> FloatArray:
    """Return what rows of H (m, N), columns scaled, are to be divided by: infinity for rows that are rounding.

    ``terms`` (m,) are the sizes of what the rows are sums of: :attr:`Gradient.reference` of the invariants. The rate of
    |q|^2 = 1 along rates that keep it has a gradient of 1e-17, which a norm would make a constraint of.
    """
    norms = np.linalg.norm(H, axis=1)
    return np.where(norms > np.maximum(ROW_ROUNDING_TOLERANCE * terms, TINY), norms, np.inf)


def threshold(H: FloatArray, scales: FloatArray, error: FloatArray) -> float:
    """Return the part of the largest singular value that counts as zero: :data:`RANK`, or what errors make of one."""
    if not error.any():
        return RANK
    norms = np.linalg.norm(H * scales, axis=1)
    relative = np.linalg.norm(error * scales, axis=1) / np.where(norms > 0, norms, np.inf)
    # Rows with an error of a tenth and more count as rounding in :func:`scaled`, and have no part in the matrix.
    return float(np.clip(np.linalg.norm(relative[relative < 0.1]), RANK_MEASURED, RANK_UNKNOWN))


def decide_rank(Hs: FloatArray, threshold: float = RANK) -> RankDecision:
    """Decide the rank of a scaled matrix (:func:`scaled`), shape (m, N)."""
    if min(Hs.shape) == 0:
        return RankDecision(0, np.inf)
    sigma = singular_values(Hs)
    if sigma[0] == 0.0:
        return RankDecision(0, np.inf)
    rank = int(np.count_nonzero(sigma > threshold * sigma[0]))
    rejected = sigma[rank] if rank < len(sigma) else 0.0
    gap = float(sigma[rank - 1] / rejected) if rejected > 0 else np.inf
    return RankDecision(rank, gap, float(rejected / sigma[0]))


def singular_values(matrix: FloatArray) -> FloatArray:
    """Return the singular values of a finite matrix, largest first."""
    _, sigma, _, failed = lapack.dgesdd(matrix, compute_uv=0)  # what numpy.linalg.svd does, without its checks
    if failed:
        raise np.linalg.LinAlgError("The singular values of a matrix do not exist, because it is not finite.")
    return np.asarray(sigma)


def independent_rows(Hs: FloatArray, rank: int, preferred: int) -> list[int]:
    """Return ``rank`` independent rows of a scaled matrix by pivoted QR, the first ``preferred`` before others."""
    if rank == len(Hs):  # the singular values have decided; the QR would leave nearly parallel rows out
        return list(range(rank))
    first = _pivoted(Hs[:preferred], rank)
    if len(first) == rank:
        return sorted(first)
    rest = Hs[preferred:]
    if first:
        basis = column_space(Hs[first].T)
        rest = rest - (rest @ basis) @ basis.T
    # The rank is decided: what remains of these rows may be small as a whole, and is taken all the same.
    second = [preferred + i for i in _pivoted(rest, rank - len(first), relative=False)]
    return sorted(first + second)


def _pivoted(rows: FloatArray, count: int, *, relative: bool = True) -> list[int]:
    if len(rows) == 0 or count == 0:
        return []
    diagonal, order = pivoted_qr(rows.T)
    floor = RANK * diagonal[0] if relative else 0.0
    usable = int(np.count_nonzero(diagonal > floor))
    return [int(i) for i in order[: min(count, usable)]]


def pivoted_qr(matrix: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
    """Return the diagonal of R, absolute, and the order of the columns in a QR decomposition with column pivoting."""
    n = matrix.shape[1]
    packed, order, *_ = lapack.dgeqp3(matrix, lwork=2 * n + 32 * (n + 1))  # what scipy.linalg.qr does, without Q
    return np.abs(np.diagonal(packed)), order.astype(np.intp) - 1


def choose_regular_columns(matrix: FloatArray) -> list[int]:
    """Return m columns of a matrix (m, N) that are regular together; none where there are none."""
    largest = np.abs(matrix).max(axis=1, keepdims=True, initial=0.0)
    if not len(matrix) or not (largest > 0).all():
        return []
    _, order = pivoted_qr(matrix / largest)
    columns = sorted(order[: len(matrix)].tolist())
    return columns if is_regular(matrix[:, columns]) else []


def is_regular(matrix: FloatArray) -> bool:
    """Whether a square matrix is regular beyond doubt, by the condition of its scaled rows in Frobenius norms."""
    largest = np.abs(matrix).max(axis=1, keepdims=True, initial=0.0)
    if not (largest > 0).all():
        return False
    scaled = matrix / largest
    try:
        inverse = np.linalg.inv(scaled)
    except np.linalg.LinAlgError:
        return False
    return bool(np.vdot(scaled, scaled) * np.vdot(inverse, inverse) <= MAX_REGULAR_CONDITION_NUMBER**2)


def describe_singularity(model: Model, point: OperatingPoint) -> str:
    """Return a sentence about the singular configuration at ``point``; empty if it is regular or cannot be tested."""
    form = read_second_order_form(model, point.time, point.states, point.inputs)
    if form is None:
        return ""
    scales = model.states.scales(point.states)[form.positions]
    rank, nearby = _rank(form.G * scales), _rank_nearby(model, point, form)
    if rank >= nearby:
        return ""
    return (
        f"The point is a singular configuration: {rank} constraints are independent here, {nearby} near it. Branches "
        f"of motion cross{'' if branch_frequencies(form) else ', or a motion is free to first order only'}: the "
        "feasible motions form no vector space, so there is no linear model of them. Choose a point near it: "
        "fl.operating_point(model, {'NAME': VALUE}), or use the enlarged set of velocities: at_singularity=True."
    )


def branch_frequencies(form: SecondOrderForm) -> list[tuple[FloatArray, float]]:
    """Return (direction a, w^2) of each of two crossing branches: one self-stress, two null velocities; else none."""
    from scipy import linalg

    U, sigma, Vt = decompose_by_singular_values(form.G)
    rank = int(np.count_nonzero(sigma > RANK * sigma[0]))
    K, stress = Vt[rank:].T, U[:, rank:]
    # One quadratic form in two unknowns has two directions; others need equations of higher order.
    if K.shape[1] != 2 or stress.shape[1] != 1:
        return []
    # The quadratic form Q(c) = s . D^2 g [K c, K c], by polarization.
    q = [float(stress[:, 0] @ form.bend(K @ np.array(c))) for c in ((1.0, 0.0), (0.0, 1.0), (1.0, 1.0))]
    Q = np.array([[q[0], (q[2] - q[0] - q[1]) / 2], [(q[2] - q[0] - q[1]) / 2, q[1]]])
    values, vectors = linalg.eigh(Q)
    if values[0] >= 0 or values[1] <= 0:
        return []  # an isolated configuration: no branch passes
    branches = []
    for sign in (1.0, -1.0):
        a = K @ (np.sqrt(values[1]) * vectors[:, 0] + sign * np.sqrt(-values[0]) * vectors[:, 1])
        stiffness = -float(a @ form.force_states[:, form.positions] @ a)
        branches.append((a / np.max(np.abs(a)), stiffness / float(a @ form.M @ a)))
    return branches


def explanation(model: Model, form: SecondOrderForm, p: int) -> Remark:
    """Say what the spectrum over p free velocities at a singular configuration means, and what is intrinsic."""
    rank = _rank(form.G)
    text = (
        f"Singular configuration: {rank} of {len(form.G)} constraints are independent here, which leaves {p} "
        "instantaneous degrees of freedom. These eigenvalues belong to the enlarged set of velocities with the "
        "multipliers of least norm; they are not intrinsic, since the self-stress of the dependent constraints is "
        "undetermined."
    )
    branches = branch_frequencies(form)
    names = [model.states.names[i] for i in form.positions]
    for k, (a, w2) in enumerate(branches, 1):
        # The largest component is 1: below 1e-9 they are rounding.
        moving = join_first((f"{names[i]} {a[i]:+.3g}" for i in np.flatnonzero(np.abs(a) > 1e-9)), 6)
        kind = f"frequency {np.sqrt(w2):.10g} rad/s" if w2 >= 0 else f"growth {np.sqrt(-w2):.10g} 1/s"
        text += f" Intrinsic along branch {k} of motion ({moving}): {kind}."
    return Remark("singular", text)


def is_rank_deficient(form: SecondOrderForm) -> bool:
    """Whether constraints depend on each other."""
    return _rank(form.G) < len(form.G)


def _rank(G: FloatArray) -> int:
    sigma = singular_values(G) if G.size else np.zeros(0)
    return int(np.count_nonzero(sigma > RANK * float(np.max(sigma, initial=0.0))))


def _rank_nearby(model: Model, point: OperatingPoint, form: SecondOrderForm) -> int:
    """Return the rank of G at points near this one: rank can only be lost on a thin set."""
    random, best = np.random.default_rng(2016), 0
    scales = model.states.scales(point.states)
    for _ in range(3):
        x = point.states.copy()
        x[form.positions] += 1e-3 * scales[form.positions] * random.uniform(-1, 1, len(form.positions))
        nearby = read_second_order_form(model, point.time, x, point.inputs)
        if nearby is not None:
            best = max(best, _rank(nearby.G * scales[form.positions]))
    return best
