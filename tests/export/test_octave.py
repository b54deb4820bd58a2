"""What MATLAB users do with the files, done in GNU Octave and compared with python-control."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import control
import numpy as np
import pytest

import fmilin as fl
from fmilin import LinearModel
from fmilin.adapters import ModelInfo
from fmilin.export.m_file import dumps_array, gather_models
from fmilin.formats import Writing
from fmilin.signals import Signal, Signals
from tests.export.octave import needs_octave, run, texts
from tests.hand_made import differences, pendulum, sized

pytestmark = needs_octave

DESIGN = """
poles = sort(eig(sys));
[gain, riccati, closed] = lqr(sys, eye(rows(sys.a)), eye(columns(sys.b)));
[estimator, observer] = kalman(sys, eye(columns(sys.b)), 0.5 * eye(rows(sys.c)));
[response, t] = step(sys, 0:0.05:4);
"""
RESULTS = ("poles", "gain", "observer", "response", "t")


def stable(order: int = 5) -> LinearModel:
    base = sized(order, 2, 2, 3)
    return replace(base, A=base.A - 4 * np.eye(order), D=0 * base.D)


@pytest.mark.parametrize(
    ("suffix", "load"), [("mat", "S = load('plant.mat'); sys = ss(S.A, S.B, S.C, S.D);"), ("m", "sys = plant();")]
)
def test_designs_agree_with_python_control(suffix: str, load: str, tmp_path: Path) -> None:
    linear = stable()
    linear.save(tmp_path / f"plant.{suffix}")
    found = run(load + DESIGN, tmp_path, *RESULTS)
    system = linear.to_control()
    assert np.allclose(np.sort_complex(found["poles"][:, 0]), np.sort_complex(system.poles()), rtol=1e-11)
    gain, _, _ = control.lqr(system, np.eye(5), np.eye(2))
    assert np.allclose(found["gain"], gain, rtol=1e-9, atol=1e-12)
    observer, _, _ = control.lqe(linear.A, linear.B, linear.C, np.eye(2), 0.5 * np.eye(3))
    assert np.allclose(found["observer"], observer, rtol=1e-9, atol=1e-12)
    expected = control.step_response(system, found["t"][:, 0])
    assert np.allclose(np.moveaxis(found["response"], 0, -1), expected.outputs, rtol=1e-9, atol=1e-11)


def test_the_function_of_a_model_with_delays_hands_its_core_and_delays_to_matlab(tmp_path: Path) -> None:
    A = [[-1.0, 2.0, 0.0], [-2.0, -1.0, 0.3], [0.1, 0.0, -0.4]]
    plant = control.ss(A, [[1, 0], [0, 1], [1, 1]], [[1, 0, 2], [0, 1, 0]], [[0, 0.5], [0, 0]])
    plain = fl.linearize(fl.connect({"plant": control.ss(plant, inputs=["u", "v"], outputs=["y", "z"])}, []))
    late = plain.with_delays(inputs={"plant.u": 0.5}, outputs={"plant.z": 0.25})
    late.save(tmp_path / "plant.m")
    # Octave has no internal delays: what MATLAB's setDelayModel gets is closed by its definition
    (tmp_path / "setDelayModel.m").write_text(
        "function sys = setDelayModel(H, tau), sys.H = H; sys.tau = tau; end", encoding="utf-8"
    )
    script = """
    [sys, offsets] = plant();
    [A, B, C, D] = ssdata(sys.H); tau = sys.tau; counts = [numel(offsets.u), numel(offsets.y)];
    s = 0.7i; P = D + C * ((s * eye(rows(A)) - A) \\ B); m = numel(tau); E = diag(exp(-s * tau));
    u = 1:columns(P) - m; w = columns(P) - m + 1:columns(P); y = 1:rows(P) - m; z = rows(P) - m + 1:rows(P);
    G = P(y, u) + P(y, w) * E * ((eye(m) - P(z, w) * E) \\ P(z, u));
    """
    results = run(script, tmp_path, "G", "tau", "counts")
    assert np.allclose(results["G"], late.frequency_response(np.array([0.7]))[:, :, 0], rtol=1e-12, atol=1e-14)
    assert results["tau"].ravel().tolist() == [0.5, 0.25]
    assert results["counts"].ravel().tolist() == [len(late.inputs), len(late.outputs)]


def test_the_function_file_keeps_every_bit_and_every_name(tmp_path: Path) -> None:
    linear = replace(
        pendulum(), inputs=Signals([Signal("it's a\nnew\tline '")]), point=replace(pendulum().point, inputs={})
    )
    linear.save(tmp_path / "plant.m")
    found = run(
        """
        [sys, offsets, points] = plant();
        [A, B, C, D] = ssdata(sys);
        names = texts([sys.stname; sys.inname; sys.outname]);
        name = texts({sys.name}); x = offsets.x; u = offsets.u; y = offsets.y; dx = offsets.dx; T = points.T;
        held = texts(points.states.names); values = points.states.values; same = sys.userdata.time;
        """,
        tmp_path,
        *("A", "B", "C", "D", "names", "name", "x", "u", "y", "dx", "T", "held", "values", "same"),
    )
    for name in ("A", "B", "C", "D", "T"):
        assert found[name].astype(float).tobytes() == getattr(linear, name).tobytes()
    assert found["dx"].ravel().tolist() == linear.f0.tolist()
    assert found["y"].ravel().tolist() == list(linear.point.outputs.values())
    assert texts(found["names"]) == [*linear.states.names, *linear.inputs.names, *linear.outputs.names]
    assert texts(found["name"]) == [linear.model.name]
    assert texts(found["held"]) == list(linear.point.states)
    assert found["values"].ravel().tolist() == list(linear.point.states.values())
    assert found["same"] == linear.point.time


@pytest.mark.parametrize(("order", "inputs", "outputs"), [(0, 0, 0), (0, 2, 3), (3, 0, 2), (3, 2, 0), (1, 1, 1)])
def test_any_size_becomes_a_system(order: int, inputs: int, outputs: int, tmp_path: Path) -> None:
    linear = sized(order, 1, inputs, outputs)
    linear.save(tmp_path / "plant.m")
    found = run("[sys, offsets, points] = plant(); [A, B, C, D] = ssdata(sys);", tmp_path, "A", "B", "C", "D")
    for name in ("A", "B", "C", "D"):
        assert found[name].shape == getattr(linear, name).shape
        assert np.array_equal(found[name], getattr(linear, name))


def test_a_sampled_model_keeps_its_sample_time(tmp_path: Path) -> None:
    linear = replace(stable(), sample_time=0.125)
    linear.save(tmp_path / "plant.m")
    found = run("[sys, offsets] = plant(); Ts = sys.tsam; dx = offsets.dx;", tmp_path, "Ts", "dx")
    assert found["Ts"] == 0.125
    assert np.array_equal(found["dx"].ravel(), linear.y0 + linear.f0)


def test_an_array_runs_over_its_grid(tmp_path: Path) -> None:
    models: list[LinearModel] = []
    values: dict[str, list[float]] = {"mass": [], "v [m/s]": []}
    for v in (5.0, 1.0, 3.0):
        for mass in (2.0, 1.0):
            base = stable(3)
            models.append(replace(base, A=base.A * v + mass, f0=np.full(3, v * mass)))
            values["mass"].append(mass)
            values["v [m/s]"].append(v)
    (tmp_path / "plants.m").write_bytes(dumps_array(gather_models(models, values), Writing("plants")))
    found = run(
        """
        [sys, offsets, points] = plants();
        shape = size(sys); names = sys{2, 3}.stname;
        A = zeros(3, 3, 2, 3);
        for k = 1:numel(sys), A(:, :, k) = sys{k}.a; end
        dx = offsets.dx; count = numel(points);
        """,
        tmp_path,
        *("shape", "names", "A", "dx", "count"),
    )
    assert found["shape"].ravel().tolist() == [2, 3]
    assert found["count"] == 6
    for model, mass, v in zip(models, values["mass"], values["v [m/s]"], strict=True):
        i, j = [1.0, 2.0].index(mass), [1.0, 3.0, 5.0].index(v)
        assert np.array_equal(found["A"][:, :, i, j], model.A)
        assert np.array_equal(found["dx"][:, 0, i, j], model.f0)


@pytest.mark.parametrize("name", ["größe", "中文", "a\nb 'c'", "β" * 2000, "plain"])
def test_names_in_any_alphabet_reach_octave_through_the_mat_file(name: str, tmp_path: Path) -> None:
    linear = replace(sized(1, 0, 0, 1), outputs=Signals([Signal(name, "°")]))
    linear.save(tmp_path / "plant.mat")
    found = run(
        "S = load('plant.mat'); names = texts(S.outputs); unit = texts(S.fmilin.units.values);", tmp_path, "names"
    )
    assert texts(found["names"]) == [name]


def test_a_file_that_octave_saved_again_still_reads(tmp_path: Path) -> None:
    # Octave cuts texts short that have characters beyond 16 bits.
    linear = replace(sized(3, 2, 2, 2), model=ModelInfo("größe", "{1}", "", "3.0"))
    linear.save(tmp_path / "plant.mat")
    script = "S = load('plant.mat'); save('-v7', 'again.mat', '-struct', 'S');"
    run(f"{script} done = 1;", tmp_path, "done")
    assert differences(linear, LinearModel.load(tmp_path / "again.mat")) == []
