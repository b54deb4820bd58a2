"""The result of an audit: a row for each quantity, with the stated number and the number by a second method."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fmilin.signals import FloatArray
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr

Value = float | complex | bool


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A quantity that was computed in two ways."""

    quantity: str  #: what it is, as ``"eigenvalue 3"``
    stated: Value  #: what the result says
    second_way: Value  #: the number by the second method
    method: str  #: the second method, in words
    difference: float  #: absolute, in the quantity's unit
    tolerance: float  #: the difference that the errors of both ways explain, in the quantity's unit
    agrees: bool  #: whether the difference is within the tolerance

    def to_dict(self) -> dict[str, Any]:
        """Return the row as a JSON object; a complex number is a pair of numbers, what is not finite null."""
        numbers = {"stated": self.stated, "second_way": self.second_way, "difference": self.difference}
        written = {name: _write(value) for name, value in numbers.items()}
        verdict = {"method": self.method, "tolerance": _write(self.tolerance), "agrees": self.agrees}
        return {"quantity": self.quantity, **written, **verdict}


@dataclass(frozen=True, repr=False)
class Audit(TableRepr):
    """All numbers of a result with those of a second method.

    >>> import fmilin as fl
    >>> audit = fl.audit(fl.linearize(fl.systems.four_bar()))
    >>> audit.ok
    True
    """

    _attributes = ".rows, .ok, .disagreeing, .to_dict(), .save(path)"

    kind: str  #: of the result: ``"linear model"``
    name: str  #: of the model
    rows: tuple[AuditRow, ...]  #: a row for each quantity
    unchecked: tuple[str, ...] = ()  #: quantities without a second method, and why

    @implemented_in("fmilin.auditing.audit_table:show_audit")
    def _print_table(self, page: Sheet) -> None: ...

    @implemented_in("fmilin.auditing.audit_table:save_audit")
    def save(self, path: str | Path) -> None:
        """Write the table to ``path`` as one HTML file. Raises UsageError for another suffix."""
        ...

    @property
    def ok(self) -> bool:
        """Whether every number agrees with that of its second method."""
        return all(row.agrees for row in self.rows)

    @property
    def disagreeing(self) -> tuple[AuditRow, ...]:
        """The rows with numbers that differ by more than the errors of both methods explain."""
        return tuple(row for row in self.rows if not row.agrees)

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as a JSON object of the format ``fmilin-audit/1``."""
        return {
            "format": "fmilin-audit/1",
            "kind": self.kind,
            "model": self.name,
            "ok": self.ok,
            "rows": [row.to_dict() for row in self.rows],
            "unchecked": list(self.unchecked),
        }


def compare(
    quantity: str, stated: float | complex, second_way: float | complex, method: str, tolerance: float
) -> AuditRow:
    """Return a row; two infinities of the same sign agree, a NaN agrees with nothing."""
    difference = 0.0 if stated == second_way else float(abs(stated - second_way))
    agrees = bool(difference <= tolerance) and not math.isnan(difference)
    return AuditRow(quantity, _plain(stated), _plain(second_way), method, difference, float(tolerance), agrees)


def compare_claim(quantity: str, method: str, *, stated: bool = True, holds: bool) -> AuditRow:
    """Return a row of a statement that is true or false."""
    return AuditRow(quantity, stated, holds, method, float(stated != holds), 0.0, stated == holds)


def select_worst(rows: Iterable[AuditRow]) -> AuditRow | None:
    """Return the row with the largest difference relative to its tolerance."""
    return max(rows, key=_measure_excess, default=None)


def keep_worst(rows: Iterable[AuditRow]) -> list[AuditRow]:
    """Return the row with the largest difference relative to its tolerance, in a list; an empty list without rows."""
    worst = select_worst(rows)
    return [] if worst is None else [worst]


def compare_entries(
    name: str,
    matrices: tuple[FloatArray, FloatArray],
    method: str,
    tolerance: FloatArray,
    signals: tuple[Sequence[str], Sequence[str]],
) -> list[AuditRow]:
    """Compare a stated matrix with a second one entry by entry, and keep the worst; ``signals`` name rows and columns.

    Raises ValueError when the shapes differ.
    """
    stated, second = matrices
    if stated.shape != second.shape:
        raise ValueError(f"{name} has the shape {stated.shape}, and {second.shape} by a second way")
    limits = np.broadcast_to(tolerance, stated.shape)
    rows, columns = signals
    return keep_worst(
        compare(
            f"{name}[{rows[i]}, {columns[j]}]", float(stated[i, j]), float(second[i, j]), method, float(limits[i, j])
        )
        for i, j in np.ndindex(stated.shape)
    )


def compare_covariances(
    name: str, matrices: tuple[FloatArray, FloatArray], method: str, relative: float, signals: Sequence[str]
) -> list[AuditRow]:
    """Compare two covariances entry by entry, in sizes of the standard deviations of the second one."""
    sizes = np.sqrt(np.maximum(np.abs(np.diag(matrices[1])), 1e-300))
    return compare_entries(name, matrices, method, relative * np.outer(sizes, sizes), (signals, signals))


def _measure_excess(row: AuditRow) -> float:
    if math.isnan(row.difference):
        return math.inf
    if row.tolerance > 0:
        return row.difference / row.tolerance
    return math.inf if row.difference > 0 else 0.0


def _plain(value: float | complex) -> Value:
    """Return a number of Python, real where the imaginary part is zero."""
    number = complex(value)
    return number.real if number.imag == 0 else number


def _write(value: Value) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, complex):
        return [_write(value.real), _write(value.imag)]
    return value if math.isfinite(value) else None
