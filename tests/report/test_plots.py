"""Pictures of a linear model: what is drawn is what the model says, with names and units."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest

import fmilin as fl
from fmilin.adapters import ModelInfo
from fmilin.models import OdeModel
from fmilin.systems import cartesian_pendulum, four_bar
from tests.families.plants import oscillator
from tests.hand_made import pendulum, sized
from tests.systems.linkages import four_bar_mechanism


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
    t, q = (np.asarray(x) for x in axes.lines[-1].get_data())
    a, w = 0.1, np.sqrt(4.0 - 0.01)
    np.testing.assert_allclose(q, (1 - np.exp(-a * t) * (np.cos(w * t) + a / w * np.sin(w * t))) / 4, atol=1e-9)
    assert axes.get_xlabel() == "time [s]"


def test_bode_is_the_frequency_response(spring: fl.LinearModel) -> None:
    magnitude, phase = spring.plot.bode(db=False).axes[:2]
    w, gain = (np.asarray(x) for x in magnitude.lines[0].get_data())
    decibels = spring.plot.bode().axes[0]
    np.testing.assert_allclose(np.asarray(decibels.lines[0].get_ydata()), 20 * np.log10(gain), atol=1e-9)
    assert "[dB]" in decibels.get_ylabel()
    np.testing.assert_allclose(gain, np.abs(1 / (4.0 - w**2 + 0.2j * w)), rtol=1e-9)
    assert "position" in magnitude.get_ylabel()
    assert "rad/s" in phase.get_xlabel() + magnitude.figure.get_supxlabel()


def test_channels_without_any_response_say_so() -> None:
    """Of the hanging pendulum the vertical acceleration does not answer to the force, to first order."""
    linear = fl.linearize(cartesian_pendulum())
    for figure in (linear.plot.bode(), linear.plot.nyquist(), linear.plot.bode(outputs=["ay"])):
        said = [t.get_text() for axes in figure.axes for t in axes.texts]
        assert said.count("no response") in (1, 2)
        assert texts(figure)


def test_several_channels_of_a_sampled_model_are_drawn() -> None:
    linear = replace(sized(2, 0, 2, 3), A=np.diag([0.5, 0.8]), sample_time=0.1)
    figure = linear.plot.bode()
    assert len([a for a in figure.axes if a.get_visible()]) == 12
    (axes,) = linear.plot.eigenvalues().axes
    (line,) = [x for x in axes.lines if "eigenvalues" in str(x.get_label())]
    np.testing.assert_allclose(np.sort(np.asarray(line.get_xdata())), np.log([0.5, 0.8]) / 0.1)


def test_nyquist_is_the_frequency_response(spring: fl.LinearModel) -> None:
    (axes,) = spring.plot.nyquist().axes
    curve = max((np.asarray(line.get_xydata()) for line in axes.lines), key=len)
    s = spring.to_control()
    for x, y in curve[np.isfinite(curve).all(axis=1)][5::40]:
        w = np.roots([1.0, 0.0, -8.0 + 0.04, 0.0, 16.0 - 1 / (x * x + y * y)])  # |1/(4 - w^2 + 0.2 i w)| is that
        gains = [complex(s(1j * v)) for v in w[np.abs(w.imag) < 1e-3].real]
        assert min(abs(g - (x + 1j * y)) for g in gains) < 1e-2 * abs(x + 1j * y)
    assert axes.get_title(loc="left") == "F to position"


def test_a_step_beside_the_nonlinear_model_parts_from_it_where_it_swings_far() -> None:
    model = four_bar_mechanism()
    linear = fl.linearize(model)
    for amplitude, near in ((1e-4, True), (1.0, False)):
        axes = linear.plot.step(against=model, outputs=["phi"], amplitude=amplitude, stop_time=3.0).axes
        nonlinear, line = (np.asarray(x.get_ydata()) for x in axes[0].lines[-2:])
        off = np.abs(nonlinear - line).max() / np.abs(line).max()
        assert bool(off < 1e-3) is near
    assert len(texts(linear.plot.step(against=model))) > 1000  # an amplitude is found


def test_a_step_is_refused_where_it_is_none(spring: fl.LinearModel) -> None:
    with pytest.raises(fl.UsageError, match="amplitude of a step must not be 0"):
        spring.plot.step(amplitude=0.0)
    with pytest.raises(fl.UsageError, match="positive time"):
        spring.plot.step(stop_time=-1.0)
    with pytest.raises(fl.UsageError, match="has no state 'x0'"):
        fl.linearize(four_bar_mechanism(), outputs=["phi"]).plot.step(against=four_bar())


def test_false_eigenvalues_are_grey_beside_the_true_ones() -> None:
    model = cartesian_pendulum()
    linear, naive = fl.linearize(model), fl.linearize(model.with_constraints([]), keep_inaccurate=True)
    figure = linear.plot.eigenvalues(naive)
    labels = [str(line.get_label()) for line in figure.axes[0].lines]
    assert any(label.startswith("2 false ones") for label in labels)
    assert "2 eigenvalues" in labels


def test_crowded_eigenvalues_have_a_panel_of_their_own() -> None:
    linear = replace(sized(4, 0, 1, 1), A=np.diag([-1000.0, -500.0, -0.1, -0.2]))
    whole, close = linear.plot.eigenvalues().axes
    assert close.get_xlim()[1] < 0.5 < 1000 < whole.get_xlim()[1]


def test_the_pictures_are_listed(spring: fl.LinearModel) -> None:
    assert repr(spring.plot).startswith("Pictures: animation(), bode(), eigenvalues(), ")


def test_shares_of_modes_are_drawn(spring: fl.LinearModel) -> None:
    every = spring.plot.participation().axes
    factors, moved = (np.asarray(np.ma.asarray(a.images[0].get_array())).tolist() for a in every[:2])
    np.testing.assert_allclose(factors, [[0.5, 0.5]], rtol=1e-9)
    np.testing.assert_allclose(moved, [[1.0]])


def test_entries_that_are_zero_are_blank(spring: fl.LinearModel) -> None:
    axes = spring.plot.sparsity().axes
    shown = np.ma.filled(np.ma.asarray(axes[0].images[0].get_array()).astype(float), np.nan)
    np.testing.assert_array_equal(np.isnan(shown), [[True, False], [False, False]])
    assert axes[1].get_title(loc="left") == "B: 1 of 2 entries"


def test_modes_are_chosen_by_number() -> None:
    plot = sized(8, 2, 1, 1).plot
    assert len([a for a in plot.modes([2]).axes if a.get_visible()]) == 1
    with pytest.raises(fl.UsageError, match="no mode 40"):
        plot.modes([1, 40])


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
    with pytest.raises(fl.UsageError, match="needs an input"):
        sized(2, 0, 0, 1).plot.bode()


def test_names_with_any_character_are_drawn() -> None:
    plot = replace(pendulum(), model=ModelInfo(r"a $x^ $y \frac Größe")).plot
    for figure in (plot.eigenvalues(), plot.modes(), plot.errors()):
        assert texts(figure).startswith("<?xml")


@pytest.mark.parametrize(("sign", "start"), [(1.0, 0.0), (-1.0, -180.0)])
def test_the_phase_starts_at_the_sign_of_the_gain_and_has_ticks(sign: float, start: float) -> None:
    """Not -360 or 180 where that is the same."""
    model = OdeModel("lag", {"x": "-x + u"}, inputs=["u"], outputs={"y": f"{sign}*(x + 1e-17*u)"})
    phase = fl.linearize(model).plot.bode().axes[1]
    values = np.asarray(phase.lines[0].get_ydata())
    assert values[0] == pytest.approx(start, abs=10.0)
    low, high = phase.get_ylim()
    assert len([tick for tick in phase.get_yticks() if low - 1e-9 <= tick <= high + 1e-9]) >= 3


def test_equal_eigenvalues_are_counted() -> None:
    double = fl.linearize(OdeModel("two lags", {"x": "-x", "y": "-y", "z": "-3*z"}))
    (axes,) = double.plot.eigenvalues().axes
    assert [t.get_text() for t in axes.texts if "×" in t.get_text()] == ["× 2"]
