"""A linear model, or a regulator with its plant, as a script that builds a Simulink model.

The script has two parts: data (matrices, offsets, names), which Octave returns as well, and the calls of ``add_block``
and ``add_line``, which need Simulink. The data go into the workspace of the Simulink model, so that it can be saved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fmilin.design.regulator_design import RegulatorDesign
from fmilin.errors import UsageError
from fmilin.export.for_people import by_name
from fmilin.export.linear_record import require_writable
from fmilin.export.m_file import format_cell, format_comment, format_matrix, format_number, require_function_name
from fmilin.formats import Writing
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray, Signals
from fmilin.support.files import write_atomically
from fmilin.version import __version__

CONSTANT = "simulink/Sources/Constant"
SUM = "simulink/Math Operations/Sum"
GAIN = "simulink/Math Operations/Gain"
MUX = "simulink/Signal Routing/Mux"
SATURATION = "simulink/Discontinuities/Saturation"
HOLD = "simulink/Discrete/Zero-Order Hold"
SCOPE = "simulink/Sinks/Scope"
LOGGED = "simulink/Sinks/To Workspace"
STATE_SPACE = "simulink/Continuous/State-Space"
SAMPLED_STATE_SPACE = "simulink/Discrete/Discrete State-Space"
BLOCK_SIZE = 60  # width and height of a block, in Simulink's units of the screen
COLUMN_DISTANCE, ROW_DISTANCE = 120, 100


@dataclass
class Diagram:
    """Data, blocks and lines of a Simulink model."""

    data: dict[str, FloatArray | Sequence[str]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def add_block(self, name: str, library: str, grid_cell: tuple[int, int], **parameters: str) -> None:
        """Add a block of a library at a grid cell (column, row)."""
        x, y = 30 + COLUMN_DISTANCE * grid_cell[0], 30 + ROW_DISTANCE * grid_cell[1]
        position = f"[{x}, {y}, {x + BLOCK_SIZE}, {y + BLOCK_SIZE}]"
        settings = "".join(f", '{key}', '{value}'" for key, value in parameters.items())
        self.calls.append(f"add_block('{library}', [model '/{name}'], 'Position', {position}{settings});")

    def add_line(self, source: str, target: str, port: int = 1) -> None:
        """Connect the output of a block with an input of another one."""
        self.calls.append(f"add_line(model, '{source}/1', '{target}/{port}', 'autorouting', 'on');")

    def add_linear(self, name: str, linear: LinearModel, grid_cell: tuple[int, int]) -> None:
        """Add a linear model with its offsets, from absolute inputs (block NAME_in) to absolute outputs (NAME_out)."""
        self._add_data(name, linear)
        column, row = grid_cell
        has_inputs = len(linear.inputs) > 0
        count = 1 + has_inputs
        self.add_block(f"{name}_mux", MUX, (column + 2, row), Inputs=str(count))
        if has_inputs:
            self._add_input(name, grid_cell)
            self.add_line(f"{name}_in", f"{name}_mux", 1)
        self.add_block(f"{name}_one", CONSTANT, (column + 1, row + 1), Value="1")
        self.add_line(f"{name}_one", f"{name}_mux", count)
        # of the rate at the point, which the constant 1 drives
        zero = np.zeros((len(linear.outputs), 1))
        self._add_state_space(name, linear, linear.f0.reshape(-1, 1), np.hstack((linear.D, zero)), (column + 3, row))
        self._add_output(name, (column + 3, row), [name])

    def add_regulator(self, name: str, linear: LinearModel, excess: FloatArray, grid_cell: tuple[int, int]) -> None:
        """Add a sampled regulator; port 2 of its block NAME_mux takes what limits take from its outputs.

        ``excess`` (states, outputs) says how the states move with that. The direct part has a block of its own: with D
        in the State-Space block Simulink would see an algebraic loop through the limits.
        """
        self._add_data(name, linear)
        column, row = grid_cell
        self._add_input(name, grid_cell)
        self.add_block(f"{name}_hold", HOLD, (column + 2, row), SampleTime=format_number(linear.sample_time))
        self.add_line(f"{name}_in", f"{name}_hold")
        self.add_block(f"{name}_one", CONSTANT, (column + 2, row + 1), Value="1")
        self.add_block(f"{name}_mux", MUX, (column + 3, row), Inputs="3")
        self.add_line(f"{name}_hold", f"{name}_mux", 1)
        self.add_line(f"{name}_one", f"{name}_mux", 3)
        more = np.hstack((excess, linear.f0.reshape(-1, 1)))
        no_direct = np.zeros((len(linear.outputs), len(linear.inputs) + more.shape[1]))
        self._add_state_space(name, linear, more, no_direct, (column + 4, row))
        self.data[f"{name}_direct"] = linear.D
        gain = {"Gain": f"fmilin.{name}_direct", "Multiplication": "Matrix(K*u)"}
        self.add_block(f"{name}_direct", GAIN, (column + 4, row + 2), **gain)
        self.add_line(f"{name}_hold", f"{name}_direct")
        self._add_output(name, (column + 4, row), [name, f"{name}_direct"])

    def _add_data(self, name: str, linear: LinearModel) -> None:
        self.data |= {
            f"{name}_u0": by_name(linear.point.inputs, linear.inputs.names).reshape(-1, 1),
            f"{name}_y0": by_name(linear.point.outputs, linear.outputs.names).reshape(-1, 1),
            f"{name}_x0": linear.y0.reshape(-1, 1),
            f"{name}_states": linear.states.names,
            f"{name}_inputs": linear.inputs.names,
            f"{name}_outputs": linear.outputs.names,
        }

    def _add_input(self, name: str, grid_cell: tuple[int, int]) -> None:
        column, row = grid_cell
        self.add_block(f"{name}_u0", CONSTANT, (column, row + 1), Value=f"fmilin.{name}_u0")
        self.add_block(f"{name}_in", SUM, (column + 1, row), Inputs="+-")
        self.add_line(f"{name}_u0", f"{name}_in", 2)

    def _add_state_space(
        self, name: str, linear: LinearModel, more: FloatArray, D: FloatArray, grid_cell: tuple[int, int]
    ) -> None:
        """Add the State-Space block, with ``more`` columns of B; its states are deviations, zero at the start."""
        self.data |= {
            f"{name}_A": linear.A,
            f"{name}_B": np.hstack((linear.B, more)),
            f"{name}_C": linear.C,
            f"{name}_D": D,
        }
        matrices = {letter: f"fmilin.{name}_{letter}" for letter in "ABCD"}
        if not len(linear.states):
            self.add_block(name, GAIN, grid_cell, Gain=matrices["D"], Multiplication="Matrix(K*u)")
        elif linear.sample_time:
            self.add_block(
                name, SAMPLED_STATE_SPACE, grid_cell, **matrices, SampleTime=format_number(linear.sample_time)
            )
        else:
            self.add_block(name, STATE_SPACE, grid_cell, **matrices)
        self.add_line(f"{name}_mux", name)

    def _add_output(self, name: str, grid_cell: tuple[int, int], parts: Sequence[str]) -> None:
        column, row = grid_cell
        self.add_block(f"{name}_y0", CONSTANT, (column, row + 1), Value=f"fmilin.{name}_y0")
        self.add_block(f"{name}_out", SUM, (column + 1, row), Inputs="+" * (len(parts) + 1))
        for port, part in enumerate((*parts, f"{name}_y0"), start=1):
            self.add_line(part, f"{name}_out", port)

    def add_display(self, name: str, source: str, grid_cell: tuple[int, int]) -> None:
        """Show a signal in a scope, and log it in the workspace under a name."""
        self.add_block(f"{name}_scope", SCOPE, grid_cell)
        self.add_line(source, f"{name}_scope")
        self.add_block(
            f"{name}_log", LOGGED, (grid_cell[0], grid_cell[1] + 1), VariableName=name, SaveFormat="Timeseries"
        )
        self.add_line(source, f"{name}_log")


def dumps(linear: LinearModel, writing: Writing) -> bytes:
    """Return the content of a script for the linear model with constant inputs, which the user replaces."""
    require_function_name(writing.name)
    require_writable(linear)
    diagram = Diagram()
    linear = _show_something(linear)
    diagram.add_linear("plant", linear, (1, 0))
    if len(linear.inputs):
        diagram.add_block("inputs", CONSTANT, (0, 0), Value="fmilin.plant_u0")
        diagram.add_line("inputs", "plant_in")
    diagram.add_display("y", "plant_out", (6, 0))
    text = [f"Linear model of {linear.model.name}: constant inputs at the point; replace the block 'inputs'."]
    return _write(diagram, writing.name, text, linear.sample_time)


def save_loop(design: RegulatorDesign, path: str | Path) -> None:
    """Write a script for the loop of an LQG design with the linear model of its plant."""
    regulator = design.regulator
    law, excess = regulator.linear_model(), regulator.compute_limit_response()
    writing = Writing(name=Path(path).stem)
    write_atomically(path, dumps_loop(design.linear, law, excess, design.limits, writing))


def dumps_loop(
    plant: LinearModel,
    regulator: LinearModel,
    excess: FloatArray,
    limits: Mapping[str, tuple[float, float]],
    writing: Writing,
) -> bytes:
    """Return the content of a script for the loop of a plant and its sampled regulator.

    ``excess`` (states of the regulator, its outputs) says how its states move with what the limits take from its
    outputs. Inputs of the regulator that are not outputs of the plant are references, constant at first.
    """
    require_function_name(writing.name)
    for linear in (plant, regulator):
        require_writable(linear)
    columns = [plant.inputs.index_of(name) for name in regulator.outputs.names]
    if plant.D[:, columns].any() and regulator.D.any():
        raise UsageError(
            "Measured outputs that answer to an input at once make an algebraic loop in Simulink. Measure positions "
            "instead of accelerations or forces, or save the regulator as .c or .fmu."
        )
    diagram = Diagram()
    drives = regulator.outputs.names
    pick = np.zeros((len(plant.inputs), len(drives)))
    pick[columns, np.arange(len(drives))] = 1.0
    measured = np.zeros((len(regulator.inputs), len(plant.outputs)))
    references = by_name(regulator.point.inputs, regulator.inputs.names).reshape(-1, 1).copy()
    for row, name in enumerate(regulator.inputs.names):
        if plant.outputs.has(name):
            measured[row, plant.outputs.index_of(name)] = 1.0
            references[row] = 0.0
    fixed_inputs = by_name(plant.point.inputs, plant.inputs.names).reshape(-1, 1) * (
        1 - pick.sum(axis=1, keepdims=True)
    )
    bounds = np.array([limits.get(name, (-np.inf, np.inf)) for name in drives])
    diagram.data |= {
        "drives": pick,
        "measured": measured,
        "references": references,
        "other_inputs": fixed_inputs,
        "lower": bounds[:, :1],
        "upper": bounds[:, 1:],
    }
    diagram.add_block("references", CONSTANT, (0, 0), Value="fmilin.references")
    diagram.add_block("measured", GAIN, (0, 1), Gain="fmilin.measured", Multiplication="Matrix(K*u)")
    diagram.add_block("read", SUM, (1, 0), Inputs="++")
    diagram.add_line("references", "read", 1)
    diagram.add_line("measured", "read", 2)
    diagram.add_regulator("regulator", regulator, excess, (2, 0))
    diagram.add_line("read", "regulator_in")
    diagram.add_block("limits", SATURATION, (8, 0), LowerLimit="fmilin.lower", UpperLimit="fmilin.upper")
    diagram.add_line("regulator_out", "limits")
    diagram.add_block("excess", SUM, (8, 2), Inputs="+-")
    diagram.add_line("limits", "excess", 1)
    diagram.add_line("regulator_out", "excess", 2)
    diagram.add_line("excess", "regulator_mux", 2)
    diagram.add_block("drives", GAIN, (9, 0), Gain="fmilin.drives", Multiplication="Matrix(K*u)")
    diagram.add_line("limits", "drives")
    diagram.add_block("other_inputs", CONSTANT, (9, 1), Value="fmilin.other_inputs")
    diagram.add_block("inputs", SUM, (10, 0), Inputs="++")
    diagram.add_line("drives", "inputs", 1)
    diagram.add_line("other_inputs", "inputs", 2)
    diagram.add_linear("plant", plant, (11, 0))
    diagram.add_line("inputs", "plant_in")
    diagram.add_line("plant_out", "measured")
    diagram.add_display("y", "plant_out", (16, 0))
    diagram.add_display("u", "inputs", (16, 2))
    text = [
        f"Sampled regulator of {plant.model.name} with the linear model of its plant.",
        "The block 'references' sets tracked outputs, the initial condition of 'plant' a disturbance.",
    ]
    return _write(diagram, writing.name, text, 0.0)


def _show_something(linear: LinearModel) -> LinearModel:
    """Return the linear model, or, without outputs, with its states as outputs."""
    if len(linear.outputs):
        return linear
    from dataclasses import replace

    p, k = linear.B.shape
    point = replace(linear.point, outputs=dict(zip(linear.states.names, linear.y0.tolist(), strict=True)))
    return replace(linear, outputs=Signals(linear.states), C=np.eye(p), D=np.zeros((p, k)), point=point)


def _write(diagram: Diagram, name: str, text: Sequence[str], sample_time: float) -> bytes:
    return ("\n".join(_list_lines(diagram, name, text, sample_time)) + "\n").encode("utf-8")


def _list_lines(diagram: Diagram, name: str, text: Sequence[str], sample_time: float) -> Iterator[str]:
    yield f"function data = {name}(action)"
    yield f"%{name.upper()}  Builds a Simulink model, made by fmilin {__version__}."
    for line in text:
        yield f"%   {format_comment(line)}"
    yield f"%   {name}() builds and opens '{name}_model'; its signals y (and u) are logged."
    yield f"%   data = {name}('data') returns matrices, offsets and names, without Simulink and in Octave."
    yield "data = build_data();"
    yield "if nargin > 0 && strcmp(action, 'data')"
    yield "    return"
    yield "end"
    yield f"model = '{name}_model';"
    yield "load_system('simulink');"
    yield "if bdIsLoaded(model)"
    yield "    close_system(model, 0);"
    yield "end"
    yield "new_system(model);"
    yield "workspace = get_param(model, 'ModelWorkspace');"
    yield "assignin(workspace, 'fmilin', data);"
    if sample_time:
        yield f"set_param(model, 'SolverType', 'Fixed-step', 'FixedStep', '{format_number(sample_time)}');"
    yield from diagram.calls
    yield "open_system(model);"
    yield "end"
    yield ""
    yield "function data = build_data()"
    for key, value in diagram.data.items():
        if isinstance(value, np.ndarray):
            yield from format_matrix(f"data.{key}", value)
        else:
            yield f"data.{key} = {format_cell(list(value))};"
    yield "end"
