"""Folds of branches with a closed form: where they are, and how few steps find them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.families.continuation import ContinuationPoint
from fmilin.families.folds import Fold, locate_fold
from fmilin.models import OdeModel


def parabola(fold: float) -> tuple[str | None, int]:
    """Follow 0 = fold - p - z^2 from p = -1 to p = 2: its derivative 2 z goes as the root of the way to the fold."""
    asked = 0

    def at(values: Mapping[str, float]) -> ContinuationPoint:
        unused: Any = None
        return ContinuationPoint(dict(values), unused, unused, None)

    def onward(values: Mapping[str, float], _predecessor: ContinuationPoint) -> ContinuationPoint | None:
        nonlocal asked
        asked += 1
        return at(values) if values["p"] <= fold else None

    said = locate_fold(at({"p": -1.0}), {"p": 2.0}, onward, lambda at: 2 * np.sqrt(fold - at.values["p"]))
    return said.sentence if isinstance(said, Fold) else None, asked


@pytest.mark.parametrize("fold", [0.3, 1.0 / 3.0, 1.7])
def test_two_points_tell_where_a_branch_turns_back(fold: float) -> None:
    said, asked = parabola(fold)
    assert said is not None
    assert f"at p = {fold:.9g} (a fold" in said
    assert asked <= 20  # each leaves 0.3 of the way: 16 for 1e-8


def test_a_branch_that_goes_on_has_no_fold() -> None:
    assert parabola(3.0)[0] is None


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_sweep_goes_on_beyond_a_fold(sign: float) -> None:
    """x' = F - x^3 + x: the branch from below ends at F = 2/sqrt(27), where that above has always been."""
    model = OdeModel("snap", {"x": "F - x**3 + x"}, inputs=["F"])
    forces = sign * np.linspace(-0.6, 0.6, 25)
    family = fl.sweep(model, {"F": forces}, trim=fl.TrimRequest())
    assert family.ok.all()
    fold, end = 2 / np.sqrt(27), -1 / np.sqrt(3)
    behind = sign * forces > fold
    for i, force in enumerate(forces):
        roots = np.roots([-1.0, 0.0, 1.0, force])
        real = np.sort(sign * roots[np.abs(roots.imag) < 1e-9].real)
        assert sign * family[i].point.states["x"] == pytest.approx(real[-1] if behind[i] else real[0], abs=1e-9)
    (remark,) = (r for r in family[int(np.argmax(behind))].warnings if r.kind == "branch")
    told = re.search(
        r"at F = (\S+) \(a fold.* This point lies farther along it, around the fold: x = (\S+), at the fold (\S+)\.$",
        str(remark),
    )
    assert told is not None
    expected = (fold, sign * family[int(np.argmax(behind))].point.states["x"], end)
    assert [sign * float(number) for number in told.groups()] == pytest.approx(expected, abs=5e-3)


def test_where_there_is_no_other_branch_the_fold_is_told() -> None:
    model = OdeModel("ends", {"x": "x**2 - p", "p_": "-p_"}, parameters={"p": 1.0}, start={"x": 1.0})
    family = fl.sweep(model, {"p": [1.0, 0.5, 0.1, -0.1, -0.5]}, trim=fl.TrimRequest())
    assert family.ok.tolist() == [True, True, True, False, False]


def test_points_that_are_solved_together_do_not_jump_to_another_branch() -> None:
    """x' = F + a x - x^3: a run over a that begins at -0.447 had gone on at +0.894 and 0, without a word."""
    cusp = OdeModel("cusp", {"x": "F + a*x - x^3"}, inputs=["F", "a"], start={"x": -1.2})
    family = fl.sweep(cusp, {"F": np.linspace(-0.6, 0.6, 9), "a": np.linspace(0.2, 1.4, 5)}, trim=fl.TrimRequest())
    assert family.ok.all()
    assert (np.sign(family.x0[..., 0]) == np.where(family.axes["F"] < 0.1, -1.0, 1.0)[:, None]).all()
    told = [k for k in np.ndindex(family.shape) if any(w.kind == "branch" for w in family[k].warnings)]
    assert told == [(5, 0)]


@pytest.mark.parametrize("count", [7, 40])
@pytest.mark.parametrize("ahead", [True, False])
def test_a_fold_of_many_branches_is_told_and_gone_around(count: int, ahead: bool) -> None:
    """F = p(x) with five real roots: there is always one, and what no smooth way leads to says so."""
    p = np.poly([-1.24, -0.62, 0.13, 1.01, 1.87])
    text = " + ".join(f"({c!r})*x^{5 - i}" for i, c in enumerate(p.tolist()))
    turns = np.polyval(p, np.roots(np.polyder(p)).real)
    forces = np.linspace(turns.min() - 0.5, turns.max() + 0.5, count)[:: 1 if ahead else -1]
    family = fl.sweep(
        OdeModel("p", {"x": f"F - ({text})"}, inputs=["F"], start={"x": -1.3}), {"F": forces}, trim=fl.TrimRequest()
    )
    x = family.x0[..., 0]
    assert family.ok.all()
    assert np.polyval(p, x) == pytest.approx(forces, abs=1e-8)
    for k in range(count - 1):
        goes_on = np.polyval(np.polyder(p), np.linspace(x[k], x[k + 1], 200)) > 0  # the branch goes on where p rises
        falls = np.polyval(np.polyder(p), np.linspace(x[k], x[k + 1], 200)) < 0
        assert goes_on.all() or falls.all() or any(w.kind == "branch" for w in family[k + 1].warnings)


def test_a_toggle_snaps_over_its_centre() -> None:
    """A strut of length 1 from a pivot to a slider on a spring: F = k (x - x0) y/x, most where x^3 = x0."""
    pull = "(vx^2 + vy^2 - k*x*(x - x0) - c*x*vx - y*F - c*y*vy)/(x^2 + y^2)"
    model = OdeModel(
        "toggle",
        {"x": "vx", "y": "vy", "vx": f"-{pull}*x - k*(x - x0) - c*vx", "vy": f"-{pull}*y - F - c*vy"},
        inputs=["F"],
        parameters={"k": 10.0, "x0": 0.8, "c": 1.0},
        start={"x": 0.8, "y": 0.6},
        constraints=["x^2 + y^2 - 1", "x*vx + y*vy"],
    )
    forces = np.linspace(0.0, 3.0, 13)
    family = fl.sweep(model, {"F": forces}, trim=True)
    x, y = (np.array([family[k].point.states[n] for k in range(13)]) for n in "xy")
    most = 10.0 * (1 - 0.8 ** (2 / 3)) ** 1.5
    assert np.array_equal(y < 0, forces > most)
    assert 10.0 * (x - 0.8) * y / x == pytest.approx(forces, abs=1e-8)
    told = [(k, str(w)) for k in range(13) for w in family[k].warnings if w.kind == "branch"]
    assert [k for k, _ in told] == [3]
    assert float(told[0][1].split()[7]) == pytest.approx(most, abs=1e-7)


def test_true_is_a_trim_of_nothing_but_what_varies() -> None:
    family = fl.sweep(OdeModel("tank", {"h": "q - h"}, inputs=["q"]), {"q": [1.0, 2.0]}, trim=True)
    assert [family[k].point.states["h"] for k in range(2)] == [1.0, 2.0]
