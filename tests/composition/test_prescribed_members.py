"""Connections to inputs that prescribe a motion: they end at the derivative, too, or are rejected."""

from __future__ import annotations

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel

R, K, J = 2.0, 0.1, 0.004


def motor_without_inductance() -> OdeModel:
    """J w' = K i and U = R i + K w, from a row L i' of the mass matrix with L = 0: i follows U at once."""
    return OdeModel(
        "motor",
        {"w": "K*i", "i": "U - R*i - K*w"},
        mass_matrix=[["J", 0], [0, "L"]],
        parameters={"R": R, "K": K, "J": J, "L": 0.0},
        inputs=["U"],
        outputs={"speed": "w", "current": "i"},
    )


def test_a_connection_that_leaves_the_derivative_alone_is_rejected() -> None:
    gain = control.ss([], [], [], [[2.0]], inputs=["e"], outputs=["c"])
    wires = [("plant.speed", "gain.e", -1.0), ("gain.c", "plant.U")]
    with pytest.raises(fl.UsageError, match=r"'plant\.U' prescribes a motion.*'der\(plant\.U\)'"):
        fl.connect({"plant": motor_without_inductance(), "gain": gain}, wires)


def test_a_source_of_the_input_and_its_derivative_drives_the_motor() -> None:
    """U' = a (r - U) before w' = K (U - K w)/(R J): both poles, the gain of w by r, and i = (U - K w)/R."""
    a = 3.0
    source = OdeModel(
        "filter", {"x": "a*(r - x)"}, parameters={"a": a}, inputs=["r"], outputs={"y": "x", "dy": "der(x)"}
    )
    wires = [("source.y", "plant.U"), ("source.dy", "plant.der(U)")]
    system = fl.connect({"source": source, "plant": motor_without_inductance()}, wires)
    lin = fl.linearize(system, independent=["source.x", "plant.w"], outputs=["plant.speed", "plant.current"])
    pole = K**2 / (R * J)
    np.testing.assert_allclose(lin.A, np.array([[-a, 0], [K / (R * J), -pole]]), atol=1e-12)
    np.testing.assert_allclose(lin.B[:, lin.inputs.index_of("source.r")], [a, 0.0], atol=1e-12)
    np.testing.assert_allclose(lin.C, np.array([[0, 1], [1 / R, -K / R]]), atol=1e-12)
