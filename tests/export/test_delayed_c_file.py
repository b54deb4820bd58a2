"""Linear models with delays as C99 files and FMUs with ring buffers, against their exact step responses."""

from __future__ import annotations

from pathlib import Path

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin.models import OdeModel
from fmilin.signals import FloatArray
from tests.c_code import CCode
from tests.export.test_block_fmu import run_plain_loop

DURATION = 6.0  # seconds


def linearize() -> fl.DelayedLinearModel:
    """Return an oscillator with delayed states, inputs, and a delay behind another one."""
    plant = OdeModel(
        "plant",
        {"x": "v", "v": "-4*x - 0.8*v - 1.5*delay(x, 0.2) + delay(u, 0.4)"},
        inputs=["u"],
        outputs={"y": "x", "z": "delay(x + 0.2*delay(u, 0.4) + 0.1*delay(v, 0.2), 0.3) + 0.5*u"},
        start={"x": 0.1},
    )
    lin = fl.linearize(plant, fl.trim(plant, fixed={"x": 0.1}, free=["u"]))
    assert isinstance(lin, fl.DelayedLinearModel)
    return lin


def compare(lin: fl.DelayedLinearModel, rows: FloatArray, h: float) -> float:
    """Return the largest difference of outputs and the exact responses to a step of the input."""
    exact = lin.step_response(times=np.linspace(0.0, h * (len(rows) - 1), len(rows))).outputs
    at = np.array([lin.point.outputs[name] for name in lin.outputs.names])
    return float(np.abs(rows - at - exact).max())


def step_inputs(lin: fl.DelayedLinearModel, h: float) -> FloatArray:
    return np.full((int(DURATION / h), 1), lin.point.inputs["u"] + 1.0)


def test_the_error_of_c_code_is_of_second_order_in_the_sample_time(tmp_path: Path) -> None:
    lin, errors = linearize(), []
    for h in (0.05, 0.025, 0.0125):
        path = tmp_path / f"late{int(1e5 * h)}.c"  # a library is loaded once for each name
        lin.save(path, sample_time=h)
        code = CCode(path)
        assert code.sample_time == h
        errors.append(compare(lin, code.run(step_inputs(lin, h)), h))
    assert errors[0] < 2e-4
    assert np.log2(np.divide(errors[:-1], errors[1:])) == pytest.approx([2.0, 2.0], abs=0.1)


def test_delays_between_samples_are_interpolated(tmp_path: Path) -> None:
    plant = OdeModel("plant", {"x": "-2*x - delay(x, 0.317) + u"}, inputs=["u"], outputs={"y": "delay(x, 0.1234)"})
    lin, errors = fl.linearize(plant), []
    assert isinstance(lin, fl.DelayedLinearModel)
    for h in (0.04, 0.02):
        lin.save(tmp_path / f"late{int(1000 * h)}.c", sample_time=h)
        code = CCode(tmp_path / f"late{int(1000 * h)}.c")
        errors.append(compare(lin, code.run(step_inputs(lin, h)), h))
    assert errors[0] < 2e-4
    assert errors[1] < 1e-4


def test_dead_time_of_whole_samples_is_exact(tmp_path: Path) -> None:
    gain = fl.linearize(fl.connect({"g": control.ss([], [], [], [[3.0]], inputs="u", outputs="y")}, []))
    gain.with_delays(inputs={"g.u": 0.3}, outputs={"g.y": 0.2}).save(tmp_path / "gain.c", sample_time=0.1)
    rows: FloatArray = np.random.default_rng(1).standard_normal((12, 1))
    assert np.abs(CCode(tmp_path / "gain.c").run(rows)[5:] - 3 * rows[:-5]).max() == 0.0
    lag = fl.linearize(fl.connect({"lag": control.ss(-1.0, 1.0, 1.0, 0.0, inputs="u", outputs="y")}, []))
    late = lag.with_delays(inputs={"lag.u": 0.5})
    late.save(tmp_path / "lag.c")
    code = CCode(tmp_path / "lag.c")
    rows = np.ones((200, 1))
    assert (
        np.abs(code.run(rows) - late.step_response(times=np.linspace(0.0, 199 * code.sample_time, 200)).outputs).max()
        < 1e-13
    )
    late.save(tmp_path / "single.c", precision="single", sample_time=0.1)
    assert CCode(tmp_path / "single.c").run(rows)[-1] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
def test_an_fmu_gives_the_exact_step_response_to_a_stated_accuracy(fmi: str, tmp_path: Path) -> None:
    from fmilin.export.files import save
    from fmilin.formats import Writing

    lin, path = linearize(), tmp_path / "late.fmu"
    save(lin, path, Writing(fmi="3.0" if fmi == "3.0" else "2.0", sample_time=0.02))
    h = 0.02
    rows = run_plain_loop(path, ["u"], step_inputs(lin, h), h)
    assert compare(lin, rows, h) < 2e-5


def test_a_sample_time_beyond_a_delay_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(fl.UsageError, match=r"A sample time of 0\.5 s is longer than the delay of 0\.2 s"):
        linearize().save(tmp_path / "late.c", sample_time=0.5)
    with pytest.raises(fl.UsageError, match="All delays are zero"):
        linearize().with_delay_values(dict.fromkeys(linearize().delays, 0.0)).save(tmp_path / "late.c")
