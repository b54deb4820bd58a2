"""Uncertain linear models: fractional transformations against the models at other parameters."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import UnknownNameError, UsageError
from fmilin.fmi.write import build_fmu
from fmilin.models import OdeModel
from fmilin.signals import FloatArray
from fmilin.systems import four_bar
from tests.composition.plants import oscillator
from tests.export.octave import needs_octave, run
from tests.shared import shared


def closed(u: fl.Uncertain, delta: list[float]) -> FloatArray:
    """Return [[A, B], [C, D]] of the upper transformation F_u(M, diag(delta))."""
    M, k = u.M, sum(size for _, size in u.blocks)
    D = np.diag(np.repeat(delta, [size for _, size in u.blocks]))
    P = len(M.states)
    whole = np.block([[M.A, M.B], [M.C, M.D]])
    own = [*range(P), *range(P + k, len(whole))]
    columns = [*range(P), *range(P + k, whole.shape[1])]
    block = slice(P, P + k)
    gain = np.linalg.solve(np.eye(k) - D @ whole[block, block], D)
    return np.asarray(whole[np.ix_(own, columns)] + whole[own, block] @ gain @ whole[block][:, columns])


def test_an_affine_system_is_exact() -> None:
    u = fl.uncertain(oscillator(2.0, 3.0, 0.5), None, {"c": (2.0, 4.0), "d": (0.4, 0.6)})
    assert u.blocks == (("c", 1), ("d", 1))
    assert max(float(r.max()) for r in u.remainder.values()) < 1e-13
    assert u.M.inputs.names == ("w.c[1]", "w.d[1]", "F")
    for delta in ([0.0, 0.0], [1.0, -1.0], [-0.3, 0.8]):
        true = fl.linearize(oscillator(2.0, 3.0 + delta[0], 0.5 + 0.1 * delta[1]))
        expected = np.block([[true.A, true.B], [true.C, true.D]])
        np.testing.assert_allclose(closed(u, delta), expected, atol=1e-14)
    np.testing.assert_allclose(u.M.D[:2, :2], 0.0)
    assert u.at({"c": 2.5}).point.parameters == {"c": 2.5, "d": 0.5}


def test_the_true_models_lie_inside_the_stated_remainder() -> None:
    box = {"m": (0.9, 1.1), "k": (24.0, 26.0)}
    model = four_bar()
    u = fl.uncertain(model, fl.trim(model), box)
    random = np.random.default_rng(7)
    for _ in range(25):
        values = {name: float(random.uniform(*limits)) for name, limits in box.items()}
        true = fl.linearize(model, fl.trim(model, fixed=values), independent=u.nominal.states.names)
        for part in "ABCD":
            off = np.abs(getattr(true, part) - getattr(u.at(values), part))
            assert (off <= u.remainder[part] + 1e-10).all()
    assert u.remainder["A"].max() > 1e-3  # it is not affine


def test_samples_and_bars() -> None:
    u = fl.uncertain(oscillator(2.0, 3.0, 0.5), None, {"c": (2.9, 3.1), "d": (0.49, 0.51)})
    samples = u.sample(200)
    assert len(u.to_control(3)) == 3
    nominal, bars = u.nominal.eigenvalues(), u.eigenvalue_bars()
    moved = np.array([lin.eigenvalues() - nominal for lin in samples])
    assert (np.abs(moved.real) <= 1.01 * bars.real + 1e-12).all()
    assert (np.abs(moved.imag) <= 1.01 * bars.imag).all()
    assert np.abs(moved.imag).max() > 0.7 * bars.imag.max()
    parameters, linear = u.worst(50)
    assert parameters["d"] == 0.49  # a corner: least damping
    assert linear.eigenvalues().real.max() == pytest.approx(-0.49 / 4)


def test_a_constrained_model_that_is_not_trimmed() -> None:
    model = four_bar()
    u = fl.uncertain(model, None, {"m": (0.9, 1.1)})
    true = fl.linearize(model.with_parameters({"m": 1.05}), independent=u.nominal.states.names)
    assert (np.abs(true.A - u.at({"m": 1.05}).A) <= u.remainder["A"] + 1e-12).all()


def test_an_fmu() -> None:
    native, box = four_bar(), {"m": (0.9, 1.1)}
    with fl.load(shared("composition_bar.fmu", lambda path: build_fmu(four_bar(), path))) as model:
        u = fl.uncertain(model, None, box)
        true = fl.linearize(native.with_parameters({"m": 1.07}), independent=u.nominal.states.names)
    assert u.nominal.inputs.names == ("torque",)
    assert (np.abs(true.A - u.at({"m": 1.07}).A) <= u.remainder["A"] + 1e-7).all()


def test_boxes_that_are_none() -> None:
    model = oscillator()
    with pytest.raises(UsageError, match="The range of 'm' is"):
        fl.uncertain(model, None, {"m": (2.0, 1.0)})
    for name in ("q", "x"):
        with pytest.raises(UnknownNameError, match=rf"'{name}' is not a parameter of 'oscillator'\. (Did|Known)"):
            fl.uncertain(model, None, {name: (1.0, 2.0)})
    with pytest.raises(UsageError, match="No uncertain parameter was given"):
        fl.uncertain(model, None, {})
    with pytest.raises(UnknownNameError, match="Did you mean 'm'"):
        fl.uncertain(model, None, {"mm": (1.0, 2.0)})
    with pytest.raises(UsageError, match="'m' is not a parameter of 'z'"):
        fl.uncertain(OdeModel("z", {"x": "-x"}), None, {"m": (1.0, 2.0)})
    with pytest.raises(UsageError, match="'x' is not uncertain: the parameters are m"):
        fl.uncertain(model, None, {"m": (1.0, 2.0)}).at({"x": 1.0})


def test_robust_stability_of_an_oscillator() -> None:
    """m s^2 + d s + c is stable for c > 0 and d > 0: of 3 +- 1 and 0.5 +- 0.1 the first ends at three times the box."""
    pytest.importorskip("slycot", reason="slycot is under the GPL, and not everywhere installed")
    margin = fl.uncertain(oscillator(2.0, 3.0, 0.5), None, {"c": (2.0, 4.0), "d": (0.4, 0.6)}).robust_stability(20)
    assert margin.at_most == pytest.approx(3.0, rel=1e-9)
    assert margin.parameters["c"] == pytest.approx(0.0, abs=1e-9)
    assert 0.95 * 3.0 < margin.at_least <= 3.0
    assert margin.frequency < 0.3
    margin = fl.uncertain(oscillator(2.0, 3.0, 0.5), None, {"d": (0.4, 0.6)}).robust_stability(5)
    assert margin.at_most == pytest.approx(5.0, rel=1e-9)
    assert 0.95 * 5.0 < margin.at_least <= 5.0
    assert margin.frequency == pytest.approx(np.sqrt(1.5), rel=0.01)


def test_robust_stability_of_repeated_parameters() -> None:
    """No sample inside what is called stable is unstable, and both sides are near each other."""
    pytest.importorskip("slycot", reason="slycot is under the GPL, and not everywhere installed")
    model = four_bar(damping=0.3)
    box = {"k": (24.0, 26.0), "c": (0.2, 0.4)}
    u = fl.uncertain(model, fl.trim(model), box)
    assert max(size for _, size in u.blocks) > 1
    margin = u.robust_stability(20)
    assert 0.8 * margin.at_most < margin.at_least <= margin.at_most
    random = np.random.default_rng(2)
    for _ in range(200):
        q = margin.at_least * random.uniform(-1, 1, 2)
        values = {k: (a + b) / 2 + x * (b - a) / 2 for x, (k, (a, b)) in zip(q, box.items(), strict=True)}
        assert u.at(values).eigenvalues().real.max() < 0
    assert u.at(margin.parameters).eigenvalues().real.max() == pytest.approx(0.0, abs=1e-9)


def test_robust_stability_without_slycot(monkeypatch: pytest.MonkeyPatch) -> None:
    u = fl.uncertain(oscillator(2.0, 3.0, 0.5), None, {"d": (0.4, 0.6)})
    monkeypatch.setitem(sys.modules, "slycot", None)
    with pytest.raises(UsageError, match=r"slycot, which is not installed.*u\.worst\(\)"):
        u.robust_stability()


def test_a_middle_that_is_unstable() -> None:
    pytest.importorskip("slycot", reason="slycot is under the GPL, and not everywhere installed")
    u = fl.uncertain(oscillator(2.0, 3.0, -0.5), None, {"c": (2.0, 4.0)})
    with pytest.raises(UsageError, match="is not stable"):
        u.robust_stability()


@needs_octave
def test_a_file_that_builds_an_uncertain_system(tmp_path: Path) -> None:
    """Octave has no ``ureal``: one that returns a number in the range makes the sample at this number."""
    u = fl.uncertain(four_bar(), None, {"m": (0.9, 1.1), "k": (24.0, 26.0)})
    u.save(tmp_path / "plant.m")
    (tmp_path / "ureal.m").write_text(
        "function v = ureal(name, nominal, key, range)\n"
        "assert(strcmp(key, 'Range')); assert(abs(nominal - mean(range)) < 1e-12);\n"
        "v = struct('m', range(2), 'k', 0.25*range(1) + 0.75*range(2)).(name);\nend\n",
        encoding="utf-8",
    )
    read = run("sys = plant(); A = sys.A; B = sys.B; C = sys.C; D = sys.D;", tmp_path, "A", "B", "C", "D")
    expected = u.at({"m": 1.1, "k": 25.5})
    for part in "ABCD":
        np.testing.assert_allclose(read[part], getattr(expected, part), rtol=1e-9, atol=1e-12)
    with pytest.raises(UsageError, match="Cannot write"):
        u.save(tmp_path / "plant.mat")


def test_the_picture_has_the_middle_with_bars_samples_and_corners() -> None:
    u = fl.uncertain(oscillator(2.0, 3.0, 0.5), None, {"c": (2.0, 4.0), "d": (0.4, 0.6)})
    (axes,) = u.plot(5).axes
    sampled, at_corners, middle = (np.asarray(line.get_xydata()) for line in axes.lines[:3])
    assert len(sampled) == 5 * 2
    expected = np.concatenate([u.at({"c": c, "d": d}).eigenvalues() for c in (2.0, 4.0) for d in (0.4, 0.6)])
    np.testing.assert_array_equal(at_corners, np.column_stack((expected.real, expected.imag)))
    np.testing.assert_array_equal(middle[:, 0], u.nominal.eigenvalues().real)
    assert axes.get_title(loc="left") == "c 2 to 4, d 0.4 to 0.6"
