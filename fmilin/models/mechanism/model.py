"""A mechanism as a Model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from fmilin.constraints.declared import Constraint, Constraints
from fmilin.constraints.expressions import Expression
from fmilin.errors import ModelError, UnknownNameError
from fmilin.linear_model.model import LinearModel
from fmilin.model.interface import Copy, Evaluation, Model, ModelInfo, OperatingPoint, SecondOrderForm
from fmilin.models.mechanism.closure import Closure
from fmilin.models.mechanism.description import MechanismDescription
from fmilin.models.mechanism.elements import Sensor
from fmilin.models.mechanism.independence import Independence, independence_of, require_mass
from fmilin.models.mechanism.kinematics import coordinate_columns, coordinate_rates, displacement_of
from fmilin.models.mechanism.outputs import OutputColumns, Outputs
from fmilin.models.mechanism.parameters import changed, parameters_of
from fmilin.models.mechanism.quantities import Entry, available, input_signals, state_signals
from fmilin.models.mechanism.remarks import redundant_remarks, vanishing_remarks
from fmilin.models.mechanism.screws import Array
from fmilin.models.mechanism.second_order_form import accelerations_along, taken_apart
from fmilin.models.mechanism.system import Columns, Solution, State, System
from fmilin.signals import FloatArray, Signals

if TYPE_CHECKING:
    from fmilin.codegen.system import SymbolicSystem
    from fmilin.models.mechanism.linear import Matrices

__all__ = ["Mechanism"]


@dataclass(frozen=True)
class _Choice:
    inputs: tuple[int, ...] | None = None
    outputs: tuple[str, ...] | None = None
    constraints: tuple[Constraint, ...] | None = None


class Mechanism(Model):
    """Bodies, joints and loops with the dynamics and the exact linearization of Spencer (thesis), chapter 4.

    The states are the positions of all joints of the open tree, in the order in which the joints were given, then
    their velocities. The loops, wheels and skates, and the unit length of quaternions, are constraints.

    Parameters
    ----------
    description : MechanismDescription

    Attributes
    ----------
    description : MechanismDescription
    independence : Independence
        Which constraints say something, and which are independent.
    notes : tuple of str
        What a user should know: remarks of the description, redundant constraints.

    Raises
    ------
    ModelError
        When nothing can move, or a freedom moves no mass.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.models.mechanism import Body, Joint, Mechanism, MechanismDescription
    >>> rod = Body("rod", 1.0, center=(0, 0, -0.75), inertia=(0, 0, 0))
    >>> pin = Joint("pin", "revolute", "ground", "rod", axis=(0, 1, 0))
    >>> pendulum = Mechanism(MechanismDescription("pendulum", [rod], [pin], gravity=(0, 0, -12)))
    >>> [complex(round(s.real, 9), round(s.imag, 9)) for s in fl.linearize(pendulum).eigenvalues()]
    [-4j, 4j]
    """

    batches = True

    def __init__(self, description: MechanismDescription) -> None:
        self._set_up(description, _Choice(), None)

    def _set_up(self, description: MechanismDescription, choice: _Choice, known: Independence | None) -> None:
        self.description, self._choice = description, choice
        system = System(description, known.vanishing if known else ())
        if not system.tree.n:
            raise ModelError(f"In the mechanism '{description.name}' nothing can move: all its joints are fixed.")
        if known is None:
            q = state_signals(system).starts[: system.tree.n_q]
            known = independence_of(system, q)
            system = System(description, known.vanishing)
            require_mass(system, known, q)
        self._system, self.independence = system, known
        self.info = ModelInfo(description.name)
        self.states, every_input = state_signals(system), input_signals(system)
        self._kept = list(range(len(every_input)) if choice.inputs is None else choice.inputs)
        self._held = every_input.starts
        self.inputs = every_input.select(self._kept)
        self._available = available(system, self.states, every_input)
        names = [s.name for s in description.sensors] if choice.outputs is None else list(choice.outputs)
        self.start = OperatingPoint(0.0, self.states.starts, self.inputs.starts)
        self.notes = (*description.remarks, *vanishing_remarks(known), *redundant_remarks(system, known))
        self.parameters = parameters_of(description)
        declared = self._own_constraints() if choice.constraints is None else choice.constraints
        self.constraints = Constraints(
            declared,
            self.states,
            self.inputs,
            parameters=self.parameters,
            other=lambda name: name if name in self._available else None,
            known=self._available,
        )
        entries = [self._available[n] for n in (*names, *self.constraints.observed)]
        self.outputs = Signals(entry.signal for entry in entries[: len(names)])
        self._require_determined(names)
        self._outputs = Outputs(system, entries[: len(names)])
        self._observed = Outputs(system, entries[len(names) :])
        system.finish()
        self._closure = Closure.of(system, entries[len(names) :])
        self.copies = _copies(names, self.states, self.inputs)
        self.independent = tuple(description.independent)

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """Return the mechanism that a TOML file describes (``docs/mechanism.md``), its loops closed.

        Parameters
        ----------
        path : str or Path

        Raises
        ------
        ModelError
            When the file cannot be read or something in it is wrong; with the line and the part.
        ConstraintError
            When a loop cannot be closed from the positions in the file.
        """
        from fmilin.models.mechanism.files import mechanism_from

        return mechanism_from(cls, Path(path))

    @classmethod
    def from_urdf(cls, path: str | Path, additions: str | Path | None = None) -> Self:
        """Return the mechanism of a URDF file, with the loops and whatever else a TOML file adds.

        Parameters
        ----------
        path : str or Path
        additions : str or Path, optional
            The TOML file; ``STEM.fmilin.toml`` beside the URDF file when left out.

        Raises
        ------
        ModelError, ConstraintError
            As :meth:`from_toml`.
        """
        from fmilin.models.mechanism.files import mechanism_from

        return mechanism_from(cls, Path(path), None if additions is None else Path(additions))

    # -- the Model -----------------------------------------------------------------------------------

    def evaluate(self, t: float, x: FloatArray, u: FloatArray) -> Evaluation:
        """Return derivatives, outputs and residuals at a point, or at many: x (..., N), u (..., nu).

        Raises
        ------
        NumericalError
            When a freedom moves no mass at this configuration.
        """
        solution = self.solution(x, u)
        state = solution.state
        rates = np.concatenate((coordinate_rates(self._system.tree, state.q, state.v), solution.v_dot), axis=-1)
        residuals = self.constraints.residuals(t, x, u, self._observed.values(solution))
        return Evaluation(rates, self._outputs.values(solution), residuals)

    def products(self, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray) -> Evaluation:
        """Return exact directional derivatives along the columns of dx (N, k) and du (nu, k)."""
        system = self._system
        solution = self.solution(x, u)
        columns = system.columns(solution)
        n_q = system.tree.n_q
        q, v = solution.state.q, solution.state.v
        dq, dv, every_du = dx[:n_q], dx[n_q:], self._every(du.T, zero=True).T
        theta = displacement_of(system.tree, q, dq)
        dv_dot, dl = accelerations_along(solution, columns, theta, dv, every_du)
        E, E_q = coordinate_columns(system.tree, q, v)
        out, dz = (
            o.q @ dq + o.theta @ theta + o.v @ dv + o.v_dot @ dv_dot + o.multipliers @ dl + o.u @ every_du
            for o in (self._outputs.columns(solution, columns), self._observed.columns(solution, columns))
        )
        g = self.constraints.partials(t, x, u, self._observed.values(solution))
        residuals = g.states @ dx + g.inputs @ du + g.observed @ dz
        return Evaluation(np.concatenate((E_q @ dq + E @ dv, dv_dot)), out, residuals)

    def constraint_residuals(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray:
        """Return the residuals alone, at a point or at many; without solving for accelerations where it can be."""
        if self._closure is None:
            return self.evaluate(t, x, u).residuals
        n_q = self._system.tree.n_q
        residuals: FloatArray = self.constraints.residuals(t, x, u, self._closure.values(x[..., :n_q], x[..., n_q:]))
        return residuals

    def second_order_form(self, t: float, x: FloatArray, u: FloatArray) -> SecondOrderForm | None:
        """Return M, G and the forces at a point, also where G loses rank; None with quaternions, wheels or skates."""
        del t
        system = self._system
        if len(system.tree.balls) or system.m_q < len(system.bonds):
            return None
        return taken_apart(system, self._outputs, self.state(x, u), self._kept)

    def with_interface(self, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Mechanism:
        """Return the same mechanism with chosen inputs and outputs; inputs left out keep their start values.

        Beside sensors, states, inputs and ``der(state)`` there are, for every body, its frame's origin
        ``BODY.x .. BODY.z``, ``BODY.vx ..``, ``BODY.ax ..``; ``SPRING.length``; for loops, wheels and skates
        ``LOOP.gap[1]``, ``LOOP.slip[1]`` and ``LOOP.reaction[1]``, ...; and ``kinetic_energy``,
        ``potential_energy``, ``energy``.
        """
        choice = self._choice
        if inputs is not None:
            every = input_signals(self._system)
            choice = replace(choice, inputs=tuple(every.index_of(n, "an input of the mechanism") for n in inputs))
        if outputs is not None:
            for name in outputs:
                if name not in self._available:
                    raise UnknownNameError.among(name, self._available, "an output or another quantity")
            choice = replace(choice, outputs=tuple(outputs))
        return self._changed(self.description, choice, self.independence)

    def with_parameters(self, values: Mapping[str, float]) -> Mechanism:
        """Return the same mechanism with other masses, springs, lengths or gravity, by name: see ``parameters``.

        States and inputs keep their start values; the loops need not be closed there any more.

        Raises
        ------
        UnknownNameError
            When there is no such parameter, with the nearest names.
        ModelError
            When a value is not possible, a negative mass, say.
        """
        known = [*self.parameters, *self.states.names, *self.inputs.names]  # what is unknown may be a misspelled state
        for name in values:
            if name not in self.parameters:
                raise UnknownNameError.among(name, known, "a parameter, state or input of the mechanism")
        return self._changed(changed(self.description, values), self._choice, None) if values else self

    def with_constraints(self, constraints: Sequence[Constraint]) -> Mechanism:
        """Return the same mechanism that declares these constraints; its loops stay closed all the same."""
        return self._changed(self.description, replace(self._choice, constraints=tuple(constraints)), self.independence)

    # -- more about a mechanism ------------------------------------------------------------------------

    def linearize(
        self, point: OperatingPoint | None = None, *, independent: Sequence[str] | None = None
    ) -> LinearModel:
        """Return the linear model by the recursive procedure of Spencer (thesis), section 4.2, exact.

        Parameters
        ----------
        point : OperatingPoint, optional
            On the manifold; where the mechanism starts by default.
        independent : sequence of str, optional
            States to keep, or the positions among them. By default the recommended ones, else those that pivoting
            finds.

        Raises
        ------
        UsageError, UnknownNameError
            When the independent states are unknown or too few or many.
        ConstraintError
            When the point is not on the manifold.
        NumericalError
            When the choice of states is singular, or the configuration is.
        """
        from fmilin.models.mechanism.result import linearize

        return linearize(self, self.start if point is None else point, independent)

    def matrices_along(self, points: Sequence[OperatingPoint], *, independent: Sequence[str] | None = None) -> Matrices:
        """Return A, B, C, D, T, f0 and their parts at many points at once, stacked along the first axis.

        The independent states are those that are named or recommended, else those that pivoting finds at the first
        point; they are the same everywhere. The points are not verified. Arguments and errors as for
        :meth:`linearize`.
        """
        from fmilin.models.mechanism.choosing import choose
        from fmilin.models.mechanism.linear import matrices_of

        x, u = np.stack([p.states for p in points]), np.stack([p.inputs for p in points])
        return matrices_of(self, x, u, choose(self, x[0], u[0], independent))

    def solution(self, x: FloatArray, u: FloatArray) -> Solution:
        """Return accelerations and multipliers, with everything on the way, at x (..., N) and u (..., nu)."""
        return self._system.solve(self.state(x, u), self.independence.all)

    def reactions(self, point: OperatingPoint | None = None) -> dict[str, float]:
        """Return the multipliers of all constraints by name, ``LOOP.reaction[1]``; NaN where they are not determined.

        The bond pushes its second body with -lambda along the direction of the constraint, and pulls the first.
        """
        point = self.start if point is None else point
        found = self.independence
        values = {key: float("nan") for key in found.vanishing}
        multipliers = self.solution(point.states, point.inputs).multipliers.tolist()
        for bond, value in zip(self._system.bonds, multipliers, strict=True):
            key = (bond.of, bond.index)
            values[key] = float("nan") if key in found.undetermined else value
        return {f"{of}.reaction[{index}]": value for (of, index), value in values.items()}

    def symbolic_system(self) -> SymbolicSystem:
        """Return the equations in symbols, as statements of the recursion: what C code and FMUs are made from."""
        from fmilin.models.mechanism.tracing import symbolic_system

        return symbolic_system(self)

    @property
    def system(self) -> System:
        """The equations, for algorithms."""
        return self._system

    @property
    def available(self) -> Mapping[str, Entry]:
        """Everything that may be an output, by name."""
        return self._available

    @property
    def kept_inputs(self) -> list[int]:
        """Which inputs of the description the model's inputs are."""
        return self._kept

    def output_values(self, solution: Solution) -> Array:
        """Return the outputs, shape (..., ny)."""
        return self._outputs.values(solution)

    def observed_values(self, solution: Solution) -> Array:
        """Return what the constraints observe, shape (..., their number)."""
        return self._observed.values(solution)

    def output_columns(self, solution: Solution, columns: Columns) -> OutputColumns:
        """Return the derivatives of the outputs."""
        return self._outputs.columns(solution, columns)

    def coordinate_rates(self, solution: Solution) -> Array:
        """Return q' at a solution."""
        return coordinate_rates(self._system.tree, solution.state.q, solution.state.v)

    # -- parts -----------------------------------------------------------------------------------------

    def _changed(self, description: MechanismDescription, choice: _Choice, known: Independence | None) -> Mechanism:
        model = type(self).__new__(type(self))
        model._set_up(description, choice, known)
        return model

    def state(self, x: Array, u: Array) -> State:
        """Return what x (..., N) and u (..., nu) determine without solving."""
        n_q = self._system.tree.n_q
        return self._system.state(x[..., :n_q], x[..., n_q:], self._every(u))

    def _every(self, u: Array, *, zero: bool = False) -> Array:
        """Return all inputs of the description: the chosen ones, the others at their start values."""
        if len(self._kept) == len(self._held) and self._kept == sorted(self._kept):
            return u
        full = np.zeros((*u.shape[:-1], len(self._held)), dtype=np.result_type(u, np.float64))
        if not zero:
            full[...] = self._held
        full[..., self._kept] = u
        return full

    def _own_constraints(self) -> tuple[Constraint, ...]:
        """Return the loops, wheels and skates, then the lengths of quaternions."""
        system, found = self._system, []
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

    def _require_determined(self, names: Sequence[str]) -> None:
        for name in names:
            source = self._available[name].source
            if not isinstance(source, Sensor) or source.quantity != "reaction":
                continue
            if (source.of, source.coordinate + 1) in self.independence.undetermined:
                raise ModelError(
                    f"The output '{name}' is not determined: the constraints of '{source.of}' are redundant, and "
                    "rigid bodies do not say how they share their load. Use a loop with fewer constraints "
                    "(spherical or point_on_line instead of revolute, say), or leave the output out."
                )


def _copies(names: Sequence[str], states: Signals, inputs: Signals) -> Mapping[int, Copy]:
    of_states = {i: Copy("state", states.positions[n]) for i, n in enumerate(names) if n in states.positions}
    return of_states | {i: Copy("input", inputs.positions[n]) for i, n in enumerate(names) if n in inputs.positions}
