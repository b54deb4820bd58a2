"""From 0 = R(t, x, w, u, p), x' = f(t, x, w, u, p) of any index to unknowns that are solved for, and invariants.

With sigma_ij = -(derivatives until w_j appears in R_i) the offsets c_i, d_j >= 0 obey d_j - c_i >= sigma_ij, equal on
a transversal of largest value (Pryce, BIT 41, 2001; Pantelides, SIAM J. Sci. Stat. Comput. 9, 1988). Stage
k = -max(c), ..., 0 holds R_i differentiated c_i + k times and the unknowns w_j differentiated d_j + k times; the index
is max c + 1, or 0 where there is no w. Where the Jacobian of the last stage is regular, as many rows of each, found by
a pivoted QR factorization at the start, determine the unknowns, and the others are invariants h(t, x, u, p) = 0.
Where it is singular in numbers, :mod:`fmilin.models.dae.deficient` goes on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching, min_weight_full_bipartite_matching

from fmilin.errors import FmilinError, NumericalError, UsageError, join_first, quote_first
from fmilin.models.dae.coefficients import Suspect, drop_suspects, lift_graph, settle
from fmilin.models.dae.dae_graph import DaeGraph
from fmilin.models.dae.dae_rows import (
    REGULAR_POINT_ERROR,
    SINGULAR_POINT_ERROR,
    ConsistentPoint,
    ConsistentPoints,
    Rows,
    Unknown,
    reciprocal_condition,
)
from fmilin.models.dae.deficient import DISPLACEMENT_SIZE, complete_system
from fmilin.models.dae.semi_explicit import (
    DifferentiatedRow,
    JetDerivatives,
    SemiExplicit,
    derivative_name,
    semi_explicit,
    stack_column,
)
from fmilin.signals import FloatArray, Signals
from fmilin.tolerances import MIN_RECIPROCAL_CONDITION_NUMBER

RowsByOrder = Mapping[tuple[int, int], DifferentiatedRow]

Pattern = Any  # scipy.sparse.csr_array of booleans


@dataclass(frozen=True)
class Structure:
    """Offsets: see the module's text."""

    c: NDArray[np.intp]  # of the equations
    d: NDArray[np.intp]  # of the unknowns


def pattern(matrix: Any) -> Pattern:
    """Return where a CasADi matrix has entries."""
    rows, columns = matrix.sparsity().get_triplet()
    return csr_array((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=matrix.shape)


def analyze_structure(
    R: tuple[Pattern, Pattern], f: tuple[Pattern, Pattern], name: str, equations: tuple[str, ...], w: tuple[str, ...]
) -> Structure:
    """Return the offsets for the entries of R, then f, by (x, w); UsageError where the structure is singular."""
    delays = _delays(*R, *f)
    count = len(w)
    if not count:
        return Structure(np.zeros(0, np.intp), np.zeros(0, np.intp))
    columns = maximum_bipartite_matching(delays, perm_type="column")
    if (columns < 0).any():
        raise UsageError(_singular(delays, columns, name, equations, w))
    rows, columns = min_weight_full_bipartite_matching(delays)
    sigma = 1 - delays.tocoo().data
    i, j = delays.tocoo().coords
    c, equation_offsets = np.zeros(count, np.intp), np.zeros(count, np.intp)
    partner = np.empty(count, np.intp)
    partner[rows] = columns
    equation_offsets[rows] = 1 - delays[rows, columns]
    while True:  # the smallest offsets, by iteration to a fixed point
        d = np.zeros(count, np.intp)
        np.maximum.at(d, j, c[i] + sigma)
        new = d[partner] - equation_offsets
        if (new == c).all():
            return Structure(c, d)
        c = np.maximum(c, new)


def _delays(R_x: Pattern, R_w: Pattern, f_x: Pattern, f_w: Pattern) -> Pattern:
    """Return 1 + the derivatives of R_i until w_j appears; nothing where it never does."""
    delays, visited, moved = R_w.astype(bool).astype(np.int32), R_x.astype(bool), R_x.astype(bool)
    for delay in range(1, f_x.shape[0] + 1):
        if not moved.nnz:
            break
        new = (moved.astype(np.int32) @ f_w).astype(bool)
        new = (new.astype(np.int32) - new.multiply(delays.astype(bool)).astype(np.int32)).tocsr()
        new.eliminate_zeros()
        delays = (delays + new * (1 + delay)).tocsr()
        reached = (moved.astype(np.int32) @ f_x).astype(bool)
        fresh = (reached.astype(np.int32) - reached.multiply(visited).astype(np.int32)).tocsr()
        fresh.eliminate_zeros()
        moved, visited = fresh.astype(bool), (visited + fresh.astype(bool)).astype(bool)
    return csr_array(delays)


def _singular(delays: Pattern, columns: NDArray[Any], name: str, equations: tuple[str, ...], w: tuple[str, ...]) -> str:
    """Return what is over-determined and what is free: reached from what has no partner, by alternating paths."""
    partner_of = {int(j): i for i, j in enumerate(columns) if j >= 0}
    by_column = delays.tocsc()
    rows, todo = set(), [i for i, j in enumerate(columns) if j < 0]
    while todo:
        i = todo.pop()
        rows.add(i)
        todo += [partner_of[j] for j in delays.indices[delays.indptr[i] : delays.indptr[i + 1]].tolist()
                 if partner_of[j] not in rows]  # fmt: skip
    free, todo = set(), [j for j in range(len(w)) if j not in partner_of]
    while todo:
        j = todo.pop()
        free.add(j)
        owners = by_column.indices[by_column.indptr[j] : by_column.indptr[j + 1]].tolist()
        todo += [int(columns[i]) for i in owners if columns[i] >= 0 and int(columns[i]) not in free]
    return (
        f"The model '{name}' has no unique motion for any parameter values: the equations "
        f"{quote_first([equations[i] for i in sorted(rows)])} are dependent, and "
        f"{quote_first([w[j] for j in sorted(free)])} are not determined. Replace an equation, or declare the "
        "external quantity as an input."
    )


SX = Any

INPUT_EFFECT_TOLERANCE = 1e-4  # of the largest effect of an input: what is a billionth of a smaller one is rounding


@dataclass(frozen=True)
class Reduced:
    """A DAE after index reduction: the equations to solve, and the retained signals."""

    form: SemiExplicit
    u: SX  # inputs, with undeclared derivatives of inputs at the end
    inputs: Signals
    motion: JetDerivatives
    keys: list[Unknown]  # the unknowns
    unknowns: SX  # (nj, 1), w, then its derivatives
    names: tuple[str, ...]  # of the unknowns
    guess: FloatArray  # of the unknowns
    sizes: FloatArray  # of the unknowns
    solved: tuple[DifferentiatedRow, ...]  # zero for the unknowns at any (t, x, u, p)
    invariants: tuple[DifferentiatedRow, ...]  # zero on the manifold
    driving: NDArray[np.bool_]  # (invariants, inputs): which inputs move them
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()  # on coefficients that count as zero
    is_by_numbers: bool = False  # whether the structure did not show what determines the unknowns

    @property
    def index(self) -> int:
        """How often equations were differentiated, and once more for an algebraic variable that is left to be solved.

        Derivatives of states that the equations leave implicit are an ODE as soon as they are determined; an algebraic
        variable without a derivative among the unknowns has one only after another differentiation.
        """
        if not self.solved:
            return 0
        names, algebraic = self.form.names, set(self.form.graph.algebraic.names)
        differentiated = {names[j] for j, order in self.keys if order and j < len(names)}
        differentiated |= {self.motion.name(j, 0)[len("der(") : -1] for j, _ in self.keys if j >= len(names)}
        if self.is_by_numbers:
            # The unknowns are independent columns of more: derivatives among them are not all determined.
            differentiated = set()
        is_left = any(names[j] in algebraic - differentiated for j, _ in self.keys if j < len(names))
        return max(row.order for row in self.solved) + int(is_left)

    def find_start(self) -> tuple[FloatArray, FloatArray]:
        """Return states and unknowns to begin from: start values of states, or consistent ones if these allow none."""
        rows = Rows(self.form, self.motion, [row.value for row in self.solved], self.keys)
        names = [row.name for row in self.solved]
        try:
            return rows.x, rows.solve_unknowns(names)
        except NumericalError:
            if (solution := rows.solve_from_both_sides(names)) is not None:
                return rows.x, solution
            at = ConsistentPoints(self.form, self.motion, (*self.solved, *self.invariants), self.keys).find()
            if at is None:
                raise
            return at.x, at.w


def reduce_graph(graph: DaeGraph) -> Reduced:
    """Return unknowns, equations and invariants of a graph; its constants are symbols while coefficients are judged."""
    lifted, constants, values = lift_graph(graph)
    result = _reduce_with_suspects(lifted, len(graph.parameters))
    form, rows = result.form, (*result.solved, *result.invariants)
    columns = {"f": form.f, "z": form.z, "R": form.R, "rows": stack_column([row.value for row in rows])}
    numbers = settle(columns, constants, values)
    settled = [replace(row, value=e) for row, e in zip(rows, numbers["rows"].elements(), strict=True)]
    count = len(graph.parameters)
    divisors = frozenset(i for i in form.divisors if i < count)
    form = replace(form, graph=graph, f=numbers["f"], z=numbers["z"], R=numbers["R"], divisors=divisors)
    split = len(result.solved)
    return replace(result, form=form, solved=tuple(settled[:split]), invariants=tuple(settled[split:]))


def _reduce_with_suspects(graph: DaeGraph, parameter_count: int) -> Reduced:
    """Return the reduction; NumericalError where it depends on a coefficient that may be rounding.

    Combinations of equations leave 2^-54 for zero, in floating-point numbers, where others are of size 1.
    """
    form = semi_explicit(graph, parameter_count=parameter_count)
    if not form.suspects:
        return reduce_index(form)
    results: list[Reduced] = []
    failures: list[FmilinError] = []
    for candidate in (form, semi_explicit(drop_suspects(graph, form.suspects), parameter_count=parameter_count)):
        try:
            results.append(reduce_index(candidate))
        except FmilinError as error:
            failures.append(error)
    if not results:
        raise failures[0]
    if len(results) == 1:  # only with the suspects, or only without them, is a motion determined: so it is meant
        return results[0] if results[0].form is form else _with_note(results[0], form.suspects)
    first, second = ((r.index, len(r.form.graph.states) - len(r.invariants)) for r in results)
    # Index and order are the same either way: the suspects stay as they are written.
    if first == second:
        return results[0]
    raise NumericalError(
        f"Rounding determines the order of '{graph.name}': {join_first(map(str, form.suspects), 3)} may remain where "
        f"larger numbers cancel. With it index and order are {first[0]} and {first[1]}, without it {second[0]} and "
        f"{second[1]}. Write 0 in its place, or give the variables nominal values (Labels) if it is intended."
    )


def _with_note(result: Reduced, suspects: Sequence[Suspect]) -> Reduced:
    note = f"Treated as zero, because the motion is not determined otherwise: {join_first(map(str, suspects), 3)}."
    return replace(result, remarks=(*result.remarks, note))


def reduce_index(form: SemiExplicit) -> Reduced:
    """Return unknowns, equations and invariants; UsageError or NumericalError where they determine no motion."""
    try:
        structure = _structure(form)
    except UsageError:
        _structure(semi_explicit(form.graph, as_written=True))  # names all equations and unknowns that are concerned
        raise
    c, d, motion = structure.c, structure.d, JetDerivatives(form)
    rows = _differentiate_rows(form, c, motion)
    unknowns = [(j, s) for s in range(int(d.max(initial=0)) + 1) for j in np.flatnonzero(d >= s).tolist()]
    notes: tuple[str, ...] = ()
    all_rows = list(rows.values())
    is_by_numbers = (solved := _select_solved_rows(form, structure, rows, motion, unknowns)) is None
    if solved is None:
        completion = complete_system(form, motion, all_rows, unknowns)
        all_rows, solved, unknowns, notes = completion.rows, completion.solved, completion.unknowns, completion.notes
    taken = {id(row) for row in solved}
    invariants = [row for row in all_rows if id(row) not in taken]
    driving = _find_driving_inputs(form, motion, solved, invariants, unknowns)
    if idle := [i for i in range(len(form.graph.inputs), driving.shape[1]) if not driving[:, i].any()]:
        solved, invariants = (_without(row_list, motion, idle) for row_list in (solved, invariants))
        driving = np.delete(driving, idle, axis=1)
        motion.drop(idle)
    u, inputs = motion.inputs()
    return Reduced(
        form=form,
        u=u,
        inputs=inputs,
        motion=motion,
        keys=unknowns,
        unknowns=stack_column([motion.jet(j, s) for j, s in unknowns]),
        names=tuple(motion.name(j, s) for j, s in unknowns),
        guess=np.array([motion.guess(j, s) for j, s in unknowns]),
        sizes=np.array([motion.size(j) for j, _ in unknowns]),
        solved=tuple(solved),
        invariants=tuple(invariants),
        driving=driving[: len(invariants)],
        notes=notes,
        remarks=tuple(map(str, form.dropped)),
        is_by_numbers=is_by_numbers,
    )


def _structure(form: SemiExplicit) -> Structure:
    R_x, R_w, f_x, f_w = (
        pattern(ca.sparsify(ca.jacobian(e, s))) for e in (form.R, form.f) for s in (form.graph.x, form.w)
    )
    return analyze_structure((R_x, R_w), (f_x, f_w), form.graph.name, form.equations, form.names)


def _differentiate_rows(
    form: SemiExplicit, c: NDArray[np.intp], motion: JetDerivatives
) -> dict[tuple[int, int], DifferentiatedRow]:
    """Return the rows by (i, order), each as often differentiated as c says."""
    rows = {(i, 0): DifferentiatedRow(form.equations[i], i, 0, e) for i, e in enumerate(form.R.elements())}
    for order in range(1, int(c.max(initial=0)) + 1):
        these = np.flatnonzero(c >= order).tolist()
        values = motion.along(stack_column([rows[i, order - 1].value for i in these])).elements()
        for i, value in zip(these, values, strict=True):
            rows[i, order] = DifferentiatedRow(derivative_name(form.equations[i], order), i, order, value)
    return rows


def _select_solved_rows(
    form: SemiExplicit, structure: Structure, rows: RowsByOrder, motion: JetDerivatives, unknowns: Sequence[Unknown]
) -> list[DifferentiatedRow] | None:
    """Return the equations that determine the unknowns, stage by stage; None where the last stage is singular."""
    c, d = structure.c, structure.d
    if (J := _last_jacobian(form, structure, rows, motion, unknowns)) is None:
        return None
    chosen: list[int] = []
    solved: list[DifferentiatedRow] = []
    for k in range(-int(c.max(initial=0)), 1):
        these, columns = np.flatnonzero(c + k >= 0), np.flatnonzero(d + k >= 0)
        if len(these) == len(columns):
            chosen = these.tolist()
        elif len(columns):
            block = J[np.ix_(these, columns)]
            chosen = [int(these[i]) for i in _independent(block.T, [these.tolist().index(i) for i in chosen])]
        solved += [rows[i, int(c[i]) + k] for i in sorted(chosen)]
    return solved


def _last_jacobian(
    form: SemiExplicit, structure: Structure, rows: RowsByOrder, motion: JetDerivatives, unknowns: Sequence[Unknown]
) -> FloatArray | None:
    """Return d R_i^(c_i) / d w_j^(d_j) at a consistent point, empty where nothing is chosen by it; None if singular."""
    c, d = structure.c, structure.d
    if not len(c):
        return np.zeros((0, 0))
    top = [unknowns.index((j, int(s))) for j, s in enumerate(d)]
    last = Rows(form, motion, [rows[i, int(r)].value for i, r in enumerate(c)], unknowns)
    consistent = ConsistentPoints(form, motion, list(rows.values()), unknowns)
    # By chance J may be singular, or undefined, at the start alone: a point next to it is examined as well.
    for moved in (0.0, DISPLACEMENT_SIZE) if c.any() else (None, 0.0, DISPLACEMENT_SIZE):
        if moved is None:
            # There are no states to be made consistent.
            point: ConsistentPoint | None = ConsistentPoint(last.x, last.w, REGULAR_POINT_ERROR)
        else:
            point = consistent.find(moved)
        if point is not None:
            J = last.matrix_without_rounding(point.x, point.w)[:, top]
            # A point next to the start, or of redundant rows, has half of the digits: J must be regular beyond that.
            if reciprocal_condition(J) > (
                SINGULAR_POINT_ERROR if moved or point.zero == SINGULAR_POINT_ERROR else MIN_RECIPROCAL_CONDITION_NUMBER
            ):
                return J if c.any() else np.zeros((0, 0))
    return None


def _find_driving_inputs(
    form: SemiExplicit,
    motion: JetDerivatives,
    solved: list[DifferentiatedRow],
    invariants: list[DifferentiatedRow],
    unknowns: Sequence[Unknown],
) -> NDArray[np.bool_]:
    """Return which inputs move invariants, rates and algebraic variables, the unknowns following them."""
    count = len(motion.inputs()[1])
    # Without invariants, and without inputs that the reduction has added, there is nothing to decide.
    if not count or not (invariants or count > len(form.graph.inputs)):
        return np.ones((len(invariants) + 1, count), dtype=bool)
    values = [row.value for row in (*solved, *invariants)] + [*form.f.elements(), *form.z.elements()]
    rows = Rows(form, motion, values, unknowns)
    consistent = ConsistentPoints(form, motion, (*solved, *invariants), unknowns)
    points = (consistent.find(moved) for moved in (DISPLACEMENT_SIZE, 0.0))
    at = next((p for p in points if p is not None), ConsistentPoint(rows.x, rows.w, SINGULAR_POINT_ERROR))
    by_w, by_u = rows.gradients(at.x, at.w)[1], rows.input_gradient(at.x, at.w)
    n = len(solved)
    # Where derivatives are undefined or singular every input may move everything.
    if not (np.isfinite(by_w).all() and np.isfinite(by_u).all()):
        return np.ones((len(invariants) + 1, count), dtype=bool)
    try:
        inverse = np.linalg.inv(by_w[:n])
    except np.linalg.LinAlgError:
        return np.ones((len(invariants) + 1, count), dtype=bool)
    terms = np.abs(by_u[n:]) + np.abs(by_w[n:]) @ np.abs(inverse) @ np.abs(by_u[:n])
    largest = terms.max(axis=1, initial=0.0)[:, None]
    sizes = np.maximum(np.sqrt(largest * terms.max(axis=0, initial=0.0)), INPUT_EFFECT_TOLERANCE * largest)
    moved: NDArray[np.bool_] = np.abs(by_u[n:] - by_w[n:] @ inverse @ by_u[:n]) > at.zero * sizes
    return moved


def _without(rows: list[DifferentiatedRow], motion: JetDerivatives, idle: Sequence[int]) -> list[DifferentiatedRow]:
    """Return rows with zero for some inputs, which are derivatives of others and cancel."""
    u = motion.inputs()[0]
    values = stack_column([row.value for row in rows])
    values = ca.substitute(values, stack_column([u[i] for i in idle]), ca.SX.zeros(len(idle)))
    return [replace(row, value=value) for row, value in zip(rows, values.elements(), strict=True)]


def _independent(columns: FloatArray, first: Sequence[int]) -> list[int]:
    """Return as many columns of a wide matrix as it has rows, independent ones, those in ``first`` among them."""
    sizes = np.linalg.norm(columns, axis=0)
    scaled = columns / np.where(sizes > 0, sizes, 1.0)
    Q = linalg.qr(scaled[:, list(first)], mode="economic")[0] if len(first) else np.zeros((len(columns), 0))
    rest = scaled - Q @ (Q.T @ scaled)
    rest[:, list(first)] = 0.0
    pivots = linalg.qr(rest, mode="r", pivoting=True)[1]
    return [*first, *pivots[: len(columns) - len(first)].tolist()]
