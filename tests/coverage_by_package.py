"""Print how much of fmilin the tests reach, lines and branches, and the packages that they reach too little of.

Usage: ``python tests/coverage_by_package.py coverage.json [--at-least PERCENT]``, the report of ``pytest --cov
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
"""Per cent of a package."""


def told(report: Mapping[str, Any]) -> list[str]:
    """Return the sentences about a report: the total, then the packages below :data:`wanted`, the emptiest first.

    A package is a folder one or two levels below fmilin/; what lies deeper belongs to it.
    """
    reached: dict[str, int] = defaultdict(int)
    there: dict[str, int] = defaultdict(int)
    for path, file in report["files"].items():
        package, counts = "/".join(PurePath(path).parts[:-1][:3]), file["summary"]
        for name in ("fmilin", package) if package != "fmilin" else ("fmilin",):
            reached[name] += counts["covered_lines"] + counts["covered_branches"]
            there[name] += counts["num_statements"] + counts["num_branches"]
    share = {package: 100.0 * reached[package] / there[package] for package in there if there[package]}
    total = share.pop("fmilin")
    low = sorted((part, package) for package, part in share.items() if part < wanted)
    return [
        f"{total:.1f} % of the lines and branches of fmilin are reached by tests.",
        *(f"{part:5.1f} %  {package}" for part, package in low),
        f"{len(low)} of {len(share)} packages are below {wanted:g} %.",
    ]


if __name__ == "__main__":
    sentences = told(json.loads(Path(sys.argv[1]).read_text()))
    sys.stdout.write("\n".join(sentences) + "\n")
    sys.exit("--at-least" in sys.argv and float(sentences[0].split()[0]) < float(sys.argv[-1]))
