"""Bode diagrams of models with undamped poles and zeros: the axis shows the curve, and a note how far spikes reach."""

from __future__ import annotations

import numpy as np

import fmilin as fl


def test_an_undamped_resonance_does_not_flatten_the_rest() -> None:
    model = fl.models.OdeModel(
        "undamped", {"x": "v", "v": "-4*x + F"}, inputs=["F"], outputs={"x": "x", "zero": "x + 2*v - F"}
    )
    figure = fl.linearize(model).plot.bode(inputs=["F"], outputs=["x"])
    magnitude = figure.axes[0]
    values = np.asarray(magnitude.lines[0].get_ydata(), dtype=float)
    low, high = magnitude.get_ylim()
    assert np.max(values) > high
    w = np.asarray(magnitude.lines[0].get_xdata(), dtype=float)
    even = np.interp(np.linspace(np.log(w[0]), np.log(w[-1]), 300), np.log(w), values)
    shown = (even >= low) & (even <= high)
    assert shown.mean() > 0.95
    assert high - low < 250
    assert f"reaches {np.max(values):.0f} dB" in " ".join(text.get_text() for text in magnitude.texts)


def test_a_damped_model_is_shown_whole() -> None:
    model = fl.models.OdeModel("damped", {"x": "v", "v": "-4*x - v + F"}, inputs=["F"], outputs={"x": "x"})
    magnitude = fl.linearize(model).plot.bode().axes[0]
    values = np.asarray(magnitude.lines[0].get_ydata(), dtype=float)
    low, high = magnitude.get_ylim()
    assert low <= np.min(values) <= np.max(values) <= high
    assert not magnitude.texts
