"""A mass that is rounding of its terms is refused by name, as one that is zero is."""

from __future__ import annotations

import pytest

import fmilin as fl
from fmilin.models import LagrangeModel


def chain(a: float, b: float, c: float) -> LagrangeModel:
    """Two masses; the first is a + b - c."""
    return LagrangeModel(
        "chain",
        {"q": "v", "r": "w"},
        [["a + b - c", 0], [0, 1]],
        ["-q", "q - r"],
        parameters={"a": a, "b": b, "c": c},
    )


@pytest.mark.parametrize("values", [(0.1, 0.2, 0.3), (0.25, 0.25, 0.5), (0.7, 0.1, 0.8)])
def test_no_mass_is_made_of_rounding(values: tuple[float, float, float]) -> None:
    with pytest.raises(fl.NumericalError, match=r"der\(v\)"):
        fl.linearize(chain(*values))


def test_a_small_mass_that_is_meant_stays() -> None:
    lin = fl.linearize(chain(0.1, 1e-12, 0.1))
    assert abs(max(abs(lin.eigenvalues())) / 1e6 - 1.0) < 1e-3  # sqrt(1 / 1e-12), known to the digits of 0.1


def test_parameters_that_are_set_later_are_looked_at_again() -> None:
    model = chain(0.1, 0.2, 0.1)
    assert len(fl.linearize(model).A) == 4
    with pytest.raises(fl.NumericalError, match=r"Rounding decides about 'chain': the coefficient of 'der\(v\)'"):
        fl.linearize(model.with_parameters({"c": 0.3}))
