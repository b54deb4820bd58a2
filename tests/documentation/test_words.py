"""Variables of the package are named by what they hold, and the documentation uses the terms of the field."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "fmilin"
ROOT = PACKAGE.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
WRITTEN_BY_SCRIPTS = {"growth", "numbers", "options", "packages", "peers", "remarks", "scoreboard", "textbook"}
"""Pages from docstrings or data: their words are those of their sources."""
SAY_NOTHING = {"found", "known", "place", "places", "there", "beside", "asked", "heard"}


def names_given(source: str) -> set[str]:
    """Return the names of variables, parameters and attributes to which a module gives a value."""
    return {
        name.strip("_").lower()
        for node in ast.walk(ast.parse(source))
        for name in (
            [node.id]
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            else [node.attr]
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            else [node.arg]
            if isinstance(node, ast.arg)
            else []
        )
    }


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")))
def test_no_variable_is_named_by_what_happened_to_it(folder: str) -> None:
    named = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in (PACKAGE / folder).rglob("*.py")
        for name in names_given(path.read_text(encoding="utf-8")) & SAY_NOTHING
    }
    assert not named


def test_no_docstring_or_comment_begins_with_what() -> None:
    subjects = {
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in PACKAGE.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r'\s*(?:[rR]?"""|# )What [a-z]', line)
    }
    assert not subjects


def test_what_is_looked_for() -> None:
    source = "def f(known): self._found = known; there: int = 1\nfor place in (beside, 2): pass"
    assert names_given(source) & SAY_NOTHING == {"known", "found", "there", "place"}


_WHAT = re.compile(
    r"(?:^[#>*|\-\d. ]*|(?<=[.!?:|] )|(?<=[.!?:]\n))[*_]*What\b(?:(?!\n\n)[^.?!|])*[.?!|]?", re.MULTILINE
)
_PRIVATE_WORDS = re.compile(
    r"\b(?:postures?|freedoms|one freedom|refus\w+|remarks?|slopes|visit\w*|pace|cages?|somebody|nobody|told|whose"
    r"|Runge and Kutta|Nelder and Mead)\b"
)


def prose_of(text: str) -> str:
    """Return the text of a page without blocks, comments, code in lines and targets of links."""
    code = r"^(```+).*?^\1[ ]*$|<!--.*?-->|`[^`\n]*`|(?<=\])\([^)]*\)"
    return re.sub(code, "", text, flags=re.MULTILINE | re.DOTALL)


def sentences_with_what_as_subject(text: str) -> list[str]:
    return [match[0] for match in _WHAT.finditer(prose_of(text)) if not match[0].endswith("?")]


@pytest.mark.parametrize("page", PAGES, ids=[str(p.relative_to(ROOT)) for p in PAGES])
def test_a_page_of_the_documentation_uses_the_terms_of_the_field(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert sentences_with_what_as_subject(text) == []
    if page.stem not in WRITTEN_BY_SCRIPTS:
        assert _PRIVATE_WORDS.findall(prose_of(text)) == []


def test_what_is_a_subject_of_a_sentence_or_a_heading_but_not_of_a_question_or_of_code() -> None:
    text = "## What it does\n\nWhat is it? What is left stays.\n| a | What moves. |\n```text\nWhat\n```\n- What else.\n"
    assert len(sentences_with_what_as_subject(text)) == 4
    private = _PRIVATE_WORDS.findall(prose_of("A posture is refused; `slopes`, [derivatives](slopes.md)"))
    assert private == ["posture", "refused"]
