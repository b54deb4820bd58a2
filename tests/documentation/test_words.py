"""Variables of the package are named by what they hold, and the documentation uses the terms of the field."""

from __future__ import annotations

import ast
import io
import re
import tokenize
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
    r"|beside|Runge and Kutta|Nelder and Mead)\b"
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


_PRIVATE_WORDS_OF_MESSAGES = re.compile(
    r"(?<![.'`])\b(?:postures?|freedoms|one freedom|refus\w+|remarks?|slopes|visit\w*|pace|cages?|somebody|nobody|told"
    r"|whose|rests|at rest|a rest|asked for|(?<!there )is no (?!longer|better)[a-z])\b(?!')"
)
_ERRORS = {"UsageError", "ModelError", "NumericalError", "ConstraintError", "ModelCrashError", "KinkError"}
"""Errors of users. Those that wrap another error, and parts of a sentence, are not among them."""
SOURCES = sorted(
    [*PACKAGE.rglob("*.py"), *(p for p in ROOT.glob("adapters/*/fmilin_*/**/*.py"))],
)


def text_of(node: ast.Constant | ast.JoinedStr) -> str:
    """Return the text of a literal, with a null character in place of each value."""
    parts = [node] if isinstance(node, ast.Constant) else node.values
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in parts)


def list_sentences(tree: ast.Module) -> list[str]:
    """Return the literals of three words and more that are not docstrings: messages, help and headings."""
    docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    pieces = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    texts = (
        text_of(node)
        for node in ast.walk(tree)
        if (isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)))
        and node not in docstrings | pieces
    )
    return [text for text in texts if len(re.findall(r"[A-Za-z]{2,}", text)) > 2]


def list_short_errors(tree: ast.Module) -> list[str]:
    """Return the texts of errors without five words in a row, by which they could be found in the source."""
    raised = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    texts = [
        text_of(call.args[0])
        for call in raised
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _ERRORS and call.args
        if isinstance(call.args[0], ast.Constant | ast.JoinedStr) and "error" not in ast.unparse(call.args[0])
    ]
    return [t for t in texts if max(len(re.findall(r"\S*\w\S*", part)) for part in t.split("\0")) < 5]


def test_messages_use_the_terms_of_the_field() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {match[0]} in {text}"
        for path in SOURCES
        for text in list_sentences(ast.parse(path.read_text(encoding="utf-8")))
        if (match := _PRIVATE_WORDS_OF_MESSAGES.search(text))
    }
    assert not found


_PRIVATE_WORDS_OF_DOCSTRINGS = re.compile(
    r"(?<![.\w])(?:[Pp]ostures?|[Ff]reedoms|one freedom|[Rr]efus\w+|[Rr]emarks?|[Ss]lopes|[Vv]isit\w*|pace|[Cc]ages?"
    r"|[Ss]omebody|[Nn]obody|told|whose|[Bb]eside|Runge and Kutta|Nelder and Mead"
    r"|(?<!here )is no (?!longer|better|more|less)[a-z]+)(?![\w=(]| :)"
)


def list_docstrings(tree: ast.Module) -> list[str]:
    """Return the docstrings of a module without code."""
    code = r"``?[^`]*``?|:\w+:`[^`]*`|^\s*(?:>>>|\.\.\.).*$"
    return [
        re.sub(code, "", text, flags=re.MULTILINE)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(text := node.value.value, str)
    ]


def test_docstrings_use_the_terms_of_the_field() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in SOURCES
        for text in list_docstrings(ast.parse(path.read_text(encoding="utf-8")))
        for word in _PRIVATE_WORDS_OF_DOCSTRINGS.findall(text)
    ]
    assert not found


def list_comments(source: str) -> list[str]:
    """Return the comments of a module without code and directives."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = (token.string for token in tokens if token.type == tokenize.COMMENT)
    return [re.sub(r"``?[^`]*``?|:\w+:`[^`]*`", "", text) for text in comments if "noqa" not in text]


def test_comments_use_the_terms_of_the_field() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in SOURCES
        for text in list_comments(path.read_text(encoding="utf-8"))
        for word in _PRIVATE_WORDS_OF_DOCSTRINGS.findall(text)
    ]
    assert not found


def test_each_error_can_be_found_by_five_words_in_a_row() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {text}"
        for path in SOURCES
        for text in list_short_errors(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert not found


def test_what_is_a_message_and_what_is_not() -> None:
    tree = ast.parse(
        '"""A remark that is whose."""\nraise UsageError(f"The slopes of {x} are told.")\n'
        "raise ModelError(f'{x}: {error}')\nx = 'a remark'"
    )
    sentences = list_sentences(tree)
    assert sentences == ["The slopes of \0 are told."]
    assert _PRIVATE_WORDS_OF_MESSAGES.findall(sentences[0]) == ["slopes", "told"]
    assert list_short_errors(tree) == ["The slopes of \0 are told."]


def test_what_is_a_subject_of_a_sentence_or_a_heading_but_not_of_a_question_or_of_code() -> None:
    text = "## What it does\n\nWhat is it? What is left stays.\n| a | What moves. |\n```text\nWhat\n```\n- What else.\n"
    assert len(sentences_with_what_as_subject(text)) == 4
    private = _PRIVATE_WORDS.findall(prose_of("A posture is refused; `slopes`, [derivatives](slopes.md)"))
    assert private == ["posture", "refused"]
