"""The script that changes the meaning of code: what it changes, and that it tells who notices."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.mutate import Tree, changed, chosen, main, spread
from tests.mutations import mutants


def changes(source: str) -> set[str]:
    """The whole source after each change, by what it leaves of a line ``x = ...``."""
    content = source.encode()
    return {
        (content[: m.start] + m.after.encode() + content[m.end :]).decode().removeprefix("x = ")
        for m in mutants("x.py", content)
    }


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", {"(a) >= (b)"}),
        ("a < 7", {"(a) >= (7)", "(a) <= (7)", "a < 8", "a < 14", "a < 0"}),
        ("a is not b", {"(a) is (b)"}),
        ("a + b", {"(a - (b))", "(a)"}),
        ("k * d", {"(k)", "(d)"}),
        ("a and b", {"((a) or (b))", "(a)", "(b)"}),
        ("not a", {"(a)"}),
        ("-a", {"(a)"}),
        ("1e-9", {"1.000000001", "0"}),
        ("True", {"False"}),
        ("a[i:j]", {"a[i:]", "a[:j]", "a[i + 1:j]"}),
        ("a[f(i) :]", {"a[:]", "a[f(i) + 1:]"}),
        ("f(a, b)", {"f(b, a)"}),
        ("min(a, b)", {"max(a, b)"}),
        ("np.minimum(ä, b)", {"np.maximum(ä, b)"}),
        ("a if b else c", {"a if not (b) else c"}),
        ("f'{a + b}'", set()),
    ],
)
def test_what_changes(source: str, expected: set[str]) -> None:
    assert changes(f"x = {source}") == expected


@pytest.mark.parametrize("source", ["y.x = z", "x[0] += z", "f()", "raise E"])
def test_statements_are_left_out(source: str) -> None:
    assert "pass" in changes(source)


@pytest.mark.parametrize("source", ['"words"', "__all__ = [1]", "def f(a: 2) -> 3: ...", "@f(1)\nclass A: ..."])
def test_what_means_nothing_stays(source: str) -> None:
    assert not changes(source)


def test_changes_are_spread_over_files_and_lines() -> None:
    found = {f: list(mutants(f, b"x = a < 7\ny = b < 7\n" * 5)) for f in ("one.py", "two.py")}
    taken = spread(found, 8, seed=1)
    assert len({(m.path, m.lines[-1]) for m in taken}) == 8
    assert sum(m.path == "one.py" for m in taken) == 4
    assert spread(found, 8, seed=1) == taken != spread(found, 8, seed=2)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A package whose file has one change that its tests notice, and one that they do not."""
    files = {
        "fmilin/__init__.py": "",
        "fmilin/small/__init__.py": "",
        "fmilin/small/signs.py": "negated = lambda a: -a\nlargest = lambda a: max(a)\n",
        "tests/small/test_signs.py": "from fmilin.small.signs import *\n\n\ndef test_both():\n"
        "    assert negated(1) == -1\n    assert largest([2]) == 2\n",
        "tests/other/test_slow.py": "import time\n\n\ndef test_sleep():\n    time.sleep(1000)\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    who = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_a_victim_is_killed_and_a_survivor_is_told(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(repository / "temporary"))
    (repository / "temporary").mkdir()
    (repository / "temporary" / "setup.py").touch()  # above the copy: pytest would name tests from there
    assert main(["--root", str(repository), "--files", "fmilin/small/signs.py"]) == 1
    survivor, count = capsys.readouterr().out.splitlines()
    assert survivor == "fmilin/small/signs.py:2: max -> min"
    assert count.startswith("2 changes: ")
    assert "'killed': 1" in count
    assert (repository / "fmilin/small/signs.py").read_text().startswith("negated = lambda a: -a")


def test_lines_that_commits_have_changed(repository: Path) -> None:
    file = repository / "fmilin/small/signs.py"
    file.write_text(file.read_text().replace("max", "min"))
    assert changed(repository, "HEAD") == {"fmilin/small/signs.py": {2}}


def test_the_nearest_tests(repository: Path) -> None:
    assert chosen(repository, ["fmilin/small/signs.py"]) == ["tests/small/test_signs.py"]
    (repository / "tests/other/test_slow.py").write_text("import fmilin.small.signs")
    assert chosen(repository, ["fmilin/small/signs.py"]) == ["tests/other/test_slow.py", "tests/small/test_signs.py"]


def test_what_never_ends_is_ended(repository: Path, tmp_path: Path) -> None:
    tree = Tree(repository, tmp_path / "copy")
    assert tree.tested(["tests/other"], limit=2.0)[0] is None
