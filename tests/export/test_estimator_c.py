"""Extended Kalman filters as C99 files: the numbers of Python, no warnings, and what the comment says."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import fmilin as fl
from fmilin.signals import FloatArray
from fmilin.systems import cartesian_pendulum, four_bar, furuta_pendulum, rolling_disk
from tests.c_code import COMPILERS, PLACES, CCode, compiled, run_elsewhere, stack_of, stated
from tests.design.filters_of_records import CASES


def swinging(kind: str = "ekf") -> tuple[fl.design.Estimator, FloatArray]:
    """A pendulum whose coordinates change on the way, its length estimated, some measurements missing."""
    model = cartesian_pendulum(angle=2.5)
    kf = fl.design.estimator(
        model,
        outputs=["x", "vy"],
        process_noise={"F": 1e-3},
        measurement_noise=np.array([[1e-4, 2e-5], [2e-5, 1e-3]]),
        sample_time=0.02,
        kind=kind,
        limits={"x": (-0.8, 0.8)},
        initial_covariance={"x": 1e-2, "vx": 1e-2, "L": 1e-3},
        augment=["L"],
    )
    truth = fl.simulate(model, stop_time=4.0, step=0.02)
    y = truth.states[1:, [0, 3]] + 1e-2 * np.random.default_rng(0).standard_normal((200, 2))
    y[::7, 0], y[5:9] = np.nan, np.nan
    return kf, np.column_stack((np.zeros(200), y))


def at_rest(kind: str, method: str = "ekf") -> tuple[fl.design.Estimator, FloatArray]:
    """A system without constraints, one with eight of them, and Kane's equations, whose matrix is not symmetric."""
    models: dict[str, fl.Model] = {"free": furuta_pendulum(), "constrained": four_bar(), "Kane": rolling_disk()}
    model = models[kind]
    outputs = {"free": ["arm.q", "pendulum.q"], "constrained": ["phi"], "Kane": ["lean", "yaw_rate"]}[kind]
    kf = fl.design.estimator(
        model,
        outputs=outputs,
        process_noise={model.inputs.names[0]: 1e-4},
        measurement_noise=dict.fromkeys(outputs, 1e-4),
        sample_time=0.01,
        kind=method,
        initial_covariance=dict.fromkeys(model.states.names, 1e-2),
    )
    rows = 1e-2 * np.random.default_rng(1).standard_normal((100, len(model.inputs) + len(outputs)))
    rows[:, : len(model.inputs)] += model.start.inputs
    rows[:, len(model.inputs) :] += fl.simulate(kf.model, stop_time=0.1).outputs[0]
    return kf, rows


def felt(kind: str) -> tuple[fl.design.Estimator, FloatArray]:
    """A pendulum with an accelerometer, which sees the noise of the force of each sample at once."""
    model = cartesian_pendulum(angle=2.5)
    kf = fl.design.estimator(
        model,
        outputs=["x", "der(vx)"],
        process_noise={"F": 0.2},
        measurement_noise={"x": 1e-4, "der(vx)": 1e-3},
        sample_time=0.02,
        kind=kind,
        initial_covariance={"x": 1e-2, "vx": 1e-2},
        hold_noise=True,
    )
    random, x = np.random.default_rng(5), model.start.states
    rows = []
    for _ in range(100):
        force = np.array([0.3 * random.standard_normal()])
        x = kf.motion.later(0.0, np.append(x, 0.0), force, 0.02)[:-1]
        y = kf.model.evaluate(0.0, x, force).outputs + [1e-2, 3e-2] * random.standard_normal(2)
        rows.append([0.0, *y])
    rows[3][2] = np.nan
    return kf, np.array(rows)


def by_python(kf: fl.design.Estimator, rows: FloatArray) -> FloatArray:
    nu, steps = len(kf.model.inputs), []
    kf.method = kf.settings.filter  # not by the code in question
    for row in rows:
        x = kf.step(row[:nu], row[nu:])
        steps.append([*x, 0.0 if np.isnan(row[nu:]).all() else kf.nis, 0.0])
    return np.array(steps)


@pytest.mark.parametrize("kind", ["ekf", "iekf", "ukf"])
@pytest.mark.parametrize("plant", ["swinging", "free", "constrained", "Kane"])
def test_a_filter_in_c_gives_the_numbers_of_python(plant: str, kind: str, tmp_path: Path) -> None:
    kf, rows = swinging(kind) if plant == "swinging" else at_rest(plant, kind)
    kf.save(tmp_path / "filter.c")
    code = CCode(tmp_path / "filter.c")
    expected = by_python(kf, rows)
    np.testing.assert_allclose(code.run(rows), expected, rtol=1e-12, atol=1e-12)
    N, P = len(kf.x), len(kf.states)
    S = code.memory[N : N + P * P].reshape(P, P).astype(np.float64)
    np.testing.assert_allclose(S @ S.T, kf.covariance, rtol=1e-11, atol=1e-14)
    if plant == "swinging":
        assert kf.motion.switches > 0
        assert any(r.kind == "skipped" for r in kf.remarks)


@pytest.mark.parametrize(("plant", "kind"), [("DAE", "ekf"), ("DAE", "ukf"), ("attitude", "ekf")])
def test_unknowns_by_iteration_and_rates_of_constraints_with_inputs_are_written(
    plant: str, kind: str, tmp_path: Path
) -> None:
    case = CASES[plant](kind, 1)
    case.kf.save(tmp_path / "filter.c")
    rows = np.column_stack((case.inputs, case.measured))
    np.testing.assert_allclose(CCode(tmp_path / "filter.c").run(rows), by_python(case.kf, rows), rtol=1e-12, atol=1e-12)
    assert stack_of(tmp_path / "filter.c", "-O1") <= stated(tmp_path / "filter.c")["stack"]


@pytest.mark.parametrize("kind", ["ekf", "iekf", "ukf"])
def test_noise_that_a_sensor_sees_at_once_is_the_same_in_c(kind: str, tmp_path: Path) -> None:
    kf, rows = felt(kind)
    kf.save(tmp_path / "filter.c")
    code = CCode(tmp_path / "filter.c")
    expected = by_python(kf, rows)
    np.testing.assert_allclose(code.run(rows), expected, rtol=1e-12, atol=1e-12)
    assert expected.shape[1] == 4 + 2
    assert kf.covariance.shape == (2, 2)


@pytest.mark.parametrize("place", sorted(PLACES))
@pytest.mark.parametrize("kind", ["ekf", "ukf"])
def test_machines_of_32_bits_give_the_same_numbers(kind: str, place: str, tmp_path: Path) -> None:
    kf, rows = swinging(kind)
    kf.save(tmp_path / "filter.c")
    answers = run_elsewhere(tmp_path / "filter.c", rows, place)
    np.testing.assert_allclose(answers, by_python(kf, rows), rtol=1e-11, atol=1e-11)


def test_single_precision_follows_as_far_as_it_goes(tmp_path: Path) -> None:
    kf, rows = swinging()
    kf.save(tmp_path / "filter.c", precision="single")
    steps = CCode(tmp_path / "filter.c").run(rows)
    assert not steps[:, -1].any()
    np.testing.assert_allclose(steps[:, :5], by_python(kf, rows)[:, :5], atol=2e-3)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("precision", ["double", "single"])
def test_compilers_have_nothing_to_say(
    tmp_path: Path, compiler: tuple[str, ...], precision: Literal["double", "single"]
) -> None:
    kinds = {"swinging": swinging(), "sigma": swinging("ukf")}
    kinds |= {"felt": felt("ekf"), "felt sigma": felt("ukf")}
    kinds |= {"free": at_rest("free", "iekf")} if precision == "double" else {}
    for name, (kf, _) in kinds.items():
        file = tmp_path / f"{name.replace(' ', '_')}.c"
        kf.save(file, precision=precision)
        # gcc finds more where it optimizes; clang warns before it does.
        compiled(file, "-O2" if compiler == ("gcc",) else "-O0", compiler=compiler)


@pytest.mark.parametrize("kind", ["iekf", "ukf"])
def test_the_comment_names_signals_and_what_a_step_takes(kind: str, tmp_path: Path) -> None:
    kf, _ = swinging(kind)
    file = tmp_path / "filter.c"
    kf.save(file)
    text = file.read_text()
    assert " * in[0]: F in N" in text
    assert " * out[3]: vy in m/s" in text
    assert stack_of(file, "-O1") <= stated(file)["stack"]
    assert all(word not in text for word in ("malloc", "fopen"))


def test_what_is_not_written_as_c(tmp_path: Path) -> None:
    kf, _ = at_rest("free")
    with pytest.raises(fl.UsageError, match=r"as an estimator: it has the suffix .*Known are \.c .*, \.fmu"):
        kf.save(tmp_path / "filter.mat")
    for name in ("x", "rows", "sqrt", "in"):
        with pytest.raises(fl.UsageError, match=f"uses the name '{name}' itself. Choose another name for the file"):
            kf.save(tmp_path / f"{name}.c")
    horizon, _ = at_rest("free", "mhe")
    with pytest.raises(
        fl.UsageError, match=r"with a bounded run time \(ekf, iekf, ukf\) .* this is the MHE on 'furuta_pend"
    ):
        horizon.save(tmp_path / "filter.c")
