"""Linear FMUs in steps, sampled ones included: against exponentials computed otherwise."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import fmpy
import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fmilin import LinearModel
from fmilin.signals import FloatArray
from tests.fmi.write.linear_samples import U, drifting, exact, outputs, outputs_at, sampled, set_inputs, states, written
from tests.fmi.write.running import FMICallException, Running


def test_steps_of_any_size_are_exact_for_held_inputs(tmp_path: Path, version: str) -> None:
    linear = drifting()
    with Running(written(linear, tmp_path, version), co_simulation=True).start_stepping(2.0) as fmu:
        set_inputs(fmu, U)
        x, t = linear.y0, 2.0
        for h in (0.1, 0.1, 0.5, 1e-6, 7.0, 0.1, 0.25, 3e-3, 0.1, 40.0):
            fmu.step(t, h)
            x, t = exact(linear, x, U, np.zeros(2), h), t + h
            assert_allclose(states(fmu), x, rtol=1e-12, atol=1e-12)
            assert_allclose(outputs(fmu), outputs_at(linear, x, U), rtol=1e-12, atol=1e-12)


def test_steps_are_exact_for_inputs_that_go_on_linearly(tmp_path: Path) -> None:
    linear, slope = drifting(), np.array([0.5, -2.0])
    with Running(written(linear, tmp_path, "2.0"), co_simulation=True).start_stepping() as fmu:
        set_inputs(fmu, U)
        references = [fmu.reference["u[1]"], fmu.reference["u[2]"]]
        fmu.fmu.setRealInputDerivatives(references, [1, 1], list(slope))
        fmu.step(0.0, 0.7)
        x = exact(linear, linear.y0, U, slope, 0.7)
        assert_allclose(states(fmu), x, rtol=1e-13)
        u = U + 0.7 * slope
        assert_array_equal(fmu.get("u[1]", "u[2]"), u)
        assert_allclose(outputs(fmu), outputs_at(linear, x, u), rtol=1e-13)
        rates = linear.f0 + linear.A @ (x - linear.y0) + linear.B @ (u + 0.5)
        assert_allclose(fmu.slopes("out[1]", "out[2]", "out[3]"), linear.C @ rates + linear.D @ slope, rtol=1e-12)
        with pytest.raises(FMICallException):
            fmu.fmu.setRealInputDerivatives(references, [1, 2], list(slope))
        assert fmu.messages[-1].endswith("the derivative of order 2 was asked for; only order 1 is there.")
        with pytest.raises(FMICallException):
            fmu.fmu.setRealInputDerivatives([fmu.reference["x[1]"]], [1], [1.0])


def test_slopes_of_outputs_in_fmi_3(tmp_path: Path) -> None:
    linear = drifting()
    with Running(written(linear, tmp_path, "3.0"), co_simulation=True).start_stepping() as fmu:
        set_inputs(fmu, U)
        rates = linear.f0 + linear.B @ (U + 0.5)
        assert_allclose(fmu.slopes("out[1]", "out[2]", "out[3]"), linear.C @ rates, rtol=1e-12)


def test_step_sizes_that_differ_by_rounding_lose_nothing(tmp_path: Path) -> None:
    linear = drifting()
    times = np.arange(1001) * 0.1 + 1e5  # whose differences are good to ten digits only
    with Running(written(linear, tmp_path, "2.0"), co_simulation=True).start_stepping(float(times[0])) as fmu:
        set_inputs(fmu, U)
        for a, b in pairwise(times):
            fmu.step(a, b - a)
        x = exact(linear, linear.y0, U, np.zeros(2), float(times[-1] - times[0]))
        assert_allclose(states(fmu), x, rtol=1e-12)


def test_stiff_and_slow_states_together(tmp_path: Path) -> None:
    """Eigenvalues from -1e9 to -1e-3 and a frequency of 1e4: compared with 60 digits."""
    rng = np.random.default_rng(5)
    linear = drifting(5, 0, 1, 1)
    blocks = np.diag([-1e9, -1e-3, 0.0, -1.0, -1.0])
    blocks[3:, 3:] = [[-1.0, 1e4], [-1e4, -1.0]]
    V = np.eye(5) + 0.2 * rng.standard_normal((5, 5))
    linear = replace(linear, A=V @ blocks @ np.linalg.inv(V), f0=np.zeros(5))
    h = 0.01
    with mpmath.workdps(60):
        M = mpmath.matrix(6, 6)
        for i in range(5):
            M[i, 5] = linear.B[i, 0]
            for j in range(5):
                M[i, j] = linear.A[i, j]
        E = mpmath.expm(h * M)
        expected = linear.y0 + np.array([float(E[i, 5]) for i in range(5)])
    with Running(written(linear, tmp_path, "2.0"), co_simulation=True).start_stepping() as fmu:
        set_inputs(fmu, np.array([0.5]))  # one above its value at the point
        fmu.step(0.0, h)
        # The entries of A carry an error of 1e9 * 1e-16 into the slow states.
        assert_allclose(states(fmu, 5), expected, rtol=1e-7, atol=1e-9)


def test_badly_scaled_states(tmp_path: Path) -> None:
    """A stiffness of 1e12 N/m: balancing sees the frequency, not the number."""
    linear = drifting(2, 0, 1, 1)
    omega = 1e6
    linear = replace(linear, A=np.array([[0.0, 1.0], [-(omega**2), 0.0]]), f0=np.zeros(2), y0=np.zeros(2))
    with Running(written(linear, tmp_path, "2.0"), co_simulation=True) as fmu:
        fmu.set(**{"x[1]": 1.0})
        fmu.start_stepping()
        set_inputs(fmu, np.array([-0.5]))
        h = 1.23456e-5
        fmu.step(0.0, h)
        assert_allclose(states(fmu, 2), [np.cos(omega * h), -omega * np.sin(omega * h)], rtol=1e-13)


def test_a_double_integrator_is_a_polynomial(tmp_path: Path) -> None:
    linear = drifting(2, 0, 1, 1)
    linear = replace(
        linear, A=np.array([[0.0, 1.0], [0.0, 0.0]]), B=np.array([[0.0], [1.0]]), f0=np.zeros(2), y0=np.zeros(2)
    )
    with Running(written(linear, tmp_path, "2.0"), co_simulation=True).start_stepping() as fmu:
        set_inputs(fmu, np.array([1.5]))
        fmu.fmu.setRealInputDerivatives([fmu.reference["u[1]"]], [1], [3.0])
        fmu.step(0.0, 2.0)
        assert_allclose(states(fmu, 2), [2.0 * 4 / 2 + 3.0 * 8 / 6, 2.0 * 2 + 3.0 * 4 / 2], rtol=1e-15)


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_fmpy_simulates_the_exact_response(tmp_path: Path, version: str, kind: str) -> None:
    linear = drifting()
    path = written(linear, tmp_path, version)
    record = np.array([(0.0, *U), (1.0, *U)], dtype=[("time", float), ("u[1]", float), ("u[2]", float)])
    names = list(linear.outputs.names)
    result = fmpy.simulate_fmu(
        str(path), stop_time=1.0, output_interval=0.1, fmi_type=kind, input=record, output=names,
        relative_tolerance=1e-15, step_size=0.1,
    )  # fmt: skip
    for row in result:
        x = exact(linear, linear.y0, U, np.zeros(2), float(row["time"]))
        expected = outputs_at(linear, x, U)
        assert_allclose([row[n] for n in names], expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_the_start_can_be_set_and_steps_know_it(tmp_path: Path, version: str) -> None:
    linear = drifting()
    x = np.arange(6.0)
    with Running(written(linear, tmp_path, version), co_simulation=True) as fmu:
        fmu.set(**{f"x[{i + 1}]": v for i, v in enumerate(x)})
        fmu.start_stepping()
        fmu.step(0.0, 0.5)
        assert_allclose(states(fmu), exact(linear, x, np.full(2, -0.5), np.zeros(2), 0.5), rtol=1e-13, atol=1e-14)
        with pytest.raises(FMICallException):
            fmu.set(**{"x[1]": 1.0})


def test_a_saved_state_repeats_bit_by_bit(tmp_path: Path, version: str) -> None:
    for linear in (drifting(), sampled(0.3)):
        with Running(written(linear, tmp_path, version), co_simulation=True).start_stepping() as fmu:
            set_inputs(fmu, U)
            fmu.step(0.0, 0.4)
            set_inputs(fmu, -U)
            content = fmu.fmu.serializeFMUState(fmu.fmu.getFMUState())
            fmu.step(0.4, 0.4)
            first = outputs(fmu)
            fmu.fmu.setFMUState(fmu.fmu.deserializeFMUState(content))
            fmu.step(0.4, 0.4)
            assert_array_equal(outputs(fmu), first)


def test_steps_that_make_no_sense_are_refused(tmp_path: Path, version: str) -> None:
    with Running(written(drifting(), tmp_path, version), co_simulation=True).start_stepping() as fmu:
        before = states(fmu)
        for time, size in ((0.0, -0.1), (0.0, np.nan), (0.0, np.inf), (5.0, 0.1)):
            with pytest.raises(FMICallException):
                fmu.step(time, size)
            assert "steps go forward, from where the last one ended" in fmu.messages[-1]
        fmu.step(0.0, 0.0)
        assert_array_equal(states(fmu), before)


def test_an_explosion_is_discarded_and_the_state_stays(tmp_path: Path) -> None:
    linear = replace(drifting(1, 0, 0, 1), A=np.array([[1.0]]), f0=np.ones(1))
    with Running(written(linear, tmp_path, "2.0"), co_simulation=True).start_stepping() as fmu:
        fmu.step(0.0, 300.0)
        before = states(fmu, 1)
        with pytest.raises(FMICallException) as caught:
            fmu.step(300.0, 500.0)
        assert caught.value.status == 2
        assert "the states become infinite after time 300: the model is unstable" in fmu.messages[-1]
        assert_array_equal(states(fmu, 1), before)
        with pytest.raises(FMICallException):
            fmu.step(300.0, 1e200)
        assert "out of reach" in fmu.messages[-1]


# ---------------------------------------------------------------------- sampled


def recursion(linear: LinearModel, x: FloatArray, u: FloatArray) -> FloatArray:
    result: FloatArray = linear.y0 + linear.f0 + linear.A @ (x - linear.y0) + linear.B @ (u + 0.5)
    return result


def test_a_sampled_model_follows_its_recursion(tmp_path: Path, version: str) -> None:
    linear = sampled(0.1)
    rng = np.random.default_rng(1)
    with Running(written(linear, tmp_path, version), co_simulation=True).start_stepping(3.0) as fmu:
        x, t = linear.y0, 3.0
        for _ in range(50):
            u = rng.standard_normal(2)
            set_inputs(fmu, u)
            assert_allclose(outputs(fmu), outputs_at(linear, x, u), rtol=1e-12, atol=1e-13)
            fmu.step(t, 0.1)
            x, t = recursion(linear, x, u), t + 0.1
            assert_allclose(states(fmu), x, rtol=1e-12)


def test_outputs_after_a_step_answer_the_inputs_set_before_it(tmp_path: Path, version: str) -> None:
    linear = sampled(0.1)
    rng = np.random.default_rng(2)
    with Running(written(linear, tmp_path, version), co_simulation=True).start_stepping() as fmu:
        x = linear.y0
        for k in range(30):
            u = rng.standard_normal(2)
            set_inputs(fmu, u)
            fmu.step(0.1 * k, 0.1)
            assert_allclose(outputs(fmu), outputs_at(linear, x, u), rtol=1e-12, atol=1e-13)
            x = recursion(linear, x, u)


def test_between_samples_nothing_moves_and_inputs_do_not_count(tmp_path: Path, version: str) -> None:
    linear = sampled(1.0)
    with Running(written(linear, tmp_path, version), co_simulation=True).start_stepping() as fmu:
        set_inputs(fmu, U)
        first = outputs(fmu)
        fmu.step(0.0, 0.25)
        set_inputs(fmu, 100 * U)
        assert_array_equal(outputs(fmu), first)
        assert fmu.product(["out[1]"], ["u[1]"], [1.0]) == [0.0]
        fmu.step(0.25, 0.75)
        x = recursion(linear, linear.y0, U)
        assert_allclose(states(fmu), x, rtol=1e-13)
        assert_array_equal(outputs(fmu), first)
        set_inputs(fmu, 100 * U)
        assert_allclose(outputs(fmu), outputs_at(linear, x, 100 * U), rtol=1e-13)
        assert fmu.product(["out[1]"], ["u[1]"], [1.0]) == [linear.D[0, 0]]
        fmu.step(1.0, 2.5)  # two samples in one step
        x = recursion(linear, recursion(linear, x, 100 * U), 100 * U)
        assert_allclose(states(fmu), x, rtol=1e-13)


def test_a_discretized_model_is_the_continuous_one_at_its_samples(tmp_path: Path, version: str) -> None:
    linear = drifting()
    h = 0.05
    Z = np.array([exact(linear, linear.y0 + e, np.full(2, -0.5), np.zeros(2), h) for e in np.eye(6)])
    base = exact(linear, linear.y0, np.full(2, -0.5), np.zeros(2), h)
    B = np.array([exact(linear, linear.y0, np.full(2, -0.5) + e, np.zeros(2), h) - base for e in np.eye(2)]).T
    discrete = replace(linear, A=(Z - base).T, B=B, f0=base - linear.y0, sample_time=h)
    with Running(written(discrete, tmp_path, version), co_simulation=True).start_stepping() as fmu:
        set_inputs(fmu, U)
        for k in range(20):
            fmu.step(k * h, h)
        assert_allclose(states(fmu), exact(linear, linear.y0, U, np.zeros(2), 20 * h), rtol=1e-12)


def test_a_sampled_model_has_no_continuous_time(tmp_path: Path, version: str) -> None:
    path = written(sampled(0.1), tmp_path, version)
    description = fmpy.read_model_description(str(path))
    assert description.modelExchange is None
    assert float(description.defaultExperiment.stepSize) == 0.1
    assert {v.variability for v in description.modelVariables if v.name.startswith(("x", "out"))} == {"discrete"}
    with pytest.raises(Exception, match="Failed to instantiate"):
        Running(path)
