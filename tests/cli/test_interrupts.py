"""Ctrl-C at any moment, and standard output that takes nothing."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kills import Victims
from tests.shared import unmeasured

PLANT = "fmilin.systems:cartesian_pendulum(length=1.0)"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows interrupts in another way")
def test_an_interrupt_is_one_line_and_130_at_any_moment(tmp_path: Path) -> None:
    """``python -m benchmarks kills`` does it 50 times."""
    victims, rng = Victims(tmp_path), random.Random(1)
    count = victims.events("convert")
    moments = [rng.randint(1, last) for last in (400, 2000, 8000, count) for _ in range(4)]
    ends = {moment: victims.interrupted("convert", moment) for moment in (1, *moments)}
    assert {moment: end for moment, end in ends.items() if end != (130, "fmilin: interrupted.\n")} == {}
    assert victims.leftovers() == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is full")
@pytest.mark.parametrize("output", [">&-", ">/dev/full"])
@pytest.mark.parametrize(
    "arguments",
    ["four_bar.fmu --json", f"'{PLANT}' --json", "--help", "four_bar.fmu --no-isolation"],
    ids=["child", "native", "help", "no isolation"],
)
def test_a_result_that_cannot_be_written(arguments: str, output: str, fmus: Path) -> None:
    script = f"'{sys.executable}' -m fmilin linearize {arguments} {output}"
    done = subprocess.run(["sh", "-c", script], cwd=fmus, env=unmeasured(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("fmilin: ")
    assert len(done.stderr.splitlines()) == 1
    assert ("is closed" if output == ">&-" else "No space left on device") in done.stderr


def test_files_need_no_standard_output(fmus: Path, tmp_path: Path) -> None:
    script = f"'{sys.executable}' -m fmilin linearize '{fmus / 'four_bar.fmu'}' -o plant.json >&-"
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=unmeasured(), capture_output=True, check=False)
    assert (done.returncode, (tmp_path / "plant.json").is_file()) == (0, True)
