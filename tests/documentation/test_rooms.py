"""The page of rooms and its picture are those that ``python docs/rooms.py`` writes."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def rooms() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rooms", DOCS / "rooms.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_says_what_the_folders_say_of_themselves(rooms: ModuleType) -> None:
    assert (DOCS / "rooms.md").read_text(encoding="utf-8") == rooms.page()


def test_the_picture_shows_the_imports_of_today(rooms: ModuleType) -> None:
    assert (DOCS / "pictures" / "rooms.svg").read_text(encoding="utf-8") == rooms.picture()


def test_every_folder_says_what_enters_what_leaves_and_what_it_does_not_know(rooms: ModuleType) -> None:
    folders = {path.parent.name for path in (DOCS.parent / "fmilin").glob("*/__init__.py")}
    assert {name for row in rooms.layers() for name in row} == folders
    page = rooms.page()
    for word in ("Enters", "Leaves", "Does not know"):
        assert page.count(f"\n- {word}: ") == len(folders)
