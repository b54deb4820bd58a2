"""Files that GitHub reads follow their public schemas: a mistake in them is not seen before they are pushed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCHEMAS = {
    ".github/workflows/ci.yml": "vendor.github-workflows",
    ".github/ISSUE_TEMPLATE/wrong.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/missing.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/config.yml": "vendor.github-issue-config",
    "CITATION.cff": "vendor.citation-file-format",
}


def check(schema: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("file", SCHEMAS)
def test_a_file_for_github_follows_its_schema(file: str) -> None:
    done = check(SCHEMAS[file], ROOT / file)
    assert done.returncode == 0, done.stdout


def test_each_file_of_the_folder_is_checked() -> None:
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / ".github").rglob("*.yml")}
    assert files <= set(SCHEMAS)


def test_a_misspelt_key_of_a_workflow_is_reported(tmp_path: Path) -> None:
    text = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
    path = tmp_path / "ci.yml"
    path.write_text(text.replace("runs-on:", "run-on:", 1), encoding="utf-8")
    assert "run-on" in check("vendor.github-workflows", path).stdout


def test_the_script_of_continuous_integration_is_there() -> None:
    assert "run: .ci/run\n" in (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
    assert (ROOT / ".ci/run").stat().st_mode & 0o100
