"""Discrete linear models of connected systems, from matrices of a step that depend on the linear members."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag

from fmilin.composition.master import LinearizedMember, OneStep, output_name
from fmilin.composition.system import ConnectedModel
from fmilin.composition.system_declaration import qualify
from fmilin.diagnostics import Remark
from fmilin.linear_model.builder import IndependentCoordinates, LinearMatrices, build_matrices, name_point
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import OperatingPoint
from fmilin.signals import Signal, Signals


@dataclass(frozen=True)
class DiscreteSystem:
    """A connected system at a point with its linearized members, of which a step becomes a linear model."""

    model: ConnectedModel
    point: OperatingPoint
    plant: LinearModel  # of which accuracy, method and warnings are those of the result
    members: Sequence[LinearizedMember]  # in the order of the model
    sample_time: float  # in seconds
    text: str  # says what the step is

    def build(self, compute: Callable[[Sequence[LinearizedMember]], OneStep]) -> LinearModel:
        """Return the linear model of the step that a function computes of members.

        Errors are the change of the step when all entries of the members are off by theirs.
        """
        step = compute(self.members)
        perturbed = compute([LinearizedMember(m.name, _perturb_member(m.linear)) for m in self.members])
        nz, nu = len(step.states), len(self.model.inputs)
        states, outputs = np.abs(perturbed.states - step.states), np.abs(perturbed.outputs - step.outputs)
        y, u = slice(nz), slice(nz, nz + nu)
        matrices = step.states[:, y], step.states[:, u], step.outputs[:, y], step.outputs[:, u]
        errors = states[:, y], states[:, u], outputs[:, y], outputs[:, u]
        return self._assemble(step.held_outputs, LinearMatrices(*matrices, step.states[:, -1], *errors))

    def _assemble(self, held_outputs: Sequence[str], matrices: LinearMatrices) -> LinearModel:
        T = block_diag(np.zeros((0, 0)), *(m.linear.T for m in self.members))
        T = np.hstack((T, np.zeros((len(T), len(held_outputs)))))
        coordinates = [
            replace(s, name=qualify(m.name, s.name), aliases=()) for m in self.members for s in m.linear.states
        ]
        taken = {s.name for s in coordinates}
        memories = [Signal(name if name not in taken else f"held({name})") for name in held_outputs]
        full_states = [
            replace(s, name=qualify(m.name, s.name), aliases=()) for m in self.members for s in m.linear.full_states
        ]
        at = self.model.coupling.settle(self.point.time, self.point.states, self.point.inputs)
        names = [output_name(self.model, j) for j in range(self.model.coupling.size[2])]
        values = np.array([at.outputs[names.index(name)] for name in held_outputs], dtype=np.float64)
        y0, accuracy = np.concatenate([*(m.linear.y0 for m in self.members), values]), self.plant.accuracy
        independent = IndependentCoordinates(
            Signals([*coordinates, *memories]), Signals(full_states), y0, T, np.zeros_like(T),
            self.plant.method.coordinates, accuracy.conditioning, accuracy.constraint_residual,
        )  # fmt: skip
        method = self.plant.method.derivatives, self.plant.method.evaluations, self.plant.method.products
        outputs = self.model.evaluate(self.point.time, self.point.states, self.point.inputs).outputs
        point = replace(
            name_point(self.model, self.point, outputs),
            states={qualify(m.name, n): v for m in self.members for n, v in m.linear.point.states.items()},
            parameters=self.plant.point.parameters,
        )
        remarks = (Remark("way", self.text), *self.plant.warnings)
        return build_matrices(self.model, independent, matrices, point, method, remarks, sample_time=self.sample_time)


def _perturb_member(linear: LinearModel) -> LinearModel:
    """Return a member with derivatives that are wrong by their errors; an output without feedthrough gets none."""
    moved = {name: getattr(linear, name) + getattr(linear.errors, name) for name in "ABCD"}
    return replace(linear, **moved | {"D": np.where(linear.D == 0.0, 0.0, moved["D"])})
