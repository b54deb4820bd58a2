"""The three formulations of González et al. side by side: minimal, redundant and unconstrained coordinate sets."""

from __future__ import annotations

from fmilin.formulations.form import ConstrainedForm, Motion
from fmilin.formulations.spectrum import Spectrum

__all__ = ["ConstrainedForm", "Motion", "Spectrum"]
