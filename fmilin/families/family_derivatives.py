"""Derivatives of a family of linear models by parameters, as arrays with the grid axes first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fmilin.families.rows import Template
from fmilin.linear_model.descriptor import Derivative
from fmilin.signals import FloatArray


@dataclass(frozen=True, eq=False)
class FamilyDerivative:
    r"""Derivatives by one parameter at all points of a family, per unit of it; NaN where there is no linear model."""

    A: FloatArray  #: shape (\*shape, P, P)
    B: FloatArray  #: shape (\*shape, P, nu)
    C: FloatArray  #: shape (\*shape, ny, P)
    D: FloatArray  #: shape (\*shape, ny, nu)
    value: FloatArray  #: shape (\*shape); the parameter at each point, in its unit


def gather_derivatives(
    points: Mapping[int, Mapping[str, Derivative]], shape: tuple[int, ...], template: Template
) -> dict[str, FamilyDerivative]:
    """Return the derivatives of all points of a grid with this shape, by parameter."""
    order, inputs, outputs = template.order, len(template.inputs), len(template.outputs)
    shapes = {"A": (order, order), "B": (order, inputs), "C": (outputs, order), "D": (outputs, inputs), "value": ()}
    gathered: dict[str, FamilyDerivative] = {}
    for parameter in dict.fromkeys(name for of_point in points.values() for name in of_point):
        arrays = {name: np.full((int(np.prod(shape)), *entry), np.nan) for name, entry in shapes.items()}
        for number, of_point in points.items():
            for name, array in arrays.items():
                array[number] = getattr(of_point[parameter], name)
        gathered[parameter] = FamilyDerivative(
            **{name: array.reshape(*shape, *shapes[name]) for name, array in arrays.items()}
        )
    return gathered
