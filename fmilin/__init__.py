"""Correct linear models of constrained dynamic systems."""

import fmilin.support.interrupts  # noqa: F401 - first of all: Ctrl-C may come while the rest is imported

# isort: split
import lazy_loader

from fmilin.support.verbs import hand_in

# The names and where they are defined stand in __init__.pyi, which editors and type checkers read, too.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


hand_in(  # what people type on a result, by the folders above that do it
    {
        "Descriptor.load": "fmilin.export.files:load_descriptor",
        "Descriptor.save": "fmilin.export.files:save",
        "Estimator.save": "fmilin.export.estimator_c:save",
        "FamilyPlots.campbell": "fmilin.report.family_pictures:campbell_figure",
        "FamilyPlots.eigenvalues": "fmilin.report.family_pictures:family_eigenvalue_figure",
        "FamilyPlots.margins": "fmilin.report.family_pictures:margin_figure",
        "FamilyPlots.root_locus": "fmilin.report.family_pictures:root_locus_figure",
        "FamilyPlots.surface": "fmilin.report.family_pictures:surface_figure",
        "Filtered.plot": "fmilin.report.designs:filtered_figure",
        "FrequencyResponse.plot": "fmilin.report.response_plots:measured_figure",
        "FloquetChart.campbell": "fmilin.report.periodic:campbell_figure",
        "FloquetChart.stability": "fmilin.report.periodic:stability_figure",
        "LinearFamily.averaged": "fmilin.families.multiblade:averaged",
        "LinearFamily.margins": "fmilin.design.margins:family_margins",
        "LinearFamily.multiblade": "fmilin.families.multiblade:multiblade",
        "LinearFamily.load": "fmilin.export.files:load_family",
        "LinearFamily.save": "fmilin.export.files:save",
        "LinearFamily.save_report": "fmilin.report.web:save_report",
        "LinearFamily.to_control": "fmilin.export.python_control:family_to_control",
        "LinearFamily.to_xarray": "fmilin.export.family_arrays:to_xarray",
        "LinearModel.load": "fmilin.export.files:load",
        "LinearModel.save": "fmilin.export.files:save",
        "LinearModel.save_report": "fmilin.report.web:save_report",
        "LinearModel.to_control": "fmilin.export.python_control:to_control",
        "LinearModel.is_equilibrium": "fmilin.linear_model.no_response:assess_equilibrium",
        "LinearModel.verify": "fmilin.verification.procedure:verify",
        "PeriodicModel.load": "fmilin.export.periodic_file:load",
        "PeriodicModel.save": "fmilin.export.files:save",
        "MonteCarlo.plot": "fmilin.report.designs:monte_carlo_figure",
        "OperatingPoints.plot": "fmilin.report.result_tables:points_figure",
        "Plots.bode": "fmilin.report.response_plots:bode_figure",
        "Plots.eigenvalues": "fmilin.report.linear_pictures:eigenvalue_figure",
        "Plots.errors": "fmilin.report.linear_pictures:error_figure",
        "Plots.modes": "fmilin.report.linear_pictures:mode_figure",
        "Plots.nyquist": "fmilin.report.response_plots:nyquist_figure",
        "Plots.participation": "fmilin.report.linear_pictures:participation_figure",
        "Plots.reduction": "fmilin.report.linear_pictures:reduction_figure",
        "Plots.sensitivities": "fmilin.report.linear_pictures:sensitivity_figure",
        "Plots.sparsity": "fmilin.report.linear_pictures:sparsity_figure",
        "Plots.step": "fmilin.report.response_plots:step_figure",
        "Savable.save": "fmilin.export.c_file:save_law",
        "Uncertain.save": "fmilin.export.files:save",
        "Verification.save_picture": "fmilin.report.verification:save_verification",
        "Verification.table": "fmilin.report.verification:verification_text",
        "html_of": "fmilin.report.notebook:html_of",
        "linearize.parameters": "fmilin.trimming.sensitivity:with_derivatives",
        "text_of": "fmilin.report.notebook:text_of",
    }
)
