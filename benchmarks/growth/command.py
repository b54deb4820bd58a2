"""The command: sizes doubled until a point takes too long, and the table of exponents and largest sizes."""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.growth.fit import fit_power_law, largest_size
from benchmarks.growth.paths import PATHS
from benchmarks.growth.point import Point, measure_point
from benchmarks.page import describe_making, write_tables
from benchmarks.peers.ways import Way
from benchmarks.processor_time import describe_load
from benchmarks.tables import Shown, recorded, show

__all__ = ["main", "measure_growth"]

LONGEST, MAX_MEGABYTES = 60.0, 4000.0
"""What the largest size may take."""
PATIENCE = 6.0
"""How many times ``--seconds`` a point may take, with all its calls, before it is ended."""
LARGEST_SIZE = 2**20
COLUMNS = (
    "tool",
    "sizes",
    "first [s]",
    "exponent",
    "again [ms]",
    "exponent",
    "memory [MB]",
    "exponent",
    "60 s",
    "4 GB",
)
EXPLANATION = """\
First: processor time of opening a model and its first linear model, at the largest size; again: of a further one.
Memory: the peak of the process; its exponent is that of the increase over the smallest size. Exponents by least squares
over the three largest sizes; the size is doubled until a point takes more than {seconds:g} s. 60 s, 4 GB: the largest
size within these limits; "~": extrapolated by the fit; "below": a point within the extrapolation failed or took too
long. Each point is measured once, in a process of its own.
"""
PAGE = """# Growth with size

{made}
{load}. On a busy machine exponents differ by 0.3 from run to run.

{explanation}"""


@dataclass
class Growth:
    """The points of one way, and why there are no more of them."""

    points: list[Point] = field(default_factory=list)
    failed_at: int | None = None
    ended_by: str = ""

    @property
    def sizes(self) -> list[int]:
        return [point.size for point in self.points]


def main(arguments: Sequence[str] = ()) -> int:
    parser = ArgumentParser("python -m benchmarks growth", description="Exponents of time and memory over size.")
    parser.add_argument("paths", nargs="*", metavar="PATH", help=", ".join(PATHS))
    parser.add_argument("--seconds", type=float, default=3.0, help="the last point takes longer than this (3)")
    parser.add_argument("--alone", action="store_true", help="without the peers")
    parser.add_argument("--page", type=Path, nargs="?", const=Path("docs/growth.md"), help="write docs/growth.md too")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.paths if name not in PATHS]
    if unknown:
        parser.error(f"there is no path '{unknown[0]}'. There are: {', '.join(PATHS)}.")
    shown: list[Shown] = []
    with tempfile.TemporaryDirectory(prefix="fmilin-bench-") as folder, recorded(shown):
        for name in options.paths or PATHS:
            path = PATHS[name]
            ways = path.ways[:1] if options.alone else path.ways
            rows = [_measure_row(name, way, options.seconds, Path(folder)) for way in ways]
            show(path.title[:1].upper() + path.title[1:], COLUMNS, rows)
    explanation = EXPLANATION.format(seconds=options.seconds)
    print(explanation)
    if options.page:
        command = f"python -m benchmarks growth --seconds {options.seconds:g} --page"
        text = PAGE.format(made=describe_making(command), load=describe_load(), explanation=explanation)
        write_tables(options.page, text, shown)
    return 0


def measure_growth(name: str, way: Way, seconds: float, folder: Path) -> Growth:
    """Double the size until a point takes longer than ``seconds``."""
    growth, path = Growth(), PATHS[name]
    size = path.first
    while size <= LARGEST_SIZE:
        if path.prepare is not None:
            path.prepare(size, folder)
        point = measure_point(name, way.tool.name, size, folder, PATIENCE * seconds + 10.0)
        if isinstance(point, str):
            growth.failed_at, growth.ended_by = size, f"{size:,} {path.unit}: {point}"
            break
        growth.points.append(point)
        if point.first > seconds or point.megabytes > MAX_MEGABYTES:
            break
        size *= path.factor
    return growth


def _measure_row(name: str, way: Way, seconds: float, folder: Path) -> list[str]:
    tool = f"{way.tool.name}, {way.remark}" if way.remark else way.tool.name
    no_figures = [""] * (len(COLUMNS) - 2)
    if not way.tool.is_installed:
        return [tool, f"not installed: {way.tool.install}", *no_figures]
    growth = measure_growth(name, way, seconds, folder)
    if not growth.points:
        return [tool, growth.ended_by, *no_figures]
    sizes, last = growth.sizes, growth.points[-1]
    first = [point.first for point in growth.points]
    added = [point.added for point in growth.points]
    figures = [
        f"{last.first:.2f}",
        _write_exponent(sizes, first),
        f"{1e3 * last.again:.3g}",
        _write_exponent(sizes, [point.again for point in growth.points]),
        f"{last.megabytes:.0f}",
        _write_exponent(sizes, added),
        _write_limit(growth, first, LONGEST),
        _write_limit(growth, added, MAX_MEGABYTES),
    ]
    end = f"; {growth.ended_by}" if growth.ended_by else ""
    measured = f"{sizes[0]:,} to {sizes[-1]:,}" if len(sizes) > 1 else f"{sizes[0]:,}"
    return [tool, f"{measured} {PATHS[name].unit}{end}", *figures]


def _write_exponent(sizes: Sequence[int], values: Sequence[float]) -> str:
    law = fit_power_law(sizes, values)
    return "" if law is None else f"{law.exponent:.2f}"


def _write_limit(growth: Growth, values: Sequence[float], limit: float) -> str:
    reached = largest_size(growth.sizes, values, limit)
    if reached is None:
        return ""
    size, is_extrapolated = reached
    if is_extrapolated and growth.failed_at is not None and size > growth.failed_at:
        return f"below {growth.failed_at:,}"
    if size > LARGEST_SIZE:
        return f"> {LARGEST_SIZE:,}"
    return f"{'~' if is_extrapolated else ''}{float(f'{size:.2g}'):,.0f}"
