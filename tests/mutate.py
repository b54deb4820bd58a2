"""Change the meaning of the code in one place at a time, and say which changes no test notices.

Usage: ``python tests/mutate.py --since HEAD~1`` for the lines that commits have changed, or ``--files fmilin/x.py``;
``--count 20 --seed 3`` of the changes, spread evenly over the files. Works on a copy. The tests are those of the
mirrored folder and those that import the file, or ``--tests``; a change meets the ones that reach its line, the
quickest first, for ``--budget`` seconds of them. A survivor is told as ``file:line: before -> after``; status 1.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.util import cache_from_source
from itertools import accumulate, zip_longest
from pathlib import Path

import coverage

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.mutations import Mutant, mutants

__all__ = ["Tree", "changed", "chosen", "main", "spread"]

PYTEST = ["-m", "pytest", "--rootdir=.", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
"""The names of tests begin here, whatever setup.py stands in a folder above."""


class Tree:
    """A copy of the working tree in which one file at a time is changed, and the tests that reach each of its lines."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.home = folder / "tree"
        for name in _git(root, "ls-files", "--cached", "--others", "--exclude-standard"):
            if (root / name).is_file():
                (self.home / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, self.home / name)
        (folder / "temporary").mkdir(parents=True)
        paths = [self.home, *(self.home / "adapters").glob("*")]
        own = {"PYTHONPATH": os.pathsep.join(map(str, paths)), "TMPDIR": str(folder / "temporary")}
        # a run that is measured itself must not mix with what is measured here
        outer = {n: v for n, v in os.environ.items() if not n.startswith(("COV", "PYTEST"))}
        self._environment = {
            **outer,
            **own,
            "FMILIN_TEST_SLOW": "1",
            "COVERAGE_CORE": "ctrace",
            "COVERAGE_FILE": str(self.home / ".coverage"),
        }
        self.seconds: dict[str, float] = defaultdict(float)
        """What each test takes, by its name."""

    def look(self, tests: Sequence[str]) -> None:
        """Run the tests once as they are, and see where each of them comes by."""
        more = ["--cov", "--cov-context=test", "--cov-report=", "--durations=0", "--durations-min=0", "-vv"]
        status, told = self.tested([*more, *tests], limit=7200)
        if status:
            raise SystemExit(f"The tests fail without any change:\n{told[-3000:]}")
        for seconds, test in re.findall(r"^ *([\d.]+)s (?:call|setup|teardown) +(.+)$", told, re.MULTILINE):
            self.seconds[test] += float(seconds)
        status, told = self.tested(["--collect-only", *self.seconds], limit=600)
        if status:
            raise SystemExit(f"Some of the tests are not found by their names:\n{told[-3000:]}")
        self._data = coverage.CoverageData(str(self.home / ".coverage"))
        self._data.read()

    def reaching(self, mutant: Mutant, budget: float) -> list[str]:
        """Return the tests that come by a change, the quickest first; all of them where that is while importing."""
        contexts = self._data.contexts_by_lineno(str(self.home / mutant.path))
        names = {c.rpartition("|")[0] for line in mutant.lines for c in contexts.get(line, ())}
        reached = sorted(
            self.seconds if names == {""} else names & self.seconds.keys(), key=lambda t: (self.seconds[t], t)
        )
        total = list(accumulate(self.seconds[test] for test in reached))
        return [test for test, seconds in zip(reached, total, strict=True) if seconds <= max(budget, total[0])]

    def tested(self, arguments: Sequence[str], limit: float) -> tuple[int | None, str]:
        """Return the status of pytest, None where it takes too long, and what it says."""
        command = [sys.executable, *PYTEST, *arguments]
        with (self.home.parent / "told").open("w+") as told:
            run = subprocess.Popen(
                command, cwd=self.home, env=self._environment, stdout=told, stderr=told, start_new_session=True
            )
            try:
                status = run.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)  # and whatever it has started
            run.wait()
            told.seek(0)
            return status, told.read()

    def verdict(self, mutant: Mutant, budget: float) -> str:
        """Return whether the tests tell a change: "killed", "timeout", "lives", or "unreached"."""
        tests, file = self.reaching(mutant, budget), self.home / mutant.path
        if not tests:
            return "unreached"
        source = file.read_bytes()
        try:
            file.write_bytes(source[: mutant.start] + mutant.after.encode() + source[mutant.end :])
            Path(cache_from_source(str(file))).unlink(missing_ok=True)  # of the same second, perhaps
            status, _ = self.tested(tests, limit=60 + 5 * sum(self.seconds[test] for test in tests))
        finally:
            file.write_bytes(source)
            Path(cache_from_source(str(file))).unlink(missing_ok=True)
        return {None: "timeout", 0: "lives"}.get(status, "killed")


def chosen(root: Path, files: Sequence[str]) -> list[str]:
    """Return the tests that can kill changes of these files: of the mirrored folders, and those that import them."""
    tests = {p.relative_to(root).as_posix(): p.read_text() for p in sorted((root / "tests").rglob("test_*.py"))}
    found = set()
    for file in files:
        mirrored = next(p for p in Path("tests", *Path(file).parts[1:]).parents if (root / p).is_dir()).as_posix()
        module = re.compile(rf"\b{re.escape(file.removesuffix('.py').replace('/', '.'))}\b")
        found |= {t for t, text in tests.items() if t.startswith(f"{mirrored}/test_") or module.search(text)}
    return sorted(found)


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def changed(root: Path, since: str) -> dict[str, set[int]]:
    """Return the lines of the package that commits have changed, by file."""
    lines: dict[str, set[int]] = defaultdict(set)
    file = ""
    for line in _git(root, "diff", "-U0", "--relative", since, "--", "fmilin/*.py"):
        if line.startswith("+++ "):
            file = line.removeprefix("+++ b/")
        elif match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            lines[file] |= set(range(int(match[1]), int(match[1]) + int(match[2] or 1)))
    return {file: numbers for file, numbers in lines.items() if numbers and (root / file).is_file()}


def spread(found: Mapping[str, list[Mutant]], count: int, seed: int) -> list[Mutant]:
    """Return so many of them by chance: as many of each file, and of different lines, as there are."""
    chance = random.Random(seed)
    files = []
    for of_file in found.values():
        lines = defaultdict(list)
        for mutant in chance.sample(of_file, len(of_file)):
            lines[mutant.lines[-1]].append(mutant)
        files.append(_in_turn(list(lines.values())))
    return _in_turn(chance.sample(files, len(files)))[:count]


def _in_turn(queues: Sequence[Sequence[Mutant]]) -> list[Mutant]:
    return [mutant for row in zip_longest(*queues) for mutant in row if mutant]


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the changes that are asked for, and print the survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", help="a commit: what it and later ones changed")
    parser.add_argument("--files", nargs="+", default=[], help="files of the package")
    parser.add_argument("--tests", nargs="+", default=[], help="files or folders of tests in place of the nearest ones")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of tests for each change")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    asked = parser.parse_args(arguments)
    lines = changed(asked.root, asked.since) if asked.since else {file: set() for file in asked.files}
    found = {
        file: [m for m in mutants(file, (asked.root / file).read_bytes()) if not numbers or numbers & set(m.lines)]
        for file, numbers in lines.items()
    }
    counts: dict[str, int] = defaultdict(int)
    with tempfile.TemporaryDirectory(prefix="fmilin-mutants-", ignore_cleanup_errors=True) as folder:
        tree = Tree(asked.root, Path(folder))
        tree.look(asked.tests or chosen(asked.root, list(found)))
        for mutant in spread(found, asked.count, asked.seed):
            verdict = tree.verdict(mutant, asked.budget)
            counts[verdict] += 1
            if verdict in ("lives", "unreached"):
                sys.stdout.write(f"{mutant}{' (no test comes by)' * (verdict == 'unreached')}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{sum(counts.values())} changes: {dict(counts)}\n")
    return int(bool(counts["lives"] + counts["unreached"]))


if __name__ == "__main__":
    sys.exit(main())
