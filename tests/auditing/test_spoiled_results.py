"""Audits of results in which one number was changed by hand: each change is found, and the right result agrees."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.systems import four_bar, furuta_pendulum


def spoil(value: Any, middle: bool) -> Any:
    """Return the value with one number changed by a thousandth of the largest; None where it has no numbers."""
    if isinstance(value, float):
        return value * 1.001 + (1e-3 if value == 0 else 0.0)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc" or not value.size:
        return None
    changed = value.copy().reshape(-1)
    finite = np.flatnonzero(np.isfinite(changed))
    k = finite[len(finite) // 2] if middle else finite[np.argmax(np.abs(changed[finite]))]
    changed[k] += 1e-3 * max(float(np.abs(changed[finite]).max()), 1e-3)
    return changed.reshape(value.shape)


def list_missed(result: Any, names: set[str], **options: Any) -> list[str]:
    """Return the fields whose change no audit finds; ``names`` are left out."""
    assert fl.audit(result, **options).ok
    missed = []
    for field in fields(result):
        for middle in (False, True):
            changed = spoil(getattr(result, field.name), middle) if field.name not in names else None
            if changed is not None and fl.audit(replace(result, **{field.name: changed}), **options).ok:
                missed.append(field.name)
    return missed


def resonant() -> fl.PeriodicModel:
    rates = {"x": "v", "v": "-(1 + 0.8*cos(2*time))*x + (1 + 0.5*sin(2*time))*u"}
    model = OdeModel("resonant", rates, inputs=["u"], outputs={"y": "x", "a": "der(v)"})
    return fl.linearize_periodic(model, fl.periodic_orbit(model, period=np.pi), inputs=["u"])


def test_a_linear_model_with_its_model() -> None:
    """T_u is compared at coordinates and at positions."""
    model = four_bar(damping=0.3)
    linear = fl.linearize(model, fl.trim(model))
    assert list_missed(linear, {"sample_time", "T_u"}, model=model) == []
    for i in (0, 4):
        T_u = linear.T_u.copy()
        T_u[i, 0] += 1e-3
        assert not fl.audit(replace(linear, T_u=T_u), model=model).ok, i


def test_steady_filters() -> None:
    """Without feedthrough D n is zero: a change of a millionth there is below the other noise."""
    furuta = fl.linearize(furuta_pendulum(), outputs=["arm.q", "pendulum.q"])
    noise = {"arm.q": 1e-6, "pendulum.q": 1e-6}
    kalman = fl.design.kalman_filter(furuta, 0.01, process={"torque": 1e-6}, measured=noise)
    assert list_missed(kalman, {"feedthrough", "R"}) == []
    cart = OdeModel("cart", {"x": "v", "v": "(u - 0.5*v - 2*x)/2"}, inputs=["u"], outputs={"acc": "der(v)"})
    held = fl.design.kalman_filter(
        fl.linearize(cart), 0.05, process={"u": 0.5}, measured={"acc": 1e-3}, hold_noise=True
    )
    assert list_missed(held, set()) == []


@pytest.mark.parametrize("kind", ["ekf", "iekf", "ukf", "mhe"])
def test_estimators(kind: str) -> None:
    """The present estimate, its covariance, and the noise of the sensors, with noise that is held over each sample."""
    model = OdeModel("m", {"x": "v", "v": "sin(x) - 0.3*v + u"}, inputs=["u"], outputs={"y": "x", "a": "der(v)"})
    kf = fl.design.estimator(
        model,
        kind=kind,
        process_noise={"u": 0.1},
        measurement_noise={"y": 1e-2, "a": 1e-2},
        sample_time=0.1,
        hold_noise=True,
    )
    for k in range(4):
        kf.step([0.1], [0.02 * k, 0.1])
    audit = fl.audit(kf)
    assert audit.ok
    assert audit.unchecked == ()
    present = kf._at
    spoiled: list[dict[str, Any]] = [{"x": present.x + 1e-5}, {"S": present.S * 1.001}]
    for changes in spoiled:
        kf._at = replace(present, **changes)
        assert not fl.audit(kf).ok, changes
    kf._at = present
    kf.settings = replace(kf.settings, R=kf.settings.R * 1.01)
    assert not fl.audit(kf).ok
    kf.reset()
    assert "the present estimate: the last change was not a step(u, y)" in fl.audit(kf).unchecked


def test_gains_along_periodic_motions() -> None:
    periodic = resonant()
    regulator = fl.design.periodic_lqr(periodic, np.diag([1.0, 2.0]), np.array([[0.3]]))
    position = replace(periodic, C=periodic.C[:, :1], D=periodic.D[:, :1], outputs=periodic.outputs.select([0]))
    kalman = fl.design.periodic_kalman_filter(position, process={"u": 0.5}, measured={"y": 0.1})
    for gain in (regulator, kalman):
        assert gain.residual < 1e-10
        assert gain.remarks == ()
        assert list_missed(gain, set()) == []
        closed = replace(gain.closed, A=gain.closed.A * 1.001)
        assert not fl.audit(replace(gain, closed=closed)).ok


def test_a_gain_that_few_phases_do_not_tell_is_told() -> None:
    """16 phases of a coefficient with sharp peaks: Riccati's equation does not hold between them."""
    rates = {"x": "v", "v": "-x - 0.4*v + u*exp(1.5*cos(2*time))"}
    model = OdeModel("peaks", rates, inputs=["u"], outputs={"y": "x"})
    orbit = fl.periodic_orbit(model, period=np.pi)
    few = fl.linearize_periodic(model, orbit, points=16)
    many = fl.linearize_periodic(model, orbit, points=64)
    costs = np.eye(2), np.array([[0.1]])
    assert fl.design.periodic_lqr(many, *costs).remarks == ()
    (remark,) = fl.design.periodic_lqr(few, *costs).remarks
    assert "relative residual of" in str(remark)


def test_white_noise_through_a_sensor_along_a_motion_is_refused_in_words() -> None:
    with pytest.raises(fl.UsageError, match="through 'u' reaches the output 'a' at once"):
        fl.design.periodic_kalman_filter(resonant(), process={"u": 0.5}, measured={"y": 0.1, "a": 0.1})


def test_charts_of_many_motions(tmp_path: Path) -> None:
    rates = {"x": "v", "v": "-(a - 2*q*cos(2*time))*x"}
    mathieu = OdeModel("Mathieu", rates, parameters={"a": 1.0, "q": 0.1})
    chart = fl.floquet_chart(mathieu, {"a": [0.5, 1.0, 1.5]}, period=np.pi)
    assert list_missed(chart, set()) == []
    stable = chart.stable.copy()
    stable[1] = True
    assert not fl.audit(replace(chart, stable=stable)).ok


def test_families_with_their_model() -> None:
    model = four_bar(damping=0.3)
    family = fl.sweep(model, {"phi": [1.0, 1.1, 1.2]})
    assert fl.audit(family, model=model).ok
    for name in ("A", "B", "C", "f0", "T"):
        array = getattr(family, name)
        before = array[1].copy()
        array[1].reshape(-1)[0] += 1e-3 * np.abs(array).max()
        assert not fl.audit(family, model=model).ok, name
        array[1] = before


def test_importing_audits_loads_no_designs() -> None:
    code = "import sys, fmilin.auditing; print([name for name in sys.modules if name.startswith('fmilin.design')])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("sample_time", [0.0, 0.3])
def test_margins(sample_time: float) -> None:
    """Each finite number of the margins of a loop, by one per cent; limits that are 0 or infinite stay."""
    rates = {"x": "v", "v": "-v + u"}
    plant = OdeModel("plant", rates, inputs=["u"], outputs={"y": "x"})
    gain = control.ss([], [], [], [[2.0]], *([sample_time] if sample_time else []), inputs="e", outputs="c")
    loop = fl.loop_transfer(fl.connect({"p": plant, "k": gain}, [("p.y", "k.e", -1.0), ("k.c", "p.u")]), "k.e")
    margins = fl.design.margins(loop)
    assert fl.audit(margins).ok
    names = [
        "phase",
        "phase_frequency",
        "delay",
        "disk",
        "disk_frequency",
        *(["gain_frequency"] if sample_time else []),
    ]
    for name in names:
        assert not fl.audit(replace(margins, **{name: 1.01 * getattr(margins, name)})).ok, name
    if sample_time:
        assert not fl.audit(replace(margins, gain=(margins.gain[0], 1.01 * margins.gain[1]))).ok


def test_trimmed_points() -> None:
    """The time is no result where the model does not depend on it."""
    model = OdeModel("m", {"x": "v", "v": "-sin(x) - 0.3*v + u"}, inputs=["u"])
    point = fl.trim(model, fixed={"u": 0.3})
    assert fl.audit(point, model=model).ok
    for name, count in (("states", 2), ("inputs", 1)):
        for i in range(count):
            values = getattr(point, name).copy()
            values[i] += 0.01
            assert not fl.audit(replace(point, **{name: values}), model=model).ok, (name, i)
