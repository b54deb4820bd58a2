"""Linear models with delays through their documented names, against closed forms and python-control."""

from __future__ import annotations

import math

import control
import numpy as np
import pytest
from scipy.special import lambertw

import fmilin as fl
from fmilin.models import OdeModel


@pytest.fixture(scope="module")
def lag() -> fl.LinearModel:
    """Return y = 1/(s + 1) u."""
    return fl.linearize(fl.connect({"lag": control.ss(-1, 1, 1, 0, inputs="u", outputs="y")}, []))


def test_dead_time_at_both_ends_multiplies_the_response(lag: fl.LinearModel) -> None:
    w = np.geomspace(0.01, 1e4, 60)
    late = lag.with_delays(inputs={"lag.u": 0.5}, outputs={"lag.y": 0.25})
    exact = np.exp(-0.75j * w) / (1 + 1j * w)
    assert np.abs(late.frequency_response(w)[0, 0] - exact).max() < 1e-12
    assert np.abs(lag.frequency_response(w)[0, 0] - 1 / (1 + 1j * w)).max() < 1e-15
    assert late.delays == {"lag.u": 0.5, "lag.y": 0.25}
    assert lag.delays == {}
    assert late.with_delays(inputs={"lag.u": 1.0}).delays == {"lag.u": 0.5, "lag.y": 0.25, "lag.u (2)": 1.0}
    assert late.with_delay_values({"lag.u": 2.0}).delays["lag.u"] == 2.0
    assert late.eigenvalues().tolist() == [-1.0]
    assert late.stability().stable is True


def test_a_step_arrives_after_the_dead_time(lag: fl.LinearModel) -> None:
    late = lag.with_delays(inputs={"lag.u": 0.5}, outputs={"lag.y": 0.25})
    response = late.step_response(times=np.linspace(0, 5, 101))
    exact = np.where(response.times >= 0.75, 1 - np.exp(0.75 - response.times), 0.0)
    assert np.abs(response["lag.y"] - exact).max() < 1e-12
    assert response.error < 1e-11
    held = late.time_response(np.array([0.0, 1.0, 4.0]), {"lag.u": np.array([1.0, -1.0, -1.0])})
    last = 1 - np.exp(-3.25) - 2 * (1 - np.exp(-2.25))
    assert held["lag.y"][-1] == pytest.approx(last, abs=1e-12)


def test_code_without_delays_is_stopped_with_a_sentence(lag: fl.LinearModel) -> None:
    late = lag.with_delays(inputs={"lag.u": 0.5})
    for use in (lambda: late.A, late.zeros, lambda: fl.connect({"a": late}, []), late.relative_degree):
        with pytest.raises(fl.UsageError, match=r"has delays \(lag.u by 0.5 s\), so there is no matrix"):
            use()
    with pytest.raises(fl.UsageError, match="so there is no matrix A of the whole"):
        late.zeros()
    with pytest.raises(fl.UsageError, match=r"a linear model with delays is written as \.m "):
        late.save("late.mat")
    with pytest.raises(fl.UsageError, match="a delay is finite and not negative"):
        lag.with_delays(inputs={"lag.u": -1.0})
    with pytest.raises(fl.UnknownNameError, match=r"'lag\.v' is not an input of the linear model"):
        lag.with_delays(inputs={"lag.v": 1.0})


def test_pade_holds_up_to_the_frequency_that_it_states(lag: fl.LinearModel) -> None:
    late = lag.with_delays(inputs={"lag.u": 0.5})
    for order in (2, 5):
        plain = late.pade(order)
        text = plain.warnings[-1].message
        limit = float(text.split("up to ")[1].split()[0])
        w = np.array([0.5, 0.999, 1.02]) * limit
        relative = np.abs(plain.frequency_response(w) / late.frequency_response(w) - 1)[0, 0]
        assert relative[0] < 1e-3
        assert relative[1] < 0.01 < relative[2]
        numerator, denominator = control.pade(0.5, order)
        peer = control.tf(numerator, denominator) * control.tf([1], [1, 1])
        assert np.abs(plain.frequency_response(w)[0, 0] - peer(1j * w)).max() < 1e-12
    with pytest.warns(UserWarning, match="python-control has no delays"):
        system = late.to_control()
    assert system(0.1j) == pytest.approx(complex(late.frequency_response(np.array([0.1]))[0, 0, 0]), abs=1e-12)


def test_the_table_shows_rightmost_eigenvalues_and_delays(lag: fl.LinearModel) -> None:
    text = repr(lag.with_delays(inputs={"lag.u": 0.5}))
    assert "Delays       lag.u by 0.5 s" in text
    assert "Stability    stable" in text
    assert "Equilibrium  yes" in text
    assert "before the delay" not in text
    assert "delayed lag.u" not in text


def test_pictures_are_exact_in_the_delays(lag: fl.LinearModel) -> None:
    late = lag.with_delays(inputs={"lag.u": 0.5})
    magnitude, phase = late.plot.bode(db=False).axes
    w, degrees = np.asarray(phase.lines[0].get_data(), dtype=float)
    assert np.abs(degrees + np.degrees(0.5 * w + np.arctan(w))).max() < 1e-6
    assert np.abs(np.asarray(magnitude.lines[0].get_ydata(), dtype=float) - 1 / np.hypot(1, w)).max() < 1e-12
    curve = next(line for line in late.plot.nyquist().axes[0].lines if line.get_label() == "ω > 0")
    assert np.abs(np.hypot(*np.asarray(curve.get_data(), dtype=float)) - 1 / np.hypot(1, w)).max() < 1e-12
    t, y = np.asarray(late.plot.step(stop_time=3.0).axes[0].lines[-1].get_data(), dtype=float)
    assert np.abs(y - np.where(t >= 0.5, 1 - np.exp(0.5 - t), 0.0)).max() < 1e-12
    assert len(late.plot.eigenvalues().axes) == 1


def test_delays_in_series_with_a_loop_leave_its_eigenvalues() -> None:
    model = fl.linearize(fl.connect({"lag": control.ss(-1, 1, 1, 0, inputs="u", outputs="y")}, []))
    core = model.with_delays(outputs={"lag.y": 1.0}).core  # closed by hand: u = -2 y(t - 1) + r
    closed = fl.DelayedLinearModel.of_core(
        fl.linearize(fl.connect({"core": core}, [("core.lag.y", "core.lag.u", -2.0)])), ["y"], [1.0]
    )
    lambert = np.array([lambertw(-2 * math.e, k) - 1 for k in (0, -1)])
    assert np.abs(np.sort_complex(closed.eigenvalues(2)) - np.sort_complex(lambert)).max() < 1e-13


def test_sweeps_over_a_delay_find_where_stability_changes() -> None:
    """x' = -x - 2 x(t - tau) has the eigenvalues ±i sqrt(3) at tau = (acos(-1/2) + 2 pi k)/sqrt(3)."""
    model = OdeModel("Hayes", {"x": "-x - 2*delay(x, 1)"})
    lin = fl.linearize(model)
    assert isinstance(lin, fl.DelayedLinearModel)
    sweep = lin.sweep_delays({"x": [0.0, 1.0, 1.5, 6.0]})
    exact = (math.acos(-0.5) + 2 * math.pi * np.arange(2)) / math.sqrt(3)
    assert [change.delays["x"] for change in sweep.changes] == pytest.approx(exact, abs=1e-12)
    assert [change.frequency for change in sweep.changes] == pytest.approx([math.sqrt(3)] * 2, abs=1e-12)
    assert sweep.unstable.tolist() == [0, 0, 2, 4]
    assert [(c.unstable_before, c.unstable_after) for c in sweep.changes] == [(0, 2), (2, 4)]
    assert sweep.eigenvalues[0, 1] == pytest.approx(-3.0)
    assert np.isnan(sweep.eigenvalues[0, 0])
    s = sweep.eigenvalues[2]
    assert np.abs(s + 1 + 2 * np.exp(-1.5 * s)).max() < 1e-12
    with pytest.raises(fl.UsageError, match="sequences of the same length"):
        lin.sweep_delays({"x": []})


def test_delay_margins_are_where_a_sweep_changes_its_stability() -> None:
    rng = np.random.default_rng(5)
    compared = 0
    while compared < 2:
        damping, gain, T = rng.uniform(0.05, 0.8), rng.uniform(0.5, 1.5), rng.uniform(0.05, 0.4)
        plant = OdeModel("plant", {"x": "v", "v": f"-x - {damping}*v + u"}, inputs=["u"], outputs={"y": "x + v"})
        law = control.ss([], [], [], [[-gain]], inputs="e", outputs="u")
        members, wires = {"plant": plant, "law": law}, [("plant.y", "law.e"), ("law.u", "plant.u")]
        system = fl.connect(members, wires, delays={"plant.u": T})
        margin = fl.design.margins(fl.loop_transfer(system, "plant.u")).delay
        closed = fl.linearize(system)
        assert isinstance(closed, fl.DelayedLinearModel)
        if not math.isfinite(margin) or not closed.stability().stable:
            continue
        sweep = closed.sweep_delays({"plant.u": [T, T + 1.2 * margin]})
        assert sweep.changes[0].delays["plant.u"] == pytest.approx(T + margin, abs=1e-9)
        compared += 1
