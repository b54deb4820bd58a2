"""The page of rooms and its picture are those that ``python docs/rooms.py`` writes."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.documentation.scripts import DOCS, script


@pytest.fixture(scope="module")
def rooms() -> ModuleType:
    return script("rooms")


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
