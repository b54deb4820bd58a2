"""The three formulations of González et al.: minimal, redundant and unconstrained coordinate sets.

Takes: native models or the matrices of linearized equations.
Returns: spectra of MCS, RCS and UCS, descriptor systems.
Does not depend on: FMUs.
"""

from typing import Any

from fmilin.formulations.equilibrium import Equilibrium, equilibrium, penalized_equilibrium
from fmilin.formulations.form import Basis, ConstrainedForm, ConstraintMotion, basis_of
from fmilin.formulations.formulation import MCS, RCS, UCS, Formulation, Spectrum
from fmilin.formulations.formulation_procedure import spectra, spectrum, spectrum_of_form
from fmilin.formulations.of_model import form_of
from fmilin.support.deprecation import resolve_old_name

__all__ = [
    "MCS",
    "RCS",
    "UCS",
    "Basis",
    "ConstrainedForm",
    "ConstraintMotion",
    "Equilibrium",
    "Formulation",
    "Spectrum",
    "basis_of",
    "equilibrium",
    "form_of",
    "penalized_equilibrium",
    "spectra",
    "spectrum",
    "spectrum_of_form",
]


def __getattr__(name: str) -> Any:
    return globals()[resolve_old_name(__name__, name, {"Motion": "ConstraintMotion"})]
