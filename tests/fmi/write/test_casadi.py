"""CasADi's importer on our FMUs: it sets states as variables, and asks for directional derivatives."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Literal

import casadi
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.model.capabilities import read_products
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
def test_its_jacobians_are_ours(tmp_path: Path, fmi: Literal["2.0", "3.0"]) -> None:
    model = four_bar()
    with zipfile.ZipFile(build_fmu(model, tmp_path / "four_bar.fmu", fmi_version=fmi)) as archive:
        archive.extractall(tmp_path / "unpacked")
    importer = casadi.DaeBuilder("four_bar", str(tmp_path / "unpacked"))
    f = importer.create("f", ["x", "u"], ["ode", "y"])
    assert tuple(importer.x()) == model.states.names
    x, u = model.start.states + 0.01 * np.arange(1, 11), model.start.inputs
    with fl.load(tmp_path / "four_bar.fmu") as ours:
        expected = ours.evaluate(0.0, x, u)
        n, k = len(x), len(u)
        exact_slopes = read_products(ours, 0.0, x, u, np.eye(n, n + k), np.eye(k, n + k, n))
    assert exact_slopes is not None
    rates, outputs = f(x, u)
    assert np.array_equal(rates.full().ravel(), expected.derivatives)
    blocks = [casadi.DM(block).full() for block in f.jacobian()(x, u, rates, outputs)]
    assert np.array_equal(np.hstack(blocks[: 2 if k else 1]), exact_slopes.derivatives)


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
def test_its_integrator_follows_the_motion(tmp_path: Path, fmi: Literal["2.0", "3.0"]) -> None:
    model = cartesian_pendulum()
    with zipfile.ZipFile(build_fmu(model, tmp_path / "pendulum.fmu", fmi_version=fmi)) as archive:
        archive.extractall(tmp_path / "unpacked")
    rates = casadi.DaeBuilder("pendulum", str(tmp_path / "unpacked")).create("f", ["x", "u"], ["ode"])
    u = np.zeros(len(model.inputs))
    x, held = casadi.MX.sym("x", len(model.states)), casadi.MX.sym("u", len(u))
    equations = {"x": x, "u": held, "ode": rates(x, held)}
    integrator = casadi.integrator("I", "cvodes", equations, 0.0, 1.0, {"reltol": 1e-10, "abstol": 1e-12})
    start = fl.operating_point(model, {"x": 0.6}).states
    actual = integrator(x0=start, u=u)["xf"].full().ravel()

    def by_hand(t: float, state: FloatArray) -> FloatArray:
        return model.evaluate(t, state, u).derivatives

    expected = solve_ivp(by_hand, (0.0, 1.0), start, rtol=1e-11, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(actual, expected, atol=1e-8)
