"""Linear models, filters and regulators as C99 files: the numbers of Python, no warnings, and what the comment says."""

from __future__ import annotations

import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path

import control
import fmpy
import numpy as np
import pytest

import fmilin as fl
from fmilin.composition.linear_member import LinearLaw
from fmilin.design import KalmanFilter, KalmanRegulator, kalman_filter, state_feedback
from fmilin.errors import UnknownNameError, UsageError
from fmilin.export.files import save
from fmilin.formats import Writing
from fmilin.reduction import discretize
from fmilin.signals import FloatArray
from fmilin.systems import furuta_pendulum
from tests.c_code import COMPILERS, PLACES, CCode, compiled, run_elsewhere, stack_of, stated
from tests.hand_made import LONG, pendulum, sized

SIZES = [(0, 0, 2), (0, 2, 1), (3, 0, 2), (3, 2, 0), (1, 1, 1), (6, 3, 4)]


def sampled(order: int, inputs: int, outputs: int) -> fl.LinearModel:
    """A stable sampled linear model with random numbers, away from its point's origin."""
    linear, rng = sized(order, 0, inputs, outputs), np.random.default_rng(7)
    A = linear.A / max(1.0, 1.2 * np.abs(np.linalg.eigvals(linear.A)).max(initial=0.0))
    inputs_at = {n: float(v) for n, v in zip(linear.inputs.names, rng.standard_normal(inputs), strict=True)}
    outputs_at = {n: float(v) for n, v in zip(linear.outputs.names, rng.standard_normal(outputs), strict=True)}
    point = replace(linear.point, inputs=inputs_at, outputs=outputs_at)
    return replace(linear, A=A, point=point, sample_time=0.01, warnings=())


def by_python(linear: fl.LinearModel, rows: FloatArray) -> FloatArray:
    law = LinearLaw(linear)
    return np.array([law.answer(0.0, row) for row in rows]).reshape(len(rows), len(linear.outputs))


def inputs_of(linear: fl.LinearModel, steps: int = 200) -> FloatArray:
    return np.random.default_rng(1).standard_normal((steps, len(linear.inputs)))


@pytest.fixture(scope="module")
def furuta() -> fl.LinearModel:
    return fl.linearize(furuta_pendulum())


@pytest.fixture(scope="module")
def kalman(furuta: fl.LinearModel) -> KalmanFilter:
    return kalman_filter(furuta, 0.01, process={"torque": 1e-6}, measured={"arm.q": 1e-6, "pendulum.q": 1e-6})


@pytest.fixture(scope="module")
def regulator(kalman: KalmanFilter) -> KalmanRegulator:
    s = kalman.sampled
    K, _, _ = control.dlqr(s.A, s.B, np.diag([1, 1, 0.1, 0.1]), [[10.0]])
    return KalmanRegulator(kalman, K)


@pytest.mark.parametrize("size", SIZES)
def test_c_equals_python(size: tuple[int, int, int], tmp_path: Path) -> None:
    linear = sampled(*size)
    linear.save(tmp_path / "plant.c")
    rows = inputs_of(linear)
    code = CCode(tmp_path / "plant.c")
    assert (code.inputs, code.outputs, code.sample_time) == (size[1], size[2], 0.01)
    assert code.run(rows) == pytest.approx(by_python(linear, rows), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_single_precision_has_seven_digits(size: tuple[int, int, int], tmp_path: Path) -> None:
    linear = sampled(*size)
    linear.save(tmp_path / "plant.c", precision="single")
    rows = inputs_of(linear)
    assert CCode(tmp_path / "plant.c").run(rows) == pytest.approx(by_python(linear, rows), rel=1e-5, abs=1e-5)


def test_a_continuous_model_is_sampled(furuta: fl.LinearModel, tmp_path: Path) -> None:
    furuta.save(tmp_path / "chosen.c")
    furuta.save(tmp_path / "given.c", sample_time=0.002)
    fastest = np.abs(furuta.eigenvalues()).max()
    for name, h in (("chosen", 0.005), ("given", 0.002)):
        code = CCode(tmp_path / f"{name}.c")
        assert code.sample_time == h
        rows = 1e-3 * inputs_of(furuta, 100)
        A, B, C, D, _ = __import__("scipy.signal").signal.cont2discrete((furuta.A, furuta.B, furuta.C, furuta.D), h)
        x, y0 = np.zeros(4), np.array(list(furuta.point.outputs.values()))
        for row in rows:
            assert code.step(*row) == pytest.approx(y0 + C @ x + D @ row, rel=1e-12, abs=1e-12)
            x = A @ x + B @ row
    assert 0.005 < 1 / (20 * fastest) < 0.01
    assert "chosen for 20 samples in the time of its fastest motion" in (tmp_path / "chosen.c").read_text().replace(
        "\n * ", " "
    )


def test_what_does_not_move_by_itself_is_sampled_every_hundredth_of_a_second(tmp_path: Path) -> None:
    still = replace(sized(1, 0, 1, 1), A=np.zeros((1, 1)))
    point = replace(still.point, inputs={"u[1]": 0.0}, outputs={"out[1]": 0.0})
    replace(still, point=point).save(tmp_path / "plant.c")
    assert CCode(tmp_path / "plant.c").sample_time == 0.01


def test_a_filter_equals_python(kalman: KalmanFilter, tmp_path: Path) -> None:
    kalman.save(tmp_path / "filter.c")
    rng, code = np.random.default_rng(3), CCode(tmp_path / "filter.c")
    estimate = kalman.sampled.y0
    for _ in range(200):
        u, m = 0.1 * rng.standard_normal(1), np.array([0.0, np.pi]) + 0.1 * rng.standard_normal(2)
        estimate, _ = kalman.correct(kalman.predict(estimate, u), u, m)
        assert code.step(*u, *m) == pytest.approx(estimate, rel=1e-12, abs=1e-12)


def test_a_filter_with_feedthrough_equals_python(kalman: KalmanFilter, tmp_path: Path) -> None:
    D = np.array([[0.3], [-0.2]])
    direct = replace(kalman, sampled=replace(kalman.sampled, D=D, f0=np.full(4, 1e-3)))
    direct.save(tmp_path / "filter.c")
    rng, code = np.random.default_rng(3), CCode(tmp_path / "filter.c")
    estimate = direct.sampled.y0
    for _ in range(50):
        u, m = 0.1 * rng.standard_normal(1), np.array([0.0, np.pi]) + 0.1 * rng.standard_normal(2)
        estimate, _ = direct.correct(direct.predict(estimate, u), u, m)
        assert code.step(*u, *m) == pytest.approx(estimate, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("feedthrough", [False, True])
def test_a_regulator_knows_its_limits(regulator: KalmanRegulator, tmp_path: Path, *, feedthrough: bool) -> None:
    kalman = regulator.filter
    if feedthrough:
        kalman = replace(kalman, sampled=replace(kalman.sampled, D=np.array([[0.3], [-0.2]])))
    law = KalmanRegulator(kalman, regulator.gain)
    law.save(tmp_path / "lqg.c", limits={"torque": (-0.1, 0.2)})
    rng, code, seen = np.random.default_rng(3), CCode(tmp_path / "lqg.c"), set()
    for _ in range(300):
        m = np.array([0.0, np.pi]) + 0.02 * rng.standard_normal(2)
        u = np.clip(law.answer(0.0, m), -0.1, 0.2)
        law.update_states(u)
        seen |= {float(u[0])} & {-0.1, 0.2}
        assert code.step(*m) == pytest.approx(u, rel=1e-12, abs=1e-12)
    assert seen == {-0.1, 0.2}


def test_state_feedback_and_its_files(furuta: fl.LinearModel, tmp_path: Path) -> None:
    K = np.array([[-1.0, 25.0, -1.5, 3.5]])
    law = state_feedback(furuta, K, 0.01)
    law.save(tmp_path / "feedback.c", limits={"torque": (-0.5, 0.5)})
    y = furuta.y0 + 0.01
    assert CCode(tmp_path / "feedback.c").step(*y) == pytest.approx(-0.01 * K.sum(axis=1), rel=1e-12)
    assert CCode(tmp_path / "feedback.c").step(*(furuta.y0 - 1)) == [0.5]
    assert law.answer(0.0, y) == pytest.approx(-0.01 * K.sum(axis=1), rel=1e-12)
    law.save(tmp_path / "feedback.json")
    read = fl.LinearModel.load(tmp_path / "feedback.json")
    assert (read.D == -K).all()
    assert read.inputs.names == furuta.states.names
    assert read.outputs.names == ("torque",)


@pytest.mark.parametrize("fmi", ["2.0", "3.0"])
def test_a_filter_is_an_fmu_that_needs_no_file(kalman: KalmanFilter, fmi: str, tmp_path: Path) -> None:
    """Run by FMPy as a co-simulation: each sample takes its inputs over, and the outputs are those of Python."""
    path = tmp_path / "filter.fmu"
    kalman.save(path) if fmi == "2.0" else save(kalman.linear_model(), path, Writing(fmi="3.0", embedded=True))
    assert not [name for name in zipfile.ZipFile(path).namelist() if name.startswith("resources")]
    names = [v.name for v in fmpy.read_model_description(str(path)).modelVariables]
    assert {"torque", "arm.q", "pendulum.q", "output.arm.q", "output.pendulum.q", "arm.v", "pendulum.v"} <= set(names)
    inputs = {n: next(x for x in (n, f"input.{n}") if x in names) for n in ("torque", "arm.q", "pendulum.q")}
    signals = np.array([(0.0, 0.05, 0.1, 3.2)], dtype=[("time", float), *((inputs[n], float) for n in inputs)])
    signals = np.repeat(signals, 2)
    signals["time"] = (0.0, 1.0)
    ran = fmpy.simulate_fmu(
        str(path), stop_time=0.05, output_interval=0.01, input=signals, fmi_type="CoSimulation", output=["arm.v"]
    )
    estimate, u, m = kalman.sampled.y0, np.array([0.05]), np.array([0.1, 3.2])
    seen = []
    for _ in range(8):
        estimate, _ = kalman.correct(kalman.predict(estimate, u), u, m)
        seen.append(estimate[2])
    assert all(min(abs(value - x) for x in seen) < 1e-12 for value in ran["arm.v"][2:])
    assert len(set(np.round(ran["arm.v"][2:], 12))) > 2


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("precision", ["double", "single"])
def test_compilers_have_nothing_to_say(
    regulator: KalmanRegulator, precision: str, compiler: tuple[str, ...], tmp_path: Path
) -> None:
    regulator.save(tmp_path / "lqg.c", limits={"torque": (-0.1, 0.2)}, precision=precision)  # type: ignore[arg-type]
    regulator.save(tmp_path / "free.c", precision=precision)  # type: ignore[arg-type]
    for size in SIZES:
        name = "plant_{}{}{}.c".format(*size)
        sampled(*size).save(tmp_path / name, precision=precision)  # type: ignore[arg-type]
    every = "".join(f'#include "{file.name}"\n' for file in sorted(tmp_path.glob("*.c")))
    declared = "".join(f"#define {f.stem}_DECLARATIONS_ONLY\n" for f in sorted(tmp_path.glob("*.c")))
    (tmp_path / "all.c").write_text(every + "typedef int nothing_more;\n")  # several in one unit do not collide
    (tmp_path / "declared.c").write_text(declared + every)
    compiled(tmp_path / "all.c", "-O1", compiler=compiler)
    compiled(tmp_path / "declared.c", "-O1", compiler=compiler)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("precision", ["double", "single"])
def test_32_bit_code_has_the_same_numbers(place: str, precision: str, tmp_path: Path) -> None:
    linear, tolerance = sampled(6, 3, 4), 1e-12 if precision == "double" else 1e-5
    linear.save(tmp_path / "plant.c", precision=precision)  # type: ignore[arg-type]
    rows = inputs_of(linear, 50)
    answers = run_elsewhere(tmp_path / "plant.c", rows, place)
    assert answers == pytest.approx(by_python(linear, rows), rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("flag", ["-O0", "-Os", "-O2"])
def test_the_comment_says_what_is_needed(regulator: KalmanRegulator, flag: str, tmp_path: Path) -> None:
    for name, limits in (("free", None), ("lqg", {"torque": (-0.1, 0.2)})):
        file = tmp_path / f"{name}.c"
        regulator.save(file, limits=limits)
        need, code = stated(file), CCode(file)
        assert stack_of(file, flag) <= need["stack"]
        assert need["memory"] == code.memory.nbytes
        listed = subprocess.run(["size", "-A", compiled(file, flag)], capture_output=True, text=True, check=True).stdout
        sections = {line.split()[0]: int(line.split()[1]) for line in listed.splitlines() if line.startswith(".")}
        constants = sum(size for section, size in sections.items() if section.startswith(".rodata"))
        assert need["constants"] / 2 <= constants <= need["constants"] + 64  # padding; gcc puts single ones into code
        assert constants + sections[".text"] < need["constants"] + need["code"]
        assert sections.get(".data", 0) == sections.get(".bss", 0) == 0


def test_operations_are_counted(tmp_path: Path) -> None:
    sampled(3, 2, 4).save(tmp_path / "plant.c")
    assert stated(tmp_path / "plant.c")["operations"] == 2 * (3 + 2) * (3 + 4) + 2
    quiet = replace(sampled(3, 2, 4), D=np.zeros((4, 2)))
    quiet.save(tmp_path / "plant.c")
    assert stated(tmp_path / "plant.c")["operations"] == 2 * (3 * 3 + 3 * 2 + 4 * 3) + 2
    assert "plant_D[" not in (tmp_path / "plant.c").read_text()


def test_names_from_anywhere_stay_in_their_comments(tmp_path: Path) -> None:
    linear = discretize(replace(pendulum(), C=np.ones((3, 2)), D=np.ones((3, 1))), 0.01)
    linear = replace(linear, model=replace(linear.model, name="*/ int x; /* ??/"))
    linear.save(tmp_path / "plant.c")
    compiled(tmp_path / "plant.c")
    assert LONG not in (tmp_path / "plant.c").read_text()


def test_deviations_need_no_point(tmp_path: Path) -> None:
    linear = sampled(3, 2, 1)
    lost = replace(linear, point=replace(linear.point, inputs={}))
    with pytest.raises(UsageError, match=r"the input 'u\[1\]' has no value there\. Write deviations"):
        lost.save(tmp_path / "plant.c")
    save(lost, tmp_path / "plant.c", Writing(deviation=True))
    assert CCode(tmp_path / "plant.c").step(0.0, 0.0) == [0.0]


def test_bad_input_is_told(furuta: fl.LinearModel, regulator: KalmanRegulator, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'my-plant' is not a valid name of a C struct.*Choose such a name"):
        furuta.save(tmp_path / "my-plant.c")
    with pytest.raises(UsageError, match="'while' is not a valid name of a C struct"):
        furuta.save(tmp_path / "while.c")
    with pytest.raises(UsageError, match=r"'sample_time' is an option of C code.*Leave it out, or write a \.c file"):
        furuta.save(tmp_path / "plant.mat", sample_time=0.1)
    with pytest.raises(UsageError, match=r"A sample time of -1 s is not possible"):
        furuta.save(tmp_path / "plant.c", sample_time=-1.0)
    with pytest.raises(UsageError, match=r"sampled every 0\.01 s: it cannot be written for another sample time"):
        sampled(1, 1, 1).save(tmp_path / "plant.c", sample_time=0.1)
    with pytest.raises(UsageError, match=r"The matrix A contains NaN or infinite entries"):
        replace(sampled(1, 1, 1), A=np.array([[np.nan]])).save(tmp_path / "plant.c")
    with pytest.raises(UsageError, match=r"in single precision: .* beyond 3\.4e38"):
        replace(sampled(1, 1, 1), A=np.array([[1e200]])).save(tmp_path / "plant.c", precision="single")
    with pytest.raises(UsageError, match=r"The limits of 'torque' are 1 and -1: the first must be the smaller one"):
        regulator.save(tmp_path / "lqg.c", limits={"torque": (1.0, -1.0)})
    with pytest.raises(UnknownNameError, match="torqe"):
        regulator.save(tmp_path / "lqg.c", limits={"torqe": (-1.0, 1.0)})
    with pytest.raises(UsageError, match=r"has no output limits: leave them out, or write a \.c or \.fmu file"):
        regulator.save(tmp_path / "lqg.mat", limits={"torque": (-1.0, 1.0)})
    assert list(tmp_path.iterdir()) == []
