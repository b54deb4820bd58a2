"""The runner of the documentation's code notices what is wrong on a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documentation.blocks import blocks_of, run_page

PAGE = Path("page.md")


def fenced(language: str, body: str) -> str:
    return f"```{language}\n{body}\n```\n"


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("a 1.00000001 b", "a 1.0 b"),  # rounding
        ("error 3e-14", "error 5e-15"),  # rounding itself
        ("one\ntwo\nthree", "one\n...\nthree"),
        ("x   =  1\n──────", "x = 1\n──"),
        ("±2.1 i", "±2.1 i"),
    ],
)
def test_what_agrees_with_the_page(printed: str, shown: str) -> None:
    assert run_page(PAGE, fenced("python", f"print({printed!r})") + fenced("text", shown)) == 1


@pytest.mark.parametrize(
    ("printed", "shown"),
    [("a 1.01 b", "a 1.0 b"), ("a -1 b", "a 1 b"), ("a b", "a c"), ("a b c", "a b"), ("1 2", "... 3"), ("a", "a 1")],
)
def test_what_does_not_agree_with_the_page(printed: str, shown: str) -> None:
    with pytest.raises(AssertionError, match=r"page\.md, line 4"):
        run_page(PAGE, fenced("python", f"print({printed!r})") + fenced("text", shown))


def test_a_block_that_fails_and_one_in_no_language() -> None:
    with pytest.raises(ZeroDivisionError):
        run_page(PAGE, fenced("python", "1 / 0"))
    with pytest.raises(AssertionError, match="status 2"):
        run_page(PAGE, fenced("bash", "fmilin linearise"))
    with pytest.raises(AssertionError, match="neither run nor known"):
        run_page(PAGE, fenced("", "anything"))
    assert run_page(PAGE, fenced("bash", "fmilin linearise   # status 2")) == 1


def test_files_and_hidden_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = "<!-- run\necho 5 > five\n-->\n" + "```{code-block} toml\n:caption: `a.toml`\n\nx = 1\n```\n"
    assert [(b.language, b.caption) for b in blocks_of(page)] == [("bash", ""), ("toml", "a.toml")]
    assert run_page(PAGE, page) == 1
    assert (tmp_path / "five").read_text() == "5\n"
    assert (tmp_path / "a.toml").read_text() == "x = 1\n"
