"""The declared structure: which derivatives and outputs depend on which states and inputs, and what may share a call.

Several knowns share a directional derivative where the description says that no unknown depends on two of them. A row
that depends on nearly all knowns (an output that sums them up) would leave no two together: where the FMU gives adjoint
derivatives, such rows cost one call each. Both are put to the test by the product along one direction through all
columns.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fmilin.fmi.read.buffers import Group, pointer_to
from fmilin.fmi.read.component import Call
from fmilin.fmi.read.description import Unknown, Variable
from fmilin.fmi.read.layout import Scalar, ScalarLayout
from fmilin.ground.signals import FloatArray
from fmilin.ground.tolerances import COLUMNS_AGREE
from fmilin.numerics.differences.coloring import column_groups

_LARGEST = 50_000_000  # entries of a structure; above it would take more memory than it saves time


def declared_structure(
    layout: ScalarLayout, outputs: Sequence[Scalar], inputs: NDArray[np.intp]
) -> NDArray[np.bool_] | None:
    """Return the FMU's claim, if any, of (derivatives, outputs) over (states, inputs), shape (N + ny, N + nu)."""
    description = layout.description
    unknowns = {u.variable.reference: u for u in (*description.outputs, *description.derivatives)}
    if all(u.dependencies is None for u in unknowns.values()):
        return None
    n = len(layout.states)
    width = n + len(layout.inputs)
    if (n + len(outputs)) * width > _LARGEST:
        return None
    columns: dict[tuple[int, int], list[int]] = {}  # lists: in odd descriptions an input is a state, too
    for i, s in enumerate((*layout.states, *layout.inputs)):
        columns.setdefault(s.key, []).append(i)
    chosen = np.concatenate((np.arange(n), n + inputs))
    structure = np.ones((n + len(outputs), width), dtype=bool)
    rows: dict[int, NDArray[np.bool_]] = {}  # the elements of an array share theirs
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


def _row(
    layout: ScalarLayout, unknown: Unknown, columns: dict[tuple[int, int], list[int]], width: int
) -> NDArray[np.bool_]:
    row = np.zeros(width, dtype=bool)
    keys = {s.key for v in unknown.dependencies or () if v.is_float for s in layout.scalars(v)}
    row[[i for key in keys for i in columns.get(key, ())]] = True
    return row


FEWEST = 16  # knowns from which it is worth while
FULL = 10  # A row that depends on more knowns than this and twice the median is one that adjoint derivatives are for

Product = Callable[[Group, Group, ctypes.c_void_p], Call]


class Together:
    """Groups of knowns and rows of their own, and calls; ``pattern`` is a claim that :meth:`is_confirmed` tests."""

    def __init__(
        self,
        unknowns: Sequence[Variable],
        knowns: Sequence[Variable],
        pattern: NDArray[np.bool_],
        directional: Product,
        adjoint: Product | None = None,
    ) -> None:
        self._pattern = pattern
        self._groups, self._rows = _cheapest(pattern) if adjoint is not None else (column_groups(pattern), [])
        self._answers = np.zeros((len(self._groups) + 1, len(pattern)))
        self._adjoint_answers = np.zeros((len(self._rows), len(knowns)))
        self._direction = np.random.default_rng(1974).uniform(0.5, 1.0, len(knowns))
        directions = [np.ones(len(group)) for group in self._groups] + [self._direction.copy()]
        members = [*self._groups, list(range(len(knowns)))]
        wanted = Group(unknowns, np.zeros(len(pattern)))
        seeded = [Group([knowns[j] for j in m], direction) for m, direction in zip(members, directions, strict=True)]
        calls = [directional(wanted, g, pointer_to(answer)) for g, answer in zip(seeded, self._answers, strict=True)]
        every, rows = Group(knowns, np.zeros(len(knowns))), [Group([unknowns[i]], np.ones(1)) for i in self._rows]
        if adjoint is not None:
            along = (adjoint(row, every, pointer_to(a)) for row, a in zip(rows, self._adjoint_answers, strict=True))
            calls = [*along, *calls]
        self._calls, self._bound = tuple(calls), (wanted, seeded, every, rows)  # whose addresses the calls hold
        self._confirmed = False

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls; the last one is the test, as long as it has not been passed."""
        return self._calls[:-1] if self._confirmed else self._calls

    def pays(self, missing: NDArray[np.bool_]) -> bool:
        """Whether there are fewer calls than columns that are wanted."""
        return 2 * len(self.calls) < int(np.count_nonzero(missing))

    def distribute(self, columns: FloatArray) -> None:
        """Write the answers to ``columns``, shape (columns, rows): each to the column that it depends on."""
        for group, answer in zip(self._groups, self._answers[:-1], strict=True):
            columns[group] = np.where(self._pattern[:, group].T, answer, 0.0)
        columns[:, self._rows] = self._adjoint_answers.T

    def is_confirmed(self, columns: FloatArray) -> bool:
        """Whether the product along all columns at once is their sum; asked once."""
        if not self._confirmed:
            terms = np.abs(columns.T) @ self._direction
            off = np.abs(columns.T @ self._direction - self._answers[-1])
            self._confirmed = bool((off <= COLUMNS_AGREE * np.maximum(terms, np.abs(self._answers[-1]))).all())
        return self._confirmed


def _cheapest(pattern: NDArray[np.bool_]) -> tuple[list[list[int]], list[int]]:
    """Return groups of columns, and the rows beside them: no row, the full ones, or all, whichever needs fewest."""
    counts = pattern.sum(axis=1)
    full = np.flatnonzero(counts > FULL + 2 * np.median(counts)).tolist()
    sparse = pattern.copy()
    sparse[full] = False
    candidates = [(column_groups(pattern), []), (column_groups(sparse), full), ([], list(range(len(pattern))))]
    return min(candidates, key=lambda candidate: len(candidate[0]) + len(candidate[1]))
