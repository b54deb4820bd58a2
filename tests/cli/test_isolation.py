"""A job in a child process: whatever foreign code does there, the parent lives on and says what happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="isolation needs fork()")

START = """
import ctypes, os, signal, sys, tempfile, time
from fmilin import errors
from fmilin.sandbox import watchdog
from fmilin.cli.job_runner import work
from fmilin.sandbox.limits import Limits
libc = ctypes.CDLL(None)
class Thing:
    def __init__(self, end): self.end = end
    def close(self): self.end()
def job(runner):
"""
END = """
status = work(job, isolate=True, debug=False, limits=Limits(seconds=1.0))
print("parent lives", file=sys.stderr)
sys.exit(status)
"""


def run(body: str, folder: Path) -> subprocess.CompletedProcess[str]:
    source = START + textwrap.indent(textwrap.dedent(body), "    ") + END
    environment = os.environ | {"TMPDIR": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, env=environment, timeout=60, check=False
    )


def running(mark: Path) -> list[int]:
    """Return the processes whose program names ``mark``: numbers that they tell themselves may be of another world."""
    alive = []
    for process in psutil.process_iter():
        try:
            if str(mark) in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process.pid)
        except psutil.Error:
            continue
    return alive


def test_results_go_to_standard_output_and_everything_else_to_standard_error(tmp_path: Path) -> None:
    done = run(
        """
        libc.puts(b"from C"); libc.fflush(None)
        print("from Python")
        os.write(1, b"raw\\n")
        runner.results.write("result\\n")
        libc.puts(b"still in a buffer")
        """,
        tmp_path,
    )
    assert done.returncode == 0
    assert done.stdout == "result\n"
    assert sorted(done.stderr.split("\n")[:-1]) == [
        "The model printed:", "from C", "from Python", "parent lives", "raw", "still in a buffer",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("libc.abort()", "SIGABRT"),
        ("libc.exit(0)", r"ended the whole process by itself (exit status 0)"),
        ("libc.exit(17)", r"ended the whole process by itself (exit status 17)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "memory ran out"),
        ("ctypes.string_at(0)", "SIGSEGV"),
    ],
)
def test_a_crash_is_one_paragraph_and_status_6(body: str, said: str, tmp_path: Path) -> None:
    done = run(f"watchdog.note('fmi2GetDerivatives')\n{body}", tmp_path)
    assert done.returncode == 6
    assert done.stdout == ""
    message, parent = done.stderr.splitlines()
    assert message.startswith("fmilin: The model ")
    assert said in message
    assert " in fmi2GetDerivatives. Nothing was written." in message
    assert parent == "parent lives"


def test_what_the_child_left_in_temporary_files_is_removed(tmp_path: Path) -> None:
    done = run("d = tempfile.mkdtemp(); open(d + '/x', 'w').close(); print(d); libc.abort()", tmp_path)
    assert done.returncode == 6
    assert str(tmp_path) in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only there is a folder that lies about its rights")
def test_a_place_for_temporary_files_that_takes_none(tmp_path: Path) -> None:
    source = "import sys\nfrom fmilin.cli.main import main\nsys.exit(main(['linearize', 'm.fmu']))"
    done = subprocess.run(
        [sys.executable, "-c", "import tempfile\ntempfile.tempdir = " + repr("/proc") + "\n" + source],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("fmilin: Cannot make a temporary file: ")
    assert "TMPDIR" in done.stderr
    assert "bug" not in done.stderr


@pytest.mark.parametrize(("error", "status"), [("UsageError", 2), ("ModelError", 3), ("NumericalError", 5)])
def test_an_error_keeps_its_status_and_its_sentence(error: str, status: int, tmp_path: Path) -> None:
    done = run(f"raise errors.{error}('what, where,\\nwhat to do')", tmp_path)
    assert done.returncode == status
    assert done.stderr.splitlines() == ["fmilin: what, where, what to do", "parent lives"]


def test_an_unexpected_error_is_called_a_bug(tmp_path: Path) -> None:
    done = run("{}['key']", tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0].startswith("fmilin: KeyError: 'key'. This is a bug in fmilin")
    assert "Traceback" not in done.stderr


def test_a_crash_while_unloading_does_not_spoil_the_results(tmp_path: Path) -> None:
    done = run("runner.borrow(Thing(libc.abort))\nrunner.results.write('result\\n')", tmp_path)
    assert done.returncode == 0
    assert done.stdout == "result\n"
    assert "crashed while it was unloaded (SIGABRT" in done.stderr


def test_a_crash_while_unloading_does_not_hide_an_error(tmp_path: Path) -> None:
    done = run("runner.borrow(Thing(libc.abort))\nraise errors.ConstraintError('inconsistent')", tmp_path)
    assert done.returncode == 4
    assert done.stderr.startswith("fmilin: inconsistent\n")


@pytest.mark.parametrize(
    ("end", "status"),
    [("libc.abort()", 6), ("libc.exit(0)", 6), ("runner.results.write('done\\n')", 0), ("time.sleep(1000)", 6)],
    ids=["crash", "exit", "success", "timeout"],
)
def test_a_process_that_the_model_left_behind_ends_with_it(end: str, status: int, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    body = f"""
    if os.fork() == 0:
        open({str(mark)!r}, "w").write(str(os.getpid()))
        time.sleep(1000)
        os._exit(0)
    while not os.path.exists({str(mark)!r}): time.sleep(0.01)
    watchdog.note("fmi2GetDerivatives")
    {end}
    """
    done = run(body, tmp_path)  # would not return as long as anybody held its standard error
    assert done.returncode == status, done.stderr
    assert ("the model left a process running" in done.stderr) == (status == 0)
    assert not running(mark)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_stopping_the_parent_stops_the_child(number: signal.Signals, status: int, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    body = f"open({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(50)"
    source = START + textwrap.indent(body, "    ") + END
    parent = subprocess.Popen(
        [sys.executable, "-c", source],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # noqa: PLW1509 - nohup ignores it, and so would we
    )
    while not (mark.exists() and mark.read_text()):
        time.sleep(0.02)
    parent.send_signal(number)
    assert parent.wait(timeout=30) == status
    assert not running(mark)
    assert list(tmp_path.iterdir()) == [mark]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux ends a child with its parent")
def test_a_parent_that_is_killed_takes_the_child_along(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    body = f"open({str(mark)!r}, 'w').write(str(os.getpid()))\ntime.sleep(50)"
    source = START + textwrap.indent(body, "    ") + END
    parent = subprocess.Popen([sys.executable, "-c", source], env=os.environ | {"TMPDIR": str(tmp_path)})
    while not (mark.exists() and mark.read_text()):
        time.sleep(0.02)
    parent.kill()
    parent.wait(timeout=30)
    until = time.monotonic() + 30  # its work takes 50 s
    while running(mark):
        assert time.monotonic() < until, "the child lives on"
        time.sleep(0.02)
