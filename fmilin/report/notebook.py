"""Tables of models, linear models and modes in an interpreter and in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.modes import Modes, cluster_modes
from fmilin.model.interface import Model
from fmilin.report.facts import print_fact
from fmilin.report.summary import show_summary, summary_at_rest
from fmilin.report.table import eigenvalue_table, show_linear
from fmilin.support.table_repr import Sheet

if TYPE_CHECKING:
    from fmilin.trimming.uncertainty import Uncertain

MAX_COORDINATES = 100  # of larger linear models no eigenvalues are calculated only to be examined


def show_linear_model(linear: LinearModel, page: Sheet) -> None:
    """Print a linear model; of a large one without its modes."""
    show_linear(linear, page, adjusted=None, modes=len(linear.states) <= MAX_COORDINATES)


def show_uncertain(uncertain: Uncertain, page: Sheet) -> None:
    """Print the box of the parameters and the linear model in its middle."""
    print_fact(page, "Box", [f"{name} from {low:g} to {high:g}" for name, (low, high) in uncertain.box.items()])
    show_linear_model(uncertain.nominal, page)


def show_modes(modes: Modes, page: Sheet) -> None:
    """Print a row for each mode."""
    page.print(eigenvalue_table(cluster_modes(modes)) if modes else "No modes: there are no states.")


def show_model(model: Model, page: Sheet) -> None:
    """Print the summary of a model at its start."""
    show_summary(summary_at_rest(model), page)
