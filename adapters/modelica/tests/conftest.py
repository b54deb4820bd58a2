"""A fresh environment for the tests of libraries: no MODELICAPATH, an empty cache."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# Libraries for tests come from here, by ``--library``: the adapter itself must not need the variable.
LIBRARY_FOLDERS = tuple(Path(p) for p in os.environ.get("MODELICAPATH", "").split(os.pathsep) if p)


@pytest.fixture
def fresh_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take away MODELICAPATH and give the processes of a test an empty cache."""
    monkeypatch.delenv("MODELICAPATH", raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))


@pytest.fixture(scope="session")
def cache_of_session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for caches that is empty when the tests begin."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def standard_library(monkeypatch: pytest.MonkeyPatch, cache_of_session: Path) -> Path:
    """Return the folder with the Modelica Standard Library, to be passed on: MODELICAPATH is not set any more."""
    monkeypatch.delenv("MODELICAPATH", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_of_session))
    for folder in LIBRARY_FOLDERS:
        if (folder / "Modelica" / "package.mo").is_file():
            return folder
    pytest.skip("MODELICAPATH names no folder with the Modelica Standard Library")
