"""What all tests share: a folder for what is built once, and how hypothesis searches."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests.fmus.make import build
from tests.shared import new_folder, shared

settings.register_profile("the same everywhere", derandomize=True, database=None, deadline=None)
settings.register_profile("search", deadline=None)
settings.load_profile("the same everywhere")  # another one by --hypothesis-profile=search


def pytest_configure(config: pytest.Config) -> None:
    folder = new_folder()
    if folder is not None:
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.fixture(scope="session")
def zoo() -> Callable[[str], Path]:
    """Return the FMU of a C file in tests/fmus by name."""
    return lambda name: shared(f"{name}.fmu", lambda path: build(name, path.parent))
