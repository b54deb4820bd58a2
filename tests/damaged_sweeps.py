"""Folders of interrupted sweeps that a power cut or a stray hand has damaged, and sweeps that go on with them."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from fmilin import LinearFamily
from fmilin.errors import FmilinError
from fmilin.families.family_builder import FamilyBuilder
from fmilin.families.grid import build_grid
from fmilin.families.store import Store, get_store_folder
from fmilin.families.sweep import choose_engine, run
from fmilin.families.sweep_plan import SweepPlan
from fmilin.linearization.request import Request

__all__ = ["DAMAGES", "LIES", "Sweep"]

PAGE = 4096
LIES = (b'{"points":[[-1,1]]}', b'{"points":[[3,1]]}', b"[1, 2]", b'"points"', b"[" * 100_000, b'{"points":[[0]]}')


class Sweep:
    """A sweep of a pendulum that was interrupted at its end: 80 points lie in its folder."""

    def __init__(self, folder: Path) -> None:
        self._file, self._kept = folder / "family.nc", folder / "kept"
        self._plan = SweepPlan(
            "fmilin.systems:cartesian_pendulum(length=1.0)",
            build_grid({"x": np.linspace(-0.9, 1.01, 80).tolist()}, zipped=False),  # the last one cannot be
            how=Request(independent=["x", "vx"]),
        )
        self.whole = self._run(FamilyBuilder(self._plan.grid))
        store = Store(self._plan, self._file, resume=False)
        self._run(store)
        store.close()
        get_store_folder(self._file).rename(self._kept)

    def wrong_after(self, damage: Callable[[Path, random.Random], None], rng: random.Random) -> int:
        """Return how many points are wrong of a sweep that goes on with its folder damaged; none when it refuses to."""
        folder = get_store_folder(self._file)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._kept, folder)
        damage(folder, rng)
        try:
            store = Store(self._plan, self._file, resume=True)
        except FmilinError:
            return 0
        family = self._run(store)
        same = np.isclose(family.A, self.whole.A, rtol=1e-9, atol=1e-12, equal_nan=True).all(axis=(1, 2))
        agrees = same & (family.ok == self.whole.ok) & (family.reasons == self.whole.reasons)
        store.close()
        return int((~agrees).sum())

    def _run(self, builder: FamilyBuilder) -> LinearFamily:
        if not builder.done.all():
            with choose_engine(self._plan) as engine:
                run(self._plan, engine, builder, None)
        return builder.family()


def _pages_dropped(folder: Path, rng: random.Random) -> None:
    """Let pages of the rows be zero: what a power cut leaves of pages that had not been written."""
    with (folder / "rows.bin").open("r+b") as file:
        pages = -(-file.seek(0, 2) // PAGE)
        for page in rng.sample(range(pages), rng.randint(1, pages)):
            file.seek(page * PAGE)
            file.write(bytes(PAGE))


def _cut(name: str) -> Callable[[Path, random.Random], None]:
    def cut(folder: Path, rng: random.Random) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: rng.randrange(len(content))])

    return cut


def _flipped(name: str) -> Callable[[Path, random.Random], None]:
    def flip(folder: Path, rng: random.Random) -> None:
        content = bytearray((folder / name).read_bytes())
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        (folder / name).write_bytes(content)

    return flip


def _gone(name: str) -> Callable[[Path, random.Random], None]:
    return lambda folder, _: (folder / name).unlink()


def _lies(folder: Path, rng: random.Random) -> None:
    """Put a line into the journal that no sweep wrote, or put two lines in each other's place."""
    journal = folder / "points.jsonl"
    lines = journal.read_bytes().splitlines()
    if rng.random() < 0.2:
        rng.shuffle(lines)
    else:
        lines.insert(rng.randint(0, len(lines)), rng.choice(LIES))
    journal.write_bytes(b"\n".join(lines) + b"\n")


DAMAGES: Mapping[str, Callable[[Path, random.Random], None]] = {
    "pages of the rows dropped": _pages_dropped,
    "a journal that lies": _lies,
    "rows cut off": _cut("rows.bin"),
    "rows gone": _gone("rows.bin"),
    "a bit of the rows flipped": _flipped("rows.bin"),
    "a journal cut off": _cut("points.jsonl"),
    "a bit of the journal flipped": _flipped("points.jsonl"),
    "a journal gone": _gone("points.jsonl"),
    "a plan cut off": _cut("plan.json"),
    "a plan gone": _gone("plan.json"),
}
