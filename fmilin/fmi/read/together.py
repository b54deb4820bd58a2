"""Directional derivatives along several knowns at once, where the description says that no unknown depends on two."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fmilin.derivatives.grouping import column_groups
from fmilin.fmi.read.buffers import Group, pointer_to
from fmilin.fmi.read.component import Call
from fmilin.fmi.read.description import Variable
from fmilin.signals import FloatArray
from fmilin.tolerances import COLUMNS_AGREE

__all__ = ["FEWEST", "Together"]

FEWEST = 16
"""Knowns from which it is worth while."""


class Together:
    """Groups of knowns, and the calls that ask for each.

    Parameters
    ----------
    unknowns : Group
    known : sequence of Variable
        One for each column.
    pattern : array of bool, shape (unknowns, columns)
        The declared structure: a claim, which :meth:`is_confirmed` puts to the test.
    directional : callable
        See :meth:`fmilin.fmi.read.instance.Instance.directional`.
    """

    def __init__(
        self,
        unknowns: Group,
        known: Sequence[Variable],
        pattern: NDArray[np.bool_],
        directional: Callable[[Group, Group, ctypes.c_void_p], Call],
    ) -> None:
        self._pattern = pattern
        self._groups = column_groups(pattern)
        self._answers = np.zeros((len(self._groups) + 1, len(pattern)))
        self._direction = np.random.default_rng(1974).uniform(0.5, 1.0, len(known))
        seeds = [np.ones(len(group)) for group in self._groups] + [self._direction.copy()]
        members = [*self._groups, list(range(len(known)))]
        self._known = [Group([known[j] for j in m], seed) for m, seed in zip(members, seeds, strict=True)]
        self._calls = tuple(
            directional(unknowns, group, pointer_to(answer))
            for group, answer in zip(self._known, self._answers, strict=True)
        )
        self._confirmed = False

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls; the last one is the test, as long as it has not been passed."""
        return self._calls[:-1] if self._confirmed else self._calls

    def pays(self, missing: NDArray[np.bool_]) -> bool:
        """Whether there are fewer calls than columns that are wanted."""
        return 2 * len(self.calls) < int(np.count_nonzero(missing))

    def distribute(self, columns: FloatArray) -> None:
        """Write the answers to ``columns``, shape (columns, unknowns): each to the column that it depends on."""
        for group, answer in zip(self._groups, self._answers[:-1], strict=True):
            columns[group] = np.where(self._pattern[:, group].T, answer, 0.0)

    def is_confirmed(self, columns: FloatArray) -> bool:
        """Whether the product along all columns at once is their sum; asked once."""
        if not self._confirmed:
            terms = np.abs(columns.T) @ self._direction
            off = np.abs(columns.T @ self._direction - self._answers[-1])
            self._confirmed = bool((off <= COLUMNS_AGREE * np.maximum(terms, np.abs(self._answers[-1]))).all())
        return self._confirmed
