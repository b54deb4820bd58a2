"""Uncertain linear models: fractional transformations against the models at other parameters."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.ground.errors import UnknownNameError, UsageError
from fmilin.ground.signals import FloatArray
from fmilin.native.ode import OdeModel
from fmilin.native.systems import four_bar
from tests.connected.plants import oscillator
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
    with pytest.raises(UsageError, match="No parameter is uncertain"):
        fl.uncertain(model, None, {})
    with pytest.raises(UnknownNameError, match="Did you mean 'm'"):
        fl.uncertain(model, None, {"mm": (1.0, 2.0)})
    with pytest.raises(UsageError, match="is not a parameter, state or input of 'z'"):
        fl.uncertain(OdeModel("z", {"x": "-x"}), None, {"m": (1.0, 2.0)})
    with pytest.raises(UsageError, match="'x' is not uncertain: the parameters are m"):
        fl.uncertain(model, None, {"m": (1.0, 2.0)}).at({"x": 1.0})
