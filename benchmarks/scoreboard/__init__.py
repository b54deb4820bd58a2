"""The scoreboard: published numbers of linearized constrained systems, fmilin's from every source, and those of peers.

``python -m benchmarks scoreboard`` computes every row from every source and prints the table; with names of rows, it
prints these numbers alone, the last line being the number, or [re, im]. ``--reduced``: the first source of every row;
``--door DOOR``: that one; ``--peers``: the peers' scripts, too; ``--write``: keep the results in
``docs/scoreboard.json`` and make ``docs/scoreboard.md`` of it.

A row is a file in ``rows``, of which the shortest is a good one to copy.
"""

from __future__ import annotations

from benchmarks.scoreboard.command import main

__all__ = ["main"]
