"""Audits: right results agree with their second ways; a result that was spoiled is caught, whatever its kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import UsageError
from fmilin.models import DaeModel, OdeModel
from fmilin.systems import four_bar, furuta_pendulum


def quantities(audit: fl.Audit) -> str:
    return "; ".join(row.quantity for row in audit.disagreeing)


@pytest.fixture(scope="module")
def furuta() -> fl.LinearModel:
    return fl.linearize(furuta_pendulum(), outputs=["arm.q", "pendulum.q"])


@pytest.fixture(scope="module")
def kalman(furuta: fl.LinearModel) -> fl.design.KalmanFilter:
    noise = {"arm.q": 1e-6, "pendulum.q": 1e-6}
    return fl.design.kalman_filter(furuta, 0.01, process={"torque": 1e-6}, measured=noise)


@pytest.fixture(scope="module")
def lqg(kalman: fl.design.KalmanFilter) -> fl.design.KalmanRegulator:
    K, _, _ = control.dlqr(kalman.sampled.A, kalman.sampled.B, np.diag([1, 1, 0.1, 0.1]), [[10.0]])
    return fl.design.KalmanRegulator(kalman, K)


@pytest.fixture(scope="module")
def loop() -> fl.LinearModel:
    plant = control.ss(control.tf([1.0], [1.0, 1.0, 0.0]), inputs="u", outputs="y")
    law = control.ss([], [], [], [[2.0]], 0.1, inputs="e", outputs="c")
    system = fl.connect({"p": plant, "k": law}, [("p.y", "k.e", -1.0), ("k.c", "p.u")])
    return fl.loop_transfer(system, "k.e")


@pytest.fixture(scope="module")
def orbit() -> fl.PeriodicOrbit:
    return fl.periodic_orbit(OdeModel("vdp", {"x": "v", "v": "(1 - x^2)*v - x"}, start={"x": 2.0}))


def test_a_linear_model_agrees_with_its_model_and_each_spoiled_matrix_is_caught() -> None:
    model = four_bar(damping=0.3)
    linear = fl.linearize(model, fl.trim(model))
    assert fl.audit(linear, model=model).ok
    for name in ("A", "B", "C", "D", "T"):
        matrix = getattr(linear, name).copy()
        matrix[-1, 0] += 1e-3
        audit = fl.audit(replace(linear, **{name: matrix}), model=model)
        assert not audit.ok, name
    assert "f0" in quantities(fl.audit(replace(linear, f0=linear.f0 + 1e-3), model=model))
    outputs = {name: value + 1e-3 for name, value in linear.point.outputs.items()}
    moved = replace(linear, point=replace(linear.point, outputs=outputs))
    assert "output" in quantities(fl.audit(moved, model=model))


def test_a_linear_model_off_equilibrium_agrees_with_plain_differences() -> None:
    model: fl.Model = four_bar()
    assert fl.audit(fl.linearize(model, fl.operating_point(model, {"phi": 1.0, "w": 0.7})), model=model).ok
    model = OdeModel("m", {"x": "v", "v": "-sin(x) - 0.1*v + u*cos(x)"}, inputs=["u"], outputs={"y": "x*v + u"})
    assert fl.audit(fl.linearize(model, fl.operating_point(model, {"x": 1.0, "v": 2.0, "u": 0.5})), model=model).ok


def test_a_dae_is_compared_with_its_descriptor_system() -> None:
    equations = ["der(x) = v", "m*der(v) = F - k*x - d*v", "F = u - c*v"]
    values = {"m": 2.0, "k": 3.0, "d": 0.1, "c": 0.2}
    model = DaeModel("m", equations, inputs=["u"], outputs={"F": "F"}, parameters=values)
    linear = fl.linearize(model, descriptor=True)
    assert fl.audit(linear).ok
    for name in ("A", "B", "C", "D"):
        matrix = getattr(linear, name).copy()
        matrix[-1, -1] += 1e-3
        assert "transfer" in quantities(fl.audit(replace(linear, **{name: matrix}))), name


def test_prescribed_motions_count_with_their_derivatives() -> None:
    """F = k p + m p'': an input der(der(p)) of the linear model stands for s^2 in the descriptor system."""
    values = {"m": 2.0, "k": 3.0}
    equations = ["der(x) = v", "m*der(v) = F - k*x", "x = p"]
    model = DaeModel("m", equations, inputs=["p"], outputs={"F": "F"}, parameters=values)
    linear = fl.linearize(model)
    assert fl.audit(linear).ok
    D = linear.D.copy()
    D[0, -1] += 1e-3
    assert "transfer" in quantities(fl.audit(replace(linear, D=D)))


def test_defective_and_clustered_eigenvalues_are_no_disagreement() -> None:
    chain = OdeModel("chain", {"a": "b - a", "b": "c - b", "c": "d - c", "d": "u - d"}, inputs=["u"])
    assert fl.audit(fl.linearize(chain), model=chain).ok
    free = OdeModel("free", {"x": "v", "v": "u"}, inputs=["u"], outputs={"y": "x"})
    assert fl.audit(fl.linearize(free), model=free).ok


def test_a_family_is_audited_point_by_point() -> None:
    family = fl.sweep(four_bar(), {"phi": [1.0, 1.1, 1.2]})
    assert fl.audit(family).ok
    family.eigenvalues[1, 0] *= 1 + 1e-3
    assert "phi = 1.1" in quantities(fl.audit(family))


def test_a_loop_is_audited_with_its_margins_and_spoiled_margins_are_caught(loop: fl.LinearModel) -> None:
    audit = fl.audit(loop)
    assert audit.ok
    assert any(row.quantity == "upper gain" for row in audit.rows)
    margins = fl.design.margins(loop)
    assert fl.audit(margins).ok
    spoiled: dict[str, dict[str, Any]] = {
        "upper gain": {"gain": (margins.gain[0], margins.gain[1] * 1.001)},
        "lower gain": {"gain": (0.1, margins.gain[1])},
        "phase": {"phase": margins.phase + 0.1},
        "disk margin": {"disk": margins.disk * 1.01},
        "delay": {"delay": margins.delay * 1.5},
    }
    for name, changes in spoiled.items():
        assert name in quantities(fl.audit(replace(margins, **changes))), name
    assert "closed loop is stable" in quantities(fl.audit(replace(margins, stable=False)))
    for name in ("delay", "gain_frequency", "phase_frequency"):
        assert not fl.audit(replace(margins, **{name: getattr(margins, name) * 1.001})).ok, name


def test_margins_of_a_continuous_loop_and_their_delay() -> None:
    plant = control.ss(control.tf([25.0], [1.0, 10.0, 10.0, 10.0]), inputs="u", outputs="y")
    law = control.ss([], [], [], [[1.0]], inputs="e", outputs="c")
    system = fl.connect({"p": plant, "k": law}, [("p.y", "k.e", -1.0), ("k.c", "p.u")])
    margins = fl.design.margins(fl.loop_transfer(system, "k.e"))
    assert fl.audit(margins).ok
    assert "above the delay" in quantities(fl.audit(replace(margins, delay=margins.delay * 0.9)))
    assert "below the delay" in quantities(fl.audit(replace(margins, delay=margins.delay * 1.1)))


def test_a_kalman_filter_is_compared_with_the_covariance_of_its_error(kalman: fl.design.KalmanFilter) -> None:
    assert fl.audit(kalman).ok
    for name in ("covariance", "predicted", "gain", "Q", "R"):
        spoiled = replace(kalman, **{name: getattr(kalman, name) * (1 + 1e-3)})
        assert not fl.audit(spoiled).ok, name


def test_a_regulator_is_compared_with_what_it_answers(lqg: fl.design.KalmanRegulator) -> None:
    assert fl.audit(lqg).ok
    answered = lqg.answer
    lqg.answer = lambda t, read: answered(t, read) * 1.001  # type: ignore[method-assign]
    assert "sample" in quantities(fl.audit(lqg))
    del lqg.answer
    unstable = fl.design.KalmanRegulator(lqg.filter, -lqg.gain)
    assert "closed loop is stable" in quantities(fl.audit(unstable))


def test_a_regulator_with_an_accelerometer_is_audited() -> None:
    cart = OdeModel("cart", {"x": "v", "v": "(u - 0.5*v - 2*x)/2"}, inputs=["u"], outputs={"acc": "der(v)"})
    kalman = fl.design.kalman_filter(
        fl.linearize(cart), 0.05, process={"u": 0.5}, measured={"acc": 1e-3}, hold_noise=True
    )
    assert fl.audit(kalman).ok
    K, _, _ = control.dlqr(kalman.sampled.A, kalman.sampled.B, np.eye(2), np.eye(1))
    assert fl.audit(fl.design.KalmanRegulator(kalman, K)).ok


def test_a_state_feedback_is_audited(furuta: fl.LinearModel, lqg: fl.design.KalmanRegulator) -> None:
    feedback = fl.design.state_feedback(furuta, lqg.gain, 0.01)
    assert fl.audit(feedback).ok
    assert not fl.audit(fl.design.state_feedback(furuta, -lqg.gain, 0.01)).ok


def test_an_orbit_is_integrated_by_another_method(orbit: fl.PeriodicOrbit) -> None:
    assert fl.audit(orbit).ok
    first = orbit.points[0].with_states(orbit.points[0].states + np.array([1e-3, 0.0]))
    spoiled = replace(orbit, points=(first, *orbit.points[1:]))
    assert not fl.audit(spoiled).ok
    assert not fl.audit(replace(orbit, period=orbit.period * 1.001)).ok
    middle = len(orbit.points) // 2
    moved = orbit.points[middle].with_states(orbit.points[middle].states + np.array([0.0, 1e-3]))
    points = (*orbit.points[:middle], moved, *orbit.points[middle + 1 :])
    assert "after the start" in quantities(fl.audit(replace(orbit, points=points)))


def test_multipliers_are_compared_with_another_integration(orbit: fl.PeriodicOrbit) -> None:
    periodic = fl.linearize_periodic(orbit.model, orbit)
    assert fl.audit(periodic).ok
    floquet = periodic.floquet()
    assert fl.audit(floquet).ok
    assert not fl.audit(replace(floquet, multipliers=floquet.multipliers * 1.001)).ok
    assert "motion is stable" in quantities(fl.audit(replace(floquet, stable=False)))
    periodic.floquet()
    spoiled = replace(periodic)
    spoiled.__dict__["_floquet"] = replace(
        floquet, multipliers=floquet.multipliers * 1.01, exponents=floquet.exponents + np.log(1.01) / floquet.period
    )
    assert "multiplier" in quantities(fl.audit(spoiled))
    # a mode that is not one, with multipliers and exponents as they were
    skewed = replace(periodic)
    skewed.__dict__["_floquet"] = replace(floquet, modes=floquet.modes[:, :, ::-1])
    assert "residual of mode" in quantities(fl.audit(skewed))


def test_closure_and_distance_of_an_orbit_are_compared(orbit: fl.PeriodicOrbit) -> None:
    open_orbit = replace(orbit, certificate=replace(orbit.certificate, residual=1e-3))
    assert "closure" in quantities(fl.audit(open_orbit))
    first = orbit.points[0].with_states(orbit.points[0].states + np.array([1e-3, 0.0]))
    spoiled = replace(orbit, points=(first, *orbit.points[1:]))
    assert "is within its stated distance" in quantities(fl.audit(spoiled))
    assert any(text.startswith("regularity") for text in fl.audit(orbit).unchecked)


def test_a_trimmed_point_is_compared_with_the_model() -> None:
    model = four_bar()
    point = fl.trim(model)
    assert fl.audit(point, model=model).ok
    moved = replace(point, states=point.states + 1e-4)
    found = quantities(fl.audit(moved, model=model))
    assert "constraints" in found
    assert "rate" in found
    nearby = fl.operating_point(model, {"phi": point["phi"] + 1e-3})
    off = replace(point, states=nearby.states)
    assert "Newton" in str([row.method for row in fl.audit(off, model=model).disagreeing])
    with pytest.raises(UsageError, match="has no reference to its model"):
        fl.audit(point)


@pytest.mark.parametrize("kind", ["ekf", "iekf", "ukf", "mhe"])
def test_an_estimator_is_compared_with_its_linear_model(kind: str) -> None:
    """Upright, so that A matters; a start that moves is compared over a part of the sample."""
    for start in ({"x": 0.3}, {"x": 0.3, "v": 1.0}):
        model = OdeModel("m", {"x": "v", "v": "sin(x) - 0.3*v + u"}, inputs=["u"], outputs={"y": "x"}, start=start)
        noise: dict[str, Any] = {"process_noise": {"u": 0.1}, "measurement_noise": {"y": 1e-2}, "sample_time": 0.1}
        kf = fl.design.estimator(model, kind=kind, initial_covariance={"x": 0.01, "v": 0.02}, **noise)
        for _ in range(5):
            kf.step([0.0], [0.1])
        audit = fl.audit(kf)
        assert audit.ok
        assert any("predicted" in row.quantity for row in audit.rows)


def test_an_estimator_with_spoiled_noise_is_caught() -> None:
    model = OdeModel("m", {"x": "v", "v": "sin(x) - 0.3*v + u"}, inputs=["u"], outputs={"y": "x"})
    kf = fl.design.estimator(model, process_noise={"u": 0.1}, measurement_noise={"y": 1e-2}, sample_time=0.1)
    predicted = kf.settings.filter.predict

    def predict_wrongly(*arguments: Any) -> Any:
        belief = predicted(*arguments)
        return replace(belief, S=belief.S * 1.01)

    kf.settings.filter.predict = predict_wrongly  # type: ignore[method-assign, assignment]
    try:
        assert "predicted" in quantities(fl.audit(kf))
    finally:
        del kf.settings.filter.predict


def test_an_object_without_an_audit_is_refused_in_words() -> None:
    with pytest.raises(UsageError, match="There is no audit of an object of the type 'int'"):
        fl.audit(3)


def test_an_audit_is_a_table_and_a_document(loop: fl.LinearModel) -> None:
    margins = fl.design.margins(loop)
    audit = fl.audit(replace(margins, phase=90.0))
    text = repr(audit)
    assert "disagree" in text
    assert "phase" in text
    document = audit.to_dict()
    assert document["format"] == "fmilin-audit/1"
    assert document["ok"] is False
    row = next(row for row in document["rows"] if row["quantity"] == "phase")
    assert set(row) >= {"quantity", "stated", "second_way", "difference", "agrees"}
    assert row["agrees"] is False
    assert "<" in audit._repr_html_()


def test_an_audit_is_saved_as_a_page(tmp_path: Path) -> None:
    audit = fl.audit(fl.linearize(fl.systems.four_bar()))
    audit.save(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert all(row.quantity in page for row in audit.rows)
    with pytest.raises(fl.UsageError, match=r"its name must end in \.html"):
        audit.save(tmp_path / "audit.txt")
