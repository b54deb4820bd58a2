"""Processor times of tests, and the list of those that take seconds, tests/slow.txt, which a plain run leaves out.

FMILIN_TEST_SLOW=1 FMILIN_TEST_TIMES=times.txt pytest -n 2 --dist worksteal -p tests.slow_tests
python -m tests.slow_tests times.txt
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

SLOW_TESTS = Path(__file__).parent / "slow.txt"
SLOW_SECONDS = 0.4  # of the processor: tests that take longer are listed
GUARDS = ("tests/test_", "tests/documentation/test_words.py", "tests/support/")  # of the whole code: these run always
WHOLE_FILES = {
    "tests/linearization/test_truth.py": 150.0,
    "tests/report/test_web_report.py": 50.0,
    "tests/trimming/test_truth.py": 200.0,
    "tests/typing/test_types.py": 200.0,
}
"""Files in which tests share what takes seconds: without the first of them the next one would take as long."""
HEADER = "# Tests that take seconds of the processor, which a plain run leaves out; made by tests/slow_tests.py.\n"


def measure_processor_time() -> float:
    """Return the seconds of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None]:
    """Write the processor time of a test into the file FMILIN_TEST_TIMES."""
    begin = measure_processor_time()
    yield
    path = os.environ.get("FMILIN_TEST_TIMES")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{measure_processor_time() - begin:.2f} {item.nodeid}\n")


def list_slow_tests(times: str) -> str:
    """Return the content of tests/slow.txt for lines of processor times."""
    measured = dict[str, float]()
    for line in times.splitlines():
        seconds, _, name = line.partition(" ")
        measured[name] = max(float(seconds), measured.get(name, 0.0))
    slow = sorted(
        (name, seconds) for name, seconds in measured.items() if seconds >= SLOW_SECONDS and not name.startswith(GUARDS)
    )
    slow = [(name, seconds) for name, seconds in slow if name.partition("::")[0] not in WHOLE_FILES]
    return HEADER + "".join(f"{seconds:.1f} {name}\n" for name, seconds in sorted([*slow, *WHOLE_FILES.items()]))


if __name__ == "__main__":
    SLOW_TESTS.write_text(list_slow_tests(Path(sys.argv[1]).read_text(encoding="utf-8")), encoding="utf-8")
