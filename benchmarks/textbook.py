"""Textbook models through every source, against closed forms; see tests/textbook."""

from __future__ import annotations

from benchmarks.tables import show
from tests.textbook.models import MODELS
from tests.textbook.sources import SOURCES
from tests.textbook.table import judge_cell


def main() -> None:
    verdicts = {(source, name): judge_cell(source, name) for name in MODELS for source in SOURCES}
    rows = [[source, *(verdicts[source, name].word for name in MODELS)] for source in SOURCES]
    models = [f"{number}" for number in range(1, len(MODELS) + 1)]
    existing = [verdict for verdict in verdicts.values() if verdict.word != "-"]
    right = sum(verdict.word == "right" for verdict in existing)
    numbers = ", ".join(f"{number} {textbook.title}" for number, textbook in enumerate(MODELS.values(), 1))
    wrong = [f"{source}, {name}: {v.reason}" for (source, name), v in verdicts.items() if v.word == "wrong"]
    remark = "\n".join([f"{right} of {len(existing)} cells are right. Models: {numbers}.", *wrong])
    show("Textbook models by source", ["source", *models], rows, remark)
