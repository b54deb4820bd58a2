"""The linear model of a co-simulation: against closed forms, and against FMUs that FMPy steps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

import fmilin as fl
from fmilin.composition.system import ConnectedModel
from fmilin.fmi.write import build_fmu
from fmilin.models import OdeModel
from fmilin.report import find_step_limit
from tests.command_line import main
from tests.composition.fmpy_master import Stepped, seen_limit
from tests.composition.plants import oscillator
from tests.composition.ssp_files import component, connection, connector, ssp, system
from tests.shared import shared


def first_order_pair(pole: float, gain: float) -> ConnectedModel:
    """Return x1' = -a x1 + b x2, x2' = -a x2 - b x1."""
    members = {
        "one": OdeModel("one", {"x": f"-{pole}*x + u"}, inputs=["u"], outputs={"y": "x"}, start={"x": 1.0}),
        "two": OdeModel("two", {"x": f"-{pole}*x + u"}, inputs=["u"], outputs={"y": "x"}),
    }
    return fl.connect(members, [("one.y", "two.u", -gain), ("two.y", "one.u", gain)])


def test_the_limits_of_the_first_order_test_problem() -> None:
    """With E = exp(-a h), r = b/a > 1 and held inputs x+ = E x +- r (1 - E) (the other one).

    Jacobi: z = E +- i r (1 - E), |z| = 1 at E = (r^2 - 1)/(r^2 + 1), so h = log((r^2 + 1)/(r^2 - 1))/a.
    Gauss-Seidel: z^2 - (2 E - q) z + E^2 = 0 with q = r^2 (1 - E)^2, stable while q < (1 + E)^2: E = (r - 1)/(r + 1),
    so h = log((r + 1)/(r - 1))/a.
    """
    a, b = 1.5, 3.0
    r = b / a
    model = first_order_pair(a, b)
    jacobi = fl.cosimulated(model, step=0.1)
    E = np.exp(-a * 0.1)
    expected = np.array([E + 1j * r * (1 - E), E - 1j * r * (1 - E)])
    np.testing.assert_allclose(
        np.sort_complex(np.linalg.eigvals(jacobi.linear.A)), np.sort_complex(expected), atol=1e-13
    )
    assert jacobi.largest_step == pytest.approx(np.log((r**2 + 1) / (r**2 - 1)) / a, rel=1e-6)
    seidel = fl.cosimulated(model, step=0.1, master="gauss-seidel")
    assert seidel.largest_step == pytest.approx(np.log((r + 1) / (r - 1)) / a, rel=1e-6)
    assert jacobi.linear.sample_time == 0.1
    assert jacobi.linear.states.names == ("one.x", "two.x")


@pytest.mark.parametrize("pace", [1e-7, 1e7])
def test_the_limit_scales_with_the_time_of_the_members(pace: float) -> None:
    cosimulation = fl.cosimulated(first_order_pair(1.5 * pace, 3.0 * pace), step=0.1 / pace)
    assert cosimulation.largest_step == pytest.approx(np.log(5 / 3) / (1.5 * pace), rel=1e-6)


def double_oscillator(stiffness: float, damper: float) -> tuple[dict[str, OdeModel], list[tuple[str, str]]]:
    """Return two equal masses on springs; each member holds the coupling spring to the other's place, its input."""
    members = {}
    for name, start in (("one", 1.0), ("two", -0.3)):
        equations = {"x": "v", "v": f"-x - {damper}*v + {stiffness}*(u - x)"}
        members[name] = OdeModel(name, equations, inputs=["u"], outputs={"y": "x"}, start={"x": start})
    return members, [("one.y", "two.u"), ("two.y", "one.u")]


def jacobi_limit(stiffness: float, damper: float) -> float:
    """Return the limit of the double oscillator under a Jacobi master.

    Sum and difference of the places decouple: s+ = (Phi +- k Gamma e1') s, with w0^2 = 1 + k, delta = d/2,
    w^2 = w0^2 - delta^2, e = exp(-delta h), c = cos(w h), n = sin(w h):

        Phi = e [[c + delta n/w, n/w], [-w0^2 n/w, c - delta n/w]],  Gamma = [(1 - Phi_11)/w0^2, e n/w].

    A matrix of order 2 is stable while det < 1 and |trace| < 1 + det.
    """
    w0_2, delta = 1.0 + stiffness, damper / 2
    w = np.sqrt(w0_2 - delta**2)

    def excess(h: float) -> float:
        e, c, n = np.exp(-delta * h), np.cos(w * h), np.sin(w * h)
        Phi = e * np.array([[c + delta * n / w, n / w], [-w0_2 * n / w, c - delta * n / w]])
        Gamma = np.array([(1 - Phi[0, 0]) / w0_2, e * n / w])
        worst = -np.inf
        for sign in (1.0, -1.0):
            M = Phi + sign * stiffness * np.outer(Gamma, [1.0, 0.0])
            det, trace = np.linalg.det(M), np.trace(M)
            worst = max(worst, det - 1.0, abs(trace) - 1.0 - det)
        return worst

    steps = np.linspace(1e-3, 3.0, 3000)
    first = next(i for i, h in enumerate(steps) if excess(h) > 1e-12)
    return float(brentq(excess, steps[first - 1], steps[first], xtol=1e-14))


@pytest.mark.parametrize(("stiffness", "damper"), [(0.6, 0.3), (3.0, 0.4)])
def test_the_double_oscillator_under_a_jacobi_master(stiffness: float, damper: float) -> None:
    members, wires = double_oscillator(stiffness, damper)
    cosimulation = fl.cosimulated(fl.connect(members, wires), step=0.05)
    assert cosimulation.largest_step == pytest.approx(jacobi_limit(stiffness, damper), rel=1e-5)


@pytest.mark.parametrize(
    ("kind", "order"), [("double", ()), ("force", ()), ("force", ("a", "b")), ("force", ("b", "a"))]
)
def test_growth_and_limit_as_fmpy_sees_them(kind: str, order: tuple[str, ...]) -> None:
    members, wires = double_oscillator(3.0, 0.4) if kind == "double" else by_force()
    fmus = {n: shared(f"composition_{kind}_{n}.fmu", lambda p, m=m: build_fmu(m, p)) for n, m in members.items()}  # type: ignore[misc]
    starts = {f"{n}.x": 1.0 - 0.7 * i for i, n in enumerate(members)}
    master = {"master": "gauss-seidel", "order": order} if order else {}
    cosimulation = fl.cosimulated(fl.connect(members, wires), step=0.1, **master)  # type: ignore[arg-type]
    limit = cosimulation.largest_step
    assert limit is not None
    with Stepped(fmus, wires, starts) as real:
        assert real.growth(0.97 * limit, order=order) < 1.0 < real.growth(1.03 * limit, order=order)
        assert seen_limit(real, 0.8 * limit, 1.2 * limit, order=order) == pytest.approx(limit, rel=0.01)
        for h in (0.5 * limit, 1.1 * limit):
            printed = fl.cosimulated(cosimulation.model, step=h, **master).growth  # type: ignore[arg-type]
            assert real.growth(h, order=order) == pytest.approx(printed, abs=2e-3)


def by_force() -> tuple[dict[str, OdeModel], list[tuple[str, str]]]:
    """Return two oscillators with the coupling spring in the second, whose force has feedthrough."""
    force = "3*(x - x1) + 0.3*(v - v1)"
    second = OdeModel("b", {"x": "v", "v": f"-x - 0.2*v - ({force})"}, inputs=["x1", "v1"], outputs={"F": force})
    wires = [("a.px", "b.x1"), ("a.pv", "b.v1"), ("b.F", "a.F")]
    return {"a": oscillator(damper=0.2), "b": second}, wires


def coupled_by_force() -> ConnectedModel:
    return fl.connect(*by_force())


def test_an_output_with_feedthrough_is_a_state_of_the_co_simulation() -> None:
    """Jacobi, step by step: u[k] = K y[k], x+ = Phi x + Gamma u, y+ = C x+ + D u."""
    model, h = coupled_by_force(), 0.05
    cosimulation = fl.cosimulated(model, step=h)
    assert cosimulation.linear.states.names == ("a.x", "a.v", "b.x", "b.v", "b.F")
    a, b = (fl.linearize(part.model) for part in model.coupling.parts)
    rng = np.random.default_rng(1)
    x, F = rng.normal(size=4), float(rng.normal())
    Ea, Eb = (expm(np.block([[m.A, m.B], [np.zeros((m.B.shape[1], sum(m.B.shape)))]]) * h)[:2] for m in (a, b))
    xa = Ea[:, :2] @ x[:2] + Ea[:, 2] * F
    xb = Eb[:, :2] @ x[2:] + Eb[:, 2:] @ x[:2]
    Fb = b.C @ xb + b.D @ x[:2]
    np.testing.assert_allclose(cosimulation.linear.A @ np.array([*x, F]), np.concatenate((xa, xb, Fb)), atol=1e-13)


def test_a_short_step_is_the_coupled_plant() -> None:
    for master in ("jacobi", "gauss-seidel"):
        cosimulation = fl.cosimulated(coupled_by_force(), step=1e-5, master=master)
        for mode in cosimulation.modes:
            assert abs(mode.apparent - mode.plant) < 1e-3 * abs(mode.plant)
            assert mode.resolved


def test_external_inputs_and_drift_are_held_over_the_step() -> None:
    member = OdeModel("m", {"x": "-2*x + u + 1"}, inputs=["u"], outputs={"y": "x"}, start={"x": 3.0})
    cosimulation = fl.cosimulated(fl.connect({"m": member}), step=0.25)
    E = np.exp(-0.5)
    np.testing.assert_allclose(cosimulation.linear.A, [[E]])
    np.testing.assert_allclose(cosimulation.linear.B, [[(1 - E) / 2]])
    np.testing.assert_allclose(cosimulation.linear.f0, [-5 * (1 - E) / 2])
    assert cosimulation.largest_step == float("inf")
    assert find_step_limit(cosimulation)[1] == "every tested step is stable"


def test_an_undamped_oscillator_is_stable_at_no_step() -> None:
    members, wires = double_oscillator(1.0, 0.0)
    cosimulation = fl.cosimulated(fl.connect(members, wires), step=0.1)
    assert cosimulation.largest_step is None
    assert "no step is stable" in find_step_limit(cosimulation)[1]


def test_wrong_requests() -> None:
    model = first_order_pair(1.0, 2.0)
    with pytest.raises(fl.UsageError, match="is not a master"):
        fl.cosimulated(model, step=0.1, master="euler")
    with pytest.raises(fl.UsageError, match="an order only with 'gauss-seidel"):
        fl.cosimulated(model, step=0.1, order=["one", "two"])
    with pytest.raises(fl.UsageError, match="must name every member once: one, two"):
        fl.cosimulated(model, step=0.1, master="gauss-seidel", order=["one"])
    with pytest.raises(fl.UsageError, match="must be positive"):
        fl.cosimulated(model, step=0.0)
    with pytest.raises(fl.UsageError, match="should be of the type ConnectedModel"):
        fl.cosimulated(oscillator(), step=0.1)  # type: ignore[arg-type]
    with pytest.raises(fl.NumericalError, match="is itself unstable"):
        _ = fl.cosimulated(fl.connect({"m": oscillator(damper=-0.1)}), step=0.1).largest_step
    with pytest.raises(fl.NumericalError, match="is itself unstable"):
        _ = fl.cosimulated(first_order_pair(-1.0, 0.0), step=0.1).largest_step


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    members, wires = double_oscillator(3.0, 0.4)
    files = {
        f"resources/{n}.fmu": shared(f"composition_double_{n}.fmu", lambda p, m=m: build_fmu(m, p))  # type: ignore[misc]
        for n, m in members.items()
    }
    parts = [component(n, f"resources/{n}.fmu", [connector("u", "input"), connector("y", "output")]) for n in members]
    path = ssp(tmp_path / "double.ssp", system("root", parts, [connection(a, b) for a, b in wires]), files)
    picture = tmp_path / "lost.png"
    request = ["linearize", str(path), "--as-cosimulated", "--step", "0.1", "--no-isolation"]
    assert main([*request, "--plot", str(picture)]) == 0
    printed = capfd.readouterr().out
    assert "Jacobi" in printed
    assert f"{jacobi_limit(3.0, 0.4):.4g} s" in printed
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main([*request, "--master", "gauss-seidel", "--order", "two,one", "--json"]) == 0
    linear = json.loads(capfd.readouterr().out)
    assert linear["sample_time"] == 0.1
    assert main([*request, "-o", str(tmp_path / "d.mat")]) == 0
    assert fl.LinearModel.load(tmp_path / "d.mat").sample_time == 0.1
    assert main(["linearize", str(path), "--as-cosimulated", "--no-isolation"]) == 2
    assert "--step" in capfd.readouterr().err
    assert main([*request, "--order", "one,two"]) == 2
    assert main(["linearize", str(path), "--master", "jacobi"]) == 2
    assert main(["linearize", str(path), "--order", "one"]) == 2
    assert "a whole number" in capfd.readouterr().err


def test_errors_of_members_are_those_of_the_step() -> None:
    """x+ = exp(a h) x + (exp(a h) - 1)/a u: what a is unsure of, the step is, by the derivative with respect to a."""
    a, unsure, h = -2.0, 1e-6, 0.25
    part = fl.linearize(OdeModel("m", {"x": f"{a}*x + u"}, inputs=["u"], outputs={"y": "x"}))
    part = replace(part, errors=replace(part.errors, A=np.array([[unsure]]), B=np.zeros((1, 1))))
    errors = fl.cosimulated(fl.connect({"m": part}), step=h).linear.errors
    E = np.exp(a * h)
    np.testing.assert_allclose(errors.A, [[h * E * unsure]], rtol=1e-5)
    np.testing.assert_allclose(errors.B, [[abs(h * E / a - (E - 1) / a**2) * unsure]], rtol=1e-5)
