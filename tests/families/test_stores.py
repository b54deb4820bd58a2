"""Sweeps to the disk: batches are written whole, and what lies there is what single points would have written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.families.grid import build_grid
from fmilin.families.rows import OutcomeBlock, PointOutcome
from fmilin.families.store import Store, get_store_folder
from fmilin.families.sweep import choose_engine, run
from fmilin.families.sweep_plan import SweepPlan
from tests.families.plants import oscillator

VALUES = np.linspace(0.5, 2.0, 40)


def sweep_into(path: Path, store: Store | None = None) -> fl.LinearFamily:
    """Sweep an oscillator into the folder beside a file, which stays."""
    plan = SweepPlan(oscillator(), build_grid({"k": VALUES}))
    store = Store(plan, path, resume=False) if store is None else store
    with choose_engine(plan) as engine:
        run(plan, engine, store)
    family = store.family()
    store.close()
    return family


def read_folder(path: Path) -> tuple[bytes, list[list[object]]]:
    """Return the rows, and what the journal says of each point."""
    import json

    folder = get_store_folder(path)
    lines = map(json.loads, (folder / "points.jsonl").read_text().splitlines())
    return (folder / "rows.bin").read_bytes(), [entry for line in lines for entry in line.get("points", ())]


def test_batches_are_written_as_their_points_would_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    writes = Store._write_rows

    def record(store: Store, numbers: np.ndarray, rows: fl.signals.FloatArray) -> None:
        sizes.append(len(rows))
        writes(store, numbers, rows)

    monkeypatch.setattr(Store, "_write_rows", record)
    together = sweep_into(tmp_path / "together.npz")
    assert max(sizes) > 10
    assert len(sizes) < 10
    add_all = Store.add_all

    def add_singly(store: Store, outcomes: Sequence[PointOutcome]) -> None:
        add_all(store, list(outcomes))

    monkeypatch.setattr(Store, "add_all", add_singly)
    singly = sweep_into(tmp_path / "singly.npz")
    np.testing.assert_array_equal(together.A, singly.A)
    assert read_folder(tmp_path / "together.npz") == read_folder(tmp_path / "singly.npz")


def test_a_block_beside_points_that_are_done_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, add_all = tmp_path / "family.npz", Store.add_all

    def interrupt(store: Store, outcomes: Sequence[PointOutcome]) -> None:
        add_all(store, outcomes)
        if isinstance(outcomes, OutcomeBlock):
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Store, "add_all", interrupt)
        with pytest.raises(KeyboardInterrupt):
            sweep_into(path)
    store = Store(SweepPlan(oscillator(), build_grid({"k": VALUES})), path, resume=True)
    assert 1 < store.done.sum() < len(VALUES)
    family = sweep_into(path, store)
    expected = fl.sweep(oscillator(), {"k": VALUES})
    assert family.ok.all()
    np.testing.assert_allclose(family.A, expected.A, rtol=1e-9)
