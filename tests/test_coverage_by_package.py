from __future__ import annotations

from tests.coverage_by_package import told


def counts(lines: int, of: int, branches: int = 0, of_branches: int = 0) -> dict[str, dict[str, int]]:
    summary = {"covered_lines": lines, "num_statements": of, "covered_branches": branches, "num_branches": of_branches}
    return {"summary": summary}


def test_lines_and_branches_are_counted_by_package_and_deep_folders_belong_to_theirs() -> None:
    report = {
        "fmilin/errors.py": counts(10, 10),
        "fmilin/fmi/read/xml.py": counts(40, 40, 10, 10),
        "fmilin/fmi/read/deeper/still.py": counts(0, 10),
        "fmilin/cli/main.py": counts(18, 20),
        "fmilin/cli/__init__.py": counts(0, 0),
        "fmilin/version.py": counts(1, 1, 1, 9),
    }
    assert told({"files": report}) == [
        "80.0 % of the lines and branches of fmilin are reached by tests.",
        " 83.3 %  fmilin/fmi/read",
        "1 of 2 packages are below 90 %.",
    ]
