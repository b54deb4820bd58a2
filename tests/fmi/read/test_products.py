from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import Constraint, Evaluation, Model
from fmilin.fmi.read import FmuModel
from fmilin.fmi.write import build_fmu
from fmilin.model.capabilities import read_products
from fmilin.systems import cartesian_pendulum
from tests.fmi.read.recorded import Recorded

Opened = Callable[..., FmuModel]
X = np.array([0.6, -0.7, 1.1, 0.4])
U = np.array([3.0])


def columns(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return one direction per state and input."""
    n, k = len(model.states), len(model.inputs)
    return np.eye(n, n + k), np.eye(k, n + k, k=n)


def by_differences(model: Model, t: float, x: np.ndarray, u: np.ndarray, h: float = 1e-6) -> Evaluation:
    dx, du = columns(model)
    actual = []
    for a, b in zip(dx.T, du.T, strict=True):
        right, left = model.evaluate(t, x + h * a, u + h * b), model.evaluate(t, x - h * a, u - h * b)
        actual.append([(p - q) / (2 * h) for p, q in zip(_parts(right), _parts(left), strict=True)])
    return Evaluation(*(np.array(part).T for part in zip(*actual, strict=True)))


def _parts(e: Evaluation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return e.derivatives, e.outputs, e.residuals


def exact(model: Model, t: float, x: np.ndarray, u: np.ndarray) -> Evaluation:
    exact_slopes = read_products(model, t, x, u, *columns(model))
    assert exact_slopes is not None
    return exact_slopes


def test_products_agree_with_central_differences(opened: Opened) -> None:
    model = opened("pendulum").with_interface(outputs=["tension", "der(pin.vy)", "right", "pin.vx", "F"])
    model = model.with_constraints([Constraint.from_text("pin.x^2 + pin.y^2 - L^2"), Constraint.from_text("ax*pin.y")])
    a, b = exact(model, 0.0, X, U), by_differences(model, 0.0, X, U)
    for actual, expected in zip(_parts(a), _parts(b), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-8, atol=1e-8)


def test_products_along_combined_directions_are_linear_combinations(opened: Opened) -> None:
    model = opened("pendulum")
    unit = exact(model, 0.0, X, U)
    dx, du = np.array([[1.0, 0.5], [0, -2], [3, 0], [0, 0]]), np.array([[0, 4.0]])
    exact_slopes = model.products(0.0, X, U, dx, du)
    assert exact_slopes is not None
    np.testing.assert_allclose(exact_slopes.derivatives, unit.derivatives @ np.vstack((dx, du)), rtol=1e-14)
    np.testing.assert_allclose(exact_slopes.outputs, unit.outputs @ np.vstack((dx, du)), rtol=1e-14)


def test_rows_of_locals_are_nan_where_the_standard_forbids_to_ask(opened: Opened) -> None:
    model = opened("pendulum").with_interface(outputs=["lambda", "ax", "time"])
    model = model.with_constraints([Constraint.from_text("rod.gap"), Constraint.from_text("pin.x - F")])
    products = exact(model, 0.0, X, U)
    assert np.isnan(products.outputs[0]).all()
    assert np.isfinite(products.outputs[1]).all()
    np.testing.assert_array_equal(products.outputs[2], np.zeros(5))
    assert np.isnan(products.residuals[0]).all()
    np.testing.assert_array_equal(products.residuals[1], [1, 0, 0, 0, -1])


def test_a_residual_is_nan_only_for_the_unknown_part_that_it_contains(opened: Opened) -> None:
    model = opened("pendulum").with_constraints(
        [Constraint.from_text("rod.gap*pin.x + ax"), Constraint.from_text("ax")]
    )
    at_zero = np.array([0.0, -1.0, 0.2, 0.0])  # the factor of the local variable vanishes here
    assert np.isfinite(exact(model, 0.0, at_zero, U).residuals).all()
    products = exact(model, 0.0, X, U).residuals
    assert np.isnan(products[0]).all()
    assert np.isfinite(products[1]).all()


def test_zero_answers_for_states_and_inputs_are_not_believed(opened: Opened) -> None:
    model = opened("zero_products").with_interface(outputs=["y", "x", "u", "der(x)"])
    products = exact(model, 0.0, np.array([1.0, 2.0]), np.zeros(1))
    np.testing.assert_array_equal(products.outputs, [[0, 0, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(products.derivatives, np.zeros((2, 3)))  # the FMU's word: checked by the caller


def test_a_derivative_that_is_a_state_is_written_down(opened: Opened) -> None:
    products = exact(opened("rate_is_state"), 0.0, np.ones(2), np.ones(1))
    np.testing.assert_array_equal(products.derivatives, [[0, 1, 0], [-4, -1, 1]])
    np.testing.assert_array_equal(products.outputs, [[0, 1, 0], [0, 0, 1], [-4, -1, 1]])


def test_arrays(opened: Opened) -> None:
    model = opened("arrays3")
    products = exact(model, 0.0, np.array([1.0, 2, 3]), np.zeros(2))
    np.testing.assert_array_equal(products.derivatives, [[-1, 1, 0, 1, 0], [0, -1, 1, 2, 0], [0, 0, -1, 3, 0]])
    np.testing.assert_array_equal(
        products.outputs, [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1], [1, 1, 1, 0, 0]]
    )


def test_left_out_inputs_have_no_part(opened: Opened) -> None:
    model = opened("arrays3").with_interface(inputs=["u[2]"], outputs=["y[2,2]", "u[1]"])
    products = exact(model, 0.0, np.array([1.0, 2, 3]), np.zeros(1))
    np.testing.assert_array_equal(products.outputs, [[0, 0, 0, 1], [0, 0, 0, 0]])
    assert products.derivatives.shape == (3, 4)


def test_single_precision_variables_have_double_precision_derivatives(opened: Opened) -> None:
    model = opened("singles3")
    products = exact(model, 0.0, np.array([0.1]), np.array([0.3]))
    np.testing.assert_array_equal(products.derivatives, [[-2, 1]])
    np.testing.assert_array_equal(products.outputs, [[1, 4]])
    assert not model.notes


def test_no_states(opened: Opened) -> None:
    products = exact(opened("no_states"), 0.0, np.empty(0), np.ones(1))
    assert products.derivatives.shape == (0, 1)
    np.testing.assert_array_equal(products.outputs, [[2.0]])


def test_no_directions_and_no_unknowns(opened: Opened) -> None:
    model = opened("pendulum").with_interface([], [])
    exact_slopes = model.products(0.0, X, np.empty(0), np.empty((4, 0)), np.empty((0, 0)))
    assert exact_slopes is not None
    assert exact_slopes.derivatives.shape == (4, 0)


@pytest.mark.parametrize("name", ["discards", "singular_flag3"])
def test_no_products_when_none_are_advertised(opened: Opened, name: str) -> None:
    model = opened(name)
    assert model.products(0.0, model.start.states, model.start.inputs, *columns(model)) is None


@pytest.mark.parametrize("name", ["shifts_after_products", "moves_with_products"])
def test_products_leave_the_point_as_it_was(opened: Opened, name: str) -> None:
    model = opened(name)
    x, u = np.array([0.3, -0.4]), np.array([0.7])
    before = model.evaluate(0.0, x, u)
    products = exact(model, 0.0, x, u)
    held = model.read_back()
    np.testing.assert_array_equal(held.states, x)
    np.testing.assert_array_equal(held.inputs, u)
    after = model.evaluate(0.0, x, u)
    assert after.derivatives.tobytes() == before.derivatives.tobytes()
    np.testing.assert_array_equal(products.derivatives, [[0, 1, 0], [-1, 0, 1]])
    assert bool(model.notes) is (name == "moves_with_products")


def test_a_refused_product_is_never_asked_for_again_and_the_model_goes_on(opened: Opened) -> None:
    model = opened("dies_of_products")
    x, u = np.array([0.3, -0.4]), np.array([0.7])
    before = model.evaluate(0.0, x, u)
    assert model.products(0.0, x, u, *columns(model)) is None
    (note,) = model.notes
    assert "declared but failed" in note
    assert "illegal call sequence in fmi2GetDirectionalDerivative" in note
    assert model.evaluate(0.0, x, u).derivatives.tobytes() == before.derivatives.tobytes()
    assert model.products(0.0, x, u, *columns(model)) is None
    assert len(model.notes) == 1


def test_what_was_found_at_a_point_is_not_asked_again(opened: Opened) -> None:
    model = opened("counts_products")
    x, u = np.array([0.3, -0.4]), np.array([0.7])

    def asked() -> int:
        return int(model.with_interface(outputs=["square"]).evaluate(0.0, x, u).outputs[0])

    model.products(0.0, x, u, np.array([[1.0], [0.0]]), np.zeros((1, 1)))
    assert asked() == 1
    exact(model, 0.0, x, u)
    assert asked() == 3
    exact(model, 0.0, x, u)
    assert asked() == 3
    exact(model, 0.5, x, u)
    assert asked() == 6


def test_products_after_an_event_are_those_of_the_new_mode(opened: Opened) -> None:
    """Time, states and inputs are the same before and after: only the mode is not."""
    model = opened("stiffens")
    x, u = np.array([0.3, -0.4]), np.array([0.7])
    for stiffness in (1.0, 3.0, 5.0):
        np.testing.assert_array_equal(exact(model, 1.0, x, u).derivatives, [[0, 1, 0], [-stiffness, 0, 1]])
        model.pass_event(1.0, x, u)
    model.restart()
    np.testing.assert_array_equal(exact(model, 1.0, x, u).derivatives, [[0, 1, 0], [-1, 0, 1]])


def test_a_linear_model_after_an_event_is_that_of_the_new_mode(opened: Opened) -> None:
    model = opened("stiffens")
    point = fl.operating_point(model, {"x": 0.3, "v": -0.4, "u": 0.7}, time=1.0)
    for stiffness in (1.0, 3.0):
        for derivatives in ("auto", "exact"):
            lin = fl.linearize(model, point, derivatives=derivatives)
            np.testing.assert_array_equal(lin.A, [[0, 1], [-stiffness, 0]])
            assert lin.method.derivatives == "exact"
        model.pass_event(point.time, point.states, point.inputs)


def test_all_columns_in_one_go_are_those_one_by_one(opened: Opened) -> None:
    """The second point is asked in one go; the third, at which a product is refused, carefully again."""
    model = opened("pendulum")
    dx, du = np.eye(4, 5), np.eye(1, 5, 4)
    actual = []
    for x in (np.array([0.6, -0.8, 0.3, 0.2]), np.array([0.0, -1.0, 0.1, 0.0]), np.array([0.8, -0.6, 0.0, 0.0])):
        together = model.products(0.25, x, np.array([3.0]), dx, du)
        again = model.products(0.25, x + 1e-3, np.array([3.0]), dx, du)
        assert together is not None
        assert again is not None
        with_one = [model.products(0.25, x, np.array([3.0]), dx[:, [j]], du[:, [j]]) for j in range(5)]
        np.testing.assert_array_equal(
            together.derivatives, np.hstack([w.derivatives for w in with_one if w is not None])
        )
        actual.append(together.derivatives)
    assert not np.array_equal(actual[0], actual[1])


def test_a_further_point_takes_a_visit_a_call_per_column_and_a_look(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened("pendulum")
    exact(model, 0.0, X, U)
    recorded = Recorded(monkeypatch)
    exact(model, 0.0, X + 1e-3, U)
    assert recorded.messages == 1
    assert Counter(recorded.names) == {
        "fmi2SetTime": 1,
        "fmi2SetContinuousStates": 1,
        "fmi2SetReal": 1,
        "fmi2GetDerivatives": 1,
        "fmi2GetDirectionalDerivative": 5,
        "fmi2GetContinuousStates": 2,  # whether the model takes the states that it is given, and keeps them
        "fmi2GetReal": 2,  # outputs, and whether it keeps its inputs
    }


@pytest.mark.parametrize("name", ["moves_with_products", "shifts_after_products", "moves_far_off"])
def test_products_that_begin_to_move_the_model_are_asked_carefully(opened: Opened, name: str) -> None:
    model = opened(name)
    n, k = len(model.states), len(model.inputs)
    dx, du = np.eye(n, n + k), np.eye(k, n + k, n)
    for x0 in (0.0, 1.0, 3.0, 4.0, 1.5):
        x, u = model.start.states + x0, model.start.inputs
        exact_slopes = model.products(model.start.time, x, u, dx, du)
        assert exact_slopes is not None
        np.testing.assert_array_equal(exact_slopes.derivatives[:, :n], [[0, 1], [-1, 0]])
        np.testing.assert_array_equal(model.read_back().states, x)
    assert any("changes its states or inputs" in note for note in model.notes) == (name != "shifts_after_products")


def test_a_parameter_that_is_an_input_leaves_the_other_columns_exact(tmp_path: Path) -> None:
    build_fmu(cartesian_pendulum(angle=0.5), tmp_path / "pendulum.fmu")
    with fl.load(tmp_path / "pendulum.fmu") as plain:
        model, x, u = plain.with_interface(["F", "m"]), plain.start.states, plain.start.inputs
        unit, both = exact(plain, 0.0, x, u), exact(model, 0.0, x, model.start.inputs)
        for expected, slopes in zip(_parts(unit), _parts(both), strict=True):
            np.testing.assert_array_equal(slopes[:, :-1], expected)
            assert np.isnan(slopes[:, -1]).all()
