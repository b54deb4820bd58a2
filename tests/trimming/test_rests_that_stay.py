"""Rests at which the motion stays: by descent, by damped motion; how many eigenvalues grow, in every report."""

from __future__ import annotations

import json
from math import log, pi, sqrt
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import Labels, OdeModel
from fmilin.systems import cartesian_pendulum, four_bar, loader
from tests.by_hand import pendulum
from tests.cli.conftest import shell

ARMS = Path(__file__).with_name("arms.toml")


def test_three_bodies_on_four_ball_joints_hang() -> None:
    """Arms of 0.5 m lean inwards over (0.9 - 0.4)/2 m: the object hangs sqrt(0.5^2 - 0.25^2) below the shoulders."""
    model = fl.load(ARMS)
    point = fl.trim(model, stable=True)
    assert point.report.unstable == 0
    # Arms on two ball joints spin freely about their own axes: a push makes them turn on and on.
    assert point.report.stable is False
    # Each of the three bodies may be turned about its own axis by any angle: one family, in which nothing is multiple.
    assert [remark.kind for remark in point.report.remarks] == ["family", "drift"]
    assert len(point.report.free_directions) == 3
    assert not point.report.multiple
    assert model.evaluate(0.0, point.states, point.inputs).outputs[0] == pytest.approx(-sqrt(0.1875), abs=1e-6)


@pytest.mark.parametrize("angle", [0.5, 2.0, 3.1, pi])
def test_a_pendulum_hangs_from_wherever_it_starts(angle: float) -> None:
    point = fl.trim(cartesian_pendulum(angle=angle), stable=True)
    assert point.states == pytest.approx([0.0, -1.0, 0.0, 0.0], abs=1e-9)
    assert point.report.unstable == 0
    assert point.report.eigenvalues is not None
    assert abs(point.report.eigenvalues) == pytest.approx([sqrt(9.81), sqrt(9.81)])


def test_a_free_input_that_no_constraint_contains_leaves_the_derivatives_exact() -> None:
    """Measured ones would not tell whether the pendulum that a force holds aside is damped, by 2e-5/s."""
    point = fl.trim(pendulum(angle=0.5, exact=True), fixed={"x": 0.65}, free=["F"])
    assert point.inputs == pytest.approx([2 * 9.81 / sqrt(3)])
    assert point.report.stability is not None
    assert point.report.stability.text.startswith("neutral to first order")


def test_a_saddle_is_counted() -> None:
    """Upright: +-sqrt(g/L), one of two."""
    point = fl.trim(cartesian_pendulum(angle=pi))
    assert (point.report.unstable, point.report.is_stable) == (1, False)
    assert point.report.eigenvalues == pytest.approx([-sqrt(9.81), sqrt(9.81)])


@pytest.mark.parametrize(("start", "end"), [(0.01, 1.0), (-0.01, -1.0), (0.9, 1.0)])
def test_a_well_of_first_order(start: float, end: float) -> None:
    point = fl.trim(OdeModel("well", {"x": "x - x^3"}, start={"x": start}), stable=True)
    assert point.states[0] == pytest.approx(end, rel=1e-12)


def test_four_wells_from_the_tops_between_them() -> None:
    """Every push away from an unstable equilibrium leads along one of four directions, and the others stay on top."""
    model = OdeModel("wells", {f"x{k}": f"x{k} - x{k}^3" for k in range(4)})
    assert np.abs(fl.trim(model, stable=True).states) == pytest.approx(np.ones(4))


def test_a_rest_in_a_ditch_is_not_leapt_over_from_a_slope_without_curvature() -> None:
    """x' = -1 up to a ditch of width 0.3 around -2, in which x' = 0 at 0.3 sqrt(log 2) from its middle."""
    model = OdeModel("ditch", {"x": "-1 + 2*exp(-((x + 2)/0.3)^2)"}, start={"x": 1.0})
    assert fl.trim(model, stable=True).states + 2 == pytest.approx([0.3 * sqrt(log(2))])


@pytest.mark.parametrize("further", [{}, {"s": "v - s"}])
def test_a_speed_that_no_position_follows_has_a_rest_of_its_own(further: dict[str, str]) -> None:
    """A state in m/s that is the rate of no other one is not set to zero on the way."""
    labels = Labels(units={"v": "m/s"})
    start = {"v": 0.3, **dict.fromkeys(further, 1.0)}
    model = OdeModel("cruise", {"v": "v*(10 - v)/10", **further}, start=start, labels=labels)
    assert fl.trim(model, stable=True)["v"] == pytest.approx(10)


def test_a_loop_falls_into_its_well() -> None:
    """The four-bar's rests: 2.2343 stays, 0.7765 does not."""
    point = fl.trim(four_bar(), guess={"phi": 0.9}, stable=True)
    assert fl.trim(four_bar(), guess={"phi": 0.9}).report.unstable == 1
    assert point.report.is_stable
    slopes = np.linalg.eigvals(fl.linearize(four_bar(), point).A)
    assert max(slopes.real) < 1e-9


def test_a_stable_rest_of_a_machine_with_loops() -> None:
    assert fl.trim(loader(), stable=True).report.is_stable


def test_a_rest_that_nothing_holds_is_refused_in_words(tmp_path: Path) -> None:
    model = OdeModel("oscillator", {"x": "v", "v": "(1 - x^2)*v - x"}, start={"x": 0.1})
    with pytest.raises(fl.NumericalError, match=r"No stable equilibrium .* is unstable: 2 of 2 eigenvalues"):
        fl.trim(model, stable=True)
    done = shell(["trim", "fmilin.systems:four_bar", "--stable", "--fix", "phi=1", "--free", "torque"], tmp_path)
    assert done.status == 5
    assert done.is_one_paragraph()
    assert "1 of 2 eigenvalues has a positive real part" in done.err


def test_a_motion_is_no_rest() -> None:
    with pytest.raises(fl.UsageError, match="'x' may move, but a stable equilibrium is requested"):
        fl.trim(cartesian_pendulum(), steady=["x"], stable=True)


def test_the_command_line_counts_what_grows(tmp_path: Path) -> None:
    done = shell(["trim", "fmilin.systems:cartesian_pendulum(angle=3.1)", "--json"], tmp_path)
    assert json.loads(done.out)["unstable"] == 1
    shown = shell(["trim", "fmilin.systems:cartesian_pendulum(angle=3.1)", "--stable"], tmp_path)
    assert "Stability    neutral to first order: no deviation" in shown.out


class TestManyStarts:
    def test_a_rest_nine_sizes_away_is_found(self) -> None:
        model = OdeModel("three", {"x": "-x*(x - 5)*(x - 9)", "v": "-v + sqrt(x + 1)"}, start={"x": 0.3})
        rests = fl.operating_points(model, starts=20)
        assert sorted(round(float(rest.states[0]), 9) for rest in rests) == [0.0, 5.0, 9.0]
        assert len(rests.stable) == 2

    def test_where_two_rests_meet_stability_is_not_told(self) -> None:
        """A vanishes at x = 1 alone: rounding of the point decides its sign elsewhere."""
        point = fl.trim(OdeModel("double", {"x": "-(x - 1)^2*(x + 3)"}, start={"x": 0.3}))
        assert point.report.stability is not None
        assert point.report.stability.stable is None

    def test_all_rests_of_two_wells_and_which_stay(self) -> None:
        rests = fl.operating_points(OdeModel("wells", {"x": "v", "v": "x - x^3 - v"}), starts=20)
        assert sorted(round(float(p.states[0]), 9) for p in rests.stable) == [-1.0, 1.0]
        assert [p.report.unstable for p in rests] == [0, 0, 1]
        lines = repr(rests).splitlines()
        assert (lines[0], lines[3]) == ("3 equilibria, 2 of them stable", "unstable: x = 0, v = 0")
        assert sorted(lines[1:3]) == ["stays: x = -1, v = 0", "stays: x = 1, v = 0"]

    def test_rests_of_a_family_count_once(self) -> None:
        rests = fl.operating_points(fl.load(ARMS), starts=6)
        assert [p.report.unstable for p in rests].count(0) == 1

    def test_targets_and_bounds_hold_for_each(self) -> None:
        model = OdeModel("wells", {"x": "v", "v": "x - x^3 - v + F"}, inputs=["F"], outputs={"y": "x - F"})
        rests = fl.operating_points(model, fixed={"y": 0.25}, free=["F"], bounds={"x": (-2.0, 2.0)}, starts=20)
        roots = np.roots([1.0, 0.0, -2.0, 0.25])  # x^3 - x = F = x - 1/4
        assert sorted(float(p.states[0]) for p in rests) == pytest.approx(sorted(roots.real), rel=1e-9)

    def test_the_picture_shows_them(self) -> None:
        rests = fl.operating_points(four_bar(), starts=12)
        axes = rests.plot("phi", "x0").axes[0]
        assert axes.get_xlabel().startswith("phi")
        shown = {line.get_label(): len(line.get_xdata()) for line in axes.lines}  # type: ignore[arg-type]
        assert shown["starts"] == len(rests.starts)
        assert shown["stable"] == len(rests.stable)

    def test_nothing_to_be_found_is_said(self) -> None:
        with pytest.raises(fl.NumericalError, match=r"None of 6 starts leads to an equilibrium"):
            fl.operating_points(OdeModel("drift", {"x": "1 + x^2"}), starts=6)
        with pytest.raises(fl.UsageError, match="must be at least 1, not 0"):
            fl.operating_points(four_bar(), starts=0)
