"""What an interpreter and a notebook show of a result: the tables of the command line, as text and as HTML."""

from __future__ import annotations

from functools import singledispatch

from fmilin.families.family import LinearFamily
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.verification import Verification
from fmilin.model.interface import Model, OperatingPoint
from fmilin.native.mechanism.description import MechanismDescription
from fmilin.output.report.page import Page, as_html, as_text
from fmilin.output.report.result_tables import show_family, show_mechanism, show_plain_point, show_point, show_report
from fmilin.output.report.summary import show_summary, summary_at_rest
from fmilin.output.report.table import show_linear
from fmilin.output.report.verification import show_verification
from fmilin.points.request import TrimmedPoint, TrimReport

MOST_COORDINATES = 100  # of larger linear models no eigenvalues are calculated only to be looked at

_MORE: dict[type, str] = {
    LinearFamily: ".ok, .eigenvalues, .mode_events, .array(name); family[k] is a model",
    LinearModel: ".modes(), .point, .full_states, .warnings",
    MechanismDescription: "its .bodies, .joints, .loops, .springs, .inputs and .sensors",
    Model: ".states, .outputs, .parameters, .constraints",
    OperatingPoint: ".states, .inputs, .parameters",
    TrimReport: ".rates, .moving, .free_directions, .remarks",
    Verification: ".table(), .channels",
}


def text_of(thing: object) -> str:
    """Return the table of a result, 80 columns wide and of at most 40 lines."""
    return as_text(lambda page: _show(thing, page), _more(thing))


def html_of(thing: object) -> str:
    """Return the same as HTML."""
    return as_html(lambda page: _show(thing, page), _more(thing))


def _more(thing: object) -> str:
    return next(more for kind, more in _MORE.items() if isinstance(thing, kind))


@singledispatch
def _show(thing: object, page: Page) -> None:
    del page
    raise TypeError(f"There is no table of a {type(thing).__name__}.")


@_show.register
def _(linear: LinearModel, page: Page) -> None:
    show_linear(linear, page, adjusted=None, modes=len(linear.states) <= MOST_COORDINATES)


@_show.register
def _(family: LinearFamily, page: Page) -> None:
    show_family(family, page)


@_show.register
def _(model: Model, page: Page) -> None:
    show_summary(summary_at_rest(model), page)


@_show.register
def _(point: OperatingPoint, page: Page) -> None:
    show_plain_point(point, page)


@_show.register
def _(point: TrimmedPoint, page: Page) -> None:
    show_point(point, page)


@_show.register
def _(report: TrimReport, page: Page) -> None:
    show_report(report, page)


@_show.register
def _(verification: Verification, page: Page) -> None:
    show_verification(verification, page)


@_show.register
def _(mechanism: MechanismDescription, page: Page) -> None:
    show_mechanism(mechanism, page)
