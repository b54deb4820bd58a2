"""A mass matrix that parameters make singular, or regular, gives the model that these parameters mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import DaeModel, OdeModel


def lag(mass: Any, **parameters: float) -> fl.Model:
    """M x' = u - 3 x, y' = x - y: the eigenvalues are -3/M and -1; without M there is x = u/3 alone."""
    equations = {"x": "-3*x + u", "y": "x - y"}
    outputs = {"o": "x"}
    matrix = [[mass, 0], [0, 1]]
    model: fl.Model = OdeModel(
        "lag", equations, inputs=["u"], outputs=outputs, parameters=parameters, mass_matrix=matrix
    )
    return model


@pytest.mark.parametrize(("first", "second"), [(0.0, 2.0), (2.0, 0.0), (2.0, 4.0)])
def test_a_mass_that_is_set_later_is_the_mass_of_the_model(first: float, second: float) -> None:
    model = lag("m", m=first).with_parameters({"m": second})
    lin = fl.linearize(model)
    assert isinstance(model, DaeModel) == (first == 0.0 or second == 0.0)
    if second:
        assert np.abs(np.sort(lin.eigenvalues()) - np.sort([-3 / second, -1.0])).max() < 1e-13
        assert abs(lin.D).max() == 0.0
    else:
        assert np.abs(lin.eigenvalues() + 1.0).max() < 1e-13
        assert abs(lin.D[0, 0] - 1 / 3) < 1e-14


@pytest.mark.parametrize("values", [(0.1, 0.2, 0.3), (0.25, 0.25, 0.5)])
@pytest.mark.parametrize("first", [0.0, 1.0])
def test_a_mass_that_is_rounding_is_none(values: tuple[float, float, float], first: float) -> None:
    a, b, c = values
    model = lag("a + b - c", a=a, b=b, c=c + first).with_parameters({"c": c})
    assert len(fl.linearize(model).A) == 1


def test_a_number_that_may_be_rounding_is_refused_by_name() -> None:
    with pytest.raises(fl.NumericalError, match=r"coefficient 5.55e-17 of 'der\(x\)'"):
        lag(0.1 + 0.2 - 0.3)
    assert abs(fl.linearize(lag(1e-15)).eigenvalues()[0] + 3e15) < 1e3


def test_a_choice_of_inputs_and_outputs_stays_when_the_model_becomes_a_dae() -> None:
    model = lag("m", m=1.0).with_interface(["u"], ["y", "der(y)"]).with_parameters({"m": 0.0})
    assert model.outputs.names == ("y", "der(y)")
    family = fl.sweep(lag("m", m=1.0), {"m": [0.5, 2.0]})
    assert np.abs(np.sort(family.eigenvalues.real, axis=1) - [[-6.0, -1.0], [-1.5, -1.0]]).max() < 1e-12
