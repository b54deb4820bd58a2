"""Motions along which A changes are named, and steady ones are not accused."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from tests.by_hand import FunctionModel, Parts
from tests.motions import PERIODIC, STEADY, two_bladed_rotor


def said(linear: fl.LinearModel) -> dict[str, str]:
    return {w.kind: w.message for w in linear.warnings}


@pytest.mark.parametrize("name", PERIODIC)
def test_the_eigenvalues_of_an_instant_are_called_that(name: str) -> None:
    remarks = said(fl.linearize(*PERIODIC[name]()))
    assert "say nothing of stability" in remarks["periodic"]
    assert "steady" not in remarks


@pytest.mark.parametrize("name", STEADY)
def test_steady_motions_are_not_accused(name: str) -> None:
    remarks = said(fl.linearize(*STEADY[name]()))
    assert "periodic" not in remarks
    text = remarks.get("steady") or remarks["off-equilibrium"]
    assert "A is the same" in text or "belong to coordinates that turn" in text


def test_a_trimmed_rotor_with_two_blades_is_neutral_and_said_to_be_no_steady_motion() -> None:
    """Its eigenvalues are +0.676 +- 8.77 i at this azimuth."""
    model = two_bladed_rotor()
    point = fl.trim(model, fixed={"ps": 0.7, "v_ps": 6.0}, steady=["ps"])
    linear = fl.linearize(model, point)
    assert linear.eigenvalues().real.max() == pytest.approx(0.676, abs=1e-3)
    assert "periodic" in said(linear)


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
