"""The three formulations of González et al. side by side: minimal, redundant and unconstrained coordinate sets."""

from fmilin.native.formulations.form import Basis, ConstrainedForm, Motion, basis_of
from fmilin.native.formulations.formulation import MCS, RCS, UCS, Formulation, Spectrum
from fmilin.native.formulations.of_model import form_of
from fmilin.native.formulations.procedure import (
    Equilibrium,
    equilibrium,
    penalized_equilibrium,
    spectra,
    spectrum,
    spectrum_of_form,
)

__all__ = [
    "MCS",
    "RCS",
    "UCS",
    "Basis",
    "ConstrainedForm",
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
