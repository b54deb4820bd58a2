"""States of the model that stay under their names, and bounds of what a reduction changes in a band."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.reduction import balanced_truncation, discretize, error_bound, keep_frequencies, keep_states
from fmilin.systems import flexible_double_pendulum
from tests.reduction.cases import cart_with_pendulum, from_matrices, masses_and_springs, response


def test_the_slowest_modes_in_states_of_the_model() -> None:
    """A chain of masses: frequencies 2 sin(k pi / 14), and x[1]' = x[7] as the names say."""
    chain = masses_and_springs(6, damping=0.0)
    kept = keep_states(chain, ["x[1]", "x[2]", "x[7]", "x[8]"])
    assert kept.states.names == ("x[1]", "x[2]", "x[7]", "x[8]")
    frequencies = np.repeat(2 * np.sin(np.array([1, 2]) * np.pi / 14), 2)
    np.testing.assert_allclose(np.sort(np.abs(kept.eigenvalues())), frequencies, rtol=1e-10)
    np.testing.assert_allclose(kept.A[:2], [[0, 0, 1, 0], [0, 0, 0, 1]], atol=1e-12)
    np.testing.assert_allclose(kept.T[[0, 1, 6, 7]], np.eye(4), atol=1e-12)
    zero = np.zeros(1)
    np.testing.assert_allclose(response(kept, zero), response(chain, zero), rtol=1e-10)


def test_dependent_states_may_stay() -> None:
    """Where the second link hangs on the first follows from the coordinates, and is one of its own here."""
    linear = fl.linearize(flexible_double_pendulum(elements=2))
    names = ["link1.theta", "link2.x", "link1.vtheta", "link2.vx"]
    assert not any(linear.states.has(name) for name in names[1::2])
    kept = keep_states(linear, names)
    slowest = np.sort(np.abs(linear.eigenvalues()))[:4]
    np.testing.assert_allclose(np.sort(np.abs(kept.eigenvalues())), slowest, rtol=1e-8)
    np.testing.assert_allclose(kept.A[:2], [[0, 0, 1, 0], [0, 0, 0, 1]], atol=1e-9)


def test_a_change_of_coordinates_alone_keeps_the_response() -> None:
    small = balanced_truncation(masses_and_springs(6), 4)
    named = keep_states(small, ["x[6]", "x[12]", "x[5]", "x[11]"])
    w = np.linspace(0.01, 3, 40)
    np.testing.assert_allclose(response(named, w), response(small, w), rtol=1e-9)
    assert named.T[5].round(9).tolist() == [1, 0, 0, 0]


def test_states_that_cannot_stay() -> None:
    chain = masses_and_springs(6)
    with pytest.raises(
        UsageError, match=r"The 3 slowest eigenvalues cannot be separated from others\. Name 2 or 4 states"
    ):
        keep_states(chain, ["x[1]", "x[2]", "x[3]"])
    for names in ([], ["x[1]", "x[1]"], [f"x[{i}]" for i in (*range(1, 13), 1)]):
        with pytest.raises(UsageError, match="name each state to be kept once"):
            keep_states(chain, names)
    with pytest.raises(UnknownNameError, match=r"'x\[13\]' is not a state of the model"):
        keep_states(chain, ["x[13]"])
    with pytest.raises(
        NumericalError, match=r"cannot be distinguished in x, phi\. Name other states: x, v distinguish them"
    ):
        keep_states(cart_with_pendulum(), ["x", "phi"])


@pytest.mark.parametrize("band", [(0.0, 0.6), (0.0, 1.1), (0.5, 3.0)])
def test_no_frequency_of_the_band_exceeds_the_bound(band: tuple[float, float]) -> None:
    chain = masses_and_springs(6)
    w = np.linspace(*band, 2000)
    for small in (
        balanced_truncation(chain, 6),
        keep_frequencies(chain, 0.0, 1.0),
        keep_states(chain, ["x[1]", "x[7]"]),
    ):
        peak = error_bound(chain, small, *band)
        sampled = np.abs(response(chain, w) - response(small, w)).max()
        assert sampled <= peak.bound <= 1.01 * max(peak.attained, sampled)
        np.testing.assert_allclose(peak.attained, sampled, rtol=0.02)


def test_an_undamped_mode_that_stays_has_no_part_in_it() -> None:
    """Beside the modes that went the difference is finite, at them it is not."""
    chain = masses_and_springs(6, damping=0.0)
    small = keep_states(chain, ["x[1]", "x[2]", "x[7]", "x[8]"])
    w = np.linspace(0.0, 0.95, 1500)
    sampled = np.abs(response(chain, w) - response(small, w)).max()
    assert sampled <= error_bound(chain, small, 0.0, 0.95).bound <= 1.01 * sampled
    assert error_bound(chain, small).bound == np.inf


def test_a_closed_form() -> None:
    """1/(s + 1) beside 0.5/(s + 2): the difference (0.5 s + 1.5)/((s + 1)(s + 2)) is largest at rest, 3/4."""
    one, two = from_matrices([[-1.0]], [[1.0]], [[1.0]]), from_matrices([[-2.0]], [[1.0]], [[0.5]])
    peak = error_bound(one, two)
    assert peak.attained == pytest.approx(0.75)
    assert peak.frequency == 0.0


def test_models_that_cannot_be_compared() -> None:
    chain = masses_and_springs(2)
    with pytest.raises(UsageError, match="reduce first, then sample"):
        error_bound(chain, discretize(chain, 0.1))
    other = replace(chain, outputs=type(chain.outputs)([replace(chain.outputs[0], name="z")]))
    with pytest.raises(UsageError, match="do not have the same inputs and outputs"):
        error_bound(chain, other)
    with pytest.raises(UsageError, match="is not a range of frequencies"):
        error_bound(chain, chain, 3.0, 1.0)
    with pytest.raises(UsageError, match="no response to compare"):
        error_bound(
            from_matrices([[-1.0]], np.zeros((1, 0)), [[1.0]]), from_matrices([[-1.0]], np.zeros((1, 0)), [[1.0]])
        )


def test_the_picture_shows_both_and_the_bound() -> None:
    chain = masses_and_springs(6)
    figure = balanced_truncation(chain, 6).plot.reduction(chain, 0.0, 0.6)
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert labels == ["full", "reduced", "difference", "bound of the difference: -21.0 dB"]  # 0.0893
