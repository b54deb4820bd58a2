"""Parameters from frequency responses, against those of the model that was measured."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import fmilin as fl
from fmilin.design import identified_parameters
from fmilin.errors import NumericalError, UsageError
from fmilin.models import OdeModel
from fmilin.systems import four_bar
from tests.composition.plants import oscillator

W = np.geomspace(0.2, 30, 25)
TRUE = {"m": 1.17, "k": 23.1, "c": 0.41}
BOX = {"m": (0.5, 2.0), "k": (10.0, 50.0), "c": (0.05, 1.0)}


def measured(linear: fl.LinearModel) -> NDArray[np.complex128]:
    return np.asarray(linear.to_control()(1j * W, squeeze=False))


def test_a_trimmed_mechanism() -> None:
    model, true = four_bar(damping=0.3), four_bar().with_parameters(TRUE)
    G = measured(fl.linearize(true, fl.trim(true)))
    fit = identified_parameters(model, BOX, W, G, point=fl.trim(model))
    assert fit.parameters == pytest.approx(TRUE, rel=1e-9)
    assert fit.residual < 1e-10


def test_noise_stays_within_the_told_deviations() -> None:
    """The sum of 12 squared errors in told deviations lies between 2.2 and 32.9 (chi squared, 1 in 1000 each)."""
    model, box = oscillator(2.0, 3.0, 0.5), {"c": (2.0, 4.0), "d": (0.2, 0.9)}
    G, random, squares = measured(fl.linearize(oscillator(2.0, 3.3, 0.45))), np.random.default_rng(5), 0.0
    for _ in range(12):
        noise = 0.02 * random.standard_normal((2, *G.shape))
        fit = identified_parameters(model, box, W, G * (1 + noise[0] + 1j * noise[1]))
        squares += ((fit.parameters["c"] - 3.3) / fit.deviations["c"]) ** 2
    assert 2.2 < squares < 32.9
    assert fit.residual == pytest.approx(0.02 * np.sqrt(2), rel=0.3)
    assert "c = 3." in str(fit)


def test_far_from_the_start() -> None:
    """A resonance at 12 rad/s is out of reach of one at 1.2 by descent alone."""
    G = measured(fl.linearize(oscillator(2.0, 300.0, 0.5)))
    fit = identified_parameters(oscillator(2.0, 3.0, 0.5), {"c": (1.0, 500.0)}, W, G)
    assert fit.parameters["c"] == pytest.approx(300.0, rel=1e-8)


def test_weights_leave_values_out() -> None:
    G = measured(fl.linearize(oscillator(2.0, 3.3, 0.5)))
    weights = np.ones(G.shape)
    G[..., 3] += 10.0
    weights[..., 3] = 0.0
    fit = identified_parameters(oscillator(2.0, 3.0, 0.5), {"c": (2.0, 4.0)}, W, G, weights=weights)
    assert fit.parameters["c"] == pytest.approx(3.3, rel=1e-9)


def test_what_a_response_does_not_tell_apart() -> None:
    model = oscillator(2.0, 3.0, 0.5)
    both = OdeModel("two springs", {"s": "v", "v": "F - (c + e)*s - v"}, inputs=["F"], parameters={"c": 1.0, "e": 2.0})
    G = measured(fl.linearize(both.with_interface(None, ["s"])))
    box = {"c": (0.5, 2.0), "e": (0.5, 4.0)}
    with pytest.raises(NumericalError, match="The response does not determine c, e"):
        identified_parameters(both.with_interface(None, ["s"]), box, W, G)
    with pytest.raises(UsageError, match="does not fit"):
        identified_parameters(model, {"c": (2.0, 4.0)}, W, G[..., 1:])
    with pytest.raises(UsageError, match="finite numbers"):
        identified_parameters(model, {"c": (2.0, 4.0)}, W, measured(fl.linearize(model)) * np.nan)
