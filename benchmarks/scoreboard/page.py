"""The page ``docs/scoreboard.md``, made of ``docs/scoreboard.json``."""

from __future__ import annotations

from benchmarks.scoreboard.table import ROOT, Entry, read, shown

__all__ = ["PAGE", "page_text", "write_page"]

PAGE = ROOT / "docs" / "scoreboard.md"

INTRODUCTION = """# The scoreboard

<!-- made by python -m benchmarks scoreboard --write; a test compares -->

Published numbers of linearized mechanisms and other dynamic systems, and what fmilin and other tools say of the same
ones. Every number was read in the source that is named or in a copy of its table, or is the value of a formula printed
there; what could not be read is not here. All {count} rows agree to the last printed digit (to 1e-12 where a source
prints more), by each door: a model in Python (native), a mechanism file (TOML), a compiled FMU,
an MJCF file, Modelica.

The same table for programs is `docs/scoreboard.json`. Every row names the command that makes its number again, from the
repository's root:

```console
python -m benchmarks scoreboard
python -m benchmarks scoreboard {first}
python -m benchmarks scoreboard {first} --peers
```

A row is a file in `benchmarks/scoreboard/rows`. To add one, copy the shortest, and let
`python -m benchmarks scoreboard NAME --write` bring it here.

"""

PEERS = """## Results of other tools

Each peer answers by a script of its own in `benchmarks/scoreboard/peers`, to be run by anybody who has that tool
installed. A peer's number may answer another question than the row's, and the remark says so: soft constraints are
meant to be soft.

"""


def page_text() -> str:
    """Return the text of the page."""
    entries = list(read().values())
    parts = [INTRODUCTION.format(count=len(entries), first=entries[0].name if entries else "NAME")]
    parts += ["| system | quantity | published | fmilin | difference |\n| --- | --- | --- | --- | ---: |\n"]
    parts += [_line(entry) for entry in entries]
    parts += ["\n", PEERS, "| row | published | fmilin | peers |\n| --- | --- | --- | --- |\n"]
    parts += [_peers(entry) for entry in entries if entry.peers]
    parts += ["\n## Sources, and how each number is made\n\n", *(_source(entry) for entry in entries)]
    return "".join(parts).rstrip() + "\n"


def write_page() -> None:
    """Write the page."""
    PAGE.write_text(page_text(), encoding="utf-8")


def _line(entry: Entry) -> str:
    doors = ", ".join(entry.fmilin)
    [number, *_] = entry.fmilin.values()
    cells = [f"[{entry.system}](#{_anchor(entry)})", entry.quantity, entry.printed]
    return f"| {' | '.join(map(_cell, cells))} | {shown(number)} ({doors}) | {entry.difference:.0e} |\n"


def _peers(entry: Entry) -> str:
    said = "<br>".join(f"{entry.peer_versions[peer]}: {shown(number)}" for peer, number in entry.peers.items())
    [number, *_] = entry.fmilin.values()
    return f"| [{_cell(entry.system)}](#{_anchor(entry)}) | {entry.printed} | {shown(number)} | {said} |\n"


def _source(entry: Entry) -> str:
    page = f"<{entry.page}>" if entry.page.startswith("http") else entry.page
    parts = [f"### {entry.system}\n", f"{entry.quantity}: {entry.source}, {page}."]
    parts += [f"Printed: {entry.formula}."] if entry.formula else []
    parts += [entry.remark] if entry.remark else []
    commands = [entry.command, *(entry.peer_commands[peer] for peer in entry.peers)]
    return "\n".join(parts) + "\n\n```console\n" + "\n".join(commands) + "\n```\n\n"


def _anchor(entry: Entry) -> str:
    kept = "".join(c for c in entry.system.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
