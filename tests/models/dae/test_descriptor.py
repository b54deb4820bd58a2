"""The descriptor system of DAEs as they are written: eigenvalues and transfer functions of the reduced model."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from benchmarks.dae_models import random_dae
from fmilin.models import DaeModel
from tests.models.dae.test_models import pendulum, platform


def test_a_pendulum_as_it_is_written() -> None:
    lin = fl.linearize(pendulum(), descriptor=True)
    system = lin.descriptor
    assert system is not None
    assert system.states == ("x", "y", "vx", "vy", "T", "der(vx)")  # an output is der(vx)
    assert system.order == 2
    assert np.abs(system.eigenvalues() - lin.eigenvalues()).max() < 1e-9
    assert np.abs(system.E[2, 2] - 2.0) < 1e-15
    assert system.difference < 1e-14


@pytest.mark.parametrize("seed", [0, 4, 8, 11])
def test_transfer_functions_are_those_of_the_reduced_model(seed: int) -> None:
    lin = fl.linearize(DaeModel.from_graph(random_dae(seed).graph), descriptor=True)
    d = lin.descriptor
    assert d is not None
    assert d.order == len(lin.A)
    for s in (0.7, 1.3j):
        written = d.C @ np.linalg.solve(s * d.E - d.A, d.B) + d.D
        reduced = lin.C @ np.linalg.solve(s * np.eye(len(lin.A)) - lin.A, lin.B) + lin.D
        assert np.abs(written - reduced).max() < 1e-8 * max(1.0, np.abs(reduced).max())


def test_redundant_equations_have_none() -> None:
    with pytest.raises(fl.UsageError, match=r"A descriptor system does not exist for 'platform'\. Redundant equations"):
        fl.descriptor(platform(y=-2.0))
    assert fl.linearize(platform(y=-2.0), descriptor=True).descriptor is None


def test_an_algebraic_variable_without_a_slope_leaves_the_linear_model_and_its_descriptor_system() -> None:
    """The magnitude sqrt(a^2 + b^2) of a harmonic at zero, as in a measurement of its distortion."""
    model = DaeModel("harmonic", ["der(a) = -2*a", "der(b) = -3*b", "r = sqrt(a^2 + b^2)"])
    linear = fl.linearize(model)
    np.testing.assert_allclose(linear.A, np.diag([-2.0, -3.0]))
    assert linear.descriptor is not None
    assert not np.isfinite(linear.descriptor.A).all()
    assert np.isnan(linear.descriptor.difference)
