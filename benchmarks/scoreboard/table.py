"""The table of results: ``docs/scoreboard.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.scoreboard.row import Row

__all__ = ["ROOT", "TABLE", "Entry", "entry", "names_of_rows", "number_of", "read", "rows", "shown", "write"]

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "scoreboard.json"
COMMAND = "python -m benchmarks scoreboard {} --door {}"

Printed = str | float | list[float]
"""A number as JSON has it: a complex one is [re, im]."""


@dataclass(frozen=True)
class Entry:
    """One row of the table, as it stands in the file."""

    name: str
    system: str
    source: str
    page: str
    quantity: str
    published: Any
    digits: str
    formula: str
    fmilin: dict[str, Any]
    difference: float
    agrees: bool
    command: str
    peers: dict[str, Any] = field(default_factory=dict)
    peer_versions: dict[str, str] = field(default_factory=dict)
    peer_commands: dict[str, str] = field(default_factory=dict)
    remark: str = ""

    @property
    def printed(self) -> str:
        """Return the published number as people read it: digits as they are printed."""
        return self.digits.replace("j", "i") or shown(self.published)

    def with_peers(self, answers: Mapping[str, tuple[str, Any]]) -> Entry:
        """Return the row with what peers answered, and which version did."""
        numbers = {peer: _rounded(number_of(number)) for peer, (_, number) in answers.items()}
        versions = {peer: version for peer, (version, _) in answers.items()}
        return replace(self, peers=self.peers | numbers, peer_versions=self.peer_versions | versions)


def names_of_rows() -> list[str]:
    """Return the names of the rows, which are those of their files."""
    return sorted(path.stem for path in (Path(__file__).parent / "rows").glob("[a-z]*.py"))


def rows(names: Iterable[str] = ()) -> dict[str, Row]:
    """Return rows by name, all where none is named."""
    chosen = list(names) or names_of_rows()
    return {name: import_module(f"benchmarks.scoreboard.rows.{name}").ROW for name in chosen}


def entry(name: str, row: Row, numbers: Mapping[str, complex], before: Entry | None = None) -> Entry:
    """Return the line of a row with fmilin's numbers; of sources that were not run, and of peers, the former ones."""
    earlier = before.fmilin if before else {}
    every = {door: _rounded(numbers[door]) if door in numbers else earlier.get(door) for door in row.doors}
    answered, versions = (
        {peer: kept[peer] for peer in row.peers if peer in kept}
        for kept in ((before.peers, before.peer_versions) if before else ({}, {}))
    )
    apart = max(abs(number - row.value) for number in numbers.values())
    return Entry(
        name=name,
        system=row.system,
        source=row.source,
        page=row.page,
        quantity=row.quantity,
        published=_rounded(row.value),
        digits=row.published if isinstance(row.published, str) else "",
        formula=row.formula,
        fmilin={door: number for door, number in every.items() if number is not None},
        difference=float(f"{apart:.1e}"),
        agrees=all(row.agrees(number) for number in numbers.values()),
        command=COMMAND.format(name, next(iter(row.doors))),
        peers=answered,
        peer_versions=versions,
        peer_commands={peer: f"python -m benchmarks.scoreboard.peers.{script}" for peer, script in row.peers.items()},
        remark=row.remark,
    )


def read() -> dict[str, Entry]:
    """Return the table as it stands."""
    if not TABLE.exists():
        return {}
    return {line["name"]: Entry(**line) for line in json.loads(TABLE.read_text(encoding="utf-8"))}


def write(entries: Mapping[str, Entry], order: Iterable[str]) -> None:
    """Keep the table; lines of rows that are gone are left out."""
    lines = [asdict(entries[name]) for name in order if name in entries]
    TABLE.write_text(json.dumps(lines, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def number_of(printed: Any) -> complex:
    """Return what a number in the file stands for."""
    return complex(*printed) if isinstance(printed, list) else complex(printed)


def shown(printed: Any) -> str:
    """Return a number of the file as people read it."""
    if isinstance(printed, list):
        if not printed[0]:
            return f"{printed[1]:.12g}i"
        return f"{printed[0]:.10g} {'-' if printed[1] < 0 else '+'} {abs(printed[1]):.10g}i"
    return str(printed) if isinstance(printed, str) else f"{printed:.12g}"


def _rounded(number: complex) -> Printed:
    """Return a number as the file has it: parts below rounding are zero, and a real number is one."""
    number, size = complex(number), abs(number)
    re, im = (
        0.0 if abs(part) < 1e-9 * max(size, 1e-3) else float(f"{part:.13g}") for part in (number.real, number.imag)
    )
    return [re, im] if im else re
