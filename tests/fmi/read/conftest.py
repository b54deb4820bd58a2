"""Open FMUs of the zoo, and a temporary directory that can be looked into."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import fmilin as fl
from fmilin.fmi.read import FmuModel, open_fmu
from fmilin.fmi.read.stepped_model import SteppedFmu
from tests.fmi.read.stepped import Made
from tests.fmus.stepped.make import Kind, build

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


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Build FMUs of tests/fmus/stepped once."""
    folder, built, numbers = tmp_path_factory.mktemp("stepped"), dict[tuple[str, Kind], Path](), itertools.count()

    def get(name: str, *flags: str, **options: object) -> Path:
        kind = Kind(flags=flags, **options)  # type: ignore[arg-type]
        if (name, kind) not in built:
            built[name, kind] = build(name, folder / str(next(numbers)), kind)
        return built[name, kind]

    return get


@pytest.fixture
def stepped() -> Iterator[Callable[..., SteppedFmu]]:
    """Load FMUs and close them at the end."""
    models: list[fl.Model] = []

    def get(path: Path, **options: object) -> SteppedFmu:
        models.append(fl.load(path, **options))  # type: ignore[arg-type]
        model = models[-1]
        assert isinstance(model, SteppedFmu)
        return model

    yield get
    for model in models:
        model.close()
