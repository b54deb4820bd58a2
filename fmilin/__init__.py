"""Correct linear models of constrained dynamic systems."""

import fmilin.ground.interrupts  # noqa: F401 - first of all: Ctrl-C may come while the rest is imported

# isort: split
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fmilin.ground.import_paths import lazily, resolve, stay_valid
from fmilin.ground.verbs import hand_in
from fmilin.ground.version import __version__ as __version__

if TYPE_CHECKING:
    from fmilin.auditing.procedure import audit as audit
    from fmilin.auditing.result import Audit as Audit
    from fmilin.auditing.result import AuditRow as AuditRow
    from fmilin.connected.connect import Connection as Connection
    from fmilin.connected.connect import connect as connect
    from fmilin.connected.connect import sampled_loop as sampled_loop
    from fmilin.connected.cosimulation import cosimulated as cosimulated
    from fmilin.connected.loop_transfer import complementary_sensitivity as complementary_sensitivity
    from fmilin.connected.loop_transfer import loop_transfer as loop_transfer
    from fmilin.connected.loop_transfer import opened as opened
    from fmilin.connected.loop_transfer import sensitivity as sensitivity
    from fmilin.connected.reduced import reduce_members as reduce_members
    from fmilin.design.closed_loop import closed_loop as closed_loop
    from fmilin.design.frequency_response import FrequencyResponse as FrequencyResponse
    from fmilin.design.frequency_response import frequency_response as frequency_response
    from fmilin.discovery.explaining import Explanation as Explanation
    from fmilin.discovery.explaining import explain as explain
    from fmilin.discovery.explaining import explain_zeros as explain_zeros
    from fmilin.discovery.procedure import discover as discover
    from fmilin.discovery.result import Discovery as Discovery
    from fmilin.families.along import linearize_along as linearize_along
    from fmilin.families.family import LinearFamily as LinearFamily
    from fmilin.families.periodic.chart import FloquetChart as FloquetChart
    from fmilin.families.periodic.chart import floquet_chart as floquet_chart
    from fmilin.families.periodic.linearize import linearize_periodic as linearize_periodic
    from fmilin.families.periodic.model import PeriodicModel as PeriodicModel
    from fmilin.families.periodic.orbit import PeriodicOrbit as PeriodicOrbit
    from fmilin.families.periodic.search import periodic_orbit as periodic_orbit
    from fmilin.families.sweep import sweep as sweep
    from fmilin.ground.errors import ConstraintError as ConstraintError
    from fmilin.ground.errors import FmilinError as FmilinError
    from fmilin.ground.errors import ModelCrashError as ModelCrashError
    from fmilin.ground.errors import ModelError as ModelError
    from fmilin.ground.errors import NumericalError as NumericalError
    from fmilin.ground.errors import UnknownNameError as UnknownNameError
    from fmilin.ground.errors import UsageError as UsageError
    from fmilin.ground.sandbox.limits import Limits as Limits
    from fmilin.ground.sandbox.limits import sandbox_report as sandbox_report
    from fmilin.ground.sandbox.other_processes import isolated as isolated
    from fmilin.ground.signals import Signal as Signal
    from fmilin.ground.signals import Signals as Signals
    from fmilin.linear_model.model import LinearModel as LinearModel
    from fmilin.linear_model.verification import Verification as Verification
    from fmilin.linearization.procedure import linearize as linearize
    from fmilin.loading.load import load as load
    from fmilin.manifold.operating_points import operating_point as operating_point
    from fmilin.model.constraints.declared import Constraint as Constraint
    from fmilin.model.interface import Evaluation as Evaluation
    from fmilin.model.interface import Model as Model
    from fmilin.model.interface import OperatingPoint as OperatingPoint
    from fmilin.model.stepping import Stepping as Stepping
    from fmilin.motion.periodic.floquet import Floquet as Floquet
    from fmilin.motion.simulation.run import simulate as simulate
    from fmilin.motion.simulation.run import snapshots as snapshots
    from fmilin.motion.simulation.trajectory import Trajectory as Trajectory
    from fmilin.motion.verifying.procedure import verify as verify
    from fmilin.native.formulations.descriptor import descriptor as descriptor
    from fmilin.native.to_casadi import to_casadi as to_casadi
    from fmilin.numerics.differences.differences import Differences as Differences
    from fmilin.points.many_starts import operating_points as operating_points
    from fmilin.points.procedure import trim as trim
    from fmilin.points.procedure import trim_each as trim_each
    from fmilin.points.report import TrimmedPoint as TrimmedPoint
    from fmilin.points.request import TrimRequest as TrimRequest
    from fmilin.points.uncertainty import Uncertain as Uncertain
    from fmilin.points.uncertainty import uncertain as uncertain

_imported, __dir__, __all__ = lazily(
    __name__,
    {
        "auditing.procedure": ("audit",),
        "auditing.result": ("Audit", "AuditRow"),
        "connected.connect": ("Connection", "connect", "sampled_loop"),
        "connected.cosimulation": ("cosimulated",),
        "connected.loop_transfer": ("complementary_sensitivity", "loop_transfer", "opened", "sensitivity"),
        "connected.reduced": ("reduce_members",),
        "design.closed_loop": ("closed_loop",),
        "design.frequency_response": ("FrequencyResponse", "frequency_response"),
        "discovery.explaining": ("Explanation", "explain", "explain_zeros"),
        "discovery.procedure": ("discover",),
        "discovery.result": ("Discovery",),
        "families.along": ("linearize_along",),
        "families.family": ("LinearFamily",),
        "families.periodic.chart": ("FloquetChart", "floquet_chart"),
        "families.periodic.linearize": ("linearize_periodic",),
        "families.periodic.model": ("PeriodicModel",),
        "families.periodic.orbit": ("PeriodicOrbit",),
        "families.periodic.search": ("periodic_orbit",),
        "families.sweep": ("sweep",),
        "ground.errors": (
            "ConstraintError",
            "FmilinError",
            "ModelCrashError",
            "ModelError",
            "NumericalError",
            "UnknownNameError",
            "UsageError",
        ),
        "ground.sandbox.limits": ("Limits", "sandbox_report"),
        "ground.sandbox.other_processes": ("isolated",),
        "ground.signals": ("Signal", "Signals"),
        "ground.version": ("__version__",),
        "linear_model.model": ("LinearModel",),
        "linear_model.verification": ("Verification",),
        "linearization.procedure": ("linearize",),
        "loading.load": ("load",),
        "manifold.operating_points": ("operating_point",),
        "model.constraints.declared": ("Constraint",),
        "model.interface": ("Evaluation", "Model", "OperatingPoint"),
        "model.stepping": ("Stepping",),
        "motion.periodic.floquet": ("Floquet",),
        "motion.simulation.run": ("simulate", "snapshots"),
        "motion.simulation.trajectory": ("Trajectory",),
        "motion.verifying.procedure": ("verify",),
        "native.formulations.descriptor": ("descriptor",),
        "native.to_casadi": ("to_casadi",),
        "numerics.differences.differences": ("Differences",),
        "points.many_starts": ("operating_points",),
        "points.procedure": ("trim", "trim_each"),
        "points.report": ("TrimmedPoint",),
        "points.request": ("TrimRequest",),
        "points.uncertainty": ("Uncertain", "uncertain"),
    },
)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import fmilin`` stays quick."""
    if name == "design" or resolve(f"fmilin.{name}"):  # fl.export.ssp, fl.models.OdeModel
        return import_module(f"fmilin.{name}")
    return _imported(name)


hand_in(  # what people type on a result, by the folders above that do it
    {
        "Descriptor.load": "fmilin.output.export.files:load_descriptor",
        "Descriptor.save": "fmilin.output.export.files:save",
        "Estimator.save": "fmilin.output.export.estimator_c:save",
        "FamilyPlots.campbell": "fmilin.output.report.family_pictures:campbell_figure",
        "FamilyPlots.eigenvalues": "fmilin.output.report.family_pictures:family_eigenvalue_figure",
        "FamilyPlots.margins": "fmilin.output.report.family_pictures:margin_figure",
        "FamilyPlots.root_locus": "fmilin.output.report.family_pictures:root_locus_figure",
        "FamilyPlots.surface": "fmilin.output.report.family_pictures:surface_figure",
        "Filtered.plot": "fmilin.output.report.designs:filtered_figure",
        "FrequencyResponse.plot": "fmilin.output.report.response_plots:measured_figure",
        "FloquetChart.campbell": "fmilin.output.report.periodic:campbell_figure",
        "FloquetChart.stability": "fmilin.output.report.periodic:stability_figure",
        "LinearFamily.averaged": "fmilin.families.multiblade:averaged",
        "LinearFamily.margins": "fmilin.design.margins:family_margins",
        "LinearFamily.multiblade": "fmilin.families.multiblade:multiblade",
        "LinearFamily.load": "fmilin.output.export.files:load_family",
        "LinearFamily.save": "fmilin.output.export.files:save",
        "LinearFamily.save_report": "fmilin.output.report.web:save_report",
        "LinearFamily.to_control": "fmilin.output.export.python_control:family_to_control",
        "LinearFamily.to_xarray": "fmilin.output.export.family_arrays:to_xarray",
        "LinearModel.load": "fmilin.output.export.files:load",
        "LinearModel.save": "fmilin.output.export.files:save",
        "LinearModel.save_report": "fmilin.output.report.web:save_report",
        "LinearModel.to_control": "fmilin.output.export.python_control:to_control",
        "LinearModel.is_equilibrium": "fmilin.linear_model.no_response:assess_equilibrium",
        "LinearModel.verify": "fmilin.motion.verifying.procedure:verify",
        "PeriodicModel.load": "fmilin.output.export.periodic_file:load",
        "PeriodicModel.save": "fmilin.output.export.files:save",
        "MonteCarlo.plot": "fmilin.output.report.designs:monte_carlo_figure",
        "OperatingPoints.plot": "fmilin.output.report.result_tables:points_figure",
        "Plots.bode": "fmilin.output.report.response_plots:bode_figure",
        "Plots.eigenvalues": "fmilin.output.report.linear_pictures:eigenvalue_figure",
        "Plots.errors": "fmilin.output.report.linear_pictures:error_figure",
        "Plots.modes": "fmilin.output.report.linear_pictures:mode_figure",
        "Plots.nyquist": "fmilin.output.report.response_plots:nyquist_figure",
        "Plots.participation": "fmilin.output.report.linear_pictures:participation_figure",
        "Plots.reduction": "fmilin.output.report.linear_pictures:reduction_figure",
        "Plots.sensitivities": "fmilin.output.report.linear_pictures:sensitivity_figure",
        "Plots.sparsity": "fmilin.output.report.linear_pictures:sparsity_figure",
        "Plots.step": "fmilin.output.report.response_plots:step_figure",
        "Savable.save": "fmilin.output.export.c_file:save_law",
        "Uncertain.save": "fmilin.output.export.files:save",
        "Verification.save_picture": "fmilin.output.report.verification:save_verification",
        "Verification.table": "fmilin.output.report.verification:verification_text",
        "html_of": "fmilin.output.report.notebook:html_of",
        "linearize.parameters": "fmilin.points.sensitivity:with_derivatives",
        "text_of": "fmilin.output.report.notebook:text_of",
    }
)
stay_valid()
