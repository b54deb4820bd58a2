"""Pictures of a linear model: what is drawn is what the model says, with names and units."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest

import fmilin as fl
from fmilin.model.interface import ModelInfo
from fmilin.systems import four_bar_mechanism
from tests.families.plants import oscillator
from tests.hand_made import pendulum, sized


def texts(figure: object) -> str:
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})  # type: ignore[attr-defined]
    return stream.getvalue()


@pytest.fixture(scope="module")
def spring() -> fl.LinearModel:
    return fl.linearize(oscillator())


def test_eigenvalues_stand_where_they_are(spring: fl.LinearModel) -> None:
    (axes,) = spring.plot.eigenvalues().axes
    (line,) = [x for x in axes.lines if "eigenvalues" in str(x.get_label())]
    drawn = np.sort_complex(np.asarray(line.get_xdata()) + 1j * np.asarray(line.get_ydata()))
    np.testing.assert_allclose(drawn, np.sort_complex(spring.eigenvalues()), rtol=1e-12)
    assert axes.get_xlabel() == "real part [1/s]"


def test_a_step_ends_where_statics_says(spring: fl.LinearModel) -> None:
    figure = spring.plot.step()
    (axes,) = figure.axes
    t, q = (np.asarray(x) for x in axes.lines[0].get_data())
    a, w = 0.1, np.sqrt(4.0 - 0.01)
    np.testing.assert_allclose(q, (1 - np.exp(-a * t) * (np.cos(w * t) + a / w * np.sin(w * t))) / 4, atol=1e-9)
    assert axes.get_xlabel() == "time [s]"


def test_bode_is_the_frequency_response(spring: fl.LinearModel) -> None:
    magnitude, phase = spring.plot.bode().axes[:2]
    w, gain = (np.asarray(x) for x in magnitude.lines[0].get_data())
    np.testing.assert_allclose(gain, np.abs(1 / (4.0 - w**2 + 0.2j * w)), rtol=1e-9)
    assert "position" in magnitude.get_ylabel()
    assert "rad/s" in phase.get_xlabel() + magnitude.figure.get_supxlabel()


def test_several_channels_of_a_sampled_model_are_drawn() -> None:
    linear = replace(sized(2, 0, 2, 3), A=np.diag([0.5, 0.8]), sample_time=0.1)
    figure = linear.plot.bode()
    assert len([a for a in figure.axes if a.get_visible()]) == 12
    (axes,) = linear.plot.eigenvalues().axes
    (line,) = [x for x in axes.lines if "eigenvalues" in str(x.get_label())]
    np.testing.assert_allclose(np.sort(np.asarray(line.get_xdata())), np.log([0.5, 0.8]) / 0.1)


def test_channels_are_chosen_by_name() -> None:
    linear = sized(3, 1, 6, 9)
    assert len(linear.plot.step().axes) == 16
    assert len(linear.plot.step(inputs=["u[2]"], outputs=["out[1]", "out[9]"]).axes) == 2
    with pytest.raises(fl.UnknownNameError, match="not an input"):
        linear.plot.step(inputs=["v[2]"])


def test_bars_of_a_mode_are_its_shape() -> None:
    linear = fl.linearize(four_bar_mechanism())
    modes = linear.modes()
    axes = linear.plot.modes().axes
    assert len([a for a in axes if a.get_visible()]) == len(modes)
    for one, mode in zip(axes, modes, strict=False):
        widths = [bar.get_width() for bar in one.patches]  # type: ignore[attr-defined]
        np.testing.assert_allclose(widths, np.sort(np.abs(mode.shape))[::-1], rtol=1e-12)


def test_errors_are_relative_to_the_largest_entry(spring: fl.LinearModel) -> None:
    figure = spring.plot.errors()
    shown = np.ma.filled(np.ma.asarray(figure.axes[0].images[0].get_array()).astype(float), np.nan)
    expected = spring.errors.A / np.abs(spring.A).max()
    np.testing.assert_allclose(np.nan_to_num(shown), expected, rtol=1e-6)


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(fl.UsageError, match="no states"):
        sized(0, 0, 0, 0).plot.eigenvalues()
    with pytest.raises(fl.UsageError, match="at least one input"):
        sized(2, 0, 0, 1).plot.bode()


def test_names_with_any_character_are_drawn() -> None:
    plot = replace(pendulum(), model=ModelInfo(r"a $x^ $y \frac Größe")).plot
    for figure in (plot.eigenvalues(), plot.modes(), plot.errors()):
        assert texts(figure).startswith("<?xml")
