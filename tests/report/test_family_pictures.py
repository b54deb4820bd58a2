"""Pictures of families: tracked modes, Campbell's diagram, surfaces; all against a plant known in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.text import Annotation

import fmilin as fl
from fmilin.families.family_builder import build_family
from fmilin.models import OdeModel
from fmilin.report.family_pictures import compute_quantity
from fmilin.report.figures import render_figure
from fmilin.systems import cartesian_pendulum, four_bar
from tests.families.plants import oscillator
from tests.hand_made import sized

K = np.linspace(1.0, 9.0, 17)
D = np.linspace(-0.5, 1.0, 7)


@pytest.fixture(scope="module")
def line() -> fl.LinearFamily:
    return fl.sweep(oscillator(), {"k": K})


@pytest.fixture(scope="module")
def grid() -> fl.LinearFamily:
    return fl.sweep(oscillator(), {"k": K, "d": D})


def curves(axes: object) -> list[np.ndarray]:
    lines = [np.asarray(x.get_xydata()) for x in axes.lines]  # type: ignore[attr-defined]
    return [x for x in lines if len(x) == len(K)]


def test_eigenvalues_over_the_axis_are_tracked_modes(line: fl.LinearFamily) -> None:
    real, imaginary = line.plot.eigenvalues().axes
    for curve in curves(real):
        np.testing.assert_allclose(curve, np.column_stack((K, np.full(len(K), -0.1))), rtol=1e-7)
    tops = sorted(curve[-1, 1] for curve in curves(imaginary))
    np.testing.assert_allclose(tops, [-np.sqrt(9 - 0.01), np.sqrt(9 - 0.01)], rtol=1e-7)
    assert "[rad/s]" in imaginary.get_ylabel()


def test_a_root_locus_has_every_point(grid: fl.LinearFamily) -> None:
    axes = grid.plot.root_locus().axes[0]
    points = np.concatenate([np.asarray(c.get_offsets()) for c in axes.collections])
    drawn = {(round(x, 9), round(y, 9)) for x, y in points.tolist()}
    expected = grid.eigenvalues.ravel()
    assert drawn == {(round(s.real, 9), round(s.imag, 9)) for s in expected.tolist()}
    labels = [c.get_label() for c in axes.collections]
    assert labels[0] == "k = 1"
    assert labels[-1] == "k = 9"
    ends = {text.get_text(): text.xy for text in reversed(axes.texts) if isinstance(text, Annotation)}
    assert ends["-0.5"] == pytest.approx((0.25, np.sqrt(9 - 0.25**2)))
    assert ends["1"] == pytest.approx((-0.5, np.sqrt(9 - 0.5**2)))


def test_a_grid_with_more_lines_than_marks_is_drawn_whole_and_labels_do_not_overlap() -> None:
    family = fl.sweep(oscillator(), {"k": np.linspace(1.0, 9.0, 26), "d": [0.2, 0.4]})
    axes = family.plot.root_locus().axes[0]
    assert sum(len(np.asarray(c.get_offsets())) for c in axes.collections) == 2 * 2 * 26
    assert "26 lines, k = 1 first" in axes.get_legend_handles_labels()[1]
    close = fl.sweep(oscillator(), {"k": [2100.0, 2100.5, 2101.0]}).plot.root_locus().axes[0]
    assert [t.get_text() for t in close.texts if t.get_text().startswith("21")] == ["2101"]


def test_a_surface_that_is_constant_says_so() -> None:
    family = fl.sweep(oscillator(), {"k": [1.0, 2.0, 3.0], "F": [0.0, 1.0, 2.0]})
    title = family.plot.surface("A[v,v]").axes[0].get_title(loc="left")
    assert title == "constant: -0.2 at all 9 points"


def test_a_campbell_diagram_fills_its_range() -> None:
    frequency = fl.sweep(oscillator(), {"k": [2100.0, 2300.0, 2500.0]}).plot.campbell().axes[0]
    assert frequency.get_ylim()[0] > 45.0


def make_overdamped_family() -> fl.LinearFamily:
    """x'' + 2 x' + k x = 0: -1 +- sqrt(1 - k), a real pair that meets at k = 1."""
    model = OdeModel("damped", {"x": "v", "v": "-2*v - k*x"}, parameters={"k": 1.0})
    return fl.sweep(model, {"k": [0.0, 0.5, 1.5]})


def test_a_root_locus_leads_through_the_point_where_a_real_pair_meets() -> None:
    axes = make_overdamped_family().plot.root_locus().axes[0]
    paths = [np.asarray(line.get_xydata()) for line in axes.lines if len(np.asarray(line.get_xydata())) > 30]
    assert len(paths) == 2
    for path in paths:
        assert np.abs(path - [-1.0, 0.0]).sum(axis=1).min() < 1e-12
        is_on_the_locus = (np.abs(path[:, 0] + 1.0) < 1e-12) | (path[:, 1] == 0.0)
        assert is_on_the_locus.all()


def test_a_campbell_diagram_shows_a_single_point_on_the_whole_axis_and_counts_real_eigenvalues() -> None:
    frequency = make_overdamped_family().plot.campbell().axes[0]
    (mark,) = (line for line in frequency.lines if line.get_marker() == ".")
    np.testing.assert_allclose(np.asarray(mark.get_xydata()), [[1.5, np.sqrt(0.5)]], rtol=1e-9)
    assert frequency.get_xlim()[0] < 0.0
    assert frequency.get_title(loc="left") == "4 of 6 eigenvalues are real: they have no frequency"


def test_campbell_has_frequencies_and_multiples_of_the_axis(line: fl.LinearFamily) -> None:
    frequency, damping = line.plot.campbell(orders=[0.25], hertz=True).axes
    mode, order = curves(frequency)
    np.testing.assert_allclose(mode[:, 1], np.sqrt(K - 0.01) / (2 * np.pi), rtol=1e-7)
    np.testing.assert_allclose(order[:, 1], 0.25 * K / (2 * np.pi))
    assert frequency.get_ylabel() == "frequency [Hz]"
    np.testing.assert_allclose(curves(damping)[0][:, 1], 0.1 / np.sqrt(K), rtol=1e-7)


def test_rounding_of_modes_without_damping_is_no_instability(grid: fl.LinearFamily) -> None:
    frequency, damping = grid[:, 2].plot.campbell().axes
    assert D[2] == 0
    assert damping.get_ylim() == (-0.01, 0.01)
    assert not damping.patches
    assert "unstable" not in frequency.get_legend_handles_labels()[1]


def test_what_grows_is_marked(grid: fl.LinearFamily) -> None:
    frequency = grid[:1].plot.campbell().axes[0]
    (marks,) = [x for x in frequency.lines if x.get_marker() == "o" and len(np.asarray(x.get_xdata()))]
    assert np.asarray(marks.get_xdata()).tolist() == D[D < 0].tolist()


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ("growth", lambda k, d: -d / 2 + 0 * k),
        ("damping", lambda k, d: d / 2 / np.sqrt(k)),
        ("frequency", lambda k, d: np.sqrt(k - d * d / 4)),
        ("A[v,q]", lambda k, d: -k + 0 * d),
        ("A[2,2]", lambda k, d: -d + 0 * k),
        ("B[v,F]", lambda k, d: 1.0 + 0 * k * d),
    ],
)
def test_surfaces_are_closed_forms(
    grid: fl.LinearFamily, quantity: str, expected: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> None:
    values, _ = compute_quantity(grid, quantity)
    k, d = np.meshgrid(K, D, indexing="ij")
    np.testing.assert_allclose(values, expected(k, d), rtol=1e-6, atol=1e-8)
    axes = grid.plot.surface(quantity).axes
    assert (axes[0].get_xlabel(), axes[0].get_ylabel()) == ("d", "k")
    assert axes[1].get_ylabel()


def test_failed_points_leave_holes() -> None:
    family = fl.sweep(cartesian_pendulum(), {"x": [0.0, 0.3, 0.6, 1.4], "F": [0.0, 1.0, 2.0]})
    figure = family.plot.surface("frequency")
    assert np.ma.asarray(figure.axes[0].collections[0].get_array()).count() == int(family.ok.sum()) == 9
    assert render_figure(family.plot.root_locus(), ".svg").startswith(b"<?xml")


def test_what_cannot_be_drawn_is_refused(line: fl.LinearFamily, grid: fl.LinearFamily) -> None:
    stateless = build_family([sized(0, 0, 1, 1)], {"n": [1.0]})
    with pytest.raises(fl.UsageError, match="a line of 17"):
        line.plot.surface()
    with pytest.raises(fl.UnknownNameError, match="damping"):
        grid.plot.surface("dampin")
    with pytest.raises(fl.UsageError, match=r"A\[v,nix\] is not an entry"):
        grid.plot.surface("A[v,nix]")
    with pytest.raises(fl.UsageError, match="No point of the family"):
        fl.sweep(cartesian_pendulum(), {"x": [2.0, 3.0]}).plot.root_locus()
    with pytest.raises(fl.UsageError, match="No mode of the family oscillates"):
        fl.sweep(oscillator(), {"d": [10.0, 12.0]}).plot.campbell()
    with pytest.raises(fl.UsageError, match="have no states"):
        stateless.plot.eigenvalues()


def test_pictures_are_the_same_twice(line: fl.LinearFamily) -> None:
    one, two = (render_figure(line.plot.root_locus(), ".svg") for _ in range(2))
    assert one == two


def test_a_pair_is_one_mode(line: fl.LinearFamily) -> None:
    real, _ = line.plot.eigenvalues().axes
    assert [label for label in real.get_legend_handles_labels()[1] if label.startswith("mode")] == ["mode 1"]
    two = fl.sweep(OdeModel("two", {"a": "b", "b": "-k*a - 0.1*b", "c": "d", "d": "-9*k*c - 0.1*d"},
                            parameters={"k": 4.0}), {"k": K})  # fmt: skip
    labels = two.plot.campbell().axes[0].get_legend_handles_labels()[1]
    assert labels == ["mode 1", "mode 2"]


def test_a_root_locus_is_as_wide_as_its_real_parts() -> None:
    """Poles between -0.06 and 0 beside frequencies of 7 rad/s."""
    stiff = OdeModel("stiff", {"q": "v", "v": "-49*q - d*v"}, parameters={"d": 0.0})
    family = fl.sweep(stiff, {"d": np.linspace(0.0, 0.12, 5)})
    axes = family.plot.root_locus().axes[0]
    left, right = axes.get_xlim()
    assert len([t for t in axes.texts if t.get_text().startswith("0.0")]) >= 3  # rays of damping with their ratios
    assert -0.09 < left < -0.06
    assert 0.0 < right < 0.03


def sample(gain: float) -> fl.LinearModel:
    """Return a sampled model with the multipliers +- 0.5 i and -gain, every 0.1 s."""
    A = np.array([[0.0, 1.0, 0.0], [-0.25, 0.0, 0.0], [0.0, 0.0, -gain]])
    return replace(sized(3, 0, 1, 1), A=A, sample_time=0.1)


def test_a_sampled_root_locus_stands_beside_the_unit_circle() -> None:
    gains = np.array([0.8, 1.0, 1.3])
    family = build_family([sample(gain) for gain in gains], {"gain": gains})
    axes = family.plot.root_locus().axes[0]
    points = np.concatenate([np.asarray(c.get_offsets()) for c in axes.collections])
    assert {(round(x, 12), round(y, 12)) for x, y in points} == {
        (0.0, 0.5), (0.0, -0.5), (-0.8, 0.0), (-1.0, 0.0), (-1.3, 0.0),
    }  # fmt: skip
    circle = np.asarray(axes.patches[0].get_path().vertices)
    np.testing.assert_allclose(np.hypot(circle[:, 0], circle[:, 1]), 1.0)
    assert axes.get_xlabel() == "real part of z"


def test_growth_of_a_sampled_family_is_that_of_its_logarithms() -> None:
    gains = np.array([0.8, 1.0, 1.3])
    family = build_family([sample(gain) for gain in gains], {"gain": gains})
    growth, label = compute_quantity(family, "growth")
    np.testing.assert_allclose(growth, np.log(gains) / 0.1, atol=1e-12)
    assert label == "largest real part [1/s]"
    frequency, _ = compute_quantity(family, "frequency")
    np.testing.assert_allclose(frequency, np.pi / 2 / 0.1)
    real = family.plot.eigenvalues().axes[0]
    curves_of_modes = [np.asarray(line.get_ydata()) for line in real.lines]
    tops = sorted(float(curve[-1]) for curve in curves_of_modes if len(curve) == len(gains))
    np.testing.assert_allclose(tops, [*[np.log(0.5) / 0.1] * 2, np.log(1.3) / 0.1], atol=1e-12)


def test_a_dead_beat_decays_at_all_points_of_a_sampled_family() -> None:
    """The logarithm of z = 0 is -inf: it is neither neutral nor the rightmost."""
    dead = replace(sized(2, 0, 1, 1), A=np.diag([0.0, 0.5]), sample_time=0.1)
    family = build_family([dead, dead], {"gain": [1.0, 2.0]})
    np.testing.assert_allclose(compute_quantity(family, "growth")[0], np.log(0.5) / 0.1)


def test_points_that_are_varied_together_are_coloured_by_what_varies() -> None:
    family = fl.batch(four_bar()).at({"phi": [1.0, 1.1, 1.2], "torque": [0.0, 0.0, 0.0]})
    labels = [axes.get_ylabel() for axes in family.plot.root_locus().axes]
    assert any("phi" in label for label in labels)
    assert not any("torque" in label for label in labels)
