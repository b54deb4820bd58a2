from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fmilin.identification.realization import Hankel, count_significant
from tests.identification.toys import oscillators


def markov(step: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    plant = oscillators((1.0, 2.5, 4.0))
    A, B = plant.over(step)
    return np.array([plant.C @ np.linalg.matrix_power(A, k) @ B for k in range(count)]), A


def test_exact_parameters_give_the_eigenvalues_and_the_parameters_back() -> None:
    Y, A = markov(0.3, 60)
    hankel = Hankel.of(Y, np.array([1.0, 10.0]), np.array([0.1, 3.0]))
    a, b, c = hankel.realization(6)
    np.testing.assert_allclose(np.sort_complex(np.linalg.eigvals(a)), np.sort_complex(np.linalg.eigvals(A)), atol=1e-9)
    again = np.array([c @ np.linalg.matrix_power(a, k) @ b for k in range(60)])
    np.testing.assert_allclose(again, Y, atol=1e-10)


def test_singular_values_fall_off_behind_the_order() -> None:
    Y, _ = markov(0.3, 60)
    s = Hankel.of(Y, np.ones(2), np.ones(2)).singular_values
    assert s[5] > 1e-3
    assert s[6] < 1e-12


def test_a_long_record_is_used_to_its_end() -> None:
    """The last parameter is in the shifted matrix: changing it changes A."""
    Y, _ = markov(0.3, 60)
    changed = Y.copy()
    changed[-1] += 1.0
    one, other = (Hankel.of(m, np.ones(2), np.ones(2)).realization(6)[0] for m in (Y, changed))
    assert np.max(np.abs(one - other)) > 1e-6


@settings(max_examples=25, deadline=None)
@given(st.floats(1e-8, 1e-3), st.integers(0, 1000))
def test_noise_alone_is_not_significant(size: float, seed: int) -> None:
    noise = size * np.random.default_rng(seed).standard_normal((80, 2, 2))
    hankel = Hankel.of(noise, np.ones(2), np.ones(2))
    order = count_significant(hankel.singular_values, noise, (len(hankel.P), len(hankel.Q)))
    # a Hankel matrix repeats its noise, so that its norm is larger than that of independent entries by a log factor
    assert order <= 12


def test_nothing_has_the_order_zero() -> None:
    hankel = Hankel.of(np.zeros((40, 2, 2)), np.ones(2), np.ones(2))
    assert count_significant(hankel.singular_values, np.zeros(3), (40, 40)) == 0
