"""``python -m benchmarks peers [TASK ...]``: what users do with other tools, next to fmilin in one run, as ratios."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table; the modules of this package are also used by ``benchmarks.growth``, without the command."""
    from benchmarks.peers.command import main as command

    return command(arguments)
