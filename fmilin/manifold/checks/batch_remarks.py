"""Diagnostics on the points of a batch: numbers until a point is examined, texts then.

A sentence on a point takes longer to write than its linear model takes to compute, and most are never read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark

Remarks = tuple[Remark, ...]


class PointRemarks(ABC):
    """The diagnostics of one check at each point of a batch."""

    is_present: NDArray[np.bool_]  # (k,), where there is something to be said

    @abstractmethod
    def write(self, k: int) -> Sequence[Remark]:
        """Return the diagnostics on point ``k``."""


class ListedRemarks(PointRemarks):
    """Diagnostics that are written already."""

    def __init__(self, remarks: Sequence[Sequence[Remark]]) -> None:
        self._remarks = remarks
        self.is_present = np.array([bool(each) for each in remarks], dtype=bool)

    def write(self, k: int) -> Sequence[Remark]:
        """Return the diagnostics on point ``k``."""
        return self._remarks[k]


class SharedRemarks(PointRemarks):
    """The same diagnostics on each of ``count`` points."""

    def __init__(self, remarks: Remarks, count: int) -> None:
        self._remarks = remarks
        self.is_present = np.full(count, bool(remarks))

    def write(self, k: int) -> Sequence[Remark]:
        """Return the diagnostics on point ``k``."""
        return self._remarks


class SelectedRemarks(PointRemarks):
    """The diagnostics of another source on some of its points, by their numbers there."""

    def __init__(self, source: PointRemarks, numbers: NDArray[np.intp]) -> None:
        self._source, self._numbers = source, numbers
        self.is_present = source.is_present[numbers]

    def write(self, k: int) -> Sequence[Remark]:
        """Return the diagnostics on point ``k``."""
        return self._source.write(int(self._numbers[k]))


class BatchRemarks(Sequence[Remarks]):
    """The diagnostics of several sources on each point, in the order of the sources."""

    def __init__(self, sources: Sequence[PointRemarks], count: int) -> None:
        self._sources, self._count = sources, count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, k: int) -> Remarks:  # type: ignore[override]  # slices are not needed
        number = range(self._count)[k]
        return tuple(remark for source in self._sources for remark in source.write(number))

    @property
    def is_present(self) -> NDArray[np.bool_]:
        """Where there is something to be said, shape (number of points,)."""
        present = np.zeros(self._count, dtype=bool)
        for source in self._sources:
            present |= source.is_present
        return present

    def with_first(self, remarks: Sequence[Remarks]) -> BatchRemarks:
        """Return the same diagnostics behind others on the same points."""
        return BatchRemarks([ListedRemarks(remarks), *self._sources], self._count)

    def select(self, numbers: NDArray[np.intp]) -> BatchRemarks:
        """Return the diagnostics on some of the points."""
        return BatchRemarks([SelectedRemarks(source, numbers) for source in self._sources], len(numbers))
