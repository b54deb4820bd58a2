"""Lagrange's equations of what a user names: of a model in Python, their form at a point, or a mechanism in a file."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fmilin.errors import NumericalError, UsageError
from fmilin.formulations import ConstrainedForm, Spectrum
from fmilin.formulations.of_model import form_of, sparse_form_of
from fmilin.loading.load import load
from fmilin.loading.python_objects import python_object
from fmilin.manifold.operating_points import operating_point
from fmilin.manifold.rank import describe_singularity
from fmilin.model.capabilities import HasSparseForm
from fmilin.model.interface import Model, OperatingPoint


@dataclass(frozen=True)
class LocatedEquations:
    """The equations at a point; model and point where they were made from one."""

    name: str
    form: ConstrainedForm
    model: Model | None = None
    point: OperatingPoint | None = None

    def require_regular(self, spectrum: Spectrum) -> None:
        """Reject minimal coordinates where constraints depend on each other at this point only, if that is known."""
        if spectrum.sizes["rank"] == spectrum.sizes["m"] or self.model is None or self.point is None:
            return
        if text := describe_singularity(self.model, self.point):
            raise NumericalError(
                f"{text} The formulations rcs and ucs need no choice of velocities: they return the spectrum over the "
                "enlarged set.",
                condition_number=math.inf,
            )


def locate_equations(source: str, values: Mapping[str, float]) -> LocatedEquations:
    """Return the equations behind ``source``, at the point of these values."""
    target: Any = python_object(source)
    if target is None:
        target = _mechanism(source)
    if isinstance(target, ConstrainedForm):
        if values:
            raise UsageError(
                f"'{source}' is not a model but its equations at one point: values= cannot change it. Leave values= "
                "out."
            )
        return LocatedEquations(source.rpartition(":")[2], target)
    if not isinstance(target, Model):
        raise UsageError(
            f"'{source}' is a {type(target).__name__}, not a model of Lagrange's equations: name one, or a function "
            "that returns one, as in 'fmilin.systems:flexible_double_pendulum(elements=100)'."
        )
    if isinstance(target, HasSparseForm):
        at = operating_point(target, values) if values else None
        return LocatedEquations(target.info.name, sparse_form_of(target, at), target, at or target.start)
    point = operating_point(target, values)
    return LocatedEquations(target.info.name, form_of(target, point), target, point)


def _mechanism(source: str) -> Model:
    if not source.lower().endswith((".toml", ".urdf", ".sdf")):
        raise UsageError(
            f"'{source}' does not give its equations of motion, which the formulations need: name a mechanism in a "
            ".toml, .urdf or .sdf file, or a model in Python, as "
            "'fmilin.systems:flexible_double_pendulum(elements=100)'. "
            "fl.linearize(model) finds the eigenvalues of any model."
        )
    return load(source)
