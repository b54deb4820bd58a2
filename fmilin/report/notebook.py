"""What an interpreter and a notebook show of a result: the tables of the command line, as text and as HTML."""

from collections.abc import Callable
from functools import partial
from typing import Any

from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.modes import Modes
from fmilin.model.interface import Model
from fmilin.report import designs
from fmilin.report import result_tables as tables
from fmilin.report.audits import show_audit
from fmilin.report.cosimulation import show_cosimulation
from fmilin.report.designs import show_estimator, show_filtered
from fmilin.report.formulations import show_spectrum
from fmilin.report.page import Page, Show, as_html, as_text
from fmilin.report.periodic import show_chart, show_floquet, show_gain, show_orbit, show_periodic
from fmilin.report.summary import show_summary, summary_at_rest
from fmilin.report.table import eigenvalue_table, print_fact, show_linear
from fmilin.report.trajectory import show_trajectory
from fmilin.report.verification import show_verification

MOST_COORDINATES = 100  # of larger linear models no eigenvalues are calculated only to be looked at


def _show_linear(linear: LinearModel, page: Page) -> None:
    show_linear(linear, page, adjusted=None, modes=len(linear.states) <= MOST_COORDINATES)


def _show_uncertain(uncertain: Any, page: Page) -> None:
    print_fact(page, "Box", [f"{name} from {low:g} to {high:g}" for name, (low, high) in uncertain.box.items()])
    _show_linear(uncertain.nominal, page)


def _show_modes(modes: Modes, page: Page) -> None:
    page.print(eigenvalue_table(modes) if modes else "No modes: there are no states.")


def _show_model(model: Model, page: Page) -> None:
    show_summary(summary_at_rest(model), page)


_TABLES: dict[str, tuple[Callable[[Any, Page], None], str]] = {
    "Audit": (show_audit, ".rows, .ok, .disagreeing, .to_dict()"),
    "Cosimulation": (show_cosimulation, ".linear, .modes, .largest_step, .members"),
    "Discovery": (tables.show_discovery, ".findings, .kept_out, .constraints"),
    "EstimatorRegulator": (designs.show_regulator, ".kf, .law"),
    "Estimator": (show_estimator, ".x, .covariance, .deviations, .nis, .remarks"),
    "Explanation": (designs.show_sentence, ".kind, .culprits, .confirmed"),
    "Filtered": (show_filtered, ".states, .deviations, .nis, .whiteness(), .plot()"),
    "Floquet": (show_floquet, ".multipliers, .exponents, .modes, .participation"),
    "FloquetChart": (show_chart, ".axes, .multipliers, .stable, .margin, .campbell(), .stability()"),
    "FrequencyResponse": (designs.show_response, ".response, .error, .distortion, .plot(linear)"),
    "FunctionRegulator": (designs.show_regulator, ".reads, .drives, .sample_time"),
    "IdentifiedParameters": (designs.show_sentence, ".parameters, .deviations, .linear, .residual"),
    "KalmanRegulator": (designs.show_regulator, ".filter, .gain, .linear_model()"),
    "KalmanFilter": (tables.show_filter, ".gain, .covariance, .Q, .R, .sampled"),
    "LinearFamily": (tables.show_family, ".ok, .eigenvalues, .mode_events, .array(name); family[k] is a model"),
    "LinearModel": (_show_linear, ".modes(), .point, .full_states, .warnings"),
    "Margins": (designs.show_margins, ".gain, .phase, .delay, .disk, .disk_gain, .disk_phase, .warnings"),
    "MechanismDescription": (tables.show_mechanism, "its .bodies, .joints, .loops, .springs, .inputs and .sensors"),
    "Model": (_show_model, ".states, .outputs, .parameters, .constraints"),
    "Modes": (_show_modes, "each has .eigenvalue, .frequency, .damping_ratio, .shape"),
    "MonteCarlo": (designs.show_monte_carlo, ".samples, .measures, .courses, .plot()"),
    "OperatingPoint": (tables.show_plain_point, ".states, .inputs, .parameters"),
    "PeriodicGain": (show_gain, ".gain, .riccati, .closed, .at(time)"),
    "PeriodicModel": (show_periodic, ".A, .B, .C, .D, .floquet(), .family()"),
    "PeriodicOrbit": (show_orbit, ".times, .points, .shift, .free"),
    "PlacedModes": (designs.show_sentence, ".parameters, .before, .linear, .modes"),
    "Point": (tables.show_named_point, ".states, .inputs, .outputs, .parameters"),
    "Schedule": (designs.show_schedule, ".report, .step(at, read), .linear_model(at), .along(values), .save(path)"),
    "ScheduleReport": (designs.show_schedule_report, ".points, .verdicts, .weakest, .holes"),
    "Signals": (tables.show_signals, ".names, .units; signals[k] is one of them"),
    "Spectrum": (show_spectrum, ".eigenvalues, .is_true, .vectors, .errors"),
    "Trajectory": (show_trajectory, ".times, .states, .outputs, .drift, .events"),
    "Tuned": (designs.show_tuned, ".parameters, .controller, .disk_margins, .bandwidths, .attained"),
    "TrimmedPoint": (tables.show_point, ".states, .inputs, .parameters"),
    "TrimReport": (tables.show_report, ".rates, .moving, .free_directions, .remarks"),
    "Uncertain": (_show_uncertain, ".nominal, .M, .blocks, .box, .at(...), .sample(n)"),
    "Verification": (show_verification, ".table(), .channels"),
}
"""What shows a result on a page, and where there is more of it; by the name of its class, which need not be loaded."""


def text_of(thing: object) -> str:
    """Return the table of a result, 80 columns wide and of at most 40 lines."""
    return as_text(*_table_of(thing))


def html_of(thing: object) -> str:
    """Return the same as HTML."""
    return as_html(*_table_of(thing))


def _table_of(thing: object) -> tuple[Show, str]:
    show, more = next(_TABLES[kind.__name__] for kind in type(thing).__mro__ if kind.__name__ in _TABLES)
    return partial(show, thing), more
