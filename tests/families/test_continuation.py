"""From one trimmed point to the next: what one linear model tells of its neighbours."""

from __future__ import annotations

import numpy as np
import pytest

import fmilin as fl
from fmilin import TrimRequest
from fmilin.families.continuation import ContinuationPoint, correct_by_chord
from fmilin.manifold.verified_frame import build_frame
from fmilin.models import FunctionModel, Labels, OdeModel


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e5])
@pytest.mark.parametrize("free", [(), ("G",)])
def test_of_a_linear_model_the_next_point_is_one_step_away_in_any_units(size: float, free: tuple[str, ...]) -> None:
    """2 x - y = F and y + v = G at rest, x in units of a size: F alone moves x; x held, G gives way."""
    labels = Labels(nominals={"x": size, "v": size, "y": 1.0, "F": 3.0})
    equations = {"x": "v", "v": f"{size}*(F - 2*x/{size} + y) - v", "y": f"G - y - v/{size}"}
    model = OdeModel("plant", equations, inputs=["F", "G"], labels=labels)
    before = TrimRequest({"F": 0.0, **({"x": size} if free else {})}, free=free)
    point = fl.trim(model, fixed=before.fixed, free=list(free))
    selection = build_frame(model, point).selection
    linear = fl.linearize(model, point)
    after = TrimRequest({"F": 1.0, **({"x": 2 * size} if free else {})}, free=free)
    found = correct_by_chord(model, after, ContinuationPoint({"F": 0.0}, point, linear, selection))
    assert found is not None
    x, v, y = found.states
    G = found.inputs[1]
    assert v == pytest.approx(0.0, abs=1e-9 * size)
    assert (x / size, y, G) == pytest.approx((2.0, 3.0, 3.0) if free else (0.5, 0.0, 0.0), abs=1e-9)


@pytest.mark.parametrize("in_stacks", [True, False])
def test_slow_states_are_followed_as_well_as_fast_ones(in_stacks: bool) -> None:
    """Small rates are no reason to leave the temperature, which needs months, where it was."""
    equations = {"i": "1000*(u-i)", "T": "(i+280-T)/1e7", "w": "(u-w^3)/1e9"}
    start = {"u": 1.0, "i": 1.0, "T": 281.0, "w": 1.0}
    model: fl.Model = OdeModel("slow", equations, inputs=["u"], start=start)
    if not in_stacks:

        def compute_rates(_t: float, x: np.ndarray, u: np.ndarray) -> np.ndarray:
            i, T, w = x
            return np.array([1000 * (u[0] - i), (i + 280 - T) / 1e7, (u[0] - w**3) / 1e9])

        states = {name: start[name] for name in equations}
        model = FunctionModel("slow", states, compute_rates, inputs=["u"], analytic=True)
    values = np.linspace(1.0, 3.0, 41)
    family = fl.sweep(model, {"u": values}, trim=fl.TrimRequest())
    followed = np.array([[point.point.states[name] for name in equations] for point in family])
    np.testing.assert_allclose(followed, np.stack([values, values + 280, values ** (1 / 3)], axis=1), rtol=1e-9)
