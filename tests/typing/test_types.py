"""Type checkers accept the code of the documentation and the examples, and report mistakes of users."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.typing.checkers import Complaint, check_sources, count_unresolved_imports, list_mistakes
from tests.typing.sources import CASES

pytest.importorskip("pyright", reason="pyright is not installed")
CHECKERS = ["mypy", "pyright"]


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> list[Complaint]:
    sources, complaints = check_sources(tmp_path_factory.mktemp("typing"))
    assert len(sources) > 50
    return complaints


@pytest.mark.parametrize("checker", CHECKERS)
def test_code_of_documentation_and_examples_has_no_error_of_types(complaints: list[Complaint], checker: str) -> None:
    errors = [
        f"{complaint.module}:{complaint.line}: {complaint.message} [{complaint.rule}]"
        for complaint in complaints
        if complaint.checker == checker and complaint.module != "mistakes.py" and not complaint.is_about_a_library
    ]
    assert not errors, "\n".join(errors)


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_type_checker_reports_each_deliberate_mistake_and_nothing_else(
    complaints: list[Complaint], checker: str
) -> None:
    expected = list_mistakes()
    assert len(expected) == 20
    reported = {c.line for c in complaints if c.checker == checker and c.module == "mistakes.py"}
    assert reported == expected


def test_every_documented_import_resolves(complaints: list[Complaint]) -> None:
    assert count_unresolved_imports(complaints) == {"mypy": 0, "pyright": 0}
    reported = {(c.checker, c.line) for c in complaints if c.module == "mistakes.py" and c.is_about_an_import}
    lines = (CASES / "mistakes.py").read_text(encoding="utf-8").splitlines()
    misspelt = [i for i, line in enumerate(lines, 1) if re.search(r"(import|fl\.linearise).*# mistake:", line)]
    assert reported == {(checker, line) for checker in CHECKERS for line in misspelt}


def test_the_cases_are_files_that_python_can_read() -> None:
    for case in CASES.glob("*.py"):
        compile(case.read_text(encoding="utf-8"), Path(case).name, "exec")
