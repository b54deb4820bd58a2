"""Many threads load at once: paths mean what they meant before, and nothing that threads share is left changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.threads import NAMES, loads
from tests.fmus.make import build


def test_relative_paths_in_sixteen_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        build(name, tmp_path)
    monkeypatch.chdir(tmp_path)
    streams = os.fstat(1), os.fstat(2)
    for _ in range(4):
        assert loads(16) == 0
    assert (os.fstat(1), os.fstat(2)) == streams
