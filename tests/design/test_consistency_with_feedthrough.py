"""NEES and NIS of filters on systems with accelerometers; ``tests.design.accelerated`` runs all kinds many times."""

from __future__ import annotations

import pytest

from tests.design.accelerated import cases, run_estimator, run_kalman_filter

SAMPLE = [
    ("pendulum", "iekf"), ("quadrotor", "ekf"), ("crane", "c"), ("four-bar", "ukf"), ("slider-crank", "ekf"),
    ("duffing", "mhe"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), SAMPLE)
def test_filters_on_nonlinear_models_know_how_large_their_errors_are(name: str, kind: str) -> None:
    """In bands of 99.9 %; the seeds are fixed. The true motion is integrated by scipy."""
    assert run_estimator(cases()[name], kind, 10, seed=7, samples=8).is_within(0.999) == (True, True)


@pytest.mark.parametrize("name", ["cart", "motor", "pendulum", "furuta"])
def test_steady_filters_of_mechanisms_know_how_large_their_errors_are(name: str) -> None:
    assert run_kalman_filter(cases()[name], 10, seed=7, samples=8).is_within(0.999) == (True, True)
