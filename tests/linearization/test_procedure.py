"""The whole procedure against closed forms and second methods, on models written by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fmilin as fl
from fmilin import Constraint, Evaluation
from fmilin.model.interface import Copy
from fmilin.signals import FloatArray, Signal
from tests.by_hand import FunctionModel, Parts, pendulum

G, LENGTH, MASS = 9.81, 1.3, 2.0


def pendulum_in_x(angle: float, rate: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A, B and f0 of the pendulum in (x, vx), by hand from theta'' = -g/l sin(theta) + F cos(theta) / (m l)."""
    s, c, w = np.sin(angle), np.cos(angle), rate
    wd = -G / LENGTH * s
    P = LENGTH * np.array([[c, 0.0], [-s * w, c]])  # d(x, vx)/d(theta, w)
    P_dot = LENGTH * np.array([[-s * w, 0.0], [-c * w * w - s * wd, -s * w]])
    A = (P_dot + P @ np.array([[0.0, 1.0], [-G / LENGTH * c, 0.0]])) @ np.linalg.inv(P)
    return A, P @ np.array([[0.0], [c / (MASS * LENGTH)]]), np.array([LENGTH * c * w, LENGTH * (c * wd - s * w * w)])


POINTS = [(0.0, 0.0), (0.7, 0.0), (0.7, 1.5), (-0.9, -2.0)]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("angle", "rate"), POINTS)
def test_the_pendulum_at_rest_and_moving(exact: bool, angle: float, rate: float) -> None:
    lin = fl.linearize(pendulum(angle=angle, rate=rate, exact=exact), independent=["x"])
    A, B, f0 = pendulum_in_x(angle, rate)
    error = np.max(np.abs(lin.A - A)) / np.max(np.abs(A))
    assert error <= (1e-12 if exact else 1e-8)
    assert error <= 10 * lin.accuracy.A
    np.testing.assert_allclose(lin.B, B, rtol=0, atol=max(1e-14, 10 * lin.accuracy.B))
    np.testing.assert_allclose(lin.f0, f0, atol=1e-13)
    np.testing.assert_allclose(lin.C, lin.A[1:], atol=1e-9)  # the accelerometer is der(vx)
    np.testing.assert_allclose(lin.D, lin.B[1:], atol=1e-9)
    assert lin.method.derivatives == ("exact" if exact else "differences")
    assert lin.states.names == ("x", "vx")
    s, c = np.sin(angle), np.cos(angle)
    np.testing.assert_allclose(lin.T[1], [s / c, 0.0], atol=1e-13)  # dy/dx on the circle, y = -cos
    assert ("off-equilibrium" in [w.kind for w in lin.warnings]) == bool(angle or rate)


@pytest.mark.parametrize("derivatives", ["exact", "differences"])
def test_eigenvalues_at_an_equilibrium_do_not_depend_on_the_coordinates(derivatives: str) -> None:
    """Spencer theorem 4.1.1: x and tangent coordinates, and both states of the pendulum turned by 45 degrees."""
    model = pendulum(exact=True)
    reference = np.sqrt(G / LENGTH) * np.array([-1j, 1j])
    for kind in ("partition", "tangent"):
        lin = fl.linearize(model, coordinates=kind, derivatives=derivatives)
        np.testing.assert_allclose(lin.eigenvalues(), reference, atol=1e-11)


def test_off_equilibrium_they_do() -> None:
    model = pendulum(angle=0.7, rate=1.5, exact=True)
    in_x, in_y = (fl.linearize(model, independent=[name]).eigenvalues() for name in "xy")
    assert np.max(np.abs(in_x - in_y)) > 1.0


def test_without_constraints_all_states_are_perturbed() -> None:
    parts = pendulum(angle=0.7).parts
    parts.constraints = []
    lin = fl.linearize(FunctionModel(parts))
    assert lin.A.shape == (4, 4)
    np.testing.assert_array_equal(lin.T, np.eye(4))


def test_the_number_of_evaluations_is_bounded() -> None:
    lin = fl.linearize(pendulum(angle=0.7), derivatives=fl.Differences(order=2))
    plain = fl.linearize(pendulum(angle=0.7), derivatives="differences")
    assert lin.method.evaluations < plain.method.evaluations
    assert lin.accuracy.A < 1e-6


# -- directional derivatives that lie ---------------------------------------------------------------


def lying(*, column: int | None = None, output: bool = False) -> FunctionModel:
    """Return a pendulum whose directional derivatives succeed and are zero: in one column, or of the output."""
    honest = pendulum(angle=0.7, rate=0.5, exact=True)
    jacobians = honest.parts.jacobians
    assert jacobians is not None

    def lies(t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        Jx, Ju = (m.copy() for m in jacobians(t, x, u))
        if column is not None:
            Jx[2:, column] = 0.0
        if output:
            Jx[4], Ju[4] = 0.0, 0.0
        return Jx, Ju

    return FunctionModel(dataclasses.replace(honest.parts, jacobians=lies))


@pytest.mark.parametrize("column", [0, 1, 2])
def test_wrong_directional_derivatives_are_found_and_replaced(column: int) -> None:
    truth = fl.linearize(pendulum(angle=0.7, rate=0.5, exact=True), independent=["x"])
    lin = fl.linearize(lying(column=column), independent=["x"])
    np.testing.assert_allclose(lin.A, truth.A, atol=1e-8)
    found = [w for w in lin.warnings if w.kind == "directional-derivative"]
    assert found
    assert "with respect to" in str(found[0])
    assert lin.method.derivatives == "mixed"
    trusted = fl.linearize(lying(column=column), independent=["x"], derivatives="exact")
    assert np.max(np.abs(trusted.A - truth.A)) > 0.1


def test_zeros_for_an_output_are_found_and_replaced() -> None:
    truth = fl.linearize(pendulum(angle=0.7, rate=0.5, exact=True))
    lin = fl.linearize(lying(output=True))
    np.testing.assert_allclose(lin.C, truth.C, atol=1e-8)
    np.testing.assert_allclose(lin.D, truth.D, atol=1e-8)
    assert {"'F'" in str(w) for w in lin.warnings if w.kind == "directional-derivative"} == {True, False}


def test_an_output_that_is_a_state_or_an_input_is_written_down() -> None:
    honest = pendulum(angle=0.7, exact=True)
    jacobians = honest.parts.jacobians
    assert jacobians is not None

    def zeros_for_copies(t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        Jx, Ju = jacobians(t, x, u)
        return np.vstack((Jx[:4], np.zeros((2, 4)))), np.vstack((Ju[:4], np.zeros((2, 1))))

    parts = dataclasses.replace(
        honest.parts,
        outputs=["height", "force"],
        output=lambda t, x, u: np.array([x[1], u[0]]),
        jacobians=zeros_for_copies,
        copies={0: Copy("state", 1), 1: Copy("input", 0)},
    )
    for derivatives in ("auto", "exact", "differences"):
        lin = fl.linearize(FunctionModel(parts), independent=["x"], derivatives=derivatives)
        np.testing.assert_array_equal(lin.C[0], lin.T[1])
        np.testing.assert_array_equal(lin.C[1], [0.0, 0.0])
        np.testing.assert_array_equal(lin.D, [[0.0], [1.0]])
        assert not [w for w in lin.warnings if w.kind == "directional-derivative"]


def test_what_the_model_cannot_say_exactly_is_differenced() -> None:
    honest = pendulum(angle=0.7, rate=0.5, exact=True)

    class Partly(FunctionModel):
        def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation | None:
            full = super().products(t, x, u, dx, du)
            assert full is not None
            return dataclasses.replace(full, outputs=np.full_like(full.outputs, np.nan))

    truth = fl.linearize(honest)
    for derivatives in ("auto", "exact"):
        lin = fl.linearize(Partly(honest.parts), derivatives=derivatives)
        assert lin.method.derivatives == "mixed"
        np.testing.assert_allclose(lin.A, truth.A, rtol=1e-14)
        np.testing.assert_allclose(lin.C, truth.C, atol=1e-8)
        assert lin.accuracy.A < 1e-13 < lin.accuracy.C


def test_exact_derivatives_that_are_not_there_are_refused() -> None:
    with pytest.raises(fl.UsageError, match="provides no exact directional derivatives"):
        fl.linearize(pendulum(), derivatives="exact")


# -- models that misbehave --------------------------------------------------------------------------


def test_nan_is_refused_by_name() -> None:
    parts = dataclasses.replace(pendulum().parts, rates=lambda t, s, u: np.array([s[2], s[3], np.nan, 0.0]))
    with pytest.raises(fl.NumericalError, match="NaN for the derivative of the state 'vx'") as caught:
        fl.linearize(FunctionModel(parts))
    assert caught.value.variable == "vx"
    parts = dataclasses.replace(pendulum().parts, output=lambda t, s, u: np.array([np.inf]))
    with pytest.raises(fl.NumericalError, match="inf for the output 'ax'"):
        fl.linearize(FunctionModel(parts))


def test_a_model_with_memory_is_noticed() -> None:
    calls = []

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        calls.append(0)
        return np.array([-s[0] + 1e-9 * len(calls)])

    lin = fl.linearize(FunctionModel(Parts(["x"], [1.0], rates)))
    assert "memory" in [w.kind for w in lin.warnings]


def test_a_point_off_the_manifold_is_refused() -> None:
    model = pendulum(angle=0.7)
    with pytest.raises(fl.ConstraintError, match="operating point is not on the manifold"):
        fl.linearize(model, model.start.with_states(model.start.states + 0.01))


def test_unknown_choices_are_refused() -> None:
    with pytest.raises(fl.UsageError, match="must be 'partition' or 'tangent', and is 'qr'"):
        fl.linearize(pendulum(), coordinates="qr")
    with pytest.raises(fl.UsageError, match="must be 'auto', 'exact' or 'differences', and is 'forward'"):
        fl.linearize(pendulum(), derivatives="forward")


# -- sizes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [True, False])
def test_no_states(exact: bool) -> None:
    jacobians = (lambda t, x, u: (np.empty((1, 0)), np.array([[2 * u[0]]]))) if exact else None
    gain = Parts([], [], lambda t, x, u: np.empty(0), ["u"], ["y"], lambda t, x, u: u**2, jacobians=jacobians)
    lin = fl.linearize(FunctionModel(gain), fl.operating_point(FunctionModel(gain), {"u": 3.0}))
    assert lin.A.shape == (0, 0)
    assert lin.B.shape == (0, 1)
    assert lin.C.shape == (1, 0)
    assert lin.D[0, 0] == pytest.approx(6.0, rel=1e-10)
    assert lin.T.shape == (0, 0)
    assert lin.eigenvalues().shape == (0,)


def test_no_inputs_and_no_outputs() -> None:
    parts = dataclasses.replace(pendulum().parts, inputs=(), outputs=(), output=None)
    lin = fl.linearize(FunctionModel(parts))
    assert (lin.B.shape, lin.C.shape, lin.D.shape) == ((2, 0), (0, 2), (0, 0))


def test_states_that_the_constraints_determine_completely() -> None:
    """A structure: P = 0."""
    model = FunctionModel(
        Parts(
            ["x", "y"],
            [1.0, 2.0],
            lambda t, x, u: np.zeros(2),
            constraints=[Constraint.from_text("x - 1", level="velocity"), Constraint.from_text("y - 2*x")],
        )
    )
    lin = fl.linearize(model)
    assert lin.A.shape == (0, 0)
    assert lin.T.shape == (2, 0)


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e3, 1e9])
def test_the_same_pendulum_in_any_unit_of_length(size: float) -> None:
    base = pendulum(angle=0.7, rate=1.5)

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        return base.parts.rates(t, s / size, u) * size

    parts = Parts(
        [Signal(n, nominal=size) for n in base.states.names],
        (base.start.states * size).tolist(),
        rates,
        inputs=["F"],
        constraints=["x^2 + y^2 - L^2"],
        parameters={"L": LENGTH * size},
    )
    lin = fl.linearize(FunctionModel(parts), independent=["x"])
    A, B, _ = pendulum_in_x(0.7, 1.5)
    np.testing.assert_allclose(lin.A, A, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(lin.B, B * size, atol=1e-9 * size)


def test_inputs_and_states_of_different_sizes_are_not_mixed_up() -> None:
    """As many inputs as states, each with its own nominal: x1' = a x1 u1, x2' = x2^2 u2."""
    model = FunctionModel(
        Parts(
            [Signal("big", nominal=1e6), Signal("small", nominal=1e-6)],
            [2e6, 3e-6],
            lambda t, x, u: np.array([np.sin(x[0] / 1e6) * (1 + u[0] * 1e9) + x[1], x[1] ** 2 * (1e6 + u[1])]),
            inputs=[Signal("tiny", nominal=1e-9), Signal("huge", nominal=1e9)],
        )
    )
    lin = fl.linearize(model)
    np.testing.assert_allclose(lin.A, [[np.cos(2.0) / 1e6, 1.0], [0.0, 6e-6 * 1e6]], rtol=1e-9, atol=1e-16)
    np.testing.assert_allclose(lin.B, [[np.sin(2.0) * 1e9, 0.0], [0.0, 9e-12]], rtol=1e-9)


def test_a_constraint_that_moves_with_time() -> None:
    """A point on a circle whose radius grows: r(t) = 1 + t, the angle free."""

    def rates(t: float, s: FloatArray, u: FloatArray) -> FloatArray:
        x, y, w = s
        return np.array([x / (1 + t) - w * y, y / (1 + t) + w * x, -x])

    model = FunctionModel(
        Parts(["x", "y", "w"], [0.6, 0.8, 0.5], rates, constraints=[Constraint.from_text("x^2 + y^2 - (1 + time)^2")])
    )
    lin = fl.linearize(model, independent=["x", "w"])
    # x' = x - w y, w' = -x with y = sqrt(1 - x^2): dy/dx = -x/y
    np.testing.assert_allclose(lin.A, [[1 + 0.5 * 0.6 / 0.8, -0.8], [-1.0, 0.0]], atol=1e-10)


def test_the_linear_model_predicts_the_nonlinear_one() -> None:
    """Dependent states through T, outputs through C, rates through f0 and A: second order small errors."""
    model = pendulum(angle=0.7, rate=1.5, exact=True)
    lin = fl.linearize(model)
    errors = []
    for size in (1e-2, 1e-3):
        dy = size * np.array([1.0, -0.7])
        names = lin.states.names
        values = dict(zip(names, (lin.y0 + dy).tolist(), strict=True))
        beside = fl.operating_point(model, values)
        visit = model.evaluate(0.0, beside.states, beside.inputs)
        x0 = model.start.states
        predicted = np.concatenate((x0 + lin.T @ dy, [lin.point.outputs["ax"]] + lin.C @ dy))
        errors.append(np.max(np.abs(predicted - np.concatenate((beside.states, visit.outputs)))))
    assert errors[1] < errors[0] / 80


def test_inputs_that_are_left_out_keep_their_values_at_the_point() -> None:
    model = pendulum(angle=0.7, exact=True)
    point = fl.operating_point(model, {"F": 5.0})
    with_input = fl.linearize(model, point)
    without = fl.linearize(model, point, inputs=[])
    np.testing.assert_array_equal(without.A, with_input.A)
    assert without.B.shape == (2, 0)
    assert without.D.shape == (1, 0)
    assert np.max(np.abs(without.A - fl.linearize(model).A)) > 0.1
    assert without.point.inputs == {"F": 5.0}
    with pytest.raises(fl.UnknownNameError, match="'G' is not an input"):
        fl.linearize(model, point, inputs=["G"])
    with pytest.raises(fl.UsageError, match="named twice"):
        fl.linearize(model, point, inputs=["F", "F"])


@pytest.mark.parametrize("value", [1.7e308, -1e200])
def test_what_differences_of_overflow_is_refused_by_name(value: float) -> None:
    huge = FunctionModel(Parts(["x", "z"], [1.0, 0.5], lambda t, x, u: np.array([value, -x[1]])))
    with pytest.raises(fl.NumericalError, match=r"too large for computation, for the derivative of the state 'x'"):
        fl.linearize(huge)


@pytest.mark.parametrize("thrust", [1.0, 1e3, 1e5])
def test_a_zero_that_exact_derivatives_miss_by_a_little_is_a_zero(thrust: float) -> None:
    """As of a drone whose tool takes differences inside: the eigenvalues would be +-1.5e-4, for four zeros."""

    def rates(t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        return np.array([x[1], 9.81 * np.sin(x[2]) + thrust * x[3], x[3], u[0] - 0.3 * x[3]])

    def jacobians(t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        Jx = np.array([[0, 1, 0, 0], [2.4e-8, 0, 9.81 * np.cos(x[2]), thrust], [0, 0, 0, 1], [0, 0, 0, -0.3]])
        return Jx, np.array([[0.0], [0], [0], [1]])

    drone = Parts(["p", "v", "angle", "rate"], [1.0, 0.0, 0.0, 0.0], rates, inputs=["u"], jacobians=jacobians)
    lin = fl.linearize(FunctionModel(drone))
    assert abs(lin.A[1, 0]) <= 10 * lin.errors.A[1, 0] <= 1e-9
    [said] = [str(w) for w in lin.warnings if w.kind == "directional-derivative"]
    assert "d der(v) / d p is declared as 2.4e-08, and a difference on the manifold is 0 +-" in said
