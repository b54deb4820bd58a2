"""The command: ``python -m benchmarks scoreboard [ROW ...] [--reduced] [--door DOOR] [--peers] [--write]``."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from benchmarks.scoreboard.page import write_page
from benchmarks.scoreboard.row import Row
from benchmarks.scoreboard.table import ROOT, Entry, entry, names_of_rows, read, rows, shown, write
from benchmarks.tables import show

__all__ = ["main"]


def main(arguments: Sequence[str] = ()) -> int:
    """Ask for the numbers, and print or keep them; the status is 1 where a number is not the published one."""
    parser = ArgumentParser("python -m benchmarks scoreboard", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--reduced", action="store_true", help="the first door of every row")
    parser.add_argument("--door", help="this door alone")
    parser.add_argument("--peers", action="store_true", help="run the scripts of those peers that are installed")
    parser.add_argument("--write", action="store_true", help="keep the results in docs/scoreboard.json and its page")
    options = parser.parse_args(arguments)
    every = names_of_rows()
    unknown = [name for name in options.rows if name not in every]
    if unknown:
        parser.error(f"there is no row '{unknown[0]}'. There are: {', '.join(every)}.")
    chosen = rows(options.rows)
    if options.door and not any(options.door in row.doors for row in chosen.values()):
        known = dict.fromkeys(door for row in chosen.values() for door in row.doors)
        parser.error(f"there is no door '{options.door}'. There are: {', '.join(known)}.")
    before, asked = read(), {}
    for name, row in chosen.items():
        doors = [options.door] if options.door else list(row.doors)[: 1 if options.reduced else None]
        if not set(doors) <= set(row.doors):
            continue
        numbers = {door: row.ask(door) for door in doors}
        answers = _answers(row) if options.peers else {}
        asked[name] = entry(name, row, numbers).with_peers(answers)
        before[name] = entry(name, row, numbers, before.get(name)).with_peers(answers)
    if options.write:
        write(before, every)
        write_page()
    return _report(asked)


def _report(asked: dict[str, Entry]) -> int:
    """Print the numbers of one row, the last line being one, or the table of several."""
    wrong = [name for name, line in asked.items() if not line.agrees]
    if len(asked) == 1:
        [line] = asked.values()
        print(f"{line.system}: {line.quantity}\npublished {line.printed} ({line.source})")
        for peer, number in line.peers.items():
            print(f"{line.peer_versions[peer]}: {shown(number)}")
        for door, number in line.fmilin.items():
            print(f"fmilin, {door}:\n{json.dumps(number)}")
    else:
        lines = [[name, e.printed, _numbers(e), "yes" if e.agrees else "NO"] for name, e in asked.items()]
        remark = f"{len(asked)} rows, {len(wrong)} of them not to their last printed digit."
        show("Scoreboard", ["row", "published", "fmilin", "agrees"], lines, remark)
    return 1 if wrong else 0


def _numbers(line: Entry) -> str:
    return "\n".join(f"{door} {shown(number)}" for door, number in line.fmilin.items())


def _answers(row: Row) -> dict[str, tuple[str, object]]:
    """Return the versions that the peers' scripts print, and their numbers; those not installed are left out."""
    found: dict[str, tuple[str, object]] = {}
    for peer, script in row.peers.items():
        command = [sys.executable, *f"-m benchmarks.scoreboard.peers.{script}".split()]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=300)
        if done.returncode == 0:
            version, number = done.stdout.splitlines()[-2:]
            found[peer] = version, json.loads(number)
        elif "ModuleNotFoundError" not in done.stderr:
            sys.exit(f"{peer}, {' '.join(command[1:])}:\n{done.stderr}")
    return found
