"""Measured frequency responses against transfer functions, harmonic balance, and the loop that closes around them."""

from __future__ import annotations

from typing import Literal

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin import frequency_response
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.models import OdeModel
from fmilin.signals import FloatArray

W = np.array([0.3, 1.0, 3.0])


def duffing(damping: float = 0.5) -> OdeModel:
    equations = {"x": "v", "v": f"-x - {damping}*v - x**3 + u"}
    return OdeModel("duffing", equations, inputs=["u"], outputs={"pos": "x", "vel": "v"})


def exact(w: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.complex128]]:
    position = 1 / (1 - w**2 + 0.5j * w)
    return np.array([position, 1j * w * position])


@pytest.mark.parametrize("signal", ["sine", "multisine", "chirp"])
def test_a_small_amplitude_shows_the_linear_model(signal: Literal["sine", "multisine", "chirp"]) -> None:
    measured = frequency_response(duffing(), input="u", frequencies=W, amplitude=1e-3, signal=signal)
    assert measured.response.shape == (2, 3)
    assert measured.outputs.names == ("pos", "vel")
    assert measured.response == pytest.approx(exact(W), rel=2e-4)
    assert (np.abs(measured.response - exact(W)) <= 2 * measured.error + 1e-5 * np.abs(exact(W))).all()


def test_several_amplitudes_show_the_describing_function() -> None:
    """Harmonic balance, x = A sin: ((1 - w^2 + 3/4 A^2)^2 + (w/2)^2) A^2 = a^2, to the third harmonic."""
    measured = frequency_response(duffing(), input="u", frequencies=[0.5], amplitude=[0.2, 0.6], outputs=["x"])
    assert measured.response.shape == (2, 1, 1)
    for a, G, distortion in zip((0.2, 0.6), measured.response[:, 0, 0], measured.distortion[:, 0, 0], strict=True):
        A = abs(G) * a
        assert pytest.approx(a**2, rel=5 * distortion) == (((1 - 0.25 + 0.75 * A**2) ** 2 + 0.0625) * A**2)
        third = A**3 / 4 / abs(1 - 9 * 0.25 + 0.75j) / A  # x^3 has A^3 / 4 sin(3 w t)
        assert distortion == pytest.approx(third, rel=0.5 if a > 0.5 else 0.07)
    assert abs(measured.response[1, 0, 0]) < 0.95 * abs(measured.response[0, 0, 0])


def test_a_drifting_output_has_its_response() -> None:
    integrator = OdeModel("i", {"x": "v", "v": "-v + u"}, inputs=["u"], outputs={"pos": "x"})
    measured = frequency_response(integrator, input="u", frequencies=[2.0], amplitude=0.1)
    assert measured.response[0, 0] == pytest.approx(1 / (2j * (2j + 1)), rel=1e-3)


def test_in_closed_loop_the_response_is_that_of_the_loop() -> None:
    unstable = OdeModel("u", {"x": "x + u"}, inputs=["u"], outputs={"x": "x"})
    h = 0.05
    law = control.ss([], [], [], [[-3.0]], h, inputs=["x"], outputs=["u"])
    measured = frequency_response(unstable, input="u", frequencies=[4.0], amplitude=0.1, regulator=law)
    w = np.array([4.0])
    delay = np.exp(-0.5j * w * h)  # the hold, to first order
    assert measured.response[0] == pytest.approx(1 / (1j * w - 1 + 3 * delay), rel=5e-3)
    with pytest.raises(NumericalError, match=r"'x' does not settle .* Close a loop around it"):
        frequency_response(unstable, input="u", frequencies=[1.0], amplitude=0.1)


def test_tables_and_pictures() -> None:
    model = duffing()
    measured = frequency_response(model, input="u", frequencies=W, amplitude=0.1)
    assert "0.1" in repr(measured)
    figure = measured.plot(fl.linearize(model))
    lines = figure.axes[0].get_lines()
    assert np.allclose(lines[0].get_ydata(), 20 * np.log10(np.abs(measured.response[0])))
    assert [str(line.get_label()) for line in lines] == ["amplitude 0.1", "linear model"]


def test_bad_input_is_told() -> None:
    with pytest.raises(UsageError, match="positive numbers"):
        frequency_response(duffing(), input="u", frequencies=[-1.0], amplitude=0.1)
    with pytest.raises(UsageError, match="positive numbers"):
        frequency_response(duffing(), input="u", frequencies=[1.0], amplitude=0.0)
    with pytest.raises(UsageError, match="positive numbers"):
        frequency_response(duffing(), input="u", frequencies=[1.0], amplitude=float("inf"))
    with pytest.raises(UnknownNameError):
        frequency_response(duffing(), input="w", frequencies=[1.0], amplitude=0.1)
    with pytest.raises(UnknownNameError):
        frequency_response(duffing(), input="u", frequencies=[1.0], amplitude=0.1, outputs=["z"])
    with pytest.raises(UsageError, match="sine, multisine or chirp"):
        frequency_response(duffing(), input="u", frequencies=[1.0], amplitude=0.1, signal="noise")  # type: ignore[arg-type]
