"""Orbits are accepted where a periodic motion is near, and verdicts on them say what is known: closed forms."""

import numpy as np
import pytest

import fmilin as fl
from fmilin import Floquet
from fmilin.models import OdeModel


def folding(mu: float) -> OdeModel:
    """Return r' = r (mu - (r^2 - 1)^2), theta' = 1: two cycles for mu > 0, one at mu = 0, none below."""
    growth = f"(({mu!r}) - (x^2 + y^2 - 1)^2)"
    return OdeModel("fold", {"x": f"x*{growth} - y", "y": f"y*{growth} + x"}, start={"x": 1.05})


def judged(model: OdeModel, period: float | None = None) -> Floquet:
    """Return Floquet's multipliers along the orbit of a model."""
    return fl.linearize_periodic(model, fl.periodic_orbit(model, period=period)).floquet()


@pytest.mark.parametrize("mu", [1e-12, 1e-8, 1e-4])
def test_multipliers_near_a_fold_are_within_their_error(mu: float) -> None:
    floquet = judged(folding(mu))
    right = np.exp(-8 * np.pi * (1 + np.sqrt(mu)) * np.sqrt(mu))
    assert abs(floquet.multipliers[1] - right) <= 3 * floquet.accuracy["multipliers"]
    assert floquet.accuracy["multipliers"] < 1e-5
    assert floquet.stable is True


def test_at_a_fold_the_stability_cannot_be_told() -> None:
    orbit = fl.periodic_orbit(folding(0.0))
    assert [remark.kind for remark in orbit.remarks] == ["multiple"]
    floquet = fl.linearize_periodic(folding(0.0), orbit).floquet()
    assert floquet.stable is None
    assert floquet.verdict.startswith("cannot be determined")
    assert np.abs(floquet.multipliers - 1).max() <= floquet.accuracy["multipliers"]


@pytest.mark.parametrize(
    "rates",
    [
        {"x": "x*(-1e-10 - (x^2 + y^2 - 1)^2) - y", "y": "y*(-1e-10 - (x^2 + y^2 - 1)^2) + x"},
        {"x": "y", "y": "-x - 1e-9*y"},
    ],
)
def test_what_nearly_closes_and_is_no_orbit_is_an_error(rates: dict[str, str]) -> None:
    nearly = "nearly closes .* without evidence of a periodic motion nearby|does not close"
    with pytest.raises(fl.NumericalError, match=nearly):
        fl.periodic_orbit(OdeModel("none", rates, start={"x": 1.0}), segments=1)


def test_deviations_that_grow_in_proportion_to_time_are_unstable() -> None:
    """The monodromy matrix is [[1, 2 pi], [0, 1]]."""
    floquet = judged(OdeModel("m", {"x": "v", "v": "cos(time)"}), period=2 * np.pi)
    assert floquet.stable is False
    assert floquet.verdict.startswith("unstable: deviations grow in proportion to time")


def test_neighbours_of_a_pendulum_drift_along_its_path_which_is_neutral() -> None:
    model = OdeModel("pendulum", {"q": "w", "w": "-sin(q)"}, start={"q": 1.0})
    orbit = fl.periodic_orbit(model)
    assert [remark.kind for remark in orbit.remarks] == ["family"]
    floquet = fl.linearize_periodic(model, orbit).floquet()
    assert (floquet.stable, floquet.orbitally_stable) == (False, True)
    assert "neighbouring motions have other periods" in floquet.verdict


def test_all_motions_of_a_linear_oscillator_are_neutral() -> None:
    floquet = judged(OdeModel("oscillator", {"x": "v", "v": "-4*x"}, start={"x": 1.0}))
    assert floquet.stable is None
    assert floquet.verdict.startswith("cannot be determined: no deviation grows or dies out by more than")


@pytest.mark.parametrize("damping", [4e-12, 5e-12])
def test_decay_that_is_not_resolved_is_within_the_stated_errors(damping: float) -> None:
    """Both multipliers of x'' = -x - 2 d x' have the modulus exp(-2 pi d): it is not periodic, by less than is seen."""
    model = OdeModel("slow", {"x": "v", "v": f"-x - {2 * damping}*v"}, start={"x": 1.0})
    orbit = fl.periodic_orbit(model)
    (remark,) = orbit.remarks
    assert "slower decay or growth cannot be determined" in remark.message
    floquet = fl.linearize_periodic(model, orbit).floquet()
    off = np.abs(np.abs(floquet.multipliers) - np.exp(-2 * np.pi * damping))
    assert (off <= floquet.multiplier_errors).all()
    assert (floquet.stable, floquet.orbitally_stable) == (None, None)


def test_text_and_property_agree_for_kepler() -> None:
    rates = {"x": "u", "y": "v", "u": "-x/(x^2 + y^2)^1.5", "v": "-y/(x^2 + y^2)^1.5"}
    model = OdeModel("kepler", rates, start={"x": 1.0, "v": 1.2})
    orbit = fl.periodic_orbit(model)
    assert orbit.period == pytest.approx(2 * np.pi / (2 - 1.2**2) ** 1.5, rel=1e-10)
    for points in (64, 256):
        floquet = fl.linearize_periodic(model, orbit, points=points).floquet()
        assert floquet.stable is not True
        assert floquet.verdict.startswith("unstable" if floquet.stable is False else "cannot be determined")
