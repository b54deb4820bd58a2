"""The page ``docs/scoreboard.md``, made of ``docs/scoreboard.json``."""

from __future__ import annotations

from benchmarks.scoreboard.table import ROOT, Entry, read, shown

__all__ = ["PAGE", "page_text", "write_page"]

PAGE = ROOT / "docs" / "scoreboard.md"

INTRODUCTION = """# The scoreboard

<!-- made by python -m benchmarks scoreboard --write; a test compares -->

Published numbers of linearized mechanisms and other dynamic systems beside the results of fmilin and other tools. Each
number was read in the named source, or in a copy of its table, or is the value of a formula printed there. All {count}
rows agree to the last printed digit (to 1e-12 where a source prints more), through each kind of model: Python (native),
a mechanism file (TOML), a compiled FMU, an MJCF file, Modelica. A peer's number may answer another question than the
row's, and the remark says so: soft constraints are meant to be soft.

`docs/scoreboard.json` is the same table for programs. To compute a row again, in the repository's root:

```console
python -m benchmarks scoreboard
python -m benchmarks scoreboard {first}
python -m benchmarks scoreboard {first} --peers
```

A row is a file in `benchmarks/scoreboard/rows`. To add one, copy the shortest and run
`python -m benchmarks scoreboard NAME --write`.

"""

SOURCES = """## Sources

Commands are abbreviated: `NAME --door DOOR` is `python -m benchmarks scoreboard NAME --door DOOR`; the program of a
peer, which needs that tool, is `python -m benchmarks.scoreboard.peers.PROGRAM`.

"""


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
    parts += ["| system | quantity | published | fmilin | difference | other tools |\n"]
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
    cells = [f"[{entry.system}](#{anchor})", entry.quantity, entry.printed, f"{shown(number)} ({doors})"]
    peers = "<br>".join(f"{entry.peer_versions[peer]}: {shown(answer)}" for peer, answer in entry.peers.items())
    return f"| {' | '.join(map(_cell, cells))} | {entry.difference:.0e} | {peers} |\n"


def _source(number: int, rows: list[Entry]) -> str:
    """Return the section of one source: what all of its rows share, then each row with its command."""
    [first, *_] = rows
    page = f"<{first.page}>" if first.page.startswith("http") else first.page
    shared = [note for note in _notes(first) if all(note in _notes(row) for row in rows)]
    lines = [f"### Source {number}\n", f"{first.source}, {page}.", *shared, ""]
    lines += [_row_of_source(row, [note for note in _notes(row) if note not in shared]) for row in rows]
    return "\n".join(lines) + "\n\n"


def _notes(entry: Entry) -> list[str]:
    """Return the formula that the source prints and the diagnostic on a row, where there are any."""
    return [note for note in (entry.formula and f"Printed: {entry.formula}.", entry.remark) if note]


def _row_of_source(entry: Entry, notes: list[str]) -> str:
    row = entry.command.removeprefix("python -m benchmarks scoreboard ")
    programs = (
        entry.peer_commands[peer].removeprefix("python -m benchmarks.scoreboard.peers.") for peer in entry.peers
    )
    peers = ", ".join(f"`{program}`" for program in programs)
    return " ".join([f"- {entry.system}: `{row}`" + (f"; peers {peers}." if peers else "."), *notes])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
