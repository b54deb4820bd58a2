"""Scripts that build Simulink models: their data in Octave, and the diagram, computed from its blocks and lines.

MATLAB is not available. Functions of the names that the script calls record the calls in Octave; the recorded diagram
is evaluated here, block by block.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import expm

import fmilin as fl
from fmilin.systems import four_bar
from tests.export.octave import needs_octave, run

Floats = NDArray[np.float64]
RECORDERS = """
function add_block(library, path, varargin)
    f = fopen('calls.txt', 'a'); fprintf(f, 'block|%s|%s', path, library);
    for k = 1:2:numel(varargin)
        if ischar(varargin{k+1}), fprintf(f, '|%s=%s', varargin{k}, varargin{k+1}); end
    end
    fprintf(f, '\\n'); fclose(f);
end
function add_line(model, source, target, varargin)
    f = fopen('calls.txt', 'a'); fprintf(f, 'line|%s|%s\\n', source, target); fclose(f);
end
function load_system(varargin), end
function new_system(varargin), end
function open_system(varargin), end
function set_param(varargin), end
function assignin(varargin), end
function answer = get_param(varargin), answer = 0; end
function answer = bdIsLoaded(varargin), answer = false; end
"""


class Diagram:
    """The blocks and lines that a script makes, with its data."""

    def __init__(self, folder: Path, name: str) -> None:
        found = run(f"{RECORDERS}\n{name}();\ndata = {name}('data');", folder, "data")["data"][0, 0]
        self.data = {key: found[key] for key in found.dtype.names}
        self.blocks: dict[str, dict[str, str]] = {}
        self.sources: dict[str, dict[int, str]] = {}
        for line in (folder / "calls.txt").read_text(encoding="utf-8").splitlines():
            kind, first, second, *more = line.split("|")
            if kind == "block":
                block = first.rpartition("/")[2]
                assert block not in self.blocks
                self.blocks[block] = {"library": second, **dict(item.split("=", 1) for item in more)}
            else:
                target, _, port = second.rpartition("/")
                source = first.rpartition("/")[0]
                assert {source, target} <= self.blocks.keys()
                self.sources.setdefault(target, {})[int(port)] = source

    def value(self, text: str) -> Floats:
        if text.startswith("fmilin."):
            return np.atleast_2d(self.data[text.removeprefix("fmilin.")]).astype(float)
        return np.array([[float(text)]])

    def evaluate(self, states: dict[str, Floats]) -> dict[str, Floats]:
        """Return the outputs of all blocks, and ``NAME'`` of those with states: the rate, or the next state."""
        values: dict[str, Floats] = {}
        busy: set[str] = set()

        def output(name: str) -> Floats:
            if name in values:
                return values[name]
            assert name not in busy, f"an algebraic loop through {name}"
            busy.add(name)
            block = self.blocks[name]
            kind = block["library"].rpartition("/")[2]
            if "State-Space" in kind:
                C, D = self.value(block["C"]), self.value(block["D"])
                direct = D @ output(self.sources[name][1]) if D.any() else 0.0
                values[name] = C @ states[name] + direct
            else:
                ports = self.sources.get(name, {})
                values[name] = self.apply(kind, block, [output(ports[port]) for port in sorted(ports)])
            return values[name]

        for name in self.blocks:
            output(name)
        for name, x in states.items():
            A, B = self.value(self.blocks[name]["A"]), self.value(self.blocks[name]["B"])
            values[f"{name}'"] = A @ x + B @ output(self.sources[name][1])
        return values

    def apply(self, kind: str, block: dict[str, str], inputs: list[Floats]) -> Floats:
        match kind:
            case "Constant":
                return self.value(block["Value"])
            case "Sum":
                assert len(block["Inputs"]) == len(inputs)
                signed = zip(block["Inputs"], inputs, strict=True)
                return np.asarray(np.sum([x if sign == "+" else -x for sign, x in signed], axis=0))
            case "Gain":
                return self.value(block["Gain"]) @ inputs[0]
            case "Mux":
                assert int(block["Inputs"]) == len(inputs)
                return np.vstack(inputs)
            case "Saturation":
                return np.clip(inputs[0], self.value(block["LowerLimit"]), self.value(block["UpperLimit"]))
            case _:
                return inputs[0]


@needs_octave
def test_the_diagram_of_a_plant_is_its_linear_model(tmp_path: Path) -> None:
    """At a point that moves: the rate at the point comes in, and outputs are absolute."""
    model = four_bar()
    linear = fl.linearize(model, fl.operating_point(model, {"phi": 1.0, "w": 2.0, "torque": 0.3}))
    linear.save(tmp_path / "plant_simulink.m")
    diagram = Diagram(tmp_path, "plant_simulink")
    dx = np.array([[0.1], [-0.2]])
    values = diagram.evaluate({"plant": dx})
    np.testing.assert_allclose(values["plant'"], linear.A @ dx + linear.f0[:, None], rtol=1e-14)
    y0 = np.array(list(linear.point.outputs.values()))[:, None]
    np.testing.assert_allclose(values["plant_out"], y0 + linear.C @ dx, rtol=1e-14)
    assert "simulink/Sinks/Scope" in {block["library"] for block in diagram.blocks.values()}


@needs_octave
def test_the_diagram_of_a_loop_has_the_poles_of_the_design_and_does_not_wind_up(tmp_path: Path) -> None:
    linear = fl.linearize(four_bar())
    design = fl.design.lqg(
        linear, states={"phi": 100.0, "w": 1.0}, inputs={"torque": 1.0}, process={"torque": 0.1},
        measured={"phi": 1e-6}, sample_time=0.01, track=["phi"], limits={"torque": (-0.5, 0.5)},
    )  # fmt: skip
    design.save(tmp_path / "loop_simulink.m")
    diagram = Diagram(tmp_path, "loop_simulink")
    h, n = 0.01, len(design.regulator.linear_model().states)
    A, B = diagram.data["plant_A"], diagram.data["plant_B"]
    moved = expm(h * np.block([[A, B], [np.zeros((2, 4))]]))

    def advance(state: Floats) -> Floats:
        values = diagram.evaluate({"plant": state[:2], "regulator": state[2:]})
        return np.vstack((moved[:2, :2] @ state[:2] + moved[:2, 2:] @ values["plant_mux"], values["regulator'"]))

    rest = advance(np.zeros((2 + n, 1)))
    Phi = np.hstack([(advance(1e-4 * e[:, None]) - rest) / 1e-4 for e in np.eye(2 + n)])
    found = np.sort_complex(np.linalg.eigvals(Phi))
    np.testing.assert_allclose(found, np.sort_complex(design.poles), atol=1e-7)
    # From far away the limits hold the torque, and the diagram winds up no more than the regulator itself.
    plant = fl.models.OdeModel(
        "plant", {"phi": "w", "w": f"{A[1, 0]:.17g}*(phi - phi0) + {B[1, 0]:.17g}*torque"},
        inputs=["torque"], outputs={"phi": "phi"}, parameters={"phi0": linear.y0[0]},
    )  # fmt: skip
    start = fl.operating_point(plant, {"phi": linear.y0[0] + 1.0})
    motion = fl.closed_loop(plant, design.regulator, start=start, stop_time=3.0, limits=design.limits)
    state = np.vstack(([[1.0], [0.0]], np.zeros((n, 1))))
    torques = []
    for _ in range(300):
        torques.append(diagram.evaluate({"plant": state[:2], "regulator": state[2:]})["limits"].item())
        state = advance(state)
    assert max(map(abs, torques)) == 0.5
    expected = np.interp(h * (np.arange(300) + 0.5), motion.times, motion["torque"])
    np.testing.assert_allclose(torques, expected, atol=1e-6)


def test_a_regulator_that_needs_inputs_at_once_is_rejected(tmp_path: Path) -> None:
    model = fl.models.OdeModel(
        "cart", {"x": "v", "v": "F - x"}, inputs=["F"], outputs={"y": "x", "acceleration": "F - x"}
    )
    design = fl.design.lqg(
        fl.linearize(model), states={"x": 1.0}, inputs={"F": 1.0}, process={"F": 0.1},
        measured={"acceleration": 1e-4}, sample_time=0.05, hold_noise=True,
    )  # fmt: skip
    with pytest.raises(fl.UsageError, match="algebraic loop in Simulink"):
        design.save(tmp_path / "loop_simulink.m")


def test_the_comment_says_how_to_use_the_script(tmp_path: Path) -> None:
    fl.linearize(four_bar()).save(tmp_path / "plant_simulink.m")
    text = (tmp_path / "plant_simulink.m").read_text(encoding="utf-8")
    assert re.match(r"function data = plant_simulink\(action\)\n%PLANT_SIMULINK  Builds a Simulink model", text)
    with pytest.raises(fl.UsageError, match="not a valid name of a MATLAB function"):
        fl.linearize(four_bar()).save(tmp_path / "1_simulink.m")
