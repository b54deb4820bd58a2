"""The same done by SLICOT, through GNU Octave's control package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fmilin import LinearModel
from fmilin.numerics.feedback import StateSpace
from fmilin.reduction import balanced_truncation, discretize, hankel_singular_values, minimal_realization
from fmilin.reduction.gramians import peak_gain
from fmilin.reduction.transformation import Hold
from tests.export.octave import needs_octave, run
from tests.reduction.cases import cart_with_pendulum, from_matrices, masses_and_springs

pytestmark = needs_octave

LOAD = "S = load('plant.mat'); sys = ss(S.A, S.B, S.C, S.D);\n"


def mixed() -> LinearModel:
    """Two inputs, two outputs, one growing motion."""
    rng = np.random.default_rng(11)
    A = rng.standard_normal((7, 7)) - 2.5 * np.eye(7)
    A[0, 0], A[0, 1:], A[1:, 0] = 0.4, 0.0, 0.0
    return from_matrices(A, rng.standard_normal((7, 2)), rng.standard_normal((2, 7)))


@pytest.mark.parametrize("model", [masses_and_springs(6, 0.2), mixed()])
def test_hankel_singular_values_and_norms(model: LinearModel, tmp_path: Path) -> None:
    model.save(tmp_path / "plant.mat")
    found = run(f"{LOAD} values = hsvd(sys); stable = isstable(sys);", tmp_path, "values", "stable")
    values = hankel_singular_values(model)
    assert np.allclose(found["values"].ravel(), values, rtol=1e-7, atol=1e-10 * values[0])
    if found["stable"]:
        found = run(f"{LOAD} [gain, where] = norm(sys, inf, 1e-8);", tmp_path, "gain", "where")
        peak = peak_gain(StateSpace(model.A, model.B, model.C, model.D))
        assert peak.attained <= found["gain"] * (1 + 1e-7)
        assert peak.bound >= found["gain"]
        assert peak.frequency == pytest.approx(found["where"].item(), rel=0.01)


def test_the_error_of_a_truncation_is_that_of_slicot(tmp_path: Path) -> None:
    model = masses_and_springs(6, 0.2)
    model.save(tmp_path / "plant.mat")
    balanced_truncation(model, 5).save(tmp_path / "small.mat")
    script = f"""{LOAD} small = load('small.mat'); mine = ss(small.A, small.B, small.C, small.D);
    theirs = btamodred(sys, 5, 'method', 'sr');
    errors = [norm(sys - mine, inf), norm(sys - theirs, inf)];"""
    errors = run(script, tmp_path, "errors")["errors"].ravel()
    assert errors[0] == pytest.approx(errors[1], rel=1e-6)


@pytest.mark.parametrize("hold", ["zoh", "foh", "tustin"])
def test_sampled_responses(hold: Hold, tmp_path: Path) -> None:
    model = mixed()
    model.save(tmp_path / "plant.mat")
    script = f"{LOAD} d = c2d(sys, 0.1, '{hold}'); H = freqresp(d, [0.1, 1, 10]); re = real(H); im = imag(H);"
    found = run(script, tmp_path, "re", "im")
    w = np.array([0.1, 1.0, 10.0])
    mine = discretize(model, 0.1, hold).to_control()(np.exp(1j * w * 0.1))
    assert np.allclose(mine, found["re"] + 1j * found["im"], rtol=1e-9)


def test_minimal_orders(tmp_path: Path) -> None:
    for model in (cart_with_pendulum(), masses_and_springs(3)):
        model.save(tmp_path / "plant.mat")
        found = run(f"{LOAD} small = minreal(sys); order = rows(small.a);", tmp_path, "order")
        assert len(minimal_realization(model).states) == found["order"]
