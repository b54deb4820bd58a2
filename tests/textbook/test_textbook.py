"""What is right through one source is right through all: every cell of the table, against closed forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.textbook.models import MODELS
from tests.textbook.sources import SOURCES
from tests.textbook.table import FAULTS, INEXPRESSIBLE, declared_verdict, judge_cell, text_of_page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "textbook.md"
CELLS = [(source, name) for source in SOURCES for name in MODELS if name not in INEXPRESSIBLE.get(source, {})]


@pytest.mark.parametrize(("source", "name"), CELLS, ids=[f"{name} by {source}" for source, name in CELLS])
def test_the_model_is_that_of_the_textbook(source: str, name: str) -> None:
    verdict = judge_cell(source, name)
    assert verdict.word == declared_verdict(source, name).word, verdict.reason


def test_the_page_is_made_from_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == text_of_page()


def test_the_table_names_sources_and_models_that_exist() -> None:
    assert set(INEXPRESSIBLE) <= set(SOURCES)
    named = {name for models in INEXPRESSIBLE.values() for name in models} | {name for _, name in FAULTS}
    assert named <= set(MODELS)
