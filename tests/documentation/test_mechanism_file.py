"""Schema and tables of the keys of mechanism files are those that ``python docs/mechanism_file.py`` writes."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_published_schema_and_the_reference_are_up_to_date() -> None:
    written = runpy.run_path(str(DOCS / "mechanism_file.py"))
    assert json.loads((DOCS / "mechanism.schema.json").read_text(encoding="utf-8")) == written["json_schema"]()
    assert (DOCS / "mechanism.md").read_text(encoding="utf-8").endswith(written["reference"]())
