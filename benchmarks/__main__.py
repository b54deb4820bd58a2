"""``python -m benchmarks [NAME ...]``: print the tables; without a name all. ``--page [FILE.md]``: a page of some.

``python -m benchmarks speed TABLE ...`` prints single tables of the benchmark ``speed``; ``growth``, ``peers`` and
``scoreboard`` have arguments of their own (``--help``).
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

NAMES = (
    "structure",
    "speed",
    "startup",
    "linearize",
    "large",
    "constraints",
    "discover",
    "derivatives",
    "truth",
    "kane",
    "mechanism",
    "mechanism_peers",
    "formulations",
    "exports",
    "fmu",
    "foreign_fmus",
    "fmu_chain",
    "fmu_mass_chain",
    "cosimulation",
    "kills",
    "attacks",
    "threads",
    "composition",
    "loops",
    "estimators",
    "sensitivities",
    "adapters",
    "families",
    "batches",
    "robots",
    "seeing",
    "points",
    "periodic",
    "modelica",
    "textbook",
    "growth",
    "peers",
    "scoreboard",
    "sdf_models",
)
WITH_ARGUMENTS = ("growth", "peers", "scoreboard", "sdf_models")
"""Benchmarks with a ``main`` that takes the rest of the command line."""


def main(names: list[str]) -> int:
    if names[:1] == ["--page"]:
        if len(names) > 2:
            print("--page takes one file, docs/numbers.md by default.", file=sys.stderr)
            return 2
        from benchmarks.page import write_page

        write_page(Path(*names[1:] or ["docs/numbers.md"]), NAMES)
        return 0
    if names and names[0] in WITH_ARGUMENTS:
        return int(import_module(f"benchmarks.{names[0]}").main(names[1:]))
    if names[:1] == ["speed"]:
        from benchmarks import speed

        tables = [name for name in names[1:] if name in speed.TABLES]
        if len(tables) == len(names) - 1:
            speed.main(tables)
            return 0
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"There is no benchmark '{unknown[0]}'. There are: {', '.join(NAMES)}.", file=sys.stderr)
        return 2
    for name in names or NAMES:
        import_module(f"benchmarks.{name}").main()
    return 0


sys.exit(main(sys.argv[1:]))
