"""A cache of compiled libraries for these tests alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ZIG_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "zig"


@pytest.fixture(scope="session", autouse=True)
def cache_of_libraries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        # What zig has built of the C libraries of other systems takes minutes: that is kept from run to run.
        patch.setenv("ZIG_GLOBAL_CACHE_DIR", os.environ.get("ZIG_GLOBAL_CACHE_DIR", str(ZIG_CACHE)))
        yield folder


@pytest.fixture(params=["2.0", "3.0"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)
