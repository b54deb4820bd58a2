"""CasADi's importer on our FMUs: it sets states as variables, and asks for directional derivatives."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Literal

import casadi
import numpy as np
import pytest

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.systems import four_bar


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
        found = ours.products(0.0, x, u, np.eye(n, n + k), np.eye(k, n + k, n))
    assert found is not None
    rates, outputs = f(x, u)
    assert np.array_equal(rates.full().ravel(), expected.derivatives)
    blocks = [casadi.DM(block).full() for block in f.jacobian()(x, u, rates, outputs)]
    assert np.array_equal(np.hstack(blocks[: 2 if k else 1]), found.derivatives)
