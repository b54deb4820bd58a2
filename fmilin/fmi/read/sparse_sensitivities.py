"""Exact derivatives of a large FMU by its directional derivatives, of which only the declared entries are asked for.

Columns of which no unknown depends on two share a call, and each call asks for those unknowns alone that depend on its
columns, so that all answers together have as many numbers as there are declared dependencies. Rows that depend on
nearly all columns, as a sum over all states does, would leave no columns to share: they cost one call each where there
are adjoint derivatives, else they are asked for alone, column by column.

FMUs with which this is not safe are left to :mod:`fmilin.fmi.read.sensitivities`: arrays, several names of one
variable, and code that moves its states when it is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fmilin.fmi.client.host_programs import Instruction, Program
from fmilin.fmi.read.buffers import Buffers, Group
from fmilin.fmi.read.description import Variable
from fmilin.fmi.read.layout import ScalarVariable
from fmilin.fmi.read.session import Session
from fmilin.model.sparse_model_derivatives import SparseJacobian
from fmilin.numerics.differences.sparse_coloring import find_full_rows, sparse_column_groups
from fmilin.signals import FloatArray
from fmilin.tolerances import COLUMNS_AGREE

if TYPE_CHECKING:
    from scipy import sparse

Numbers = NDArray[np.intp]

MAX_DENSITY = 0.1
"""Part of the entries that may be declared. Of fuller matrices dense arrays take less time."""

UNKNOWN_INDEX = -1  # in the place of the state or input that a variable is


@dataclass(frozen=True, eq=False)
class DeclaredRows:
    """Which variables are asked for, and what they depend on."""

    unknowns: list[Variable]
    knowns: list[Variable]  # of the states, then of the inputs
    pattern: sparse.csr_array[Any]  # (unknowns, knowns)
    # (rows of x' and z,), the state or input that each of them is, or IS_UNKNOWN; and which unknown it is then
    known_of_row: Numbers
    unknown_of_row: Numbers


def find_declared_rows(session: Session, buffers: Buffers) -> DeclaredRows | None:
    """Return what an FMU declares of x' and the further variables; None where this form has no place for it."""
    from scipy import sparse

    layout = session.layout
    description = layout.description
    knowns: list[ScalarVariable] = [*layout.states, *layout.inputs]
    columns = {scalar.key: j for j, scalar in enumerate(knowns)}
    are_scalars = len(columns) == len(knowns) and not any(scalar.variable.dimensions for scalar in knowns)
    if not are_scalars or buffers.n + buffers.k != len(knowns):
        return None
    declared = {u.variable.reference: u.dependencies for u in (*description.outputs, *description.derivatives)}
    first = 1 + buffers.n + buffers.k
    room = MAX_DENSITY * (buffers.values.size - first) * len(knowns)  # for entries
    numbers: dict[int, int] = {}  # of unknowns, by reference
    unknowns: list[Variable] = []
    members: list[list[int]] = []
    known_of_row, unknown_of_row = [], []
    for scalar in (*layout.derivatives, *(s for v in buffers.further for s in layout.scalars(v))):
        variable, position = scalar.variable, buffers.position(scalar)
        if position < first:
            known_of_row.append(position - 1)
            unknown_of_row.append(0)
            continue
        if variable.dimensions or variable.reference not in description.allowed_unknowns:
            return None
        if variable.reference not in numbers:
            dependencies = declared.get(variable.reference)
            row = list(range(len(knowns)))
            if dependencies is not None:
                keys = ((v.reference, 0) for v in dependencies if v.is_float)  # no state or input is an array
                row = sorted({columns[key] for key in keys if key in columns})
            room -= len(row)
            if room < 0:
                return None
            numbers[variable.reference] = len(unknowns)
            unknowns.append(variable)
            members.append(row)
        known_of_row.append(UNKNOWN_INDEX)
        unknown_of_row.append(numbers[variable.reference])
    indptr = np.concatenate(([0], np.cumsum([len(row) for row in members]))).astype(np.intp)
    indices = np.array([j for row in members for j in row], dtype=np.intp)
    pattern = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(unknowns), len(knowns)))
    rows = np.array(known_of_row, dtype=np.intp), np.array(unknown_of_row, dtype=np.intp)
    return DeclaredRows(unknowns, [scalar.variable for scalar in knowns], pattern, *rows)


class EntryCalls:
    """The calls for all declared entries; ``rows`` and ``columns`` are those of the numbers that they answer."""

    def __init__(self, session: Session, declared: DeclaredRows) -> None:
        self._arena, self._instance, self._declared = session.arena, session.instance, declared
        self.instructions: list[Instruction] = []
        self._answers: list[FloatArray] = []
        self._rows: list[Numbers] = []
        self._columns: list[Numbers] = []
        pattern = declared.pattern
        adjoint = self._instance.adjoint
        full = find_full_rows(pattern)
        is_full = np.zeros(pattern.shape[0], dtype=bool)
        is_full[full] = True
        columns = pattern.tocsc()
        thin = pattern[~is_full].tocsc()
        in_thin_rows = np.diff(thin.indptr) > 0
        for group_columns in sparse_column_groups(thin):
            group = [j for j in group_columns if in_thin_rows[j]]
            members = np.array(group, dtype=np.intp)
            part = columns[:, group].tocoo()
            chosen = ~is_full[part.row]
            self._ask(part.row[chosen].astype(np.intp), members, members[part.col[chosen]])
        if adjoint is not None:
            for i in full.tolist():
                self._ask_adjoint(i, pattern.indices[pattern.indptr[i] : pattern.indptr[i + 1]].astype(np.intp))
        else:
            for j in np.unique(pattern[full].indices).tolist():
                rows = columns.indices[columns.indptr[j] : columns.indptr[j + 1]].astype(np.intp)
                rows = rows[is_full[rows]]
                self._ask(rows, np.array([j]), np.full(len(rows), j))
        nothing = [np.empty(0, dtype=np.intp)]
        self.rows, self.columns = np.concatenate(self._rows or nothing), np.concatenate(self._columns or nothing)

    @property
    def values(self) -> FloatArray:
        """The numbers that were answered last."""
        return np.concatenate(self._answers) if self._answers else np.empty(0)

    def encode_product(self, rows: Numbers, columns: Numbers, seed: FloatArray) -> tuple[Instruction, FloatArray]:
        """Return the call for unknowns along a direction, and where it writes."""
        arena, declared = self._arena, self._declared
        answer = arena.zeros(len(rows))
        unknowns = Group(arena, [declared.unknowns[i] for i in rows.tolist()], arena.zeros(len(rows)))
        knowns = Group(arena, [declared.knowns[j] for j in columns.tolist()], arena.copy(seed))
        return self._instance.directional(unknowns, knowns, answer), answer

    def _ask(self, rows: Numbers, members: Numbers, column_of_row: Numbers) -> None:
        call, answer = self.encode_product(rows, members, np.ones(len(members)))
        self._add(call, answer, rows, column_of_row)

    def _ask_adjoint(self, row: int, columns: Numbers) -> None:
        arena, declared, adjoint = self._arena, self._declared, self._instance.adjoint
        if adjoint is None:
            return
        answer = arena.zeros(len(columns))
        unknown = Group(arena, [declared.unknowns[row]], arena.copy(np.ones(1)))
        knowns = Group(arena, [declared.knowns[j] for j in columns.tolist()], arena.zeros(len(columns)))
        self._add(adjoint(unknown, knowns, answer), answer, np.full(len(columns), row), columns)

    def _add(self, call: Instruction, answer: FloatArray, rows: Numbers, columns: Numbers) -> None:
        self.instructions.append(call)
        self._answers.append(answer)
        self._rows.append(rows)
        self._columns.append(columns)


class SparseSensitivities:
    """Derivatives of rates and outputs by states and inputs at the point of ``buffers``.

    ``outputs`` are where they stand in the buffers, ``signs`` what they are multiplied by, ``inputs`` which of the
    FMU's own are chosen.
    """

    def __init__(
        self,
        session: Session,
        buffers: Buffers,
        declared: DeclaredRows,
        outputs: Numbers,
        signs: FloatArray,
        inputs: Numbers,
    ) -> None:
        self._session, self._buffers = session, buffers
        self._calls = calls = EntryCalls(session, declared)
        rows = np.flatnonzero(np.diff(declared.pattern.indptr) > 0)
        self._direction = np.random.default_rng(1974).uniform(0.5, 1.0, len(declared.knowns))
        test, self._test = calls.encode_product(rows, np.arange(len(declared.knowns)), self._direction)
        self._tested_rows = rows
        self._program = Program(calls.instructions)
        self._program_with_test = Program([*calls.instructions, test])
        self._is_usable, self._is_confirmed = True, False
        self._locate_entries(declared, outputs, signs, inputs)

    def read(self) -> SparseJacobian | None:
        """Return the derivatives at the buffers' point; None, from then on, where this FMU does not allow that."""
        from scipy import sparse

        self._is_usable = self._is_usable and self._ask() and (self._is_confirmed or self._confirm())
        if not self._is_usable:
            return None
        data = np.append(self._calls.values, 1.0)[self._order] * self._signs
        J = sparse.csr_array((data, self._layout.indices, self._layout.indptr), shape=self._layout.shape)
        return SparseJacobian(J, len(self._calls.instructions), self._groups, self._full_rows)

    def _ask(self) -> bool:
        """Make the calls at the buffers' point; False where the FMU fails them, or does not stay there."""
        session, buffers = self._session, self._buffers
        session.visit(buffers)
        instance = session.instance
        instance.read_back(buffers)
        numbers = buffers.values[1 : 1 + buffers.n + buffers.k]
        before = numbers.copy()
        instance.sink.forget()
        instance.forget_point()
        program = self._program if self._is_confirmed else self._program_with_test
        if instance.component.first_bad(program) is not None:
            return False  # it is asked again, column by column, and what it says then is noted
        instance.read_back(buffers)
        if numbers.tobytes() == before.tobytes():
            return True
        numbers[:] = before
        instance.forget_point()
        instance.visit(buffers, "")
        return False

    def _confirm(self) -> bool:
        """Whether the derivatives along one direction through all columns are the sum of those in each; asked once."""
        calls, count = self._calls, int(self._tested_rows.max(initial=-1)) + 1
        terms = calls.values * self._direction[calls.columns]
        total = np.bincount(calls.rows, weights=terms, minlength=count)[self._tested_rows]
        size = np.bincount(calls.rows, weights=np.abs(terms), minlength=count)[self._tested_rows]
        off = np.abs(total - self._test)
        self._is_confirmed = bool((off <= COLUMNS_AGREE * np.maximum(size, np.abs(self._test))).all())
        return self._is_confirmed

    def _locate_entries(self, declared: DeclaredRows, outputs: Numbers, signs: FloatArray, inputs: Numbers) -> None:
        """Find where each entry of the matrix stands among the answers, behind which is a one."""
        from scipy import sparse

        calls, buffers = self._calls, self._buffers
        # numbers are counted from 1: a stored 0 would not be an entry
        count, one = len(calls.rows), len(calls.rows) + 1
        numbers = np.arange(1, count + 1)
        entries = sparse.csr_array((numbers, (calls.rows, calls.columns)), shape=declared.pattern.shape)
        width, n = declared.pattern.shape[1], buffers.n
        is_known = declared.known_of_row != UNKNOWN_INDEX
        written = np.flatnonzero(is_known)
        shape = len(is_known), width
        constants = sparse.csr_array(
            (np.full(len(written), one), (written, declared.known_of_row[written])), shape=shape
        )
        unknown = np.flatnonzero(~is_known)
        selection = sparse.csr_array(
            (np.ones(len(unknown), dtype=np.int64), (unknown, declared.unknown_of_row[unknown])),
            shape=(shape[0], declared.pattern.shape[0]),
        )
        identity = sparse.eye_array(width, format="csr", dtype=np.int64) * one
        time = sparse.csr_array((1, width), dtype=np.int64)
        everything = sparse.vstack((time, identity, selection @ entries + constants), format="csr")
        rows = np.concatenate((1 + width + np.arange(n), outputs))
        chosen = np.concatenate((np.arange(n), n + inputs))
        layout = everything[rows]
        if not np.array_equal(chosen, np.arange(width)):
            layout = layout[:, chosen]
        layout.sort_indices()
        self._layout = layout
        self._order = layout.data - 1
        row_signs = np.concatenate((np.ones(n), signs))
        self._signs = np.repeat(row_signs, np.diff(layout.indptr))
        self._full_rows = find_full_rows(layout)
        is_thin = np.ones(layout.shape[0], dtype=bool)
        is_thin[self._full_rows] = False
        self._groups = sparse_column_groups(layout[is_thin].tocsc())


def find_sparse_sensitivities(
    session: Session, buffers: Buffers, outputs: Numbers, signs: Sequence[float] | FloatArray, inputs: Numbers
) -> SparseSensitivities | None:
    """Return the sparse derivatives of an FMU; None where it declares no structure that is sparse."""
    declared = find_declared_rows(session, buffers)
    if declared is None or not len(declared.unknowns):
        return None
    return SparseSensitivities(session, buffers, declared, outputs, np.asarray(signs, dtype=np.float64), inputs)
