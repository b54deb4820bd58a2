"""Links of all Markdown files: what they name in this repository exists, and other addresses are well-formed."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for page in ROOT.rglob("*.md")
    if not {".venv", "node_modules", "_build"} & set(page.parts) and not any(p.startswith(".") for p in page.parts[1:])
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def links_of(page: Path) -> list[str]:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return LINK.findall(text)


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_links(page: Path) -> None:
    for link in links_of(page):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme == "https", link
            assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc), link
            continue
        target = page if not parts.path else page.parent / parts.path
        assert target.exists(), f"{link} leads nowhere"
        if parts.fragment:
            text = target.read_text(encoding="utf-8")
            slugs = {
                re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-")
                for h in re.findall(r"^#+ (.*)$", text, re.M)
            }
            assert parts.fragment in slugs, f"{link} names no heading"


def test_the_gallery_shows_every_example() -> None:
    examples = {readme.parent.name for readme in (ROOT / "examples").glob("*/README.md")}
    assert {page.stem for page in (ROOT / "docs" / "examples").glob("*.md")} == examples
    gallery = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    assert [name for name in sorted(examples) if f"(examples/{name}.md)" not in gallery] == []
