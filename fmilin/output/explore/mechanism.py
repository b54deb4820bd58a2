"""A mechanism at the point of a linear model, and moving in its modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import Model
from fmilin.native.mechanism import MechanismDescription
from fmilin.output.report.figures import rendered
from fmilin.output.report.mechanism_picture import mechanism_figure, mechanism_motion, moving, named
from fmilin.output.report.mechanism_shapes import Shapes


@dataclass(frozen=True)
class Mechanism:
    """Draws the mechanism that a model is, with the parameters of a linear model."""

    model: Any

    @classmethod
    def of(cls, model: Model) -> Mechanism | None:
        """Return what draws a model; None when it is no mechanism."""
        return cls(model) if isinstance(getattr(model, "description", None), MechanismDescription) else None

    def _at(self, linear: LinearModel) -> MechanismDescription:
        parameters = {n: v for n, v in linear.point.parameters.items() if n in self.model.parameters}
        moved = self.model.with_parameters(parameters) if parameters else self.model
        description: MechanismDescription = moved.description
        return description

    def standing(self, linear: LinearModel) -> bytes:
        """Return a PNG of how it stands."""
        return rendered(mechanism_figure(self._at(linear), linear, modes=0), dpi=100)

    def modes(self, linear: LinearModel) -> dict[int, str]:
        """Return the modes that move a joint by number, slowest first."""
        return {k: f"{k}: {named(m)}" for k, m in enumerate(moving(linear, Shapes(self._at(linear))), 1)}

    def swinging(self, linear: LinearModel, number: int) -> bytes:
        """Return a GIF of how it moves in a mode."""
        return mechanism_motion(self._at(linear), linear, numbers=[number])
