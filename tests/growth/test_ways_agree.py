"""Every way that ``python -m benchmarks peers`` times gives the numbers of fmilin: nothing else is compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.tasks import TASKS
from benchmarks.peers.ways import Way

TOLERANCE = 1e-5
"""Relative to the largest entry; some peers take one-sided differences."""
SIZES = {"sweep_fmu": 2, "sweep_mechanism": 2, "closed_chain": 8, "dae": 400}
PAIRS = [(name, way) for name, task in TASKS.items() for way in task.ways[1:]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("peers")


@pytest.mark.parametrize(("name", "way"), PAIRS, ids=[f"{name}-{way.tool.name}" for name, way in PAIRS])
def test_a_peer_gives_the_numbers_of_fmilin(name: str, way: Way, folder: Path) -> None:
    if not way.tool.is_installed:
        pytest.skip(f"{way.tool.name} is not installed ({way.tool.install})")
    size = SIZES.get(name, 4)
    with TASKS[name].ways[0].open(size, folder) as ours, way.open(size, folder) as theirs:
        expected, matrix = TASKS[name].ways[0].matrix(ours()), way.matrix(theirs())
    assert matrix.shape == expected.shape
    assert np.abs(matrix - expected).max() <= TOLERANCE * np.abs(expected).max()
