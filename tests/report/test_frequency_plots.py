"""Frequency plots: the curves of python-control, the margins at their places, nothing between two frequencies."""

from __future__ import annotations

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.composition.system import ConnectedModel
from fmilin.models import OdeModel
from fmilin.report.figures import format_ratio, format_unit
from fmilin.report.loop_margins import describe_feedback
from fmilin.signals import Signal


def feedback(plant: control.StateSpace, gain: float = 1.0, dt: float = 0.0) -> ConnectedModel:
    members = {
        "plant": control.ss(plant, inputs="u", outputs="y"),
        "law": control.ss([], [], [], [[gain]], dt, inputs="u", outputs="y"),
    }
    return fl.connect(members, [("plant.y", "law.u", -1.0), ("law.y", "plant.u")])


def ratio(top: list[float], below: list[float]) -> control.StateSpace:
    return control.tf2ss(control.tf(top, below))


@pytest.fixture(scope="module")
def third_order() -> fl.LinearModel:
    """The loop of Seiler, Packard and Gahinet (2020): gains up to 3.6, 29.1 degrees."""
    return fl.loop_transfer(feedback(ratio([25.0], [1.0, 10.0, 10.0, 10.0])), "plant.u")


def transfer(system: control.StateSpace) -> fl.LinearModel:
    return fl.linearize(fl.connect({"plant": control.ss(system, inputs="u", outputs="y")}, []))


@pytest.mark.parametrize(
    "linear",
    [
        lambda: fl.loop_transfer(feedback(ratio([25.0], [1.0, 10.0, 10.0, 10.0])), "plant.u"),
        lambda: fl.loop_transfer(feedback(ratio([25.0], [1.0, 10.0, 10.0, 10.0]), dt=0.1), "plant.u"),
        lambda: transfer(ratio([1.0, 0.02, 1.0], [1.0, 0.1, 9.0, 0.1, 4.0])),
        lambda: transfer(ratio([-1.0, 1.0], [1.0, 3.0, 0.0])),
    ],
)
def test_python_control_draws_the_same_curves(linear: object) -> None:
    model = linear()  # type: ignore[operator]
    magnitude, phase = model.plot.bode().axes[:2]
    w = np.asarray(magnitude.lines[0].get_xdata())
    peer = control.frequency_response(model.to_control(), w).plot(dB=True, deg=True, initial_phase=0)
    lines = [max(peer.lines[row, 0], key=lambda line: len(line.get_xdata())) for row in (0, 1)]
    np.testing.assert_allclose(magnitude.lines[0].get_ydata(), lines[0].get_ydata(), atol=1e-7)
    turns = (np.asarray(phase.lines[0].get_ydata()) - np.asarray(lines[1].get_ydata())) / 360
    np.testing.assert_allclose(turns, round(turns[0]), atol=1e-7)
    control_curve = control.frequency_response(model.to_control(), w).complex
    nyquist = model.plot.nyquist().axes[0]
    drawn = next(line for line in nyquist.lines if line.get_label() == "ω > 0")
    x, y = (np.asarray(values) for values in drawn.get_data())
    seen = np.isfinite(x)
    np.testing.assert_allclose((x + 1j * y)[seen], control_curve[seen], atol=1e-9)


def test_margins_stand_where_the_curve_has_them(third_order: fl.LinearModel) -> None:
    magnitude, phase = third_order.plot.bode().axes[:2]
    gain = next(line for line in magnitude.lines if str(line.get_label()).startswith("gain margin 0 to 3.6"))
    (at, _), (end, unity) = np.asarray(gain.get_data())
    assert [end, unity] == [pytest.approx(-20 * np.log10(3.6), abs=1e-6), 0.0]
    assert abs(third_order.to_control()(1j * at) - 1 / 3.6) < 1e-6
    angle = next(line for line in phase.lines if "phase margin 29.11°" in str(line.get_label()))
    low, high = sorted(np.asarray(angle.get_ydata()).tolist())
    assert high - low == pytest.approx(29.11, abs=0.01)
    assert low % 360 == 0
    assert "delay margin 0.2847 s" in str(angle.get_label())
    nyquist = third_order.plot.nyquist().axes[0]
    critical = next(line for line in nyquist.lines if line.get_label() == "critical point +1")
    assert np.asarray(critical.get_xydata()).tolist() == [[1.0, 0.0]]
    disk = next(line for line in nyquist.lines if str(line.get_label()).startswith("disk margin 0.458"))
    circle = np.asarray(disk.get_data())
    curve = next(line for line in nyquist.lines if line.get_label() == "ω > 0")
    distances = np.hypot(*(np.asarray(curve.get_data())[:, None, :] - circle[:, :, None]))
    assert np.nanmin(distances) < 5e-3  # the curve touches the disk
    center = circle.mean(axis=1)
    radius = np.hypot(*(circle - center[:, None])).max()
    assert np.nanmin(np.hypot(*(np.asarray(curve.get_data()) - center[:, None]))) > radius * (1 - 2e-3)


def test_s_and_t_have_their_peaks(third_order: fl.LinearModel) -> None:
    axes = third_order.plot.margins().axes[3]
    labels = [str(label) for label in axes.get_legend_handles_labels()[1]]
    w = np.geomspace(0.1, 100, 200001)
    L = third_order.frequency_response(w)[0, 0]
    for label, values in zip(labels, (1 / (1 - L), -L / (1 - L)), strict=True):
        assert f"peak {np.abs(values).max():.3g} " in label
    with pytest.raises(fl.UsageError, match="a loop at one wire"):
        transfer(ratio([1.0], [1.0, 1.0])).plot.margins()


def test_both_ends_of_a_conditionally_stable_gain_are_drawn() -> None:
    loop = fl.loop_transfer(feedback(ratio([1.0, 4.0, 4.0], [1.0, 0.0, 0.0, 0.0]), 3.0), "plant.u")
    margins = fl.design.margins(loop)
    magnitude = loop.plot.bode().axes[0]
    label = f"gain margin {margins.gain[0]:.4g} to ∞"
    ends = [line for line in magnitude.lines if str(line.get_label()).startswith(label)]
    assert len(ends) == 1
    assert np.asarray(ends[0].get_ydata())[0] == pytest.approx(-20 * np.log10(margins.gain[0]), abs=1e-6)
    both = fl.loop_transfer(
        feedback(ratio([1.0, 4.0, 4.0], np.polymul([1.0, 0, 0, 0], [1e-4, 0.02, 1.0]).tolist()), 3.0), "plant.u"
    )
    reached = fl.design.margins(both)
    assert 0 < reached.gain[0] < 1 < reached.gain[1] < np.inf
    drawn = [line for line in both.plot.bode().axes[0].lines if "gain margin" in str(line.get_label())]
    tops = sorted(float(np.asarray(line.get_ydata())[0]) for line in drawn)
    assert tops == [pytest.approx(-20 * np.log10(g), abs=1e-5) for g in reached.gain[::-1]]


def test_a_narrow_resonance_and_an_undamped_one_are_drawn() -> None:
    model = OdeModel("narrow", {"x": "v", "v": "-x - 2e-5*v + u"}, inputs=["u"], outputs={"y": "x"})
    magnitude = fl.linearize(model).plot.bode().axes[0]
    peak = float(np.asarray(magnitude.lines[0].get_ydata()).max())
    assert peak == pytest.approx(20 * np.log10(1 / 2e-5), abs=0.1)
    undamped = OdeModel("undamped", {"x": "v", "v": "-x + u"}, inputs=["u"], outputs={"y": "x"})
    phases = np.asarray(fl.linearize(undamped).plot.bode().axes[1].lines[0].get_ydata())
    np.testing.assert_allclose(np.unique(phases.round(9)), [-180.0, 0.0])


@pytest.mark.parametrize(
    ("output", "source", "expected"),
    [
        ("N.m", "rad/s", "N·m/(rad/s)"),
        ("rad/s", "N.m", "(rad/s)/(N·m)"),
        ("m", "", "m"),
        ("", "N", "1/N"),
        ("V", "V", "1"),
    ],
)
def test_units_of_channels_are_ratios(output: str, source: str, expected: str) -> None:
    assert format_ratio(Signal("y", output), Signal("u", source)) == expected
    assert format_unit("kg.m2") == "kg·m2"
    assert format_unit("1.5") == "1.5"


def test_margins_of_a_channel_with_negative_feedback_are_those_of_its_closed_form() -> None:
    """G = 2/(s (s + 1)): |G| = 1 at w^2 = (sqrt(17) - 1)/2, and no gain destabilizes the loop."""
    model = OdeModel("servo", {"x": "v", "v": "2*u - v"}, inputs=["u"], outputs={"y": "x", "z": "-x"})
    linear = fl.linearize(model)
    w = float(np.sqrt((np.sqrt(17) - 1) / 2))
    phase = 180 - 90 - np.degrees(np.arctan(w))
    text = describe_feedback(linear, "y", "u")
    assert f"phase margin {phase:.4g}° at {w:.4g} rad/s" in text
    assert "gain margin 0 to ∞" in text
    assert "unstable" in describe_feedback(linear, "z", "u")
