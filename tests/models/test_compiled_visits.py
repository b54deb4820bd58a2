"""Compiled code by every door: counted are the visits that the slow evaluator still makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import design
from fmilin.adapters import MechanismEngine
from fmilin.codegen import compiler
from fmilin.model.capabilities import read_constraint_residuals
from fmilin.models import LagrangeModel, NullSpaceModel
from fmilin.models.compiled_evaluations import CompiledEvaluations
from fmilin.models.mechanism import Body, Force, Joint, Mechanism, MechanismDescription, Torque
from fmilin.signals import FloatArray
from fmilin.simulation import Projection
from fmilin.systems import cartesian_pendulum, double_wishbone, four_bar, slider_crank


def drone() -> Mechanism:
    thrust = Force("thrust", "frame", (0, 0, 0), (0, 0, 1), "body", start=1.2 * 9.81)
    return Mechanism(
        MechanismDescription(
            "drone",
            [Body("frame", 1.2, (0, 0, 0), (0.01, 0.012, 0.02))],
            [Joint("free", "free", "ground", "frame")],
            inputs=[thrust, Torque("roll", "frame", (1, 0, 0), "body"), Torque("pitch", "frame", (0, 1, 0), "body")],
            gravity=(0, 0, -9.81),
        )
    )


@pytest.fixture(autouse=True)
def _a_cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let whatever is asked for outweigh the compiler."""
    for price in (
        "TRACE_START_SECONDS", "TRACE_SECONDS_PER_PAIR", "COMPILER_START_SECONDS", "COMPILE_SECONDS_PER_INSTRUCTION",
        "LOADING_SECONDS",
    ):  # fmt: skip
        monkeypatch.setattr(compiler, price, 0.0)


@contextmanager
def slow_visits() -> Iterator[list[int]]:
    """Count the visits of mechanisms by the recursion."""
    count = [0]

    def counting(function: Callable[..., object]) -> Callable[..., object]:
        def counted(*arguments: object) -> object:
            count[0] += 1
            return function(*arguments)

        return counted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MechanismEngine, "evaluate", counting(MechanismEngine.evaluate))
        patch.setattr(MechanismEngine, "observe", counting(MechanismEngine.observe))
        yield count


def tilted(model: fl.Model) -> fl.OperatingPoint:
    x = model.start.states.copy()
    x[[0, 1, 2, 10, 11, 12]] += [0.3, -0.2, 0.1, 0.2, 0.1, 0.3]
    return fl.OperatingPoint(0.0, x, model.start.inputs)


def moving(model: fl.Model) -> fl.OperatingPoint:
    """Return a point from which rounding does not grow, as it does from an equilibrium upside down."""
    return (
        tilted(model) if "free.z" in model.states.names else fl.operating_point(model, {MOVING[model.info.name]: 0.5})
    )


MOVING = {"slider_crank": "w", "double_wishbone": "lower.v"}


def require_same(mine: fl.Trajectory, theirs: fl.Trajectory) -> None:
    """A motion carries rounding on: what agrees to 1e-12 at a point agrees to 1e-10 along it."""
    assert mine.times.tolist() == theirs.times.tolist()
    assert mine.statistics.steps == theirs.statistics.steps
    for name in ("states", "outputs", "drift"):
        a, b = getattr(mine, name), getattr(theirs, name)
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10 * max(1.0, np.abs(b).max(initial=0.0)), err_msg=name)


def assert_near(mine: FloatArray, theirs: FloatArray) -> None:
    np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12 * max(1.0, np.abs(theirs).max(initial=0.0)))


def residuals_at(model: fl.Model, x: FloatArray, u: FloatArray) -> FloatArray:
    residuals = read_constraint_residuals(model, 0.0, x, u)
    assert residuals is not None
    return residuals


def without_a_compiler(monkeypatch: pytest.MonkeyPatch, act: Callable[[], fl.Trajectory]) -> fl.Trajectory:
    with monkeypatch.context() as patch:
        patch.setenv("CC", "no-such-compiler")
        return act()


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("make", [drone, double_wishbone, slider_crank])
def test_what_is_compiled_says_the_same(make: Callable[[], Mechanism], monkeypatch: pytest.MonkeyPatch) -> None:
    start = moving(make())
    slow = without_a_compiler(monkeypatch, lambda: fl.simulate(make(), start, stop_time=0.3, step=0.01))
    with slow_visits() as count:
        ran = fl.simulate(make(), start, stop_time=0.3, step=0.01)
    assert count[0] < 10, "those of the point where the motion starts"
    require_same(ran, slow)


def test_a_simulation_that_asks_for_many_samples_is_compiled_before_it_starts() -> None:
    model = drone()
    with slow_visits() as count:
        fl.simulate(model, stop_time=1.0, step=5e-4)
    assert count[0] == 0


def test_a_short_simulation_is_not_compiled() -> None:
    model = drone()
    with slow_visits() as count:
        fl.simulate(model, tilted(model), stop_time=0.1, step=0.05)
    assert count[0] > 10
    assert not any(visits.is_compiled for visits in model.engine.point_codes.values())


def test_many_short_simulations_are_compiled_in_the_end_and_by_other_processes_at_once() -> None:
    model, counts = drone(), []
    for _ in range(40):
        with slow_visits() as count:
            fl.simulate(model, tilted(model), stop_time=0.1, step=0.05)
        counts.append(count[0])
    assert counts[0] > 10
    assert counts[-1] < 5
    seconds = sum(counts) * model.engine.evaluation_seconds
    price = compiler.TRACE_SECONDS_PER_PAIR * len(model.states) ** 2 + compiler.compiler_seconds(2000)
    price += compiler.TRACE_START_SECONDS
    assert seconds < price, "no more work than what was to be outweighed"
    again = drone()  # as in another process: the library is in the cache
    with slow_visits() as count:
        for _ in range(10):
            fl.simulate(again, tilted(again), stop_time=0.1, step=0.05)
    assert count[0] < 0.5 * sum(counts)


def test_a_closed_loop_is_compiled() -> None:
    model = drone()
    law = design.FunctionRegulator(lambda _, y: np.array([11.8 - y[0]]), ["free.z"], ["thrust"], 0.01)
    with slow_visits() as count:
        ran = fl.closed_loop(model, law, stop_time=2.0)
    assert ran.statistics.evaluations > 3000
    assert count[0] < 1000


@pytest.mark.usefixtures("at_once")
def test_verification_is_compiled_as_soon_as_that_pays() -> None:
    model = slider_crank()
    linear = fl.linearize(model)
    with slow_visits() as count:
        verification = fl.verify(model, linear)
    assert verification.passed
    assert verification.evaluations > 500
    assert count[0] < 10


def test_the_model_itself_answers_to_the_last_bit_as_before() -> None:
    model = double_wishbone()
    x, u = model.start.states, model.start.inputs
    before, linear = model.evaluate(0.0, x, u), fl.linearize(model)
    compiled = model.compile_for_evaluations(1_000_000)
    assert compiled._visits is not None
    assert compiled._visits.is_compiled
    values = compiled.evaluate(0.0, x, u)
    np.testing.assert_allclose(values.derivatives, before.derivatives, rtol=1e-12, atol=1e-10)
    after = model.evaluate(0.0, x, u)
    for name in ("derivatives", "outputs", "residuals"):
        assert getattr(after, name).tobytes() == getattr(before, name).tobytes()
    assert fl.linearize(model).A.tobytes() == linear.A.tobytes()


@pytest.mark.parametrize("make", [drone, slider_crank, double_wishbone])
def test_constraints_and_their_gradient_are_those_of_the_recursion(make: Callable[[], Mechanism]) -> None:
    model = make()
    compiled = model.compile_for_evaluations(1_000_000)
    random = np.random.default_rng(5)
    for _ in range(5):
        x = model.start.states + 0.1 * random.normal(size=len(model.states))
        u = model.start.inputs
        assert_near(residuals_at(compiled, x, u), residuals_at(model, x, u))
        mine, theirs = (m.constraint_gradient(0.0, x, u) for m in (compiled, model))
        assert (mine is None) == (theirs is None)
        for a, b in zip(mine or (), theirs or (), strict=True):
            assert_near(a, b)


def test_other_parameters_are_compiled_anew() -> None:
    model = slider_crank()
    model.compile_for_evaluations(1_000_000)
    name = next(n for n in model.parameters if n.endswith(".mass"))
    changed = model.with_parameters({name: 2 * model.parameters[name]})
    x, u = moving(model).states, np.ones(len(model.inputs))
    mine = changed.compile_for_evaluations(1_000_000)
    assert mine._visits is not None
    assert mine._visits.is_compiled
    expected = changed.evaluate(0.0, x, u).derivatives
    np.testing.assert_allclose(mine.evaluate(0.0, x, u).derivatives, expected, rtol=1e-12, atol=1e-12)
    assert not np.allclose(model.evaluate(0.0, x, u).derivatives, expected)


def test_views_with_the_same_outputs_share_what_is_compiled() -> None:
    model = drone()
    first, second = (model.with_interface(["thrust"], ["free.z"]).compile_for_evaluations(10_000) for _ in range(2))
    other = model.with_interface(["thrust"], ["free.x"]).compile_for_evaluations(0)
    assert first._visits is second._visits
    assert other._visits is not first._visits


def test_inputs_left_out_stay_at_their_start_values() -> None:
    view = drone().with_interface(["roll"], ["free.z"])
    compiled = view.compile_for_evaluations(1_000_000)
    x, u = view.start.states, np.array([0.02])
    mine, theirs = compiled.evaluate(0.0, x, u), view.evaluate(0.0, x, u)
    np.testing.assert_allclose(mine.derivatives, theirs.derivatives, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(mine.outputs, theirs.outputs, rtol=1e-13)


@pytest.mark.parametrize("make", [four_bar, cartesian_pendulum])
def test_symbolic_models_are_compiled_too(make: Callable[[], LagrangeModel], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "TRACE_SECONDS_PER_PAIR", 0.0)
    compiled = make().compile_for_evaluations(1_000_000)
    assert compiled._visits is not None
    assert compiled._visits.is_compiled
    slow = without_a_compiler(monkeypatch, lambda: fl.simulate(make(), stop_time=1.0, step=0.01))
    require_same(fl.simulate(compiled, stop_time=1.0, step=0.01), slow)


def test_models_that_solve_in_a_way_of_their_own_keep_it() -> None:
    model = NullSpaceModel(four_bar())
    assert model.compile_for_evaluations(1_000_000_000) is model


def test_without_a_compiler_nothing_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    model = drone()

    def refused(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(type(model.engine), "in_graph", refused)
    compiled = model.compile_for_evaluations(1_000_000)
    x, u = model.start.states, model.start.inputs
    assert compiled.evaluate(0.0, x, u).derivatives.tobytes() == model.evaluate(0.0, x, u).derivatives.tobytes()


def test_close_to_singular_the_recursion_has_the_last_word(monkeypatch: pytest.MonkeyPatch) -> None:
    model = slider_crank()
    compiled = model.compile_for_evaluations(1_000_000)
    monkeypatch.setattr(CompiledEvaluations, "at", lambda *_: None)
    x, u = model.start.states, model.start.inputs
    assert compiled.evaluate(0.0, x, u).derivatives.tobytes() == model.evaluate(0.0, x, u).derivatives.tobytes()
    assert residuals_at(compiled, x, u).tobytes() == residuals_at(model, x, u).tobytes()


@pytest.mark.usefixtures("at_once")
def test_energy_that_is_kept_is_computed_by_compiled_code() -> None:
    model = slider_crank()
    keeping = Projection(keeps_energy=True)
    with slow_visits() as count:
        ran = fl.simulate(model, moving(model), stop_time=0.2, step=0.02, energy="energy", stabilization=keeping)
    assert count[0] < 10
    assert ran.statistics.evaluations > 200
    assert np.ptp(ran.energy) < 1e-12 * np.abs(ran.energy).max()
