"""A job of a command: results, files, messages and exit statuses, delivered at once when it has ended."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fmilin.cli.streams import MAX_PRINTED_CHARACTERS, collect_printed_lines

START = """
import ctypes, logging, os, signal, sys, time
from fmilin import errors
from fmilin.cli.job_runner import work
libc = ctypes.CDLL(None)
class Thing:
    def __init__(self, end): self.end = end
    def close(self): self.end()
def crash(): raise errors.ModelCrashError("The model crashed while it was unloaded.")
def job(runner):
"""
END = """
status = work(job, debug=False)
sys.exit(status)
"""


def run(body: str) -> subprocess.CompletedProcess[str]:
    source = START + textwrap.indent(textwrap.dedent(body), "    ") + END
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)


def test_results_go_to_standard_output_and_everything_else_to_standard_error() -> None:
    done = run(
        """
        libc.puts(b"from C"); libc.fflush(None)
        print("from Python")
        os.write(1, b"raw\\n")
        logging.getLogger("fmilin.fmu").warning("from an FMU")
        runner.results.write("result\\n")
        runner.say("at the end\\n")
        libc.puts(b"still in a buffer")
        """
    )
    assert done.returncode == 0
    assert done.stdout == "result\n"
    lines = done.stderr.splitlines()
    assert sorted(lines) == ["at the end", "from C", "from Python", "from an FMU", "raw", "still in a buffer"]
    assert lines[-1] == "from an FMU"


def test_lines_of_fmus_are_shown_up_to_a_limit(capfd: pytest.CaptureFixture[str]) -> None:
    line = "x" * 999
    with collect_printed_lines():
        for _ in range(100):
            logging.getLogger("fmilin.fmu").warning("%s", line)
    shown = capfd.readouterr().err.splitlines()
    assert len(shown) == MAX_PRINTED_CHARACTERS // 999 + 1
    assert shown[-1] == "... and more: 99900 characters in all"


@pytest.mark.parametrize(
    ("error", "status"), [("UsageError", 2), ("ModelError", 3), ("NumericalError", 5), ("ModelCrashError", 6)]
)
def test_an_error_has_its_status_and_its_sentence(error: str, status: int) -> None:
    done = run(f"runner.results.write('half')\nraise errors.{error}('what, where,\\nwhat to do')")
    assert done.returncode == status
    assert done.stderr.splitlines() == ["fmilin: what, where, what to do"]


def test_an_unexpected_error_is_called_a_bug() -> None:
    done = run("{}['key']")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0].startswith("fmilin: KeyError: 'key'. This is a bug in fmilin")
    assert "Traceback" not in done.stderr


def test_a_crash_while_unloading_does_not_spoil_the_results() -> None:
    done = run("runner.borrow(Thing(crash))\nrunner.results.write('result\\n')")
    assert done.returncode == 0
    assert done.stdout == "result\n"
    assert done.stderr == "fmilin: The model crashed while it was unloaded. The result files are complete.\n"


def test_a_crash_while_unloading_does_not_hide_an_error() -> None:
    done = run("runner.borrow(Thing(crash))\nraise errors.ConstraintError('inconsistent')")
    assert done.returncode == 4
    assert done.stderr.startswith("fmilin: inconsistent\n")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only there is a folder that lies about its rights")
def test_a_place_for_temporary_files_that_takes_none(tmp_path: Path, zoo: Callable[[str], Path]) -> None:
    source = f"import sys\nfrom fmilin.cli.main import main\nsys.exit(main(['linearize', {str(zoo('rubs'))!r}]))"
    done = subprocess.run(
        [sys.executable, "-c", "import tempfile\ntempfile.tempdir = " + repr("/proc") + "\n" + source],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("fmilin: Cannot make a folder for temporary files")
    assert "TMPDIR" in done.stderr
    assert "bug" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(("number", "status"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_a_signal_ends_the_job_with_its_status(number: str, status: int, tmp_path: Path) -> None:
    mark = tmp_path / "begun"
    body = f"runner.write_files({{}})\nopen({str(mark)!r}, 'w').close()\ntime.sleep(50)"
    source = START + textwrap.indent(body, "    ") + END
    kind = getattr(signal, number)
    process = subprocess.Popen(
        [sys.executable, "-c", source],
        preexec_fn=lambda: signal.signal(kind, signal.SIG_DFL),  # noqa: PLW1509 - nohup ignores it, and so would we
    )
    until = time.monotonic() + 30
    while not mark.exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(kind)
    assert process.wait(timeout=30) == status
