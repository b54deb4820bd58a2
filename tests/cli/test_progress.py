"""What a person sees on standard error while something takes its time."""

from __future__ import annotations

import io
import re
import sys
import time

import pytest

import fmilin as fl
from fmilin.cli.duration import how_far, progress_bar, show_elapsed_time
from fmilin.models import FunctionModel
from fmilin.signals import FloatArray


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_takes_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with show_elapsed_time("fmilin trim", patience=0.01):
        until = time.monotonic() + 60
        while "fmilin trim: " not in screen.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    assert re.search(r"fmilin trim: \d+ s", screen.getvalue())
    assert screen.getvalue().endswith("\x1b[K")  # nothing stays


def test_it_says_what_is_being_done_and_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outermost of what runs: evaluations inside a trim are still the trim, which tells its residual."""
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    until = time.monotonic() + 60

    def rates(t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        while how_far(sys._getframe()) and "residual" not in screen.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
        return 1.0 - x

    model = FunctionModel("tank", {"h": 0.5}, rates)
    with show_elapsed_time("fmilin trim", patience=0.01):
        fl.trim(model)
    assert " s, finding the point, residual 5.0e-01\r" in screen.getvalue()


def test_what_is_quick_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with show_elapsed_time("fmilin trim", patience=60.0):
        pass
    assert screen.getvalue() == ""


def test_nothing_is_said_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", file := io.StringIO())
    with show_elapsed_time("fmilin trim", patience=0.0), progress_bar("trim", 0.0, 1.0) as tell:
        tell(0.5)
        time.sleep(0.05)
    assert file.getvalue() == ""


def test_a_bar_takes_the_place_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    with progress_bar("sweep", 0.0, 10.0, "points") as tell, show_elapsed_time("fmilin sweep", patience=0.01):
        tell(5.0)
        time.sleep(0.1)
    assert "fmilin sweep" not in screen.getvalue()
    assert "of 10 points" in screen.getvalue()
