"""Exact derivatives through the FMU's own directional derivatives, and the structure that it declares.

Several knowns in one call are not safe: Dymola up to 2023x leaves all but the first shifted afterwards. They share one
where it is declared that no unknown depends on two of them; rows that depend on nearly all cost one call each where
there are adjoint derivatives. The product along one direction through all columns tests both.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import FmilinError
from fmilin.fmi.client.arena import Arena, Repeated
from fmilin.fmi.client.host_programs import Instruction, Operation, Program, fill
from fmilin.fmi.client.process import Failure
from fmilin.fmi.read.buffers import Buffers, Group, Visit
from fmilin.fmi.read.description import Unknown, Variable
from fmilin.fmi.read.layout import ScalarLayout, ScalarVariable
from fmilin.fmi.read.session import Session
from fmilin.numerics.differences.coloring import column_groups
from fmilin.signals import FloatArray
from fmilin.tolerances import COLUMNS_AGREE

Mask = NDArray[np.bool_]
_MAX_STRUCTURE_SIZE = 50_000_000  # entries of a structure; above it would take more memory than it saves time


def declared_structure(
    layout: ScalarLayout, outputs: Sequence[ScalarVariable], inputs: NDArray[np.intp]
) -> Mask | None:
    """Return the FMU's claim, if any, of (derivatives, outputs) over (states, inputs), shape (N + ny, N + nu)."""
    description = layout.description
    unknowns = {u.variable.reference: u for u in (*description.outputs, *description.derivatives)}
    if all(u.dependencies is None for u in unknowns.values()):
        return None
    n = len(layout.states)
    width = n + len(layout.inputs)
    if (n + len(outputs)) * width > _MAX_STRUCTURE_SIZE:
        return None
    columns: dict[tuple[int, int], list[int]] = {}  # lists: in odd descriptions an input is a state, too
    for i, s in enumerate((*layout.states, *layout.inputs)):
        columns.setdefault(s.key, []).append(i)
    chosen = np.concatenate((np.arange(n), n + inputs))
    structure = np.ones((n + len(outputs), width), dtype=bool)
    rows: dict[int, Mask] = {}  # the elements of an array share theirs
    for row, scalar in enumerate((*layout.derivatives, *outputs)):
        unknown = unknowns.get(scalar.variable.reference)
        if scalar.key in columns:  # it is a state or an input itself
            structure[row] = False
            structure[row, columns[scalar.key]] = True
        elif unknown is not None and unknown.dependencies is not None:
            reference = scalar.variable.reference
            if reference not in rows:
                rows[reference] = _row(layout, unknown, columns, width)
            structure[row] = rows[reference]
    return structure[:, chosen]


def _row(layout: ScalarLayout, unknown: Unknown, columns: dict[tuple[int, int], list[int]], width: int) -> Mask:
    row = np.zeros(width, dtype=bool)
    keys = {s.key for v in unknown.dependencies or () if v.is_float for s in layout.scalars(v)}
    row[[i for key in keys for i in columns.get(key, ())]] = True
    return row


MIN_GROUPED_KNOWNS = 16  # knowns from which it is worth while
MAX_REMEMBERED_KNOWNS = 64  # knowns up to which directions are remembered, which are mostly the same
FULL_ROW_COUNT = (
    10  # A row that depends on more knowns than this and twice the median is one that adjoint derivatives are for
)

Product = Callable[[Group, Group, FloatArray], Instruction]


class Together:
    """Groups of knowns and rows of their own, and calls; ``pattern`` is a claim that :meth:`is_confirmed` tests."""

    def __init__(
        self,
        arena: Arena,
        unknowns: Sequence[Variable],
        knowns: Sequence[Variable],
        pattern: Mask,
        directional: Product,
        adjoint: Product | None = None,
    ) -> None:
        self._pattern = pattern
        self._groups, self._rows = _cheapest(pattern) if adjoint is not None else (column_groups(pattern), [])
        self._answers = arena.zeros(len(self._groups) + 1, len(pattern))
        self._adjoint_answers = arena.zeros(len(self._rows), len(knowns))
        self._direction = np.random.default_rng(1974).uniform(0.5, 1.0, len(knowns))
        directions = [np.ones(len(group)) for group in self._groups] + [self._direction]
        members = [*self._groups, list(range(len(knowns)))]
        rows = Group(arena, unknowns, arena.zeros(len(pattern)))
        seeds = [
            Group(arena, [knowns[j] for j in m], arena.copy(direction))
            for m, direction in zip(members, directions, strict=True)
        ]
        calls = [directional(rows, seed, answer) for seed, answer in zip(seeds, self._answers, strict=True)]
        if adjoint is not None:
            columns = Group(arena, knowns, arena.zeros(len(knowns)))
            seeded = [Group(arena, [unknowns[i]], arena.copy(np.ones(1))) for i in self._rows]
            along = [adjoint(row, columns, a) for row, a in zip(seeded, self._adjoint_answers, strict=True)]
            calls = [*along, *calls]
        self._with_test, self._without_test = Program(calls), Program(calls[:-1])
        self._confirmed = False

    @property
    def calls(self) -> Program:
        """The calls; the last one is the test, as long as it has not been passed."""
        return self._without_test if self._confirmed else self._with_test

    def pays(self, missing: Mask) -> bool:
        """Whether there are fewer calls than columns that are wanted."""
        return 2 * len(self.calls.instructions) < int(np.count_nonzero(missing))

    @property
    def answers(self) -> tuple[FloatArray, FloatArray]:
        """Where the calls write, (groups + 1, rows) and (full rows, columns)."""
        return self._answers, self._adjoint_answers

    def distribute(self, answers: FloatArray, adjoint_answers: FloatArray, columns: FloatArray) -> None:
        """Write :attr:`answers` to ``columns``, (..., columns, rows): each to the column that it depends on."""
        for g, group in enumerate(self._groups):
            columns[..., group, :] = np.where(self._pattern[:, group].T, answers[..., g, None, :], 0.0)
        columns[..., self._rows] = adjoint_answers.swapaxes(-1, -2)

    def is_confirmed(self, columns: FloatArray) -> bool:
        """Whether the product along all columns at once is their sum; asked once."""
        if not self._confirmed:
            terms = np.abs(columns.T) @ self._direction
            off = np.abs(columns.T @ self._direction - self._answers[-1])
            self._confirmed = bool((off <= COLUMNS_AGREE * np.maximum(terms, np.abs(self._answers[-1]))).all())
        return self._confirmed


def _cheapest(pattern: Mask) -> tuple[list[list[int]], list[int]]:
    """Return groups of columns, and their rows: no row, the full ones, or all, whichever needs fewest."""
    counts = pattern.sum(axis=1)
    full = np.flatnonzero(counts > FULL_ROW_COUNT + 2 * np.median(counts)).tolist()
    sparse = pattern.copy()
    sparse[full] = False
    candidates = [(column_groups(pattern), []), (column_groups(sparse), full), ([], list(range(len(pattern))))]
    return min(candidates, key=lambda candidate: len(candidate[0]) + len(candidate[1]))


_MAX_BYTES = 1 << 23  # of answers at many points


def is_unit_matrix(directions: FloatArray) -> bool:
    """Return whether directions are those of all variables in turn: a product with a large unit matrix takes time."""
    n, count = directions.shape
    return (
        n == count
        and n > MAX_REMEMBERED_KNOWNS
        and np.count_nonzero(directions) == n
        and bool((np.diagonal(directions) == 1).all())
    )


class _ColumnsAtPoints(NamedTuple):
    """The calls for all columns at many points, and their answers with a row for each point."""

    program: Program
    answers: tuple[FloatArray, ...]

    @property
    def most(self) -> int:
        """The number of points."""
        return len(self.answers[0])


class Sensitivities:
    """Derivatives J of x' and further variables z by states and inputs, 0 by parameters; moves ``buffers``' point."""

    def __init__(self, session: Session, buffers: Buffers) -> None:
        self._session = session
        self._buffers = buffers
        self._key: object = None
        layout = session.layout
        columns = buffers.n + buffers.k
        first = self._first = 1 + columns  # of x' and z in the buffers
        self._J = np.zeros((buffers.values.size - first, columns))
        self._done = np.zeros(columns, dtype=bool)
        self._base = buffers.values.copy()
        self._point = buffers.values[:first]
        self._directions, self._needed = b"", np.zeros(columns, dtype=bool)  # of the last call; knowns moved
        targets: dict[tuple[int, int], list[int]] = {}
        variables: dict[int, Variable] = {}
        further = [s for v in buffers.further for s in layout.scalars(v)]
        for row, scalar in enumerate((*layout.derivatives, *further)):
            position = buffers.position(scalar)
            if position < first:
                self._J[row, position - 1] = 1.0  # der(x) is the state v: exact without asking
            elif scalar.variable.reference in layout.description.allowed_unknowns:
                targets.setdefault(scalar.key, []).append(row)
                variables.setdefault(scalar.variable.reference, scalar.variable)
            else:
                self._J[row] = np.nan
        self._moves = False
        self._in_order = False  # whether the rows of J are the unknowns, one by one
        self._in_one_go: Visit | None = None  # all columns between two checks of states and inputs, once these stay
        self._shares_calls = False  # whether columns are asked for in groups there
        self._many: _ColumnsAtPoints | None = None
        self._after = Buffers(session.layout, session.arena, most=len(buffers.rows))
        self._states_and_inputs = buffers.values[1:first], self._after.values[1:first]  # before and after them
        self._answers = np.zeros((columns, 0))  # a row per column of J, in the order of the unknowns
        self._rows: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._take: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._columns: list[tuple[Instruction, ...]] = []  # the calls that ask for each
        self._together: Together | None = None
        if variables:
            self._prepare(list(variables.values()), targets)

    def along(self, changes: FloatArray) -> FloatArray | None:
        """Return values (size,), with ``changes`` (size, m) of further rows by those of states and inputs; or None."""
        directions = changes[1 : self._first]
        content = directions.tobytes() if len(directions) <= MAX_REMEMBERED_KNOWNS else b""
        if not content or content != self._directions:
            self._needed, self._directions = np.logical_or.reduce(directions, axis=1), content
        needed, is_complete = self._needed, b"\0" not in self._needed.tobytes()
        if not (self._in_one_go and is_complete and self._filled_in_one_go()) and not self._fill(needed):
            return None
        if is_complete and is_unit_matrix(directions):
            changes[self._first :] = self._J
        elif is_complete:
            self._J.dot(directions, out=changes[self._first :])
        else:
            changes[self._first :] = self._J[:, needed] @ directions[needed]
        return self._base

    @property
    def values(self) -> FloatArray:
        """The values (size,) at the point at which derivatives were read last, not to be written to."""
        return self._base

    def read_all(self, positions: NDArray[np.intp], signs: FloatArray) -> FloatArray | None:
        """Return the derivatives of rates, then of values at ``positions`` times ``signs``, by all states and inputs.

        None where they were not read in one message with an evaluation before, or the FMU rejects that.
        """
        if self._in_one_go is None or not self._filled_in_one_go():
            return None
        n, columns = len(self._buffers.x), self._J.shape[1]
        J = np.empty((n + len(positions), columns))
        J[:n] = self._J[:n]
        for row, (position, sign) in enumerate(zip(positions.tolist(), signs.tolist(), strict=True), n):
            if position >= self._first:
                np.multiply(self._J[position - self._first], sign, out=J[row])
            else:
                J[row] = 0.0
                if position > 0:
                    J[row, position - 1] = sign
        return J

    @property
    def most_points(self) -> int:
        """How many points can be differentiated together, once single ones have shown that it may be done; else 0."""
        if self._in_one_go is None:
            return 0
        if self._many is None:
            self._many = self._prepare_many(self._in_one_go)
        return self._many.most

    def _prepare_many(self, in_one_go: Visit) -> _ColumnsAtPoints:
        arena = self._session.arena
        written: tuple[FloatArray, ...] = (self._answers,)
        if self._shares_calls and self._together is not None:
            written = tuple(answers for answers in self._together.answers if answers.size)
        most = max(1, _MAX_BYTES // max(8, sum(answers.nbytes for answers in written)))
        rows = tuple(arena.zeros(min(most, len(self._after.rows)), answers.size) for answers in written)
        copies = [
            Instruction(arena, Operation.COPY, answers.reshape(-1), Repeated(to), name="the copy of its answers")
            for answers, to in zip(written, rows, strict=True)
        ]
        return _ColumnsAtPoints(Program((*in_one_go.anew.instructions, *copies)), rows)

    def differentiate_points(self, count: int) -> FloatArray | None:
        """Return J (count, rows, columns) at the points of the buffers' first rows, up to :attr:`most_points`.

        The rows then have the values there. None where the FMU moves its states or inputs, or rejects.
        """
        many, rows, first = self._many, self._buffers.rows[:count], self._first
        if many is None:
            return None
        try:
            self._session.visit_points(self._buffers, count, prepared=many.program)
        except FmilinError:
            return None
        if rows[:, 1:first].tobytes() != self._after.rows[:count, 1:first].tobytes():
            self._in_one_go, self._many, self._key = None, None, None
            return None
        columns = np.empty((count, *self._answers.shape))
        together = self._together
        if self._shares_calls and together is not None:
            shapes = [answers.shape for answers in together.answers]
            answers = iter(many.answers)
            parts = [next(answers)[:count] if np.prod(shape) else np.empty((count, 0)) for shape in shapes]
            group_answers, adjoint = (p.reshape(count, *shape) for p, shape in zip(parts, shapes, strict=True))
            together.distribute(group_answers, adjoint, columns)
        else:
            columns[:] = many.answers[0][:count].reshape(columns.shape)
        J = np.tile(self._J, (count, 1, 1))
        J[:, self._rows] = columns.swapaxes(1, 2)[:, self._take]
        return J

    def _fill(self, needed: Mask) -> bool:
        """Ask for the ``needed`` columns at the buffers' point; False when the FMU fails."""
        session, buffers = self._session, self._buffers
        self._is_known()
        missing = needed & ~self._done
        if not missing.any():
            return True
        session.visit(buffers)
        session.instance.read_back(buffers)  # also at the inputs, to see whether a product moves them
        self._base[:] = buffers.values
        if self._columns:
            answered = self._asked_together(missing)
            if self._key is None:  # the instance began again
                return self._fill(needed)
            if not answered and not (session.directional and self._ask_all(np.flatnonzero(missing).tolist())):
                return False
            self._store_answers()
            if not self._moves and missing.all():
                keeps = self._key == (self._point.tobytes(), session.generation)  # the inputs that it is given
                before = () if keeps else session.instance.calls(reading=buffers.inputs)
                columns = [call for column in self._columns for call in column]
                self._shares_calls = answered and self._together is not None
                if self._shares_calls and self._together is not None:
                    columns = list(self._together.calls.instructions)
                after = session.instance.reading_back(self._after).instructions
                self._in_one_go = session.instance.prepare(buffers, (*before, *columns, *after))
                self._many = None
        self._done |= missing
        return True

    def _is_known(self) -> bool:
        """Whether all columns are known at the buffers' point; where it is another one than before, none is."""
        key = (self._point.tobytes(), self._session.generation)
        if self._key == key:
            return bool(self._done.all())
        self._key = key
        self._done[:] = False
        return False

    def _store_answers(self) -> None:
        if self._in_order:
            self._J[...] = self._answers.T
        else:
            self._J[self._rows] = self._answers.T[self._take]

    def _filled_in_one_go(self) -> bool:
        """Request all columns in the evaluation's message; False where something has changed, to begin carefully."""
        if self._is_known():
            return True
        session, (before, after) = self._session, self._states_and_inputs
        try:
            session.visit(self._buffers, prepared=self._in_one_go)
            stayed = before.tobytes() == after.tobytes()
        except FmilinError:
            stayed = False
        if not stayed:
            self._in_one_go, self._key = None, None
            return False
        self._base[:] = self._buffers.values
        if self._shares_calls and self._together is not None:
            self._together.distribute(*self._together.answers, self._answers)
        self._store_answers()
        self._done[:] = True
        return True

    def _asked_together(self, missing: Mask) -> bool:
        """Ask for columns in groups of which no unknown depends on two, as declared; False where it cannot be done."""
        together = self._together
        if together is None or self._moves or not together.pays(missing):
            return False
        instance = self._session.instance
        instance.sink.forget()
        instance.forget_point()
        bad = instance.component.first_bad(together.calls)
        if bad is not None and bad.name.endswith("GetAdjointDerivative"):
            failure = instance.component.failure(bad)
            self._session.note(f"Adjoint derivatives were declared but failed, so they are not used. {failure}")
            self._together, self._key = None, None
            return False
        if bad is not None:
            return self._note_refusal(bad)
        together.distribute(*together.answers, self._answers)
        # The first time, the product along a random direction must be the sum of all answers.
        if self._restore() and together.is_confirmed(self._answers):
            return True
        self._together = None
        return False

    def _prepare(self, variables: list[Variable], targets: dict[tuple[int, int], list[int]]) -> None:
        """Bind the call of every column: for the unknowns ``variables``, which are wanted in the rows ``targets``."""
        layout = self._session.layout
        scalars = [s for v in variables for s in layout.scalars(v)]
        pairs = [(row, i) for i, s in enumerate(scalars) for row in targets.get(s.key, ())]
        self._rows, self._take = np.array(pairs, dtype=np.intp).T
        self._in_order = len(pairs) == len(self._J) and pairs == [(i, i) for i in range(len(pairs))]
        arena = self._session.arena
        unknowns = Group(arena, variables, arena.zeros(len(scalars)))
        self._answers = arena.zeros(self._J.shape[1], len(scalars))
        groups: dict[int, Group] = {}
        for scalar, answer in zip((*layout.states, *layout.inputs), self._answers, strict=False):  # tuned ones last
            v = scalar.variable
            if v.reference not in groups:
                groups[v.reference] = Group(arena, [v], arena.zeros(layout.size(v)))
            column = groups[v.reference]
            call = self._session.instance.directional(unknowns, column, answer)  # one known per call
            if column.values.size == 1:
                column.values[0] = 1.0
                self._columns.append((call,))
            else:
                element = column.values[scalar.offset : scalar.offset + 1]
                self._columns.append((fill(arena, element, 1.0), call, fill(arena, element, 0.0)))
        is_complete = len(self._columns) == len(self._answers)
        self._together = self._grouped(list(variables), len(scalars)) if is_complete else None

    def _grouped(self, unknowns: Sequence[Variable], count: int) -> Together | None:
        """Return the columns in groups by the declared structure; None where nothing shares calls, or for arrays."""
        layout = self._session.layout
        knowns = [s.variable for s in (*layout.states, *layout.inputs)]
        distinct = {v.reference for v in knowns if not v.dimensions}
        if len(knowns) < MIN_GROUPED_KNOWNS or len(distinct) < len(knowns):
            return None
        further = [s for v in self._buffers.further for s in layout.scalars(v)]
        structure = declared_structure(layout, further, np.arange(len(layout.inputs)))
        adjoint = self._session.instance.adjoint if count == len(unknowns) else None
        if structure is None and adjoint is None:
            return None
        pattern = np.ones((count, len(knowns)), dtype=bool)
        if structure is not None:
            pattern[self._take] = structure[self._rows]
        return Together(self._session.arena, unknowns, knowns, pattern, self._session.instance.directional, adjoint)

    def _ask_all(self, columns: list[int]) -> bool:
        """Ask for the columns; False when the FMU fails."""
        instance = self._session.instance
        instance.sink.forget()
        instance.forget_point()
        # States and inputs are examined once, at the end; if they ever moved, all is asked again, with a look each.
        if self._moves:
            return all(self._make_calls(self._columns[column]) and self._restore() for column in columns)
        if not self._make_calls([call for column in columns for call in self._columns[column]]):
            return False
        self._moves = not self._restore()
        return not self._moves or self._ask_all(columns)

    def _make_calls(self, calls: Sequence[Instruction]) -> bool:
        """Make the calls; False when the FMU fails one."""
        component = self._session.instance.component
        bad = component.first_bad(calls)
        return True if bad is None else self._note_refusal(bad)

    def _note_refusal(self, bad: Failure) -> bool:
        failure = self._session.instance.component.failure(bad)
        self._session.directional = False
        self._session.note(f"Directional derivatives were declared but failed, so they are not used. {failure}")
        return False

    def _restore(self) -> bool:
        """Put states and inputs back where the calls moved them; return whether they had stayed, or are back."""
        buffers, instance = self._buffers, self._session.instance
        point = buffers.values[1 : self._first]
        before = point.tobytes()
        instance.read_back(buffers)
        moved = point.tobytes() != before
        if moved:
            point[:] = np.frombuffer(before)
            instance.forget_point()
            instance.visit(buffers, "")
            self._session.note(
                "The model changes its states or inputs when it computes a directional derivative; they were restored "
                "after each."
            )
        return self._moves or not moved
