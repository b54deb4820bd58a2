"""What an interpreter and a notebook show of a result: the tables of the command line, as text and as HTML."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fmilin.families.family import LinearFamily
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.verification import Verification
from fmilin.model.interface import Model, OperatingPoint
from fmilin.native.mechanism.description import MechanismDescription
from fmilin.output.report.page import Page, Show, as_html, as_text
from fmilin.output.report.result_tables import show_family, show_mechanism, show_plain_point, show_point, show_report
from fmilin.output.report.summary import show_summary, summary_at_rest
from fmilin.output.report.table import show_linear
from fmilin.output.report.verification import show_verification
from fmilin.points.report import TrimmedPoint, TrimReport

MOST_COORDINATES = 100  # of larger linear models no eigenvalues are calculated only to be looked at


def _show_linear(linear: LinearModel, page: Page) -> None:
    show_linear(linear, page, adjusted=None, modes=len(linear.states) <= MOST_COORDINATES)


def _show_model(model: Model, page: Page) -> None:
    show_summary(summary_at_rest(model), page)


_TABLES: dict[type, tuple[Callable[[Any, Page], None], str]] = {
    LinearFamily: (show_family, ".ok, .eigenvalues, .mode_events, .array(name); family[k] is a model"),
    LinearModel: (_show_linear, ".modes(), .point, .full_states, .warnings"),
    MechanismDescription: (show_mechanism, "its .bodies, .joints, .loops, .springs, .inputs and .sensors"),
    Model: (_show_model, ".states, .outputs, .parameters, .constraints"),
    TrimmedPoint: (show_point, ".states, .inputs, .parameters"),
    OperatingPoint: (show_plain_point, ".states, .inputs, .parameters"),
    TrimReport: (show_report, ".rates, .moving, .free_directions, .remarks"),
    Verification: (show_verification, ".table(), .channels"),
}
"""What shows a result on a page, and where there is more of it."""


def text_of(thing: object) -> str:
    """Return the table of a result, 80 columns wide and of at most 40 lines."""
    return as_text(*_table_of(thing))


def html_of(thing: object) -> str:
    """Return the same as HTML."""
    return as_html(*_table_of(thing))


def _table_of(thing: object) -> tuple[Show, str]:
    show, more = next(table for kind, table in _TABLES.items() if isinstance(thing, kind))
    return partial(show, thing), more
