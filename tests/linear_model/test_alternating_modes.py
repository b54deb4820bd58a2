"""A real z < 0 of a sampled model: one eigenvalue, although its rate log(z) / T is complex."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fmilin as fl
from fmilin.linear_model.modes import cluster_modes
from fmilin.models import OdeModel


def test_a_negative_real_eigenvalue_of_a_sampled_model_is_not_a_pair() -> None:
    continuous = fl.linearize(OdeModel("three", {"a": "-a", "b": "-b", "c": "-c"}))
    A = np.array([[-0.5, 0.0, 0.0], [0.0, 0.3, 0.4], [0.0, -0.4, 0.3]])
    linear = replace(continuous, A=A, sample_time=0.1)
    modes = linear.modes()
    alternating = [mode for mode in modes if mode.is_alternating]
    assert len(alternating) == 1
    assert not alternating[0].is_oscillatory
    assert alternating[0].eigenvalue == pytest.approx(np.log(0.5) / 0.1 + 10j * np.pi)
    clusters = cluster_modes(modes)
    assert sum(cluster.count * (2 if cluster.is_pair else 1) for cluster in clusters) == len(linear.A)
    assert "alternates: z < 0" in repr(modes)
