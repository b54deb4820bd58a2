"""Motions along which A changes are named, and steady ones are not accused."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.systems import rolling_disk
from tests.by_hand import FunctionModel, Parts
from tests.motions import PERIODIC, STEADY, two_bladed_rotor


def said(linear: fl.LinearModel) -> dict[str, str]:
    return {w.kind: w.message for w in linear.warnings}


@pytest.mark.parametrize("name", PERIODIC)
def test_the_eigenvalues_of_an_instant_are_called_that(name: str) -> None:
    remarks = said(fl.linearize(*PERIODIC[name]()))
    assert "do not determine stability" in remarks["periodic"]
    assert "steady" not in remarks


@pytest.mark.parametrize("name", STEADY)
def test_steady_motions_are_not_accused(name: str) -> None:
    remarks = said(fl.linearize(*STEADY[name]()))
    assert "periodic" not in remarks
    text = remarks.get("steady") or remarks["off-equilibrium"]
    assert "A is the same" in text or "belong to rotating coordinates" in text


def test_a_trimmed_rotor_with_two_blades_is_neutral_and_said_to_be_no_steady_motion() -> None:
    """Its eigenvalues are +0.676 +- 8.77 i at this azimuth."""
    model = two_bladed_rotor()
    point = fl.trim(model, fixed={"ps": 0.7, "v_ps": 6.0}, steady=["ps"])
    linear = fl.linearize(model, point)
    assert linear.eigenvalues().real.max() == pytest.approx(0.676, abs=1e-3)
    assert "periodic" in said(linear)


def test_trim_says_whether_a_stays_along_its_motion() -> None:
    rotor = fl.trim(two_bladed_rotor(), fixed={"ps": 0.7, "v_ps": 6.0}, steady=["ps"])
    assert [w.kind for w in rotor.report.remarks] == ["periodic"]
    disk = fl.trim(rolling_disk(2.5), fixed={"q1": 0.0, "q4": 0.0, "q5": 0.0}, steady=["q3", "q4"])
    assert "A is the same" in {w.kind: w.message for w in disk.report.remarks}["steady"]
    shaft = OdeModel("shaft", {"psi": "w", "w": "0", "x": "v", "v": "-4*x - 0.1*w*v"}, start={"w": 3.0})
    turning = fl.trim(shaft, fixed={"psi": 0.0, "w": 3.0}, steady=["psi"])
    assert "A is the same" in {w.kind: w.message for w in turning.report.remarks}["steady"]


def test_what_time_drives_at_rest_is_seen_at_every_point_and_what_it_only_pushes_is_not() -> None:
    equations = {"x": "v", "v": "-(k + 0.5*cos(2*time))*x"}
    family = fl.sweep(OdeModel("swing", equations, parameters={"k": 1.0}), {"k": np.linspace(1.0, 2.0, 30)})
    assert all(said(linear).keys() == {"periodic"} for linear in family)
    pushed = OdeModel("pushed", {"x": "v", "v": "-x", "y": "-y + sin(time)"})
    assert not said(fl.linearize(pushed))


def test_where_nothing_depends_on_time_a_rest_is_visited_once_at_another() -> None:
    times: list[float] = []

    def swing(t: float, s: np.ndarray, _u: np.ndarray) -> np.ndarray:
        times.append(t)
        return np.array([s[1], -np.sin(s[0])])

    assert not said(fl.linearize(FunctionModel(Parts(["q", "v"], [0.0, 0.0], swing))))
    assert sum(t != 0 for t in times) == 1


@pytest.mark.parametrize("share", [0.37, 0.002])
def test_the_figure_is_that_of_the_rows(share: float) -> None:
    """v' = -(1 + share sin(psi)) x: the row changes by share sin, seen at 0.3, 0.9 and 1.98 rad."""
    rates = lambda _t, s, _u: np.array([1.0, s[2], -(1 + share * np.sin(s[0])) * s[1]])  # noqa: E731
    linear = fl.linearize(FunctionModel(Parts(["psi", "x", "v"], [0.0, 0.0, 0.0], rates)))
    changed = share * np.sin(1.98)
    assert f"A changes by {100 * changed / (1 + changed):.2g} %" in said(linear)["periodic"]


def test_what_begins_from_rest_and_what_goes_to_rest_is_told_nothing_more() -> None:
    swing = lambda _t, s, _u: np.array([s[1], -9.81 * np.sin(s[0])])  # noqa: E731
    for model in (
        FunctionModel(Parts(["q", "v"], [1.0, 0.0], swing)),
        FunctionModel(Parts(["x"], [1.0], lambda _t, s, _u: -(s**3))),
    ):
        assert said(fl.linearize(model)).keys() == {"off-equilibrium"}
        assert "along" not in said(fl.linearize(model))["off-equilibrium"]


def test_points_of_a_sweep_are_told_what_one_point_is_told() -> None:
    model = two_bladed_rotor()
    azimuths = np.linspace(0.0, 1.0, 12)
    family = fl.sweep(model, {"ps": azimuths})
    for azimuth, linear in zip(azimuths, family, strict=True):
        alone = fl.linearize(model, fl.operating_point(model, {"ps": azimuth}))
        assert said(linear)["periodic"] == said(alone)["periodic"]
