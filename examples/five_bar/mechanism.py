"""The mechanism as the command line takes it: ``fmilin simulate examples/five_bar/mechanism.py:from_singularity``."""

from fmilin.models import NullSpaceModel
from fmilin.systems import five_bar


def regular() -> NullSpaceModel:
    """Return it at its regular configuration, in the formulation that no singularity stops."""
    return NullSpaceModel(five_bar())


def from_singularity() -> NullSpaceModel:
    """Return it at its singular configuration."""
    return NullSpaceModel(five_bar(singular=True))
