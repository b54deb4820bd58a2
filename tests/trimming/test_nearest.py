"""Of a family the member nearest to the guess is taken, or the report does not say so; known solutions are left out."""

import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel


def test_of_a_family_of_climbs_the_height_of_the_guess_is_taken() -> None:
    model = OdeModel("climb", {"h": "v", "v": "u - v*exp(-h/1e4)"}, inputs=["u"])
    point = fl.trim(model, fixed={"der(h)": 10.0}, free=["u"])
    assert point.report.is_nearest
    np.testing.assert_allclose(point.states, [0.0, 10.0], atol=1e-4)
    np.testing.assert_allclose(point.inputs, 10.0, rtol=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_the_member_of_an_ellipse_that_is_called_nearest_is_so(seed: int) -> None:
    """Against a fine grid of the ellipse; where the search ends earlier, the text does not claim it."""
    random = np.random.default_rng(seed)
    a, b = random.uniform(0.5, 2.0, 2)
    start = random.uniform(-3, 3, 2)
    level = f"(x^2/{a}^2 + y^2/{b}^2 - 1)"
    model = OdeModel("ellipse", {"x": f"-x*{level}", "y": f"-y*{level}"}, start=dict(zip("xy", start, strict=True)))
    point = fl.trim(model)
    sizes = np.maximum(np.abs(start), 1.0)
    turn = np.linspace(0, 2 * np.pi, 100_001)
    grid = (np.array([a * np.cos(turn), b * np.sin(turn)]).T - start) / sizes
    least = np.linalg.norm(grid, axis=1).min()
    reached = np.linalg.norm((point.states - start) / sizes)
    (remark,) = [r for r in point.report.remarks if r.kind == "family"]
    assert ("nearest to the guess were chosen" in remark.message) == point.report.is_nearest
    assert reached <= least * (1 + 1e-6) + 1e-9 or not point.report.is_nearest


def test_a_stable_equilibrium_that_the_damped_motion_does_not_reach_in_time_is_taken() -> None:
    """x' = -x^3 arrives after 1/(2 x^2) seconds; of y' = -1e-9 y nothing is seen for years."""
    model = OdeModel("slow", {"x": "-x", "y": "1e-9*(2 - y)"}, start={"x": 1.0, "y": 0.0})
    point = fl.trim(model, stable=True)
    np.testing.assert_allclose(point.states, [0.0, 2.0], atol=1e-8)


def test_several_equilibria_from_few_starts_are_all_found() -> None:
    wells = "-(x + 2)*(x + 1)*x*(x - 0.5)*(x - 3)"
    points = fl.operating_points(OdeModel("wells", {"x": "v", "v": f"{wells} - v"}), starts=10)
    np.testing.assert_allclose(sorted(p.states[0] for p in points), [-2.0, -1.0, 0.0, 0.5, 3.0], atol=1e-8)
