"""What an FMU computes: trajectories against scipy, slopes against symbols, both against the native model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
import sympy
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from fmilin import Model
from fmilin.codegen.compiler import Compiler
from fmilin.fmi.write import build_fmu
from fmilin.model.capabilities import read_products
from fmilin.model.equation_forms import SymbolicSystem
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar, rolling_disk
from tests.fmi.write import samples
from tests.fmi.write.running import FMICallException, Running


def _dense(system: SymbolicSystem) -> Any:
    k = len(system.unknowns)
    return sympy.Matrix(k, k, lambda i, j: system.matrix.get((i, j), 0))


def right_hand_side(system: SymbolicSystem) -> Callable[[float, FloatArray], Any]:
    """Return x' = f(t, x) at the start inputs, w eliminated by NumPy in each call."""
    p = list(system.parameters)
    symbols = [system.time, list(system.states), list(system.inputs), p, list(system.unknowns)]
    W = sympy.lambdify(symbols, _dense(system).tolist())
    r = sympy.lambdify(symbols, list(system.right_hand_side))
    f = sympy.lambdify(symbols, list(system.derivatives))
    u, values = system.input_signals.starts, list(system.parameters.values())

    def rate(t: float, x: FloatArray) -> Any:
        at = (t, x, u, values, [0.0] * len(system.unknowns))
        w = np.linalg.solve(np.array(W(*at), dtype=float), r(*at)) if system.unknowns else np.empty(0)
        return f(t, x, u, values, w)

    return rate


@pytest.mark.parametrize("sample", [samples.pendulum, samples.oscillator, samples.decay])
def test_fmpy_simulates_it_as_scipy_does(tmp_path: Path, version: str, sample: Callable[[], SymbolicSystem]) -> None:
    system = sample()
    path = build_fmu(system, tmp_path / "model.fmu", fmi_version=version)
    names = list(system.state_signals.names)
    result = fmpy.simulate_fmu(
        str(path), stop_time=2.0, output_interval=0.5, relative_tolerance=1e-10, output=names, fmi_type="ModelExchange"
    )
    expected = solve_ivp(
        right_hand_side(system), (0, 2), system.state_signals.starts, t_eval=result["time"], rtol=1e-12, atol=1e-13
    )
    assert_allclose(np.array([result[n] for n in names]), expected.y, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("sample", samples.ALL)
def test_fmpy_simulates_what_has_no_states_or_no_outputs(
    tmp_path: Path, version: str, sample: Callable[[], SymbolicSystem]
) -> None:
    path = build_fmu(sample(), tmp_path / "model.fmu", fmi_version=version)
    result = fmpy.simulate_fmu(str(path), stop_time=0.1, fmi_type="ModelExchange")
    assert result["time"][-1] == pytest.approx(0.1)


def test_a_gain_multiplies(tmp_path: Path, version: str) -> None:
    with Running(build_fmu(samples.gain(), tmp_path / "model.fmu", fmi_version=version)).start() as fmu:
        assert fmu.get("y") == [6.0]
        fmu.set(u=-1.5)
        assert fmu.get("y", "u", "k") == [-4.5, -1.5, 3.0]
        assert fmu.jacobian(["y"], ["u"]).tolist() == [[3.0]]
        assert (fmu.get_states(), fmu.derivatives(), fmu.nominals()) == ([], [], [])


@pytest.mark.parametrize(
    "build", [cartesian_pendulum, four_bar, lambda: four_bar(loops=3, damping=1.0), lambda: rolling_disk(speed=2.0)]
)
def test_values_and_slopes_are_those_of_the_native_model(
    tmp_path: Path, version: str, build: Callable[[], Model]
) -> None:
    model = build()
    random = np.random.default_rng(5)
    x = model.start.states + 0.05 * random.normal(size=len(model.states))
    u = random.normal(size=len(model.inputs))
    knowns = [*model.states.names, *model.inputs.names]
    unknowns = [*(f"der({n})" for n in model.states.names), *model.outputs.names]
    with Running(build_fmu(model, tmp_path / "model.fmu", fmi_version=version)).start(time=0.4) as fmu:
        fmu.set_states(x)
        fmu.set(**dict(zip(model.inputs.names, u, strict=True)))
        here = model.evaluate(0.4, x, u)
        slopes = read_products(model, 0.4, x, u, *np.split(np.eye(len(knowns)), [len(x)]))
        assert slopes is not None
        assert_allclose(fmu.derivatives(), here.derivatives, rtol=1e-12, atol=1e-12)
        assert_allclose(fmu.get(*model.outputs.names), here.outputs, rtol=1e-12, atol=1e-12)
        expected = np.vstack([slopes.derivatives, slopes.outputs])
        assert_allclose(fmu.jacobian(unknowns, knowns), expected, rtol=1e-12, atol=1e-11)


def symbolic_jacobian(system: SymbolicSystem, x: list[float], u: list[float], t: float) -> FloatArray:
    """Return dz/ds for s = (x, u, p, t) after eliminating w in symbols."""
    w = _dense(system).LUsolve(sympy.Matrix(system.right_hand_side))
    eliminated = dict(zip(system.unknowns, w, strict=True))
    s = [*system.states, *system.inputs, *system.parameters, system.time]
    at = dict(zip(s, [*x, *u, *system.parameters.values(), t], strict=True))
    z = sympy.Matrix([sympy.sympify(e).subs(eliminated) for e in (*system.derivatives, *system.outputs)])
    return np.array(z.jacobian(s).subs(at).evalf(30).tolist(), dtype=np.float64)


X, U, T = [0.5, -0.7, 0.8, 0.2], [1.2], 0.3
UNKNOWNS = [
    "der(x)", "der(y)", "der(vx)", "der(vy)", "angle", "accelerometer.x", "x", "accelerometer.y", "der(vy)"
]  # fmt: skip
KNOWNS = ["x", "y", "vx", "vy", "F", "m", "g", "L", "time"]


def test_slopes_are_exact_for_states_inputs_parameters_and_time(tmp_path: Path, version: str) -> None:
    system = samples.pendulum()
    with Running(build_fmu(system, tmp_path / "model.fmu", fmi_version=version)).start(T) as fmu:
        fmu.set_states(X)
        fmu.set(F=U[0])
        expected = symbolic_jacobian(system, X, U, T)
        assert_allclose(fmu.jacobian(UNKNOWNS, KNOWNS), expected, rtol=1e-12, atol=1e-13)


def test_residuals_and_their_rates_have_slopes(tmp_path: Path, version: str) -> None:
    x, y, vx, vy = X
    with Running(build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version=version)).start() as fmu:
        fmu.set_states(X)
        residuals = ["residual[1]", "residual_rate[1]"]
        assert_allclose(fmu.get(*residuals), [x**2 + y**2 - 1, 2 * (x * vx + y * vy)], rtol=1e-14)
        expected = [[2 * x, 2 * y, 0, 0, 0], [2 * vx, 2 * vy, 2 * x, 2 * y, 0]]
        assert_allclose(fmu.jacobian(residuals, KNOWNS[:5]), expected, rtol=1e-14)


def test_several_seeds_at_once_add_up(tmp_path: Path, version: str) -> None:
    with Running(build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version=version)).start() as fmu:
        fmu.set_states(X)
        direction = np.linspace(-1.0, 2.0, len(KNOWNS))
        assert_allclose(
            fmu.product(UNKNOWNS, KNOWNS, direction.tolist()), fmu.jacobian(UNKNOWNS, KNOWNS) @ direction, rtol=1e-14
        )
        assert fmu.product(["x", "x"], ["x", "x", "y"], [1.0, 2.0, 5.0]) == [3.0, 3.0]


def test_slopes_leave_the_point_alone_bit_by_bit(tmp_path: Path, version: str) -> None:
    with Running(build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version=version)).start() as fmu:
        fmu.set_states(X)
        before = (fmu.derivatives(), fmu.get(*fmu.reference))
        fmu.jacobian(UNKNOWNS, KNOWNS)
        assert (fmu.derivatives(), fmu.get(*fmu.reference)) == before


def test_adjoint_derivatives_are_the_transpose(tmp_path: Path) -> None:
    with Running(build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version="3.0")).start() as fmu:
        fmu.set_states(X)
        direction = np.linspace(-1.0, 2.0, len(UNKNOWNS))
        forward = fmu.jacobian(UNKNOWNS, KNOWNS)
        assert_allclose(fmu.adjoint(UNKNOWNS, KNOWNS, direction.tolist()), forward.T @ direction, rtol=1e-13)


def test_without_directional_derivatives_the_values_are_the_same(tmp_path: Path, version: str) -> None:
    full = build_fmu(samples.pendulum(), tmp_path / "full.fmu", fmi_version=version)
    bare = build_fmu(samples.pendulum(), tmp_path / "bare.fmu", fmi_version=version, directional_derivatives=False)
    with Running(full).start() as one, Running(bare).start() as other:
        assert other.get(*other.reference) == one.get(*one.reference)
        with pytest.raises(FMICallException, match="Directional"):
            other.product(["der(x)"], ["x"], [1.0])
        assert other.messages[-1].endswith("this FMU was built without directional derivatives.")
        if version == "3.0":
            with pytest.raises(FMICallException, match="Adjoint"):
                other.adjoint(["der(x)"], ["x"], [1.0])


def test_further_names_are_local_variables(tmp_path: Path, version: str) -> None:
    with Running(build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version=version)).start() as fmu:
        (force,) = fmu.get("rod.force")
        x, y, vx, vy = fmu.get("x", "y", "vx", "vy")
        along = 2.0 * (vx**2 + vy**2) + 0.5 * x - 2.0 * 9.81 * y  # the rod pulls: tension = m v^2/L + applied forces
        assert force == pytest.approx(along, rel=1e-12)


def test_a_point_where_the_system_is_singular_is_discarded_and_named(tmp_path: Path, version: str) -> None:
    with Running(build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version=version)).start(0.25) as fmu:
        fmu.set_states([0.0, 0.0, 1.0, 1.0])
        for call in (fmu.derivatives, lambda: fmu.get("angle"), lambda: fmu.product(["angle"], ["x"], [1.0])):
            with pytest.raises(FMICallException) as caught:
                call()
            assert caught.value.status == 2  # discard: another point may do
            assert "is singular at time 0.25: it does not determine 'lambda'" in fmu.messages[-1]
        assert fmu.get("x", "time") == [0.0, 0.25]
        fmu.set_states(X)
        assert np.isfinite(fmu.derivatives()).all()


def test_a_nan_in_the_matrix_is_discarded_and_one_elsewhere_passes_through(tmp_path: Path, version: str) -> None:
    with Running(build_fmu(samples.pendulum(), tmp_path / "model.fmu", fmi_version=version)).start() as fmu:
        fmu.set(F=float("nan"))
        assert np.isnan(fmu.derivatives()).tolist() == [False, False, True, True]
        fmu.set_states([float("nan"), 0.0, 0.0, 0.0])
        with pytest.raises(FMICallException):
            fmu.derivatives()
        assert "infinite or not a number" in fmu.messages[-1]


def test_the_compiler_has_nothing_to_complain_about(tmp_path: Path, version: str) -> None:
    strict = Compiler(flags=("-Werror",))
    every: list[Callable[[], SymbolicSystem | Model]] = [samples.pendulum, samples.gain, samples.nothing, four_bar]
    for i, sample in enumerate(every):
        build_fmu(sample(), tmp_path / f"{i}.fmu", fmi_version=version, compiler=strict)
    build_fmu(
        samples.pendulum(), tmp_path / "bare.fmu", fmi_version=version, directional_derivatives=False, compiler=strict
    )
