"""The page ``docs/scoreboard.md``, made of ``docs/scoreboard.json``."""

from __future__ import annotations

from benchmarks.scoreboard.table import ROOT, Entry, read, shown

__all__ = ["PAGE", "page_text", "write_page"]

PAGE = ROOT / "docs" / "scoreboard.md"

INTRODUCTION = """# The scoreboard

<!-- made by python -m benchmarks scoreboard --write; a test compares -->

Published numbers of linearized mechanisms and other dynamic systems, with the results of fmilin and other tools. Each
number was read in the named source or in a copy of its table, or is the value of a formula printed there. All {count}
rows agree to the last printed digit (to 1e-12 where a source prints more), through each kind of model: Python (native),
a mechanism file (TOML), a compiled FMU, an MJCF file, Modelica. A note says where a tool answers another question, as
with soft constraints.

To compute all rows, one row or one kind of model of it again, in the repository's root (with `--peers` the other tools
too):

```console
python -m benchmarks scoreboard
python -m benchmarks scoreboard {first}
python -m benchmarks scoreboard {first} --door TOML
```

`docs/scoreboard.json` is the same table for programs, with the command of each number and of each peer. A row is a file
in `benchmarks/scoreboard/rows`. To add one, copy the shortest and run `python -m benchmarks scoreboard NAME --write`.

"""

SOURCES = "## Sources\n\n"


def page_text() -> str:
    """Return the text of the page."""
    entries = list(read().values())
    sources: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        sources.setdefault((entry.source, entry.page), []).append(entry)
    anchors = {
        entry.name: f"source-{number}" for number, rows in enumerate(sources.values(), start=1) for entry in rows
    }
    parts = [INTRODUCTION.format(count=len(entries), first=entries[0].name if entries else "NAME")]
    parts += ["| system, its name for programs | quantity | published | fmilin | difference | other tools |\n"]
    parts += ["| --- | --- | --- | --- | ---: | --- |\n"]
    parts += [_line(entry, anchors[entry.name]) for entry in entries]
    parts += ["\n", SOURCES]
    parts += [_source(number, rows) for number, rows in enumerate(sources.values(), start=1)]
    return "".join(parts).rstrip() + "\n"


def write_page() -> None:
    """Write the page."""
    PAGE.write_text(page_text(), encoding="utf-8")


def _line(entry: Entry, anchor: str) -> str:
    doors = ", ".join(entry.fmilin)
    [number, *_] = entry.fmilin.values()
    system = f"[{entry.system}](#{anchor}), `{entry.name}`"
    cells = [system, entry.quantity, entry.printed, f"{shown(number)} ({doors})"]
    peers = "<br>".join(f"{entry.peer_versions[peer]}: {shown(answer)}" for peer, answer in entry.peers.items())
    return f"| {' | '.join(map(_cell, cells))} | {entry.difference:.0e} | {peers} |\n"


def _source(number: int, rows: list[Entry]) -> str:
    """Return the section of one source: what all of its rows share, then what is true of one row."""
    [first, *_] = rows
    page = f"<{first.page}>" if first.page.startswith("http") else first.page
    shared = [note for note in _notes(first) if all(note in _notes(row) for row in rows)]
    lines = [f"### Source {number}\n", f"{first.source}, {page}.", *shared, ""]
    names_of: dict[str, list[str]] = {}
    for row in rows:
        for note in _notes(row):
            names_of.setdefault(note, []).append(f"`{row.name}`")
    lines += [f"- {', '.join(names)}: {note}" for note, names in names_of.items() if note not in shared]
    return "\n".join(lines).rstrip() + "\n\n"


def _notes(entry: Entry) -> list[str]:
    """Return the formula that the source prints and the diagnostic on a row, where there are any."""
    return [note for note in (entry.formula and f"Printed: {entry.formula}.", entry.remark) if note]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
