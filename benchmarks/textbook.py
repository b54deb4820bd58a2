"""Textbook models through every source, against closed forms; see tests/textbook."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks.tables import show
from tests.textbook.models import MODELS
from tests.textbook.sources import SOURCES
from tests.textbook.table import format_table, judge_cell

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "textbook.md"


def main() -> None:
    verdicts = {(source, name): judge_cell(source, name) for name in MODELS for source in SOURCES}
    table = format_table(lambda source, name: verdicts[source, name])
    print(table)
    rows = []
    for source in SOURCES:
        counts = Counter(verdicts[source, name].word for name in MODELS)
        rows.append([source, *(str(counts[word]) for word in ("right", "wrong", "-"))])
    right = sum(verdict.word == "right" for verdict in verdicts.values())
    existing = sum(verdict.word != "-" for verdict in verdicts.values())
    is_documented = table in PAGE.read_text(encoding="utf-8")
    page = "is this table" if is_documented else "DIFFERS from this table: run python docs/textbook.py"
    wrong = [f"{source}, {name}: {v.reason}" for (source, name), v in verdicts.items() if v.word == "wrong"]
    remark = "\n".join([f"{right} of {existing} cells are right. docs/reference/textbook.md {page}.", *wrong])
    show("Textbook models by source", ["source", "right", "wrong", "cannot express"], rows, remark)
