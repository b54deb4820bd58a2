"""Inputs of mechanisms with dead time: in files, in descriptions and in systems, against closed forms."""

from __future__ import annotations

from pathlib import Path

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import ModelError
from fmilin.models import DelayedModel
from fmilin.models.mechanism import Body, Joint, JointForce, Mechanism, MechanismDescription

CART = """
[[body]]
name = "cart"
mass = 2.0
[[joint]]
name = "rail"
type = "prismatic"
parent = "ground"
child = "cart"
stiffness = 8.0
damping = 0.4
[[input]]
kind = "joint_force"
name = "push"
joint = "rail"
delay = 0.3
[[input]]
kind = "actuator"
name = "servo"
joint = "rail"
dynamics = "filter"
time_constant = 0.5
delay = 0.1
[[sensor]]
name = "place"
quantity = "joint_position"
of = "rail"
"""
W = np.geomspace(0.1, 50.0, 20)


@pytest.fixture
def cart(tmp_path: Path) -> Path:
    path = tmp_path / "cart.toml"
    path.write_text(CART, encoding="utf-8")
    return path


def test_a_delayed_force_multiplies_the_response(cart: Path) -> None:
    model = fl.load(cart)
    assert isinstance(model, DelayedModel)
    lin = fl.linearize(model)
    assert lin.delays == {"push": 0.3, "servo": 0.1}
    plant = 1 / (8.0 + 0.4j * W - 2.0 * W**2)
    exact = np.stack((plant * np.exp(-0.3j * W), plant * np.exp(-0.1j * W) / (1 + 0.5j * W)))
    np.testing.assert_allclose(lin.frequency_response(W)[0], exact, atol=1e-13)
    softer = fl.linearize(model.with_parameters({"rail.stiffness": 2.0}), outputs=["place"], inputs=["push"])
    assert softer.delays == {"push": 0.3}
    exact = np.exp(-0.3j * W) / (2.0 + 0.4j * W - 2.0 * W**2)
    np.testing.assert_allclose(softer.frequency_response(W)[0, 0], exact, atol=1e-13)


def test_a_member_keeps_the_delays_of_its_inputs(cart: Path) -> None:
    """Feedback of the position through the late push: x'' 2 + 0.4 x' + 8 x + K x(t - 0.3) = 0."""
    law = control.ss([], [], [], [[-3.0]], inputs="e", outputs="u")
    wires = [("cart.place", "law.e"), ("law.u", "cart.push")]
    closed = fl.linearize(fl.connect({"cart": fl.load(cart), "law": law}, wires, delays={}))
    assert isinstance(closed, fl.DelayedLinearModel)
    assert closed.delays == {"cart.push": 0.3, "cart.servo": 0.1}
    s = closed.eigenvalues(3)[-1]
    assert abs(2 * s**2 + 0.4 * s + 8 + 3 * np.exp(-0.3 * s)) < 1e-11
    family = fl.sweep(fl.load(cart), delays={"push": [0.1, 0.2]})
    assert [lin.delays["push"] for lin in family] == [0.1, 0.2]


def test_delays_are_never_ignored(cart: Path) -> None:
    with pytest.raises(ModelError, match=r"'push' of the mechanism 'cart' has a delay of 0\.3 s\. Open the file with"):
        Mechanism.from_toml(cart)
    with pytest.raises(fl.UsageError, match="has delays"):
        fl.simulate(fl.load(cart), stop_time=1.0)
    with pytest.raises(ModelError, match=r"The delay of the joint force 'push' is -1\.0 s: it must not be negative"):
        JointForce("push", "rail", delay=-1.0)
    still = MechanismDescription(
        "cart", [Body("cart", 2.0)], [Joint("rail", "prismatic", "ground", "cart")], inputs=[JointForce("push", "rail")]
    )
    assert still.input_delays == {}
    assert still.without_delays() == still
