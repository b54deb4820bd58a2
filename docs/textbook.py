"""Writes ``docs/reference/textbook.md``: the table of the textbook gate, as ``tests/textbook`` declares it.

Usage: ``python docs/textbook.py``. A test compares the page with what is written here, and every cell with the page.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "textbook.md"


def write() -> None:
    """Write the page."""
    sys.path.insert(0, str(ROOT))
    from tests.textbook.table import text_of_page

    PAGE.write_text(text_of_page(), encoding="utf-8")


if __name__ == "__main__":
    write()
