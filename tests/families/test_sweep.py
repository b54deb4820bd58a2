"""Sweeps against closed forms: grids, lists, trimmed points, folds, batches, failures."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import fmilin as fl
from fmilin.adapters import Remark
from fmilin.families import solver
from fmilin.families.family_builder import FamilyBuilder, build_outcome
from fmilin.families.grid import build_grid
from fmilin.models import OdeModel
from fmilin.systems import bicycle, cartesian_pendulum, four_bar, rolling_disk
from tests.families.plants import buckling, fold_of, oscillator
from tests.systems.test_bicycle import LEAN_AND_STEER, canonical
from tests.systems.turns import steady_yaw_rates

ROLLING = ["x", "y", "rear_wheel", "front_wheel", "rear_rate"]


def test_a_grid_has_every_combination_and_the_last_axis_runs_fastest() -> None:
    family = fl.sweep(oscillator(), {"k": [1.0, 4.0, 9.0], "d": [0.0, 0.2]}, outputs=["der(v)"])
    assert family.shape == (3, 2)
    assert list(family.axes) == ["k", "d"]
    for i, k in enumerate((1.0, 4.0, 9.0)):
        for j, d in enumerate((0.0, 0.2)):
            np.testing.assert_allclose(family.A[i, j], np.array([[0, 1], [-k, -d]]), atol=1e-14)
            linear = family[i, j]
            assert linear.point.parameters == {"k": k, "d": d}
            assert linear.outputs.names == ("der(v)",)
            assert family[2 * i + j].point == linear.point
    assert family[1:, 1].shape == (2,)
    assert family[1:, 1][1].A[1, 0] == -9.0
    assert len(family.to_control()) == len(list(family)) == 6


def test_lists_walk_together() -> None:
    family = fl.sweep(oscillator(), {"k": [1.0, 4.0], "F": [0.5, 2.0]}, zipped=True, trim=fl.TrimRequest())
    assert family.shape == (2,)
    np.testing.assert_allclose(family.x0[:, 0], [0.5, 0.5], rtol=1e-10)


def test_the_bicycle_over_its_speeds_is_the_canonical_form() -> None:
    speeds = np.linspace(0.5, 10.0, 60)
    radius = bicycle().parameters["r_R"]
    family = fl.sweep(bicycle(), {"rear_rate": -speeds / radius}, trim=fl.TrimRequest(steady=ROLLING))
    assert family.ok.all()
    rows = [family.states.names.index(n) for n in LEAN_AND_STEER]
    for A, speed in zip(family.A, speeds, strict=True):
        np.testing.assert_allclose(A[np.ix_(rows, rows)], canonical(speed), rtol=1e-9, atol=1e-9)
    assert int((family.array("visits")[:, 0] == 0).sum()) > 40  # most of them in batches


@pytest.mark.parametrize("b", [0.85, 0.9])
def test_a_fold_is_found_and_named(b: float) -> None:
    fold = fold_of(b)
    forces = np.linspace(0.0, 1.3 * fold, 27)
    family = fl.sweep(buckling(), {"F": forces}, trim=fl.TrimRequest(), settings={"b": b, "x": np.sqrt(1 - b**2)})
    before = forces < fold
    assert family.ok[before].all()
    x = family.x0[before, 0]
    np.testing.assert_allclose(200 * x * (1 / np.sqrt(b**2 + x**2) - 1), forces[before], atol=1e-7)
    assert (200 * (b**2 / (b**2 + x**2) ** 1.5 - 1) < 0).all()  # the stable branch, up to the fold
    said = [str(r) for k in np.flatnonzero(~before) for r in family.remarks.get(int(k), ())]
    said += [str(r) for r in family.reasons[~before]]
    places = [float(m[1]) for text in said for m in [re.search(r"turns back at F = ([-+.e0-9]+)", text)] if m]
    assert places
    np.testing.assert_allclose(places, fold, rtol=1e-6)


def test_a_fold_inside_a_grid_of_two_parameters() -> None:
    forces, widths = np.linspace(0.0, 4.0, 9), np.array([0.85, 0.9, 0.95])
    family = fl.sweep(buckling(), {"b": widths, "F": forces}, trim=fl.TrimRequest())
    for i, b in enumerate(widths):
        snapped = False
        for j, force in enumerate(forces):
            if force < 0.999 * fold_of(b):
                assert family.ok[i, j]
                assert family.x0[i, j, 0] > 0
            elif family.ok[i, j]:
                assert family.x0[i, j, 0] < 0  # snapped through: said once, and then the other branch is followed
                assert snapped or "branch" in [r.kind for r in family[i, j].warnings]
                snapped = True
            else:
                assert "a fold" in family.reasons[i, j]


def test_steady_turns_of_the_disk() -> None:
    speeds = np.linspace(1.5, 3.0, 7)
    for lean in (0.2, 0.5):
        rates = np.array([steady_yaw_rates(v, lean)[0] for v in speeds])
        u2, u3 = np.sin(lean) * rates - speeds, np.cos(lean) * rates
        given = {"q2": np.full(7, lean) + 1e-12 * np.arange(7), "u2": u2, "u3": u3}
        family = fl.sweep(rolling_disk(2.0, lean=lean), given, zipped=True, settings={"u1": 0.0, "q3": 0.0, "q1": 0.0})
        assert family.ok.all(), family.reasons
        square = [
            0.8 * np.cos(lean) - w**2 - 2.8 * np.sin(lean) * w * q3 - 2.4 * q3**2
            for w, q3 in zip(rates, u2 - np.tan(lean) * u3, strict=True)
        ]
        largest = np.array([w[np.argmax(np.abs(w))] ** 2 for w in family.eigenvalues])
        np.testing.assert_allclose(largest.real, square, rtol=1e-6)


def test_a_batch_says_what_points_say_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    angles = {"phi": np.linspace(0.4, 2.6, 40)}
    for trim in (None, fl.TrimRequest(free=["torque"])):
        batch = fl.sweep(four_bar(), angles, trim=trim)
        with monkeypatch.context() as patched:
            patched.setattr(solver, "MIN_BATCH_POINTS", 10**9)
            single = fl.sweep(four_bar(), angles, trim=trim)
        assert int((batch.array("visits")[:, 0] == 0).sum()) > 30
        assert not (single.array("visits")[:, 0] == 0).any()
        for name in ("A", "B", "C", "D", "T", "f0", "x0", "u0"):
            np.testing.assert_allclose(batch.array(name), single.array(name), rtol=1e-9, atol=1e-8)
        torque = 19.62 * np.cos(angles["phi"]) - 25 * (2 * np.cos(angles["phi"] / 2) - np.sqrt(2)) * np.sin(
            angles["phi"] / 2
        )
        if trim is not None:
            np.testing.assert_allclose(batch.u0[:, 0], torque, rtol=1e-8, atol=1e-8)


def test_a_failed_point_has_its_reason_and_stops_nothing() -> None:
    family = fl.sweep(cartesian_pendulum(length=1.0), {"x": [0.5, 1.5, 0.6]})
    assert family.ok.tolist() == [True, False, True]
    assert np.isnan(family.A[1]).all()
    assert "cannot be satisfied" in family.reasons[1]
    with pytest.raises(fl.NumericalError, match=r"no linear model at x = 1\.5"):
        family[1]
    assert family.to_control()[1] is None
    nothing = fl.sweep(cartesian_pendulum(length=1.0), {"x": [2.0, 3.0]})
    assert not nothing.ok.any()
    assert nothing.A.shape == (2, 0, 0)


def test_every_entry_between_the_points_knows_how_far_off_it_may_be() -> None:
    plant = OdeModel("curved", {"x": "-sin(3*x)*x - x + F"}, inputs=["F"])
    family = fl.sweep(plant, {"x": np.linspace(-1, 1, 9)}, trim=fl.TrimRequest(free=["F"]))
    between, x = family.interpolate({"x": -0.41}), -0.41
    off = abs(between.A[0, 0] + 3 * np.cos(3 * x) * x + np.sin(3 * x) + 1)
    assert 0.2 < off < between.errors.A[0, 0] < 5 * off
    assert between.accuracy.A * abs(between.A[0, 0]) == pytest.approx(between.errors.A[0, 0])
    moving = fl.sweep(plant, {"x": np.linspace(-1, 1, 9)}).interpolate({"x": -0.41})
    said = next(str(w) for w in moving.warnings if w.kind == "off-equilibrium")
    assert f"{moving.f0[0]:.6g} per second" in said  # that of the point between, of neither neighbour


def test_what_is_said_of_the_model_is_said_between_the_points_as_well() -> None:
    """A remark on one of the points, or on its entries, is not true of the others."""
    family = fl.sweep(oscillator(), {"k": [1.0, 2.0, 4.0]})
    said = Remark("model", "Its tables end at 5.")
    of_the_point = Remark("moved", "x: given 1, became 2.")
    family = replace(family, remarks={1: (said, of_the_point), 2: (of_the_point,)})
    assert [r.kind for r in family.interpolate({"k": 2.2}).warnings if r in (said, of_the_point)] == ["model"]
    assert said not in family.interpolate({"k": 3.8}).warnings
    assert set(family.interpolate({"k": 2.0}).warnings) >= {said, of_the_point}


def test_interpolation_and_its_error() -> None:
    family = fl.sweep(oscillator(), {"k": np.linspace(1.0, 9.0, 9), "d": [0.0, 1.0, 2.0]})
    between = family.interpolate({"k": 2.5, "d": 0.5})
    np.testing.assert_allclose(between.A, np.array([[0, 1], [-2.5, -0.5]]), atol=1e-12)
    assert family.left_out().largest < 1e-12  # linear in both
    curved = fl.sweep(cartesian_pendulum(length=1.0, gravity=1.0), {"x": np.linspace(0.0, 0.8, 9)})
    error = curved.left_out().A
    known = -np.sqrt(1 - curved.axes["x"] ** 2)
    expected = np.abs((known[:-2] + known[2:]) / 2 - known[1:-1])
    assert np.isnan(error[[0, -1]]).all()
    assert (error[1:-1] > 0.3 * expected).all()
    there = curved.interpolate({"x": 0.45})
    assert "interpolated" in [r.kind for r in there.warnings]
    assert np.isnan(fl.sweep(cartesian_pendulum(), {"x": [0.0, 0.1]}).interpolate({"x": 0.05}).errors.A).all()
    with pytest.raises(fl.UsageError, match="outside the family"):
        curved.interpolate({"x": 0.9})
    with pytest.raises(fl.UnknownNameError, match="an axis of the family"):
        curved.interpolate({"X": 0.5})


@pytest.mark.parametrize(
    ("vary", "more", "text"),
    [
        ({}, {}, "No quantity is varied"),
        ({"k": []}, {}, "do not form an axis"),
        ({"k": [1.0, np.nan]}, {}, "Value 2 of 'k' is nan"),
        ({"k": [1.0, 1.0]}, {}, "contain a value twice"),
        ({"kk": [1.0]}, {}, "'kk' is not a state, an input or a parameter"),
        ({"k": [1.0, 2.0], "d": [1.0]}, {"zipped": True}, "the same number of values"),
        ({"k": [1.0]}, {"settings": {"k": 2.0}}, "varied and set at the same time"),
        ({"F": [1.0]}, {"trim": fl.TrimRequest(free=["F"])}, "varied and free"),
        ({"F": [1.0]}, {"trim": fl.TrimRequest(fixed={"F": 1.0})}, "varied and fixed at the same time"),
        ({"k": [1.0]}, {"guess": {"q": 1.0}}, "is for trimmed points. Add trim=True"),
        ({"k": [1.0]}, {"jobs": 0}, "0 is not possible"),
        ({"k": [1.0]}, {"independent": ["z"]}, "'z' is not a state"),
        ({"k": [1.0]}, {"outputs": ["z"]}, "'z' is not an output"),
    ],
)
def test_what_cannot_be_swept_is_one_sentence(vary: dict[str, list[float]], more: dict[str, object], text: str) -> None:
    with pytest.raises(fl.UsageError, match=re.escape(text)):
        fl.sweep(oscillator(), vary, **more)  # type: ignore[call-overload]


def relaxing_by_root() -> OdeModel:
    """x' = -sqrt(a) x, which has no linear model where a is negative."""
    return OdeModel("root", {"x": "-sqrt(a)*x"}, parameters={"a": 1.0})


def test_a_point_without_a_linear_model_has_no_coordinates_and_no_error_of_interpolation() -> None:
    family = fl.sweep(relaxing_by_root(), {"a": [1.0, 4.0, -1.0, 9.0, 16.0, 25.0]})
    assert family.ok.tolist() == [True, True, False, True, True, True]
    np.testing.assert_array_equal(family.chosen, [0, 0, -1, 0, 0, 0])
    left_out, gone = family.left_out(), np.nan
    between = 3 + 2 * (16 - 9) / (25 - 9)  # of the roots 3 and 5, where 4 is right
    np.testing.assert_allclose(left_out.A, [gone, gone, gone, gone, abs(between / 4 - 1), gone], rtol=1e-12)
    np.testing.assert_array_equal(left_out.B, [0.0, 0.0, gone, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    "trim",
    [fl.TrimRequest(fixed={"z": 1.0}), fl.TrimRequest(free=["b"]), fl.TrimRequest(bounds={"q": (0.0, 1.0)})],
)
def test_a_request_that_no_point_can_answer_is_refused_before_the_first(trim: fl.TrimRequest) -> None:
    with pytest.raises(fl.UsageError, match=r"'[zbq]'"):
        fl.sweep(relaxing_by_root(), {"a": [1.0, 2.0]}, trim=trim)


@pytest.mark.parametrize(
    ("make_second", "said"),
    [
        (lambda: fl.linearize(oscillator(), outputs=["der(v)"]), "The outputs differ from those of other points."),
        (lambda: fl.linearize(bicycle()), "independent states here and 2 elsewhere"),
    ],
    ids=["outputs", "states"],
)
def test_a_linear_model_that_fits_no_family_says_what_differs(
    make_second: Callable[[], fl.LinearModel], said: str
) -> None:
    builder = FamilyBuilder(build_grid({"k": [1.0, 2.0]}))
    builder.add_all(build_outcome(k, linear) for k, linear in enumerate((fl.linearize(oscillator()), make_second())))
    assert said in builder.family().reasons[1]


def test_an_unknown_parameter_of_derivatives_is_rejected_before_the_first_point() -> None:
    with pytest.raises(fl.UnknownNameError, match=r"'foo' is not a parameter of 'four_bar'\. Known: m, k"):
        fl.sweep(four_bar(), {"phi": [1.0, 1.5]}, parameters=["foo"])


def test_an_output_that_is_varied_names_what_changes_it() -> None:
    model = fl.models.OdeModel("cart", {"x": "v", "v": "u - x"}, inputs=["u"], outputs={"speed": "3*v + u"})
    with pytest.raises(fl.UnknownNameError, match=r"'speed' is an output .* Vary what changes it: v, u\."):
        fl.sweep(model, {"speed": [1.0, 2.0]})
