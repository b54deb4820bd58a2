"""The equations of a mechanism for the shell of native models: its signals, its constraints, and values on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Self

import numpy as np

from fmilin.constraints.declared import Constraint
from fmilin.constraints.expressions import Expression
from fmilin.errors import ModelError
from fmilin.model.interface import ModelInfo, SecondOrderForm
from fmilin.models.mechanism.closure import Closure
from fmilin.models.mechanism.description import MechanismDescription
from fmilin.models.mechanism.elements import Sensor
from fmilin.models.mechanism.independence import independence_of, require_mass
from fmilin.models.mechanism.kinematics import coordinate_columns, coordinate_rates, displacement_of
from fmilin.models.mechanism.outputs import Outputs
from fmilin.models.mechanism.parameters import changed, parameters_of
from fmilin.models.mechanism.quantities import available, input_signals, state_signals
from fmilin.models.mechanism.remarks import redundant_remarks, vanishing_remarks
from fmilin.models.mechanism.screws import Array
from fmilin.models.mechanism.second_order_form import accelerations_along, taken_apart
from fmilin.models.mechanism.system import Solution, State, System
from fmilin.models.shell import AdjustableEngine, Evaluator, Quantity
from fmilin.signals import FloatArray

__all__ = ["MechanismEngine", "MechanismEvaluator"]


class MechanismEngine(AdjustableEngine):
    """A described mechanism.

    Parameters
    ----------
    description : MechanismDescription

    Attributes
    ----------
    description : MechanismDescription
    independence : Independence
        Which constraints say something, and which are independent.

    Raises
    ------
    ModelError
        When nothing can move, or a freedom moves no mass.
    """

    batches = True

    def __init__(self, description: MechanismDescription) -> None:
        system = System(description)
        if not system.tree.n:
            raise ModelError(f"In the mechanism '{description.name}' nothing can move: all its joints are fixed.")
        q = state_signals(system).starts[: system.tree.n_q]
        self.description, self.independence = description, independence_of(system, q)
        self.system = system = System(description, self.independence.vanishing)
        require_mass(system, self.independence, q)
        self.info = ModelInfo(description.name)
        self.states, self.inputs = state_signals(system), input_signals(system)
        self.outputs = tuple(sensor.name for sensor in description.sensors)
        self.constraints = _constraints_of(system)
        self.independent = tuple(description.independent)
        self.parameters = parameters_of(description)
        found = self.independence
        self.notes = (*description.remarks, *vanishing_remarks(found), *redundant_remarks(system, found))

    @cached_property
    def available(self) -> Mapping[str, Quantity]:
        """Sensors, states, inputs and rates; frames of bodies, lengths of springs, gaps of loops, energies."""
        return available(self.system, self.states, self.inputs)

    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the mechanism with other masses, springs, lengths or gravity."""
        return type(self)(changed(self.description, values))

    def evaluator(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> MechanismEvaluator:
        """Return what computes these quantities.

        Raises
        ------
        ModelError
            When an output is a reaction that rigid bodies do not determine.
        """
        for quantity in outputs:
            self._require_determined(quantity)
        return MechanismEvaluator(
            System(self.description, self.independence.vanishing), self.independence.all, outputs, observed
        )

    def _require_determined(self, output: Quantity) -> None:
        source = output.source
        if not isinstance(source, Sensor) or source.quantity != "reaction":
            return
        if (source.of, source.coordinate + 1) in self.independence.undetermined:
            raise ModelError(
                f"The output '{output.signal.name}' is not determined: the constraints of '{source.of}' are redundant, "
                "and rigid bodies do not say how they share their load. Use a loop with fewer constraints "
                "(spherical or point_on_line instead of revolute, say), or leave the output out."
            )


class MechanismEvaluator(Evaluator):
    """Outputs and observed quantities of a mechanism.

    Parameters
    ----------
    system : System
        With markers for these quantities and nothing else.
    used : array of int
        The independent constraints.
    outputs, observed : sequence of Quantity

    Attributes
    ----------
    outputs, observed : Outputs
    closure : Closure or None
        What constraints observe, without dynamics.
    """

    def __init__(self, system: System, used: Array, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> None:
        self.system, self._used = system, used
        self.outputs, self.observing = Outputs(system, outputs), Outputs(system, observed)
        system.finish()
        self.closure = Closure.of(system, observed)

    def state(self, x: Array, u: Array) -> State:
        """Return what x (..., N) and all inputs u (..., nu) determine without solving."""
        n_q = self.system.tree.n_q
        return self.system.state(x[..., :n_q], x[..., n_q:], u)

    def solution(self, x: Array, u: Array) -> Solution:
        """Return accelerations and multipliers, with everything on the way.

        Raises
        ------
        NumericalError
            When a freedom moves no mass at this configuration.
        """
        return self.system.solve(self.state(x, u), self._used)

    def values(self, solution: Solution) -> tuple[Array, Array, Array]:
        """Return rates, outputs and observed quantities at a solution."""
        state = solution.state
        rates = np.concatenate((coordinate_rates(self.system.tree, state.q, state.v), solution.v_dot), axis=-1)
        return rates, self.outputs.values(solution), self.observing.values(solution)

    def visit(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return rates, outputs and observed quantities at a point, or at many: x (..., N), u (..., nu)."""
        del t
        return self.values(self.solution(x, u))

    def slopes(
        self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the exact derivatives along the columns of dx (N, k) and du (nu, k)."""
        del t
        system, n_q = self.system, self.system.tree.n_q
        solution = self.solution(x, u)
        columns = system.columns(solution)
        q, v = solution.state.q, solution.state.v
        dq, dv = dx[:n_q], dx[n_q:]
        theta = displacement_of(system.tree, q, dq)
        dv_dot, dl = accelerations_along(solution, columns, theta, dv, du)
        E, E_q = coordinate_columns(system.tree, q, v)
        out, dz = (
            o.q @ dq + o.theta @ theta + o.v @ dv + o.v_dot @ dv_dot + o.multipliers @ dl + o.u @ du
            for o in (self.outputs.columns(solution, columns), self.observing.columns(solution, columns))
        )
        return np.concatenate((E_q @ dq + E @ dv, dv_dot)), out, dz

    def observed(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Return gaps and slips from positions and velocities alone; None when something else is observed."""
        del t, u
        n_q = self.system.tree.n_q
        return None if self.closure is None else self.closure.values(x[..., :n_q], x[..., n_q:])

    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm | None:
        """Return M, G and the forces at a point, also where G loses rank; None with quaternions, wheels or skates."""
        del t
        system = self.system
        if len(system.tree.balls) or system.m_q < len(system.bonds):
            return None
        return taken_apart(system, self.outputs, self.state(x, u))


def _constraints_of(system: System) -> tuple[Constraint, ...]:
    """Return the loops, wheels and skates, then the lengths of quaternions."""
    found = []
    for bond in system.bonds:
        name = f"{bond.of}[{bond.index}]"
        slip = Expression.variable(f"{bond.of}.slip[{bond.index}]")
        if bond.level == "velocity":
            found.append(Constraint(slip, name, "velocity"))
            continue
        gap = Expression.variable(f"{bond.of}.gap[{bond.index}]")
        found.append(Constraint(gap, name, "position", rate=slip))
    names = system.tree.state_names[0]
    for joint, coordinates in system.tree.coordinates_of.items():
        if coordinates and int(coordinates[-1]) in system.tree.ball_coordinates:
            e = [f"`{names[i]}`" for i in coordinates[-4:]]
            text = " + ".join(f"{a}^2" for a in e)
            name = f"length of the quaternion of {joint}"  # its rate is zero by itself: nothing is hidden behind it
            found.append(Constraint.from_text(f"({text} - 1)/2", name=name, level="velocity"))
    return tuple(found)
