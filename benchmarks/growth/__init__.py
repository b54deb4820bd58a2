"""``python -m benchmarks growth [PATH ...] [--seconds S] [--alone]``: the exponents of time and memory over size.

For each path through the package a size is doubled until a point takes longer than ``--seconds`` (3 by default; 60
measures what the limits of the table extrapolate otherwise), each point in a process of its own. The exponents are
those of a least-squares fit over the largest sizes. ``--alone``: without the peers.
"""

from __future__ import annotations

from benchmarks.growth.command import main

__all__ = ["main"]
