"""Print how much of fmilin the tests reach, lines and branches, and the rooms that they reach too little of.

Usage: ``python tests/coverage_by_room.py coverage.json [--at-least PERCENT]``, the report of ``pytest --cov
--cov-report=json``. A total of less than that ends with status 1.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

__all__ = ["told", "wanted"]

wanted = 90.0
"""Per cent of a room."""


def told(report: Mapping[str, Any]) -> list[str]:
    """Return the sentences about a report: the total, then the rooms below :data:`wanted`, the emptiest first.

    A room is a folder one or two levels below fmilin/; what lies deeper belongs to it.
    """
    reached: dict[str, int] = defaultdict(int)
    there: dict[str, int] = defaultdict(int)
    for path, file in report["files"].items():
        room, counts = "/".join(PurePath(path).parts[:-1][:3]), file["summary"]
        for name in ("fmilin", room) if room != "fmilin" else ("fmilin",):
            reached[name] += counts["covered_lines"] + counts["covered_branches"]
            there[name] += counts["num_statements"] + counts["num_branches"]
    share = {room: 100.0 * reached[room] / there[room] for room in there if there[room]}
    total = share.pop("fmilin")
    low = sorted((part, room) for room, part in share.items() if part < wanted)
    return [
        f"{total:.1f} % of the lines and branches of fmilin are reached by tests.",
        *(f"{part:5.1f} %  {room}" for part, room in low),
        f"{len(low)} of {len(share)} rooms are below {wanted:g} %.",
    ]


if __name__ == "__main__":
    sentences = told(json.loads(Path(sys.argv[1]).read_text()))
    sys.stdout.write("\n".join(sentences) + "\n")
    sys.exit("--at-least" in sys.argv and float(sentences[0].split()[0]) < float(sys.argv[-1]))
