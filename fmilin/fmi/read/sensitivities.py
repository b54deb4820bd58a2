"""Exact derivatives through the FMU's own directional derivatives, one known per call.

Several knowns in one call are cheaper but not safe: Dymola up to 2023x leaves all knowns but the first
shifted afterwards. Rows that are known without asking (a quantity that is itself a state or an input)
are written down, since real exports answer zero for them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fmilin.fmi.read.description import Variable
from fmilin.fmi.read.pool import Group, Pool
from fmilin.fmi.read.session import Session
from fmilin.signals import FloatArray

__all__ = ["Sensitivities"]


class Sensitivities:
    """Derivatives of everything in a pool with respect to all states and inputs, column by column.

    Parameters
    ----------
    session : Session
    pool : Pool
        The pool of the view that asks; its point is overwritten.
    """

    def __init__(self, session: Session, pool: Pool) -> None:
        self._session = session
        self._pool = pool
        self._key: object = None
        size, n, k = pool.values.size, pool.n, pool.k
        layout = session.layout
        self._matrix = np.zeros((size, n + k))
        self._matrix[1 : 1 + n + k] = np.eye(n + k)
        self._done = np.zeros(n + k, dtype=bool)
        self._base = pool.values.copy()
        targets: dict[tuple[int, int], list[int]] = {}
        variables: dict[int, Variable] = {}
        rates = [(1 + n + k + i, scalar) for i, scalar in enumerate(layout.derivatives)]
        further = [(pool.position(s), s) for v in pool.further for s in layout.scalars(v)]
        for row, scalar in [*rates, *further]:
            position = pool.position(scalar)
            if position < 1 + n + k:
                self._matrix[row] = self._matrix[position]  # der(x) is the state v: exact without asking
            elif scalar.variable.reference in layout.description.allowed_unknowns:
                targets.setdefault(scalar.key, []).append(row)
                variables.setdefault(scalar.variable.reference, scalar.variable)
            else:
                self._matrix[row] = np.nan
        self._unknowns: Group | None = None
        self._rows: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._take: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        if variables:
            self._prepare_unknowns(list(variables.values()), targets)
        self._knowns = self._prepare_knowns()

    def at(self, needed: NDArray[np.intp]) -> tuple[FloatArray, FloatArray] | None:
        """Return the values of the pool at its point, and their derivatives for the ``needed`` columns.

        Parameters
        ----------
        needed : array of int
            Columns out of all states and inputs. What was found before at the same point is not asked again.

        Returns
        -------
        values : array, shape (size,)
        derivatives : array, shape (size, len(needed))
            NaN in rows that the standard does not allow as unknowns.

        or None when the FMU refused; it is never asked again then.
        """
        session, pool = self._session, self._pool
        key = (pool.values[: 1 + pool.n + pool.k].tobytes(), session.generation)
        if self._key != key:
            self._key = key
            self._done[:] = False
        elif self._done[needed].all():
            return self._base, self._matrix[:, needed]
        session.visit(pool)
        for group in pool.inputs:
            session.instance.read(group)  # as the FMU holds them, to see whether a product moves them
        self._base[:] = pool.values
        for column in needed[~self._done[needed]]:
            if self._unknowns is not None and not self._ask(self._unknowns, int(column)):
                return None
            self._done[column] = True
        return self._base, self._matrix[:, needed]

    def _prepare_unknowns(self, variables: list[Variable], targets: dict[tuple[int, int], list[int]]) -> None:
        layout = self._session.layout
        scalars = [s for v in variables for s in layout.scalars(v)]
        pairs = [(row, i) for i, s in enumerate(scalars) for row in targets.get(s.key, ())]
        self._unknowns = Group(variables, np.zeros(len(scalars)))
        self._rows, self._take = np.array(pairs, dtype=np.intp).T

    def _prepare_knowns(self) -> list[tuple[Group, int]]:
        """Return for every state and input its variable's group, whose numbers are the seed, and its place there."""
        layout = self._session.layout
        groups: dict[int, Group] = {}
        knowns = []
        for scalar in (*layout.states, *layout.inputs):
            v = scalar.variable
            if v.reference not in groups:
                groups[v.reference] = Group([v], np.zeros(layout.size(v)))
            knowns.append((groups[v.reference], scalar.offset))
        return knowns

    def _ask(self, unknowns: Group, column: int) -> bool:
        """Fill one column; False when the FMU refuses."""
        known, offset = self._knowns[column]
        instance = self._session.instance
        instance.sink.forget()
        known.values[:] = 0.0
        known.values[offset] = 1.0
        status = instance.directional(unknowns, known)
        if status not in (0, 1):
            failure = instance.failure("GetDirectionalDerivative", status)
            self._session.directional = False
            self._session.note(f"Directional derivatives were advertised but refused, so they are not used. {failure}")
            return False
        self._matrix[self._rows, column] = unknowns.values[self._take]
        self._restore()
        return True

    def _restore(self) -> None:
        """Put states and inputs back where the call moved them."""
        pool, instance = self._pool, self._session.instance
        before = pool.values[1 : 1 + pool.n + pool.k].copy()
        instance.read_states(pool)
        for group in pool.inputs:
            instance.read(group)
        moved = pool.values[1 : 1 + pool.n + pool.k].tobytes() != before.tobytes()
        pool.values[1 : 1 + pool.n + pool.k] = before
        if moved:
            instance.hold(pool)
            self._session.note(
                "The model moves its states or inputs when it is asked for a directional derivative; they were put "
                "back after each."
            )
