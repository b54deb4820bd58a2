"""How far a linear model holds, against closed forms; traces and document."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
import sympy
from scipy.integrate import solve_ivp

import fmilin as fl
from fmilin.errors import UsageError
from fmilin.linear_model.verification import Channel
from fmilin.models import LagrangeModel, OdeModel, SymbolicConstraint
from fmilin.systems import cartesian_pendulum, double_wishbone, four_bar, slider_crank
from fmilin.verification import procedure as verifying
from fmilin.verification.reduced import reduce_model
from fmilin.verification.relaxation import Excitation, Relaxation, choose_horizon, excitations, linear_response


def channel_of(found: fl.Verification, kind: str) -> Channel:
    return next(c for c in found.channels if c.kind == kind)


def bernoulli_deviation(a: float) -> float:
    """Largest |x - a exp(-t)| / a of x' = -x + x^2, x(0) = a: x = a e / (1 - a (1 - e)), e = exp(-t)."""
    e = np.linspace(0.0, 1.0, 100001)
    return float(np.max(np.abs(e / (1 - a * (1 - e)) - e)))


def test_the_limit_of_a_quadratic_decay() -> None:
    model = OdeModel("bernoulli", {"x": "-x + x^2"})
    channel = channel_of(fl.linearize(model).verify(model), "offset")
    assert channel.order == pytest.approx(2.0, abs=0.01)
    assert channel.validity is not None
    limit = channel.validity.limit
    assert not channel.validity.at_least
    assert channel.validity.limited_by == "x"
    # between 90 and 100 % of what is accepted; sampling may miss the peak by a little
    assert 0.9 * 0.05 * 0.999 <= bernoulli_deviation(limit) <= 0.05 * 1.01


def test_each_output_is_judged_by_its_own_response() -> None:
    """An output whose response is ten times smaller leaves its own 5 % at u = 0.05, and 5 % of the largest at 0.5.

    b follows u + u^2 and a follows 10 u, both with the time constant 1 s: the deviation of b is the part u of it.
    """
    model = OdeModel("pair", {"a": "-a + 10*u", "b": "-b + u + u^2"}, inputs=["u"], outputs={"a": "a", "b": "b"})
    channel = channel_of(fl.linearize(model).verify(model), "step")
    assert channel.validity is not None
    assert channel.validity.limited_by == "b"
    assert 0.044 < channel.validity.limit < 0.0501


def test_a_cubic_deviation_shrinks_with_third_order() -> None:
    model = OdeModel("cubic", {"x": "-x - x^3"})
    channel = channel_of(fl.linearize(model).verify(model), "offset")
    assert channel.order == pytest.approx(3.0, abs=0.05)
    assert channel.validity is not None
    a = channel.validity.limit
    e = np.linspace(0.0, 1.0, 100001)
    deviation = np.max(np.abs(e / np.sqrt(1 + a * a * (1 - e * e)) - e))  # x = a e / sqrt(1 + a^2 (1 - e^2))
    assert 0.044 < deviation < 0.051


def test_the_static_limit_of_a_step() -> None:
    """x' = -x + u + x^2/2 settles at u + u^2/2 + ...: x = 1 - sqrt(1 - 2 u)."""
    model = OdeModel("settling", {"x": "-x + u + x^2/2"}, inputs=["u"])
    channel = channel_of(fl.linearize(model).verify(model), "step")
    assert channel.validity is not None
    u = channel.validity.limit
    assert 0.044 < (1 - np.sqrt(1 - 2 * u)) / u - 1 < 0.051


def test_the_time_for_which_a_drift_is_predicted() -> None:
    """x' = 1 + x - x^2 from 0: x = t + t^2/2 - t^3/6 ..., the linear model says exp(t) - 1."""
    model = OdeModel("drifting", {"x": "1 + x - x^2"})
    channel = channel_of(fl.linearize(model).verify(model), "drift")
    assert channel.passed
    assert channel.validity is not None
    t = channel.validity.limit
    s, shift = np.sqrt(5) / 2, np.arctanh(1 / np.sqrt(5))
    x = 0.5 + s * np.tanh(s * t - shift)
    assert 0.04 < 1 - x / np.expm1(t) <= 0.05


def test_linear_responses_against_closed_forms() -> None:
    model = OdeModel("mass", {"x": "v", "v": "-9*x + u"}, inputs=["u"], outputs={"a": "der(v)"})
    linear = fl.linearize(model)
    times = np.linspace(0.0, 3.0, 31)
    offset = linear_response(linear, Excitation("offset", 1), times)
    np.testing.assert_allclose(offset[:, 0], np.sin(3 * times) / 3, atol=1e-13)
    np.testing.assert_allclose(offset[:, 4], -3 * np.sin(3 * times), atol=1e-12)
    step = linear_response(linear, Excitation("step", 0), times)
    np.testing.assert_allclose(step[:, 2], (1 - np.cos(3 * times)) / 9, atol=1e-13)
    np.testing.assert_allclose(step[:, 4], np.cos(3 * times), atol=1e-12)
    sine = linear_response(linear, Excitation("sine", 0, 3.0), times)  # resonance
    np.testing.assert_allclose(sine[:, 0], (np.sin(3 * times) - 3 * times * np.cos(3 * times)) / 18, atol=1e-12)


def test_horizons_and_frequencies_follow_the_modes() -> None:
    slow = fl.linearize(OdeModel("slow", {"x": "v", "v": "-0.25*x"}))
    assert choose_horizon(slow, np.ones(2)) == pytest.approx(2 * 2 * np.pi / 0.5)
    both = fl.linearize(OdeModel("both", {"x": "v", "v": "-x", "z": "w", "w": "-1e4*z"}))
    assert choose_horizon(both, np.ones(4)) == pytest.approx(40 * 2 * np.pi / 100)
    growing = fl.linearize(OdeModel("growing", {"x": "3*x"}))
    assert choose_horizon(growing, np.ones(1)) == pytest.approx(np.log(20) / 3)
    integrator = fl.linearize(OdeModel("integrator", {"x": "v", "v": "u"}, inputs=["u"]))
    assert choose_horizon(integrator, np.ones(2)) == pytest.approx(2 * np.pi)
    assert [e.frequency for e in excitations(integrator, 2.0) if e.kind == "sine"] == pytest.approx([2 * np.pi])
    still = fl.linearize(OdeModel("still", {"x": "0*x"}))
    assert choose_horizon(still, np.ones(1)) == 1.0
    many = OdeModel("many", {f"x{i}": f"-{2**i}*x{i} + u" for i in range(6)}, inputs=["u"])
    sines = [e.frequency for e in excitations(fl.linearize(many), 10.0) if e.kind == "sine"]
    assert len(sines) == 5
    assert sines[0] == pytest.approx(0.5)
    assert sines[-1] == pytest.approx(32.0)  # faster ones would take more than 40 periods


def test_traces_show_both_responses_at_the_limit() -> None:
    model = cartesian_pendulum()
    found = fl.linearize(model, inputs=[]).verify(model)
    channel = channel_of(found, "offset")
    trace = channel.trace
    assert trace is not None
    assert channel.validity is not None
    assert trace.amplitude == channel.validity.limit
    assert trace.signal in ("angle", "ax")
    deviation = np.max(np.abs(trace.linear - trace.nonlinear)) / np.max(np.abs(trace.linear))
    assert 1e-3 < deviation <= 0.05
    assert trace.beyond is not None
    assert np.max(np.abs(trace.linear - trace.beyond)) > 4 * np.max(np.abs(trace.linear - trace.nonlinear))


def test_the_document() -> None:
    model = cartesian_pendulum()
    right = fl.linearize(model).verify(model, horizon=2.0)
    wrong = fl.linearize(cartesian_pendulum(gravity=9.0)).verify(model, horizon=1.0)
    document = json.loads(json.dumps(right.to_document(), allow_nan=False))
    assert document["passed"] is True
    assert [c["kind"] for c in document["channels"]] == ["point", "offset", "offset", "step", "sine", "sine", "sine"]
    assert document["channels"][1]["limit"] == pytest.approx(0.27, abs=0.06)
    assert document["channels"][1]["limited_by"] == "ax"
    assert wrong.to_document()["channels"][1]["limit"] is None


def oscillators(*frequencies: float) -> OdeModel:
    """Oscillators without any connection."""
    rates = {f"q{i}": f"v{i}" for i in range(len(frequencies))}
    return OdeModel("many", rates | {f"v{i}": f"-{w**2!r}*q{i} - q{i}^3" for i, w in enumerate(frequencies)})


def test_many_coordinates_are_followed_for_a_shorter_time_and_that_is_said() -> None:
    model = oscillators(1.0, *(100.0 + i for i in range(11)))
    linear = fl.linearize(model)
    assert choose_horizon(linear, np.ones(24)) == pytest.approx(300 / 24 * 2 * np.pi / 110)
    model = oscillators(1.0, 40.0)
    found = fl.linearize(model).verify(model, horizon=1.0)
    assert found.passed
    assert [r.kind for r in found.remarks] == ["horizon"]
    assert "followed for 1 s, 0.16 of the slowest mode's period" in str(found.remarks[0])
    assert not fl.linearize(model).verify(model, horizon=4.0).remarks


def test_hours_of_integration_are_refused_with_what_takes_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifying, "MAX_RESPONSE_EVALUATIONS", 500)
    model = oscillators(1.0, 2.0)
    with pytest.raises(UsageError, match=r"Following the 4 channels for 12\.6 s .* Choose a shorter time, horizon="):
        fl.linearize(model).verify(model)


def crane() -> LagrangeModel:
    """Return a trolley on a rail with a load on a rope that swings both ways: 8 states, 6 of them independent."""
    s, x, y, z, vs, vx, vy, vz, force = sympy.symbols("s px py pz vs vx vy vz F", real=True)
    return LagrangeModel(
        "crane",
        {s: vs, x: vx, y: vy, z: vz},
        sympy.diag(200, 500, 500, 500),
        [force, 0, 0, -500 * 9.81],
        constraints=[SymbolicConstraint(((x - s) ** 2 + y**2 + z**2 - 36) / 2, name="rope length")],
        inputs=[force],
        start={s: 0.0, x: 0.0, y: 0.0, z: -6.0},
    )


PLANTS = [cartesian_pendulum, four_bar, slider_crank, crane, double_wishbone]


@pytest.mark.parametrize("make", PLANTS, ids=lambda make: make.__name__)
def test_a_verdict_takes_a_bounded_number_of_evaluations(make: Callable[[], fl.Model]) -> None:
    model = make()
    found = fl.linearize(model).verify(model)
    assert found.passed
    assert found.evaluations <= 5000 + 200 * (len(model.states) + len(model.inputs))
    assert all(c.validity is not None for c in found.channels if c.kind in ("offset", "step"))


def test_a_response_by_sweeps_is_that_of_the_equations() -> None:
    """x' = -x + x^2 from a: x = a e / (1 - a (1 - e)), e = exp(-t); a sweep leaves a power of a more."""
    model = OdeModel("bernoulli", {"x": "-x + x^2"})
    linear = fl.linearize(model)
    relaxation = Relaxation(reduce_model(model, linear), linear, 3.0, 48, 1.0)
    excitation, a = Excitation("offset", 0), 0.1
    unit = relaxation.linear_response(excitation)
    e = np.exp(-relaxation.times)
    exact = a * e / (1 - a * (1 - e))
    left = []
    for sweeps in (1, 2, 3):
        found = relaxation.deviation(excitation, unit, a, sweeps=sweeps, close=0.0)
        left.append(float(np.max(np.abs(a * unit[:, 0] + found.values[:, 0] - exact))))
    assert left[0] < 0.2 * a * a
    assert left[1] < 0.2 * left[0]
    assert left[2] < 0.2 * left[1]
    np.testing.assert_allclose(relaxation.integrate_response(excitation, a)[:, 0], exact, rtol=1e-6)


@pytest.mark.parametrize("rate", ["-x + 0.05*x^2 - x^3", "-x + 0.3*x^2 - x^5", "-sin(x)", "-x - 0.4*x^2"])
def test_within_five_per_cent_means_both_ways(rate: str) -> None:
    """The worse sign far out need not be the worse one at the limit, and what diverges far out says nothing nearby."""
    model = OdeModel("bent", {"x": rate})
    verification = fl.linearize(model).verify(model)
    limit = next(c.validity.limit for c in verification.channels if c.kind == "offset" and c.validity)
    times = np.linspace(0.0, verification.horizon, 200)

    def deviation(amplitude: float) -> float:
        nonlinear = solve_ivp(
            lambda t, x: [model.evaluate(t, x, np.zeros(0)).derivatives[0]],
            (0.0, times[-1]), [amplitude], t_eval=times, rtol=1e-10, atol=1e-12,
        )  # fmt: skip
        if len(nonlinear.t) < len(times):
            return np.inf
        return float(np.abs(nonlinear.y[0] / amplitude - np.exp(-times)).max())

    assert 0.044 < max(deviation(limit), deviation(-limit)) < 0.0501
