"""What an interpreter and a notebook show of results: the command line's tables, short, quick and escaped."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin import design
from fmilin.adapters import ModelInfo, Remark
from fmilin.export.nonlinear_control import nonlinear_view
from fmilin.report.report_page import MAX_LINES, as_html, as_text
from fmilin.report.table import print_table
from fmilin.support.table_repr import Sheet
from fmilin.support.tables import build_table
from fmilin.systems import cartesian_pendulum
from tests.composition.test_cosimulation import first_order_pair
from tests.families.plants import oscillator
from tests.hand_made import pendulum, sized
from tests.systems.linkages import four_bar_mechanism

EVIL = '<script>alert(1)</script> & "x"'


class Cells(HTMLParser):
    """Cells and paragraphs of HTML whose elements must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.words: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def squeezed(text: str) -> str:
    return "".join(c for c in text if not c.isspace() and c != "─")


MAKERS: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "linear model": (pendulum, ("2 independent states out of 4", "±3.132092 i")),
    "large linear model": (lambda: sized(150, 60, 30, 50), ("150 independent states", ".eigenvalues()")),
    "long linear model": (lambda: sized(40, 60, 30, 50), ("and 19 more", "More: ", ".modes()", "No warnings.")),
    "without anything": (lambda: sized(0, 0, 0, 0), ("0 independent states", "none")),
    "model": (cartesian_pendulum, ("States (4)", "Constraints (1, from the model itself)", "native")),
    "mechanism": (four_bar_mechanism, ("More: ", ".outputs")),
    "description": (lambda: four_bar_mechanism().description, ("Joints (", "Loops (1)", "Mass [kg]", "revolute")),
    "point": (lambda: fl.operating_point(cartesian_pendulum()), ("vy", "States (4)", "t = 0 s")),
    "trimmed point": (lambda: fl.trim(cartesian_pendulum()), ("an equilibrium", "Residual")),
    "trim report": (lambda: fl.trim(cartesian_pendulum()).report, ("an equilibrium", "Residual")),
    "family": (
        lambda: fl.sweep(oscillator(), {"k": np.linspace(1.0, 9.0, 60)}),
        ("60 of 60 linear models", "and 36 more", "More: .ok", "-0.1 ± 0.9949874 i"),
    ),
    "family with failures": (
        lambda: fl.sweep(cartesian_pendulum(), {"x": [0.0, 0.6, 1.4], "F": [0.0, 1.0]}),
        ("4 of 6 linear models", "grid 3 x 2", "failed"),
    ),
    "family without any": (
        lambda: fl.sweep(cartesian_pendulum(), {"x": [2.0, 3.0]}),
        ("0 of 2 linear models", "failed"),
    ),
    "family without channels": (
        lambda: fl.sweep(oscillator(), {"k": [1.0, 2.0]}, inputs=[], outputs=[]),
        ("2 of 2 linear models", "none"),
    ),
    "part of a family": (lambda: fl.sweep(oscillator(), {"k": [1.0, 2.0, 3.0]})[1:], ("2 of 2 linear models",)),
    "verification": (
        lambda: fl.linearize(cartesian_pendulum()).verify(cartesian_pendulum(), horizon=0.2),
        ("right to first order", "Channel"),
    ),
    "modes": (lambda: pendulum().modes(), ("±3.132092 i", "Damping ratio")),
    "signals": (lambda: pendulum().states, ("Name", "Unit", "Start")),
    "point of a linear model": (lambda: pendulum().point, ("States (4)", "t = 0.1 s", "Parameters (1)")),
    "trajectory": (
        lambda: fl.simulate(cartesian_pendulum(), stop_time=0.1),
        ("0 s to 0.1 s", "At the end", "Drift"),
    ),
    "discovery": (
        lambda: fl.discover(cartesian_pendulum()),
        ("2 independent states of 4", "constraint = 0"),
    ),
    "Kalman filter": (
        lambda: design.kalman_filter(fl.linearize(oscillator()), 0.05, process={"F": 0.2}, measured={"position": 1e-3}),
        ("every 0.05 s", "gain of", "std"),
    ),
    "co-simulation": (
        lambda: fl.cosimulated(first_order_pair(1.5, 3.0), step=0.1),
        ("Coupled plant", "Jacobi", "Stable"),
    ),
    "explanation": (
        lambda: fl.explain(cartesian_pendulum(), cartesian_pendulum().start, "F", "angle"),
        ("F to angle: It is not zero",),
    ),
    "uncertain model": (
        lambda: fl.uncertain(cartesian_pendulum(), cartesian_pendulum().start, {"L": (0.9, 1.1)}),
        ("L from 0.9 to 1.1", "2 independent states out of 4"),
    ),
    "placed modes": (
        lambda: design.place_modes(oscillator(), {"k": (1.0, 9.0)}, design.ModeGoal(near=2j, frequency=(1.9, 2.1))),
        ("k = ", "became"),
    ),
    "spectrum": (lambda: fl.formulations.spectrum(cartesian_pendulum()), ("MCS", "violate the constraints by 0")),
    "state feedback": (
        lambda: design.state_feedback(fl.linearize(cartesian_pendulum()), np.ones((1, 2)), sample_time=0.01),
        ("Drives", "0.01 s", "1, 1"),
    ),
    "nonlinear view": (lambda: nonlinear_view(cartesian_pendulum()), ("2 independent states out of 4", "nonlinear")),
}


@pytest.mark.parametrize(("make", "said"), MAKERS.values(), ids=MAKERS)
def test_results_are_tables_of_at_most_forty_lines_and_the_same_in_html(
    make: Callable[[], Any], said: tuple[str, ...]
) -> None:
    result = make()
    text = repr(result)
    lines = text.splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= 80
    for words in said:
        assert words in text
    entry = result[0] if isinstance(result, tuple) else result
    for name in re.findall(r"\.(\w+)", getattr(result, "_attributes", "")):
        assert hasattr(result, name) or hasattr(entry, name), f"a table that is cut says .{name}, which is missing"
    html = Cells(result._repr_html_())
    assert "table" in html.seen or len(lines) < 5  # a sentence
    assert squeezed("".join(html.words)) == squeezed(text)


PLAIN = {
    "AuditRow", "Basis", "Connection", "Constraint", "ConstrainedForm", "ConstraintMotion", "DaeGraph", "Differences",
    "Equilibrium", "Evaluation", "KaneEquations", "Labels", "Limits", "Linearization", "MCS", "Margins", "ModeGoal",
    "RCS", "Signal", "Stepping", "SymbolicConstraint", "TrimRequest", "UCS",
}  # fmt: skip
"""What is given rather than returned, rows of results, margins of one loop, and arrays with names: its
fields are what there is to see."""


def test_every_public_result_shows_itself() -> None:
    """Errors say what they have to say; everything else that can be named is a table, also in a notebook."""
    rooms = (fl, design, fl.models, fl.formulations)
    classes = {c for room in rooms for c in (getattr(room, n) for n in room.__all__) if isinstance(c, type)}
    plain = {c.__name__ for c in classes if not hasattr(c, "_repr_html_") and not issubclass(c, Exception)}
    assert plain <= PLAIN


def test_what_is_empty_says_so() -> None:
    empty = sized(0, 0, 0, 0)
    assert repr(empty.modes()) == "No modes: there are no states."
    assert repr(empty.states) == "No signals."


def test_the_table_is_that_of_the_command_line() -> None:
    stream = io.StringIO()
    print_table(pendulum(), stream)
    assert repr(pendulum()) == stream.getvalue().replace(", not projected", "").rstrip()


def test_a_steady_motion_shows_what_moves() -> None:
    report = fl.trim(oscillator()).report
    moving = replace(report, moving=("q",), rates=np.array([2.5, 0.0]))
    assert "a steady motion of q" in repr(moving)
    assert "2.5" in repr(moving)


def test_names_from_a_model_are_escaped() -> None:
    linear = replace(pendulum(), model=ModelInfo(EVIL), warnings=(Remark("rank", EVIL),))
    assert EVIL in repr(linear)
    html = linear._repr_html_()
    assert "script" not in Cells(html).seen
    assert html.count("&lt;script&gt;") == 2


def test_a_cut_table_counts_what_it_leaves_out() -> None:
    def show(page: Sheet) -> None:
        page.print(build_table(("Name", "Value"), ((f"row {k}", k) for k in range(1000)), columns="lr", most=100))
        page.print("the end")

    lines = as_text(show, "elsewhere").splitlines()
    shown = sum(line.startswith("row ") for line in lines)
    assert shown > 30
    assert f"and {1000 - shown} more" in lines
    assert lines[-2:] == ["the end", "More: elsewhere"]
    assert as_html(show).count("<tr>") == 1 + shown + 1


def test_a_model_that_is_being_built_can_be_looked_at() -> None:
    model = object.__new__(type(cartesian_pendulum()))
    assert "object at" in repr(model)


def test_looking_at_a_model_runs_none_of_its_code() -> None:
    model = cartesian_pendulum()

    def refuses(*_: object) -> None:
        raise AssertionError

    model.evaluate = model.products = refuses  # type: ignore[method-assign, assignment]
    assert "States (4)" in repr(model)
