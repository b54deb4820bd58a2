"""Kinks that depend on several variables together: all columns of a one-sided linear model belong to one branch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import KinkError
from fmilin.fmi.write import build_fmu
from fmilin.models import DaeModel, OdeModel
from tests.shared import shared


def activation() -> OdeModel:
    """Fast up, slow down: the dc gain is 1 in both branches."""
    start = {"a": 0.2, "u": 0.2}
    return OdeModel("activation", {"a": "max(5*(u - a), u - a)"}, inputs=["u"], outputs={"y": "a"}, start=start)


def require_one_branch(linear: fl.LinearModel) -> None:
    assert linear.A[0, 0] == pytest.approx(-linear.B[0, 0], rel=1e-8)
    assert min(abs(linear.A[0, 0] + rate) for rate in (1.0, 5.0)) < 1e-8
    assert "kink-branch" in [remark.kind for remark in linear.warnings]


def test_each_side_is_one_branch_and_both_are_found() -> None:
    sides = [fl.linearize(activation(), one_sided=side) for side in ("left", "right")]
    for linear in sides:
        require_one_branch(linear)
    assert sorted(round(linear.A[0, 0]) for linear in sides) == [-5, -1]


def test_of_an_fmu_as_well() -> None:
    path = shared("activation.fmu", lambda path: build_fmu(activation(), path))
    with fl.load(str(path)) as model:
        with pytest.raises(KinkError, match="one_sided="):
            fl.linearize(model)
        require_one_branch(fl.linearize(model, one_sided="right"))


def test_a_model_without_a_kink_has_no_remark_on_branches() -> None:
    model = OdeModel("m", {"x": "-sin(x)*cos(u) + u"}, inputs=["u"], start={"x": 0.3})
    linear = fl.linearize(model, one_sided="right")
    assert linear.A[0, 0] == pytest.approx(-np.cos(0.3), rel=1e-7)
    assert "kink-branch" not in [remark.kind for remark in linear.warnings]


def test_a_kink_that_no_variable_shows_alone_is_seen() -> None:
    model = OdeModel("both", {"a": "max(0, min(a, u))"}, inputs=["u"], start={"a": 0.0, "u": 0.0})
    with pytest.raises(KinkError, match="depends on several variables together"):
        fl.linearize(model)


def test_a_cone_has_no_branch() -> None:
    model = OdeModel("cone", {"a": "sqrt(a^2 + u^2)"}, inputs=["u"], start={"a": 0.0, "u": 0.0})
    with pytest.raises(KinkError, match="do not add up"):
        fl.linearize(model, one_sided="right")


@pytest.mark.parametrize("seed", range(20))
def test_random_pairs_of_branches_are_met_one_at_a_time(seed: int) -> None:
    """The larger of two linear functions of all variables, in each of two rates, beside a smooth part."""
    random = np.random.default_rng(seed)
    names = ["x", "y", "u"]
    rows = [[random.integers(-4, 5, 3).astype(float) for _ in range(2)] for _ in range(2)]

    def text(row: np.ndarray) -> str:
        return "+".join(f"({weight})*{name}" for weight, name in zip(row, names, strict=True))

    rates = {name: f"max({text(first)}, {text(second)})" for name, (first, second) in zip("xy", rows, strict=True)}
    model = OdeModel("m", rates, inputs=["u"], start=dict.fromkeys(names, 0.0))
    linear = fl.linearize(model, one_sided="right")
    for i, pair in enumerate(rows):
        found = np.concatenate((linear.A[i], linear.B[i]))
        assert min(np.abs(found - row).max() for row in pair) < 1e-7


def test_of_a_modelica_model_as_well(tmp_path: Path) -> None:
    pytest.importorskip("fmilin_modelica")
    text = (
        "model Act input Real u(start=0.2); output Real y=a; Real a(start=0.2, fixed=true);\n"
        "equation der(a) = if u > a then 5*(u-a) else (u-a); end Act;"
    )
    (tmp_path / "act.mo").write_text(text)
    model = fl.load(str(tmp_path / "act.mo"))
    for side in ("left", "right"):
        require_one_branch(fl.linearize(model, one_sided=side))


JOINT_KINKS = {
    "smaller of two": "-x + min(abs(x), abs(u))",
    "cone": "-x + x*u/sqrt(x^2 + u^2 + 1e-300)",
    "opposite signs": "-x + abs(x - u) - abs(x) - abs(u)",
}


@pytest.mark.parametrize("name", JOINT_KINKS)
def test_a_kink_that_no_variable_shows_alone_is_refused(name: str) -> None:
    """Along each axis these have a slope, and along both together another one to each side."""
    model = OdeModel("joint", {"x": JOINT_KINKS[name]}, inputs=["u"], outputs={"y": "x"})
    with pytest.raises(KinkError, match="several variables together"):
        fl.linearize(model)
    with pytest.raises(KinkError, match="several variables together"):
        fl.linearize(model, derivatives="differences")


def test_what_is_sharp_and_smooth_is_no_kink() -> None:
    """A hyperbola of width 1e-7 bends like a kink over longer steps, along both variables together only."""
    model = OdeModel("sharp", {"x": "-x + sqrt(x*u + 1e-14)"}, inputs=["u"], outputs={"y": "x"})
    assert fl.linearize(model).A[0, 0] == pytest.approx(-1.0, abs=1e-6)


def test_one_side_has_no_descriptor_system_of_both() -> None:
    equations = ["der(x) = -x + w", "w = max(3*(u - x), u - x)"]
    model = DaeModel("two gains", equations, inputs=["u"], outputs={"w": "w"})
    linear = fl.linearize(model, one_sided="right")
    assert linear.A[0, 0] == pytest.approx(-4.0, rel=1e-7)
    assert linear.descriptor is None
    assert "descriptor" not in [remark.kind for remark in linear.warnings]
    with pytest.raises(fl.UsageError, match="both branches of a kink"):
        fl.linearize(model, one_sided="right", descriptor=True)
