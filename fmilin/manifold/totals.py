"""Linear totals that no motion changes: the content of a closed network, atoms of a reaction, momentum.

A total l'x is conserved where l'f(x) vanishes at all points, not at one: the left null space of rates at many points of
the manifold. On the set where such totals have the values of the start there may be more: of two bodies that only pull
at each other the momentum is conserved, and where it is zero the centre of mass stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.declared import Constraint
from fmilin.constraints.expressions import name_in_expression
from fmilin.errors import REFUSALS
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.projection import project
from fmilin.manifold.selection import find_kinematic_pairs
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.tolerances import DISCOVERED_GAP, DISCOVERY_TOLERANCE

SAMPLE_SPREAD_SIZES = (
    0.3,
    0.1,
    0.03,
    0.01,
)  # of the samples, in sizes of the states: the widest at which the model is defined
MORE_SAMPLES = 8  # than states
TIME_SPREAD_SECONDS = 1e-2  # of the samples: x' = -t x vanishes at t = 0, and x is not conserved
ROUNDS = 3  # each samples points with the totals found so far: others may hold only there
MAX_STATES = 400  # more would take as many evaluations
ZERO = 1e-9  # of the largest coefficient of a total; of a total relative to its terms
MAX_LISTED_TERMS = 6  # terms of a total that a diagnostic lists


@dataclass(frozen=True, eq=False)
class Totals:
    """Linear totals of the states and the values that they have at the start."""

    coefficients: FloatArray  # (k, N)
    values: FloatArray  # (k,)
    names: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join(f"{name} = {value:.6g}" for name, value in zip(self.names, self.values, strict=True))

    def make_constraints(self, names: Sequence[str]) -> tuple[Constraint, ...]:
        """Return the totals as constraints on states of these names: each has its value, and no hidden constraint."""
        return tuple(
            Constraint.from_text(_write_total(row, float(value), names), name=f"total {name}", level="velocity")
            for row, value, name in zip(self.coefficients, self.values, self.names, strict=True)
        )


@dataclass(frozen=True, eq=False)
class TotalsSearch:
    """A point near which totals are sought, and the quantities that are displaced from it."""

    invariants: Invariants  # of the model: its constraints
    time: float
    states: FloatArray  # (N,)
    inputs: FloatArray  # (nu,)
    free_states: NDArray[np.intp]  # those that a total may contain
    free_inputs: NDArray[np.intp]  # those that must not change it

    @property
    def scales(self) -> FloatArray:
        """The sizes of the states."""
        return self.invariants.scales


def search_totals(model: Model, point: OperatingPoint) -> Totals | None:
    """Return the linear totals that neither a motion nor an input changes, with the values at a point; or None."""
    evaluator = PointEvaluator(model)
    pairs = find_kinematic_pairs(evaluator, model.start) or {}
    search = TotalsSearch(
        Invariants(evaluator, point.inputs, pairs, model.states.scales(point.states)),
        point.time,
        point.states,
        point.inputs,
        free_states=np.arange(len(model.states)),
        free_inputs=np.arange(len(model.inputs)),
    )
    return find_totals(search)


def constrain_totals(model: Model, totals: Totals) -> Model:
    """Return a model with these totals among its constraints."""
    return model.with_constraints([*model.constraints.declared, *totals.make_constraints(model.states.names)])


def find_totals(start: TotalsSearch) -> Totals | None:
    """Return the linear totals that are conserved and involve free states only, or None."""
    if not 0 < len(start.states) <= MAX_STATES:
        return None
    pairs = start.invariants.pairs
    L = np.zeros((0, len(start.states)))
    for _ in range(ROUNDS):
        rates = _sample_rates(start, L)
        # The model is defined at too few points, or has constraints: the totals so far are the result.
        if rates is None:
            break
        more = _find_left_null_space(rates)
        if len(more) <= len(L):
            break
        L = more
    if pairs:
        # Where a damped cart would coast to (x + v/c) is not content: either speeds alone add up, or no speeds.
        speeds = np.array(sorted(pairs.values()), dtype=np.intp)
        remaining = np.setdiff1d(np.arange(len(start.states)), speeds)
        L = np.vstack((_without_fixed(L, speeds), _without_fixed(L, remaining)))
    L = _without_constraints(start, _without_fixed(L, start.free_states))
    if not len(L):
        return None
    coefficients = _reduce_rows(L) / start.scales
    coefficients = np.array([_simplify(row) for row in coefficients])
    names = tuple(_name_total(row, start.invariants.model.states.names) for row in coefficients)
    return Totals(coefficients, coefficients @ start.states, names)


def _sample_rates(start: TotalsSearch, L: FloatArray) -> FloatArray | None:
    """Return rates (N, k) in sizes at points of the manifold with the totals L of the start, each of length one.

    The points lie at several times, as the rates of a model may depend on time.
    """
    random = np.random.default_rng(1687)
    scales, n = start.scales, len(start.states)
    invariants = start.invariants
    input_scales = invariants.model.inputs.scales(start.inputs)
    if len(invariants) and len(L):
        return None  # the projection knows constraints alone
    along = np.eye(n) - np.linalg.pinv(L) @ L if len(L) else np.eye(n)
    for spread in SAMPLE_SPREAD_SIZES:
        columns = []
        for _ in range(n + MORE_SAMPLES):
            x = start.states + scales * (along @ random.uniform(-spread, spread, n))
            u = start.inputs.copy()
            moves = random.uniform(-spread, spread, len(start.free_inputs))
            u[start.free_inputs] += input_scales[start.free_inputs] * moves
            time = start.time + random.uniform(0.0, TIME_SPREAD_SECONDS)
            try:
                if len(invariants):
                    x = project(invariants, time, x, restart=False)
                columns.append(invariants.evaluator.evaluate(time, x, u).derivatives / scales)
            except REFUSALS:
                break
        rates = np.array(columns).T
        if len(columns) == n + MORE_SAMPLES and np.isfinite(rates).all():
            length = np.linalg.norm(rates, axis=0)
            # Points at rest say nothing: every total stays there.
            return np.asarray(rates[:, length > 0] / length[length > 0])
    return None


def _find_left_null_space(rates: FloatArray) -> FloatArray:
    """Return the rows l (k, N) with l' rates = 0, by singular values with a gap, rows scaled to one length."""
    n = len(rates)
    size = np.linalg.norm(rates, axis=1)
    moving = size > 0
    still = np.eye(n)[~moving]  # states that never change are parameters, and no totals
    U, sigma, _ = np.linalg.svd(rates[moving] / size[moving, None])
    sigma = np.append(sigma, np.zeros(max(0, int(moving.sum()) - len(sigma))))
    rank = int(np.count_nonzero(sigma > DISCOVERY_TOLERANCE * float(np.max(sigma, initial=0.0))))
    # Without a gap it is not certain which singular values are zero, and no total is claimed.
    if rank < len(sigma) and sigma[rank] > 0 and rank and sigma[rank - 1] < DISCOVERED_GAP * sigma[rank]:
        return np.zeros((0, n))
    null = np.zeros((len(sigma) - rank, n))
    null[:, moving] = U[:, rank:].T / size[moving]
    return np.vstack((null, still))


def _without_fixed(L: FloatArray, free: NDArray[np.intp]) -> FloatArray:
    """Return combinations of the rows in which only ``free`` states occur."""
    fixed = np.setdiff1d(np.arange(L.shape[1]), free)
    if not len(fixed) or not len(L):
        return L
    U, sigma, _ = np.linalg.svd(L[:, fixed])
    rank = int(np.count_nonzero(sigma > ZERO * float(np.linalg.norm(L, 2))))
    combined: FloatArray = U[:, rank:].T @ L
    combined[:, fixed] = 0.0
    return combined


def _without_constraints(start: TotalsSearch, L: FloatArray) -> FloatArray:
    """Return the part of the rows' span that is not a combination of the constraints' gradients at the start."""
    invariants = start.invariants
    if not len(invariants) or not len(L):
        return L
    H = np.nan_to_num(invariants.gradient(start.time, start.states, start.inputs).H) * start.scales
    Q = np.linalg.qr(H.T)[0]
    orthonormal = np.linalg.qr(L.T)[0].T
    outside = orthonormal - (orthonormal @ Q) @ Q.T
    U, sigma, _ = np.linalg.svd(outside)
    # Both spans are orthonormal: what the constraints do not hold is of size one, and 1e-6 the error of samples.
    independent: FloatArray = U[:, : int(np.count_nonzero(sigma > 1e-6))].T @ orthonormal
    return independent


def _reduce_rows(L: FloatArray) -> FloatArray:
    """Return a sparse basis of the rows' span, by elimination with pivoting."""
    L = L.copy()
    for i in range(len(L)):
        order = np.abs(L[i:])
        row, column = np.unravel_index(int(np.argmax(order)), order.shape)
        L[[i, i + int(row)]] = L[[i + int(row), i]]
        L[i] /= L[i, column]
        for k in range(len(L)):
            if k != i:
                L[k] -= L[k, column] * L[i]
    return np.where(np.abs(L) > ZERO * np.abs(L).max(axis=1, keepdims=True), L, 0.0)


def _simplify(row: FloatArray) -> FloatArray:
    """Return a total with its smallest coefficient one, and others that are nearly whole numbers whole."""
    nonzero = np.abs(row[row != 0])
    first = row[np.flatnonzero(row)[0]]
    row = row / (nonzero.min() * np.sign(first))
    return np.where(np.abs(row - np.round(row)) <= ZERO * np.abs(row), np.round(row), row)


def _name_total(row: FloatArray, names: Sequence[str]) -> str:
    terms = []
    for i in np.flatnonzero(row)[:MAX_LISTED_TERMS]:
        sign = "-" if row[i] < 0 else "+"
        size = "" if abs(row[i]) == 1 else f"{abs(row[i]):.6g}*"
        terms.append(f"{sign} {size}{names[i]}")
    text = " ".join(terms).removeprefix("+ ")
    return text + (" + ..." if np.count_nonzero(row) > MAX_LISTED_TERMS else "")


def _write_total(row: FloatArray, value: float, names: Sequence[str]) -> str:
    """Return a total minus its value as an expression that is read again to the last bit."""
    terms = [f"({float(row[i])!r})*{name_in_expression(names[i])}" for i in np.flatnonzero(row).tolist()]
    return f"{' + '.join(terms)} - ({value!r})"
