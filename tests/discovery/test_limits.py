"""What zeros say about control, in explanations of channels that are not zero."""

from __future__ import annotations

import json

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel
from tests.command_line import main

PENDULUM = {"x": "v", "phi": "w", "v": "F - phi", "w": "11*phi - F"}


def test_a_zero_in_the_right_half_plane_limits_the_bandwidth() -> None:
    cart = OdeModel("cart", PENDULUM, inputs=["F"], outputs={"position": "x"})
    reason = fl.explain(cart, None, "F", "position")
    assert reason.kind == "not zero"
    assert np.allclose(reason.zeros, [-np.sqrt(10), np.sqrt(10)])
    assert "A zero in the right half-plane (3.1623 1/s)" in reason.text
    assert "first moves in the wrong direction" in reason.text
    # Freudenberg and Looze: with the pole p = sqrt(11), |S| >= (z + p)/(z - p) in absolute value
    z, p = np.sqrt(10), np.sqrt(11)
    assert f"a peak of at least {(z + p) / abs(z - p):.3g}" in reason.text


@pytest.mark.parametrize(("gain", "wrong_way"), [(1.0, True), (-1.0, False)])
def test_the_sign_of_a_real_zero_is_that_of_the_first_motion(gain: float, *, wrong_way: bool) -> None:
    # y = w + x - ... has the transfer function (1 - gain s) / (1 + s)^2
    rates = {"a": "b", "b": "u - a - 2*b"}
    model = OdeModel("lag", rates, inputs=["u"], outputs={"y": f"a - ({gain})*b"})
    assert ("first moves in the wrong direction" in fl.explain(model, None, "u", "y").text) is wrong_way


def test_a_zero_at_zero_takes_the_lasting_effect() -> None:
    model = OdeModel("washout", {"a": "u - a"}, inputs=["u"], outputs={"y": "u - a"})
    assert "A zero at 0: a constant 'u' has no lasting effect on 'y'" in fl.explain(model, None, "u", "y").text


def test_an_absorber_blocks_its_frequency() -> None:
    rates = {"x": "v", "X": "V", "v": "4*(X - x) - x + F", "V": "4*(x - X)"}
    model = OdeModel("absorber", rates, inputs=["F"], outputs={"y": "x"})
    assert "at 2 rad/s 'F' does not move 'y'" in fl.explain(model, None, "F", "y").text


def test_a_channel_without_zeros_has_nothing_to_say() -> None:
    model = OdeModel("lag", {"x": "-x + u"}, inputs=["u"], outputs={"y": "x"})
    reason = fl.explain(model, None, "u", "y")
    assert (reason.text, reason.zeros) == ("It is not zero at this point.", ())


def test_json_has_the_zeros(capsys: pytest.CaptureFixture[str]) -> None:
    bicycle = "fmilin.systems:bicycle(speed=4.6)"
    main(["explain", bicycle, "--input", "steer_torque", "--output", "lean", "--json"])
    (reason,) = json.loads(capsys.readouterr().out)["explanations"]
    assert np.allclose(reason["zeros"], [[-54.55942232, 0.0], [-12.60648663, 0.0]])
