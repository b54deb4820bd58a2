"""The page of packages and its picture are those that ``python docs/packages.py`` writes."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from tests.documentation.scripts import DOCS, script


@pytest.fixture(scope="module")
def packages() -> ModuleType:
    return script("packages")


def test_the_page_says_what_the_folders_say_of_themselves(packages: ModuleType) -> None:
    assert (DOCS / "packages.md").read_text(encoding="utf-8") == packages.page()


def test_the_picture_shows_the_imports_of_today(packages: ModuleType) -> None:
    assert (DOCS / "pictures" / "packages.svg").read_text(encoding="utf-8") == packages.picture()


def test_every_package_names_what_it_takes_what_it_returns_and_what_it_does_not_depend_on(packages: ModuleType) -> None:
    source = DOCS.parent / "fmilin"
    folders = {path.parent.name for path in source.glob("*/__init__.py")}
    modules = {path.stem for path in source.glob("*.py")} - {"__init__", "__main__"}
    assert {name for row in packages.layers() for name in row} == folders | modules
    assert len(re.findall(r"^[A-Z`].* → \S.*$", packages.page(), re.MULTILINE)) == len(folders)
    for folder in folders:
        facts = packages.collect_facts(packages.read_docstring(folder)[1])
        assert all(facts[name] for name in packages.FACTS)
