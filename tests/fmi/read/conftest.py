"""Open FMUs of the zoo, and a temporary directory that can be looked into."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fmilin.fmi.read import FmuModel, open_fmu

Zoo = Callable[[str], Path]


@pytest.fixture
def opened(zoo: Zoo) -> Iterator[Callable[..., FmuModel]]:
    """Open FMUs of the zoo and close them at the end."""
    models: list[FmuModel] = []

    def get(name: str, **options: object) -> FmuModel:
        models.append(open_fmu(zoo(name), **options))  # type: ignore[arg-type]
        return models[-1]

    yield get
    for model in models:
        model.close()


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory in which temporary directories are made during this test."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder
