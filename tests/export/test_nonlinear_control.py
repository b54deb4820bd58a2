"""The constrained model inside python-control: simulated, trimmed, linearized, connected there."""

from __future__ import annotations

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import NumericalError
from fmilin.export.nonlinear_control import nonlinear_view
from fmilin.systems import cartesian_pendulum, four_bar

TIMES = np.linspace(0.0, 2.0, 41)


def test_a_driven_four_bar_linkage_moves_as_in_the_projected_simulation() -> None:
    model = four_bar(damping=0.3)
    point = fl.operating_point(model, {"phi": 1.9})
    view = nonlinear_view(model, point)
    torque = 0.5 * np.sin(3 * TIMES)

    def driven(t: float) -> float:
        return float(np.interp(t, TIMES, torque))

    found = control.input_output_response(
        view.system, TIMES, torque, view.start, solve_ivp_kwargs={"rtol": 1e-10, "atol": 1e-11}
    )
    expected = fl.simulate(model, point, stop_time=2.0, step=0.05, inputs={"torque": driven})
    assert view.system.state_labels == ["phi", "w"]
    assert view.system.output_labels[2] == "coupler/y"
    phi = expected.states[:, model.states.index_of("phi")]
    assert np.ptp(phi) > 0.5
    assert np.allclose(found.states[0], phi, atol=1e-6)
    coupler = [
        model.evaluate(t, x, np.array([u])).outputs[2] for t, x, u in zip(TIMES, expected.states, torque, strict=True)
    ]
    assert np.allclose(found.outputs[2], coupler, atol=1e-6)


def test_every_state_stays_on_the_manifold() -> None:
    model = cartesian_pendulum(length=2.0)
    view = nonlinear_view(model, independent=["x", "vx"])
    x = view.states(0.0, np.array([0.9, 0.3]))
    assert np.hypot(*x[:2]) == pytest.approx(2.0, rel=1e-14)
    assert x[0] * x[2] + x[1] * x[3] == pytest.approx(0.0, abs=1e-14)
    assert x[model.states.index_of("x")] == 0.9


def test_python_control_linearizes_and_trims_it() -> None:
    model = four_bar(damping=0.3)
    view = nonlinear_view(model)
    linear = fl.linearize(model)
    theirs = control.linearize(view.system, view.start, view.inputs)
    for name in "ABCD":
        assert np.allclose(getattr(theirs, name), getattr(linear, name), atol=2e-5)
    rest = control.find_operating_point(view.system, view.start + np.array([0.05, 0.0]), view.inputs)
    assert np.allclose(rest.states, view.start, atol=1e-6)


def test_a_regulator_designed_for_the_linear_model_holds_the_nonlinear_one() -> None:
    model = four_bar().with_interface(None, ["phi", "w"])
    view, linear = nonlinear_view(model), fl.linearize(model)
    gain, _, _ = control.lqr(linear.to_control(), 100 * np.eye(2), np.eye(1))
    law = control.nlsys(
        None, lambda t, x, u, params: -gain @ (u - view.start), inputs=["phi", "w"], outputs=["torque"], name="law"
    )
    plant = view.system.copy("plant")
    loop = control.interconnect(
        [plant, law],
        connections=[
            ["law.phi", f"{plant.name}.phi"],
            ["law.w", f"{plant.name}.w"],
            [f"{plant.name}.torque", "law.torque"],
        ],
        inplist=[],
        outlist=["plant.phi"],
    )
    response = control.input_output_response(loop, np.linspace(0, 15, 60), 0, view.start + np.array([0.2, 0.0]))
    assert float(np.ravel(response.outputs)[-1]) == pytest.approx(view.start[0], abs=1e-3)


def test_beyond_the_coordinates_the_error_names_the_way_out() -> None:
    view = nonlinear_view(cartesian_pendulum(length=1.0), independent=["x", "vx"])
    with pytest.raises(NumericalError, match=r"python-control cannot change its coordinates.*fmilin\.simulate"):
        view.states(0.0, np.array([1.5, 0.0]))


def test_models_without_inputs() -> None:
    model = cartesian_pendulum()
    view = nonlinear_view(model.with_interface(inputs=[], outputs=["y"]))
    response = control.input_output_response(view.system, TIMES, 0, view.start)
    assert response.outputs.shape[-1] == 41
