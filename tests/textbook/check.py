"""One cell of the gate: the model of a source against the textbook."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import control
import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import fmilin as fl
from fmilin.composition.system import ConnectedModel
from tests.textbook.cells import Cell, Coordinate
from tests.textbook.models import Textbook

__all__ = ["find_differences"]

EXACT = 1e-12
"""Relative to the largest entry of a matrix: derivatives of equations, or those that an FMU returns, are exact."""
DIFFERENCED = 1e-8
"""The same where the source has no exact derivatives, as functions of Python with branches."""
POINT = 1e-7
"""Of a trimmed point and of a margin, relative to what the textbook states, or absolute below 1."""


def find_differences(cell: Cell, textbook: Textbook) -> list[str]:
    """Return what the source states otherwise than the textbook, in words; empty where the cell is right."""
    plant_differences: list[str] = []
    if "sample_time" in textbook.controller:
        plant_differences = _compare_trim_of_plant(cell)
        cell = _close_sampled_loop(cell, textbook)
    names = Names(cell, textbook)
    lin = _linearize(cell, names, sampled="sample_time" in textbook.controller)
    differences = [*plant_differences, *_compare_point(lin, names), *_compare_matrices(lin, names)]
    differences += _compare_eigenvalues(lin, textbook)
    if lin.is_equilibrium is not textbook.is_equilibrium:
        differences.append(f"is_equilibrium is {lin.is_equilibrium}, not {textbook.is_equilibrium}")
    if textbook.trim_guess:
        differences += _compare_trim(cell, names)
    if not textbook.has_equilibrium:
        with pytest.raises(fl.NumericalError):
            fl.trim(cell.model, fixed=dict(zip(names.inputs, textbook.inputs.values(), strict=True)))
    if textbook.margins is not None:
        differences += _compare_margins(cell, names)
    return differences


class Names:
    """States, inputs and outputs of a cell beside those of the textbook."""

    def __init__(self, cell: Cell, textbook: Textbook) -> None:
        self.textbook = textbook
        own = {state: Coordinate(state, {state: 1.0}, value) for state, value in textbook.states.items()}
        self.coordinates = list({**own, **cell.states}.values())
        self.states = [coordinate.name for coordinate in self.coordinates]
        self.inputs = [cell.inputs.get(name, name) for name in textbook.inputs]
        self.stated_outputs = [name for name in textbook.outputs if name not in cell.missing_outputs]
        self.outputs = [cell.outputs.get(name, name) for name in self.stated_outputs]
        slopes = [[c.slopes.get(state, 0.0) for state in textbook.states] for c in self.coordinates]
        self.S = np.array(slopes)

    def matrices(self) -> dict[str, Any]:
        """Return the textbook's matrices in the coordinates of the source: z = S y."""
        right = self.textbook.matrices
        rows = [list(self.textbook.outputs).index(name) for name in self.stated_outputs]
        inverse = np.linalg.inv(self.S)
        A, B = self.S @ right["A"] @ inverse, self.S @ right["B"]
        return {"A": A, "B": B, "C": right["C"][rows] @ inverse, "D": right["D"][rows]}


def _close_sampled_loop(cell: Cell, textbook: Textbook) -> Cell:
    """Close a PI regulator around the plant of a cell: u = kp e + ki s, s := s + Ts e."""
    gains = textbook.controller
    step = gains["sample_time"]
    pi = control.ss([[1.0]], [[step, -step]], [[gains["ki"]]], [[gains["kp"], -gains["kp"]]], step)
    pi = control.ss(pi, inputs=["r", "y"], outputs=["u"], states=["s"])
    plant_input, plant_output = cell.inputs.get("u", "u"), cell.outputs.get("y", "y")
    wires = [(f"plant.{plant_output}", "pi.y"), ("pi.u", f"plant.{plant_input}")]
    members = {"plant": cell.model, "pi": pi}
    system = fl.connect(members, wires, inputs={"r": "pi.r"}, outputs={"y": f"plant.{plant_output}"})
    plant = cell.states.get("x", Coordinate("x", {"x": 1.0}, 0.0))
    states = {
        "x": Coordinate(f"plant.{plant.name}", plant.slopes, plant.value),
        "s": Coordinate("pi.s", {"s": 1.0}, 0.0),
    }
    return Cell(system, states)


def _linearize(cell: Cell, names: Names, *, sampled: bool) -> fl.LinearModel:
    if sampled:
        assert isinstance(cell.model, ConnectedModel)
        return fl.sampled_loop(cell.model)
    saturated = names.textbook.input_moves_nothing
    if saturated:
        with pytest.raises(fl.NumericalError, match="have no effect"):
            fl.linearize(cell.model)
    point = fl.operating_point(cell.model, cell.start) if cell.start else None
    return fl.linearize(
        cell.model,
        point,
        independent=names.states,
        inputs=names.inputs,
        outputs=names.outputs,
        keep_inaccurate=saturated,
    )


def _compare_point(lin: fl.LinearModel, names: Names) -> list[str]:
    """Compare the start of the source: its states, inputs, and outputs there."""
    textbook = names.textbook
    expected = {c.name: (c.value, 0.0) for c in names.coordinates}
    expected |= {name: (value, 0.0) for name, value in zip(names.inputs, textbook.inputs.values(), strict=True)}
    stated: dict[str, float] = {}
    stated |= lin.point.states
    stated |= lin.point.inputs
    outputs = dict(zip(lin.outputs.names, lin.g0, strict=True))
    differences = [
        f"{name} is {stated[name]:.12g} at the point, not {value:.12g}"
        for name, (value, _) in expected.items()
        if abs(stated[name] - value) > EXACT * max(1.0, abs(value))
    ]
    for name, called in zip(names.stated_outputs, names.outputs, strict=True):
        value, period = textbook.outputs[name], textbook.output_period.get(name)
        gap = outputs[called] - value
        if period is not None:
            gap = math.remainder(gap, period)
        if abs(gap) > EXACT * max(1.0, abs(value)):
            differences.append(f"the output {called} is {outputs[called]:.12g} at the point, not {value:.12g}")
    return differences


def _compare_matrices(lin: fl.LinearModel, names: Names) -> list[str]:
    """Compare A, B, C, D, within a small tolerance and within the errors that are stated."""
    if list(lin.states.names) != names.states:
        return [f"the coordinates are {lin.states.names}"]
    differences = []
    tolerance = EXACT if lin.method.derivatives == "exact" else DIFFERENCED
    for matrix, right in names.matrices().items():
        stated, errors = getattr(lin, matrix), getattr(lin.errors, matrix)
        if stated.shape != right.shape:
            differences.append(f"{matrix} has the shape {stated.shape}, not {right.shape}")
            continue
        size = max(1.0, float(np.abs(right).max(initial=0.0)))
        gap = np.abs(stated - right)
        if gap.max(initial=0.0) > tolerance * size:
            differences.append(f"{matrix} is {stated.tolist()}, not {right.tolist()}")
        if np.any(gap > errors + 1e-14 * size):
            differences.append(f"{matrix} is off by {gap.max():.1e}, more than the error that is stated")
    return differences


def _compare_eigenvalues(lin: fl.LinearModel, textbook: Textbook) -> list[str]:
    """Compare eigenvalues, each within the error that is stated for it and rounding."""
    stated, errors = lin.eigenvalues(), lin.eigenvalue_errors()
    right = np.array(textbook.eigenvalues, dtype=complex)
    gaps = np.abs(stated[:, None] - right[None, :])
    rows, columns = linear_sum_assignment(gaps)
    rounding = 1e-14 * max(1.0, float(np.abs(right).max()))
    return [
        f"the eigenvalue {stated[i]:.12g} +- {errors[i]:.1e} is {right[j]:.12g} in the textbook"
        for i, j in zip(rows, columns, strict=True)
        if gaps[i, j] > errors[i] + rounding
    ]


def _compare_trim(cell: Cell, names: Names) -> list[str]:
    """Compare the equilibrium that is found from a guess beside it."""
    textbook = names.textbook
    displaced = {state: textbook.trim_guess.get(state, value) for state, value in textbook.states.items()}
    offset = np.array([displaced[state] - value for state, value in textbook.states.items()])
    values = np.array([c.value for c in names.coordinates]) + names.S @ offset
    guess = cell.guess if cell.guess is not None else dict(zip(names.states, values.tolist(), strict=True))
    fixed = dict(zip(names.inputs, textbook.inputs.values(), strict=True))
    point = fl.trim(cell.model, guess=guess, fixed=fixed)
    moved = np.array([point[c.name] - c.value for c in names.coordinates])
    moved_states = dict(zip(textbook.states, np.linalg.solve(names.S, moved), strict=True))
    return [
        f"trim ends at {state} = {value + moved_states[state]:.12g}, not {value:.12g}"
        for state, value in textbook.states.items()
        if state not in textbook.undetermined and abs(moved_states[state]) > POINT * max(1.0, abs(value))
    ]


def _compare_trim_of_plant(cell: Cell) -> list[str]:
    """Compare the equilibrium of the plant of a sampled loop, x = 0 with u = 0."""
    state = cell.states["x"].name if "x" in cell.states else "x"
    point = fl.trim(cell.model, guess={state: 0.4}, fixed={cell.inputs.get("u", "u"): 0.0})
    return [] if abs(point[state]) <= POINT else [f"trim ends at {state} = {point[state]:.12g}, not 0"]


def _compare_margins(cell: Cell, names: Names) -> list[str]:
    """Compare the margins of the loop around the model."""
    textbook = names.textbook
    right = textbook.margins
    assert right is not None
    if "sample_time" in textbook.controller:
        loop = fl.loop_transfer(cell.model, f"plant.{cell.inputs.get('u', 'u')}")
    elif cell.model.constraints.prescribing:
        loop = _loop_of_linear_model(cell, names)
    else:
        gain = control.ss([], [], [], [[textbook.controller["kp"]]], inputs=["e"], outputs=["c"])
        members = {"plant": cell.model, "regulator": gain}
        wires = [(f"plant.{names.outputs[0]}", "regulator.e", -1.0), ("regulator.c", f"plant.{names.inputs[0]}")]
        system = fl.connect(members, wires)
        # The states of the textbook are kept; the states that depend on them and on the loop are solved for.
        point = fl.operating_point(system, {f"plant.{c.name}": c.value for c in names.coordinates})
        loop = fl.loop_transfer(system, "regulator.e", point)
    margins = fl.design.margins(loop)
    differences = [
        f"the gain margin is {stated:.12g}, not {bound:.12g}"
        for stated, bound in zip(margins.gain, right.gain, strict=True)
        if not math.isclose(stated, bound, rel_tol=POINT, abs_tol=POINT)
    ]
    if right.phase is not None and abs(margins.phase - right.phase) > POINT * right.phase:
        differences.append(f"the phase margin is {margins.phase:.12g} degrees, not {right.phase:.12g}")
    return differences


def _loop_of_linear_model(cell: Cell, names: Names) -> fl.LinearModel:
    """Return L of a plant with an input that prescribes a motion: no wire may end there without its derivative."""
    plant = fl.linearize(cell.model, independent=names.states, inputs=names.inputs[:1], outputs=names.outputs[:1])
    kp = names.textbook.controller["kp"]
    return replace(plant, C=-kp * plant.C, D=-kp * plant.D)
