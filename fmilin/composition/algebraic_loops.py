"""Derivatives of a connected system at a point, (I - K D) dv = K C dx + L dw and dy = C dx + D dv, and algebraic loops.

Loops v = answer(v) are solved by Newton's method; what is said where there is no solution stands here, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import matrix_balance

from fmilin.composition.members import Members, Wires
from fmilin.composition.system_declaration import in_member
from fmilin.errors import FmilinError, NumericalError, quote_first
from fmilin.model.capabilities import read_products
from fmilin.model.interface import Model
from fmilin.signals import FloatArray
from fmilin.tolerances import EPS, LOOP_GAP_TOLERANCE, SINGULAR_LOOP_TOLERANCE, TRIM_DISTANCE_TOLERANCE

MAX_ITERATIONS = 60
SLOW_CONVERGENCE_RATIO = 0.05  # A step that leaves more than this part of the gap asks for new derivatives
MIN_STEP_FRACTION = 2.0**-12
Function = Callable[[FloatArray], FloatArray]


class LoopSolver:
    """Newton's method for one loop; the derivatives of the last point serve as long as they close the gap quickly."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._J: FloatArray | None = None

    def solve(self, v: FloatArray, answer: Function, slopes: Function) -> FloatArray:
        """Return the solution of v = answer(v) by Newton's method from ``v`` (k,); ``slopes`` returns K D (k, k)."""
        returned = answer(v)
        gap = returned - v
        fresh = self._J is None
        if fresh:
            self._J = np.eye(len(v)) - slopes(v)
        for _ in range(MAX_ITERATIONS):
            if not np.isfinite(gap).all():
                break
            if (np.abs(gap) <= 4 * EPS * (np.abs(v) + np.abs(returned))).all():
                return v
            assert self._J is not None  # noqa: S101 - set above
            step = _solve_linear(self._J, gap)
            length, moved = 1.0, None
            while length >= MIN_STEP_FRACTION:
                trial = v + length * step
                trial_returned = self._try_answer(answer, trial)
                trial_gap = trial_returned - trial
                if _size(trial_gap, trial) < _size(gap, v):
                    moved = (trial, trial_returned, trial_gap)
                    break
                if not fresh:
                    break
                length /= 2
            if moved is None:
                if fresh:
                    break
                self._J, fresh = np.eye(len(v)) - slopes(v), True
                continue
            slow = _size(moved[2], moved[0]) > SLOW_CONVERGENCE_RATIO * _size(gap, v)
            v, returned, gap = moved
            fresh = False
            if slow:
                self._J, fresh = np.eye(len(v)) - slopes(v), True
        if self._is_solution(v, gap, slopes):
            answer(v)
            return v
        self._J = None
        require_solvable(slopes(v), self._names)
        raise NumericalError(
            f"The algebraic loop through {quote_first(self._names, 6)} has no solution near the last one: Newton's "
            f"method stops where its inputs still differ by {np.max(np.abs(gap)):.3g} from their sources. Start "
            "elsewhere, or break the loop by a state (a filter, a delay).",
            variable=self._names[0],
        )

    @staticmethod
    def _is_solution(v: FloatArray, gap: FloatArray, slopes: Function) -> bool:
        """Whether a gap that could not be made smaller is a solution: it and the Newton step are small.

        Where what feeds the inputs follows them nearly one to one a small gap is not a small distance.
        """
        sizes = np.maximum(1.0, np.abs(v))
        if not (np.isfinite(gap).all() and (np.abs(gap) <= LOOP_GAP_TOLERANCE * sizes).all()):
            return False
        step = _solve_linear(np.eye(len(v)) - slopes(v), gap)
        return bool((np.abs(step) <= TRIM_DISTANCE_TOLERANCE * sizes).all())

    @staticmethod
    def _try_answer(answer: Function, v: FloatArray) -> FloatArray:
        try:
            return answer(v)
        except NumericalError:  # a step too far: a shorter one may do
            return np.full(len(v), np.nan)


def _size(gap: FloatArray, v: FloatArray) -> float:
    size = float(np.max(np.abs(gap) / np.maximum(1.0, np.abs(v)), initial=0.0))
    return size if np.isfinite(size) else np.inf


def _solve_linear(J: FloatArray, gap: FloatArray) -> FloatArray:
    if not np.isfinite(J).all():
        return gap
    try:
        return np.asarray(np.linalg.solve(J, gap), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(J, gap)[0], dtype=np.float64)


def require_solvable(KD: FloatArray, names: Sequence[str]) -> None:
    """Reject a loop with det(I - K D) = 0."""
    if not np.isfinite(KD).all():
        return
    balanced = matrix_balance(KD, permute=False)[0]  # units must not decide
    _, values, directions = np.linalg.svd(np.eye(len(KD)) - balanced)
    if values[-1] > SINGULAR_LOOP_TOLERANCE * (1.0 + np.linalg.norm(balanced)):
        return
    moved = [name for name, part in zip(names, directions[-1], strict=True) if abs(part) > 1e-3] or list(names)
    raise NumericalError(
        f"The algebraic loop through {quote_first(moved, 6)} has no solution, or infinitely many: the sources of "
        "these inputs follow them one to one (det(I - K D) = 0). Remove a connection, or put a state (a filter, a "
        "delay) into the loop.",
        variable=moved[0],
    )


Solve = Callable[[FloatArray], FloatArray]


class MemberSlopes(NamedTuple):
    """The derivatives of one member, and its position among all."""

    over_states: FloatArray  # (n + ny, n), A above C
    over_inputs: FloatArray  # (n + ny, nv), B above D
    states: slice
    inputs: slice
    outputs: slice

    def add(self, matrix: FloatArray, along: FloatArray, rates: FloatArray | None, outputs: FloatArray) -> None:
        """Add ``matrix`` times ``along`` to rates and outputs; without rates ``matrix`` has the rows of outputs."""
        moved = _find_nonzero_columns(along)
        if moved is None or not matrix.shape[0]:
            return
        products = _product(matrix, along[:, moved])
        if rates is not None:
            n = self.states.stop - self.states.start
            rates[self.states, moved] += products[:n]
            products = products[n:]
        outputs[self.outputs, moved] += products


def _find_nonzero_columns(along: FloatArray) -> slice | np.ndarray | None:
    """Return the columns that are not zero: as a slice where they are neighbours, or None."""
    if not along.shape[0]:
        return None
    bits = np.ascontiguousarray(along).view(np.uint64)  # quicker than asking every number whether it is zero
    columns = np.flatnonzero(np.bitwise_or.reduce(bits, axis=0))
    if not len(columns):
        return None
    first, last = int(columns[0]), int(columns[-1])
    return slice(first, last + 1) if last - first + 1 == len(columns) else columns


def _product(matrix: FloatArray, along: FloatArray) -> FloatArray:
    """Return a product in which what is unknown (NaN) spreads only where it is met."""
    product: FloatArray = matrix @ along
    if np.isfinite(product.sum()):  # one number tells of all; a sum that overflows goes the long way, too
        return product
    unknown = np.isnan(matrix).astype(float) @ (along != 0) + (matrix != 0).astype(float) @ np.isnan(along)
    return np.where(unknown > 0, np.nan, np.nan_to_num(matrix) @ np.nan_to_num(along))


@dataclass(frozen=True)
class Jacobians:
    """All derivatives at one point."""

    members: Sequence[MemberSlopes]
    feeds: Solve  # K times columns of outputs, shape (nv, k)
    leads: Solve  # L times columns of inputs of the system
    closed: Solve  # (I - K D)^-1 times columns
    sizes: tuple[int, int, int]  # states, inputs and outputs of all members

    def through(self, dx: FloatArray, du: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how all rates, outputs and inputs of members change, shapes (N, k), (ny, k) and (nv, k)."""
        k = dx.shape[1]
        rates, outputs = np.zeros((self.sizes[0], k)), np.zeros((self.sizes[2], k))
        for m in self.members:
            m.add(m.over_states, dx[m.states], rates, outputs)
        dv = self.closed(self.feeds(outputs) + self.leads(du))
        for m in self.members:
            m.add(m.over_inputs, dv[m.inputs], rates, outputs)
        return rates, outputs, dv

    def spread(self, rates: FloatArray, outputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what errors of members' derivatives become: dv is wrong by |S K| times those of the outputs."""
        moved = np.abs(self.closed(self.feeds(np.eye(self.sizes[2])))) @ outputs
        rates, outputs = rates.copy(), outputs.copy()
        for m in self.members:
            m.add(np.abs(m.over_inputs), moved[m.inputs], rates, outputs)
        return rates, outputs


def compute_structure(
    members: Members, wires: Wires, depends: Sequence[NDArray[np.bool_]], count: int
) -> tuple[Any, Any, Any, Any, Any]:
    """Return sparse patterns of A, B, C, D, and of members' inputs by (states, inputs w), shape (nv, N + count)."""
    blocks: list[list[NDArray[np.bool_]]] = [[], [], [], []]
    for part, at_once in zip(members.parts, depends, strict=True):
        model = part.model
        n, declared = len(model.states), model.structure
        shape = (n + len(model.outputs), n + len(model.inputs))
        full = np.ones(shape, dtype=bool) if declared is None else declared.copy()
        for row, copy in model.copies.items():
            full[n + row] = False
            full[n + row, copy.index + (0 if copy.kind == "state" else n)] = True
        if declared is None:
            full[n:, n:] &= at_once
        for block, matrix in zip(blocks, (full[:n, :n], full[:n, n:], full[n:, :n], full[n:, n:]), strict=True):
            block.append(matrix)
    # of sparse matrices: those of dense ones are deprecated since scipy 1.18
    sparse_blocks = [[sparse.csr_matrix(b.astype(float)) for b in block] for block in blocks]
    joined: list[Any] = [sparse.block_diag(block, format="csr") for block in sparse_blocks]
    A, B, C, D = joined
    K, L = (abs(matrix) for matrix in wires.selections(members.size[2], count))
    direct = _pattern(sparse.hstack([K @ C, L], format="csr"))
    reached, loop = direct, _pattern(K @ D)
    while True:
        more = _pattern(direct + loop @ reached)
        if more.nnz == reached.nnz:
            return A, B, C, D, reached
        reached = more


def _pattern(matrix: Any) -> Any:
    pattern = matrix.tocsr()
    pattern.eliminate_zeros()
    pattern.data[:] = 1.0
    return pattern


POINTS = 3
EXCURSION_SIZE = 0.1  # how far from the start the second and third look are, in sizes of states and inputs
STEP = 2.0**-20  # of differences along inputs, in their sizes: they steer Newton's method and nothing else


def depends_at_once(name: str, model: Model) -> NDArray[np.bool_]:
    """Return which outputs depend on inputs without delay, (ny, nu): as declared, as derivatives show it, else all."""
    n = len(model.states)
    if model.structure is not None:
        depends = model.structure[n:, n:].copy()
    else:
        with in_member(name):
            depends = _probe_dependence(model)
    for row, copy in model.copies.items():
        depends[row] = False
        if copy.kind == "input":
            depends[row, copy.index] = True
    return depends


def _probe_dependence(model: Model) -> NDArray[np.bool_]:
    k, start = len(model.inputs), model.start
    depends = np.zeros((len(model.outputs), k), dtype=bool)
    if not depends.size:
        return depends
    random, evaluated = np.random.default_rng(2027), 0
    for number in range(POINTS):
        x, u = (
            values + (EXCURSION_SIZE * random.uniform(-1, 1, len(values)) * signals.scales(values) if number else 0.0)
            for values, signals in ((start.states, model.states), (start.inputs, model.inputs))
        )
        try:
            D = read_products(model, start.time, x, u, np.zeros((len(x), k)), np.eye(k))
        except FmilinError:
            continue
        if D is None:
            break
        evaluated += 1
        depends |= ~(D.outputs == 0.0)
    return depends if evaluated else np.ones_like(depends)


def input_slopes(model: Model, at: tuple[float, FloatArray, FloatArray], columns: NDArray[np.intp]) -> FloatArray:
    """Return D along some inputs, shape (ny, columns): exact where the model has it, else by forward differences."""
    t, x, u = at
    du = np.zeros((len(u), len(columns)))
    du[columns, np.arange(len(columns))] = 1.0
    derivatives = read_products(model, t, x, u, np.zeros((len(x), len(columns))), du)
    if derivatives is not None and np.isfinite(derivatives.outputs).all():
        return derivatives.outputs
    base, sizes = model.evaluate(t, x, u).outputs, model.inputs.scales(u)
    slopes = np.empty((len(base), len(columns)))
    for j, column in enumerate(columns):
        moved = u.copy()
        moved[column] += STEP * sizes[column]
        slopes[:, j] = (model.evaluate(t, x, moved).outputs - base) / (moved[column] - u[column])
    return slopes
