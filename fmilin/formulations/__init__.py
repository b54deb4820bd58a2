"""The three formulations of González et al.: minimal, redundant and unconstrained coordinate sets.

Takes: native models or the matrices of linearized equations.
Returns: spectra of MCS, RCS and UCS, descriptor systems.
Does not depend on: FMUs.
"""

from fmilin.formulations.equilibrium import Equilibrium, equilibrium, penalized_equilibrium
from fmilin.formulations.form import Basis, ConstrainedForm, ConstraintMotion, basis_of
from fmilin.formulations.formulation import MCS, RCS, UCS, Formulation, Spectrum
from fmilin.formulations.formulation_procedure import spectra, spectrum, spectrum_of_form
from fmilin.formulations.of_model import form_of

Motion = ConstraintMotion
"""The former name of :class:`ConstraintMotion`, for one more version."""

__all__ = [
    "MCS",
    "RCS",
    "UCS",
    "Basis",
    "ConstrainedForm",
    "ConstraintMotion",
    "Equilibrium",
    "Formulation",
    "Motion",
    "Spectrum",
    "basis_of",
    "equilibrium",
    "form_of",
    "penalized_equilibrium",
    "spectra",
    "spectrum",
    "spectrum_of_form",
]
