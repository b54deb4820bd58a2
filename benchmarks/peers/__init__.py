"""``python -m benchmarks peers [TASK ...]``: tasks of users with other tools and with fmilin in one run, as ratios."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] = ()) -> int:
    """Print the table; the modules of this package are also used by ``benchmarks.growth``, without the command."""
    from benchmarks.peers.command import main as command

    return command(arguments)
