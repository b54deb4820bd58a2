"""FMUs of the zoo, compiled once per run, and a temporary directory that can be looked into."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fmilin.fmi.read import FmuModel, open_fmu
from tests.fmus.make import build

Zoo = Callable[[str], Path]


@pytest.fixture(scope="session")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Zoo:
    """Return the FMU of a C file in tests/fmus by name."""
    folder = tmp_path_factory.mktemp("zoo")
    built: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in built:
            built[name] = build(name, folder)
        return built[name]

    return get


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
