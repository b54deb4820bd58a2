"""The equations of a mechanism as an engine: signals, constraints, and the evaluation of quantities."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from fmilin.codegen.implicit import ImplicitSystem
from fmilin.constraints.declared import Constraint
from fmilin.constraints.expressions import Expression
from fmilin.errors import ModelError
from fmilin.model.equation_forms import SecondOrderForm
from fmilin.model.evaluator import POINTS_AT_ONCE
from fmilin.model.interface import ModelInfo
from fmilin.models.contacts import Contact, Foot
from fmilin.models.mechanism import changes
from fmilin.models.mechanism.independence import (
    analyze_independence,
    choose_preferred_states,
    list_remarks,
    require_mass,
)
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.mechanism_elements import Actuator, Motion, Sensor
from fmilin.models.mechanism.mechanism_evaluator import MechanismQuantities, build_second_order_form, in_graph
from fmilin.models.mechanism.multibody_system import System
from fmilin.models.mechanism.outputs import CONTACT_INDICES_AND_SIGNS, locate_multiplier
from fmilin.models.mechanism.quantities import available, input_signals, state_signals
from fmilin.models.mechanism.symbolic_parameters import list_symbolic_parameters
from fmilin.models.native_engine import AdjustableEngine, NativeEngine, Quantity, Values
from fmilin.signals import FloatArray


class MechanismEngine(NativeEngine[MechanismQuantities], AdjustableEngine):
    """A described mechanism; ``independence``: which constraints say something, and which are independent."""

    autonomous = batches = compilable = True
    may_wrap = False  # sensors of angles go on beyond half a turn
    evaluation_seconds = 3e-4
    ground: Callable[[Sequence[Foot], FloatArray, FloatArray], changes.Stance] | None = None
    """Says where feet touch the ground at a point (x, u); None where nothing is known of a ground."""

    def __init__(self, description: MechanismDescription) -> None:
        if moved := [i.name for i in description.inputs if isinstance(i, Motion)]:
            raise ModelError(f"The input '{moved[0]}' is a motion: make a MovedMechanism of the description.")
        system = System(description)
        q = state_signals(system).starts[: system.tree.n_q]
        self.description, self.independence = description, analyze_independence(system, q)
        self.system = system = System(description, self.independence.vanishing)
        self._tree = system.tree
        require_mass(system, self.independence, q)
        self.info = ModelInfo(description.name)
        self.states, self.inputs = state_signals(system), input_signals(system)
        self.outputs = tuple(sensor.name for sensor in description.sensors)
        self.constraints = _list_constraints(system)
        self.freedoms_known = not self.constraints
        self.independent = tuple(description.independent) or choose_preferred_states(system, self.independence, q)
        self.independent_by_default = not description.independent
        self.parameters = changes.list_parameters(description)
        self.notes = (*description.remarks, *list_remarks(system, self.independence))

    @cached_property
    def system(self) -> System:
        """The equations without outputs."""
        return System(self.description, self.independence.vanishing, self._tree)

    @cached_property
    def available(self) -> Mapping[str, Quantity]:
        """Sensors, states, inputs and rates; frames of bodies, lengths of springs, gaps of loops, energies."""
        return available(self.system, self.states, self.inputs)

    def with_parameters(self, values: Mapping[str, float]) -> Self:
        """Return the mechanism with other values; which constraints are independent changes with geometry alone."""
        description = changes.change_parameters(self.description, values)
        if changes.is_geometric(self.description, values):
            return self._like(description)
        other = copy(self)
        for cached in ("system", "point_codes", "_seen", "_plain"):  # what is available depends on no value
            other.__dict__.pop(cached, None)
        other.description, other.parameters = (
            description,
            {**self.parameters, **{k: float(v) for k, v in values.items()}},
        )
        other._tree = self._tree.with_bodies(description.bodies, self.description.bodies)
        masses = [
            value / (self.parameters[name] or np.nan)
            for name, value in values.items()
            if name.endswith(changes.MASSIVE)
        ]
        if not all(1e-3 < ratio < 1e3 for ratio in masses):
            require_mass(other.system, self.independence, self.states.starts[: self.system.tree.n_q])
        return other

    def resolve_limits(self, t: float, x: FloatArray, u: FloatArray) -> Self:
        """Return the mechanism with limits opened at which controls stand, and diagnostics on what is saturated."""
        ranges = [s.name for s in self.description.sensors if s.limits]
        if not (ranges or any(isinstance(i, Actuator) for i in self.description.inputs)):
            return self
        at, remarks = changes.at_limits(self._plain.system, self._plain.state(x, u))
        if ranges:
            limit_quantities = self.select([self.available[name] for name in ranges], ())
            remarks += limit_quantities.outputs.remarks(limit_quantities.solution(x, u))
        if not remarks:
            return self
        if (at, remarks) not in self._seen:
            other = self._seen[at, remarks] = self._like(changes.open_limits(self.description, at, remarks))
            other.names_limits, other.outputs = True, self.outputs
        return self._seen[at, remarks]

    @cached_property
    def _seen(self) -> dict[tuple[Any, tuple[str, ...]], Self]:
        """What :meth:`seen_at` has returned."""
        return {}

    @cached_property
    def _plain(self) -> MechanismQuantities:
        """No outputs and nothing observed."""
        return self.select((), ())

    def select(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> MechanismQuantities:
        """Return a system with markers for these quantities."""
        for quantity in outputs:
            self._require_determined(quantity)
        system = System(self.description, self.independence.vanishing, self._tree)
        return MechanismQuantities(system, self.independence.all, outputs, observed)

    def evaluate(self, selection: MechanismQuantities, t: float, x: FloatArray, u: FloatArray) -> Values:
        """Return rates, outputs and observed quantities at a point."""
        return selection.values(selection.solution(x, u))

    def evaluate_points(self, selection: MechanismQuantities, t: FloatArray, x: FloatArray, u: FloatArray) -> Values:
        """Return the same at many points, ``POINTS_AT_ONCE`` by one recursion."""
        slices = [slice(i, i + POINTS_AT_ONCE) for i in range(0, len(x), POINTS_AT_ONCE)]
        values = [selection.values(selection.solution(x[batch], u[batch])) for batch in slices]
        rates, outputs, observed = (np.concatenate(part) for part in zip(*values, strict=True))
        return rates, outputs, observed

    def differentiate(
        self, selection: MechanismQuantities, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> Values:
        """Return the exact derivatives along the columns of dx (N, k) and du (nu, k)."""
        return selection.derivatives(selection.solution(x, u), dx, du)

    def observe(self, selection: MechanismQuantities, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Return gaps and slips from positions and velocities alone; None when something else is observed."""
        closure = selection.closure
        return None if closure is None else closure.values(*selection.system.parts(x)[:2])

    def differentiate_observed(
        self, selection: MechanismQuantities, t: float, x: FloatArray, u: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return gaps and slips with their gradients from positions and velocities alone, also at many points."""
        closure = selection.closure
        return None if closure is None else closure.values_and_gradient(*selection.system.parts(x)[:2])

    def second_order_form(
        self, selection: MechanismQuantities, t: float, x: FloatArray, u: FloatArray
    ) -> SecondOrderForm | None:
        """Return M, G (of any rank) and the forces; None with quaternions, wheels, skates or activations."""
        system = selection.system
        if len(system.tree.balls) or system.activation_names or system.m_q < len(system.loop_constraints):
            return None
        return build_second_order_form(system, selection.outputs, selection.state(x, u))

    @property
    def contacts(self) -> Sequence[Contact]:  # type: ignore[override]
        """Feet that are held on the ground."""
        return self.description.contacts

    def held(self, feet: Sequence[Foot], t: float, x: FloatArray, u: FloatArray) -> Self:
        """Return the mechanism with feet held where they are at a point, which becomes its start."""
        # The system's own description has virtual links in addition to the described ones.
        system = System(self.description)
        q, v, a = system.parts(x)
        stance = None if self.ground is None else self.ground(feet, x, u)
        other = self._like(_replace_activations(changes.hold_feet(system, feet, q, v, u, stance=stance), a))
        less = changes.without_undetermined(other.description, other.independence)
        other = other if less is other.description else self._like(less)
        named = [sensor.name for sensor in other.description.sensors]
        other.outputs = (*self.outputs, *(name for name in named if name not in self.outputs))
        return other

    def _like(self, description: MechanismDescription) -> Self:
        """Return the engine of another description that comes from the same place."""
        other = type(self)(description)
        other.info, other.start_points, other.ground = self.info, self.start_points, self.ground
        return other

    def contact_forces(self, t: float, x: FloatArray, u: FloatArray) -> dict[str, FloatArray]:
        """Return force and torque on each foot by its name, shape (3,) or (6,); NaN where they are not determined."""
        solution = self._plain.solution(x, u)
        positions = {(loop.of, loop.index): i for i, loop in enumerate(self.system.loop_constraints)}
        forces = {}
        for contact in self.contacts:
            of = changes.name_foot_loop(contact.foot)
            keys = [((of, index), sign) for index, sign in CONTACT_INDICES_AND_SIGNS[: 6 if contact.foot.flat else 3]]
            forces[contact.foot.name] = np.array(
                [
                    0.0
                    if key in self.independence.vanishing  # joints hold the foot in this direction
                    else np.nan
                    if key in self.independence.undetermined
                    else sign * solution.multipliers[positions[key]]
                    for key, sign in keys
                ]
            )
        return forces

    def in_graph(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> ImplicitSystem:
        """Return the equations as a graph, written down by the recursion."""
        return in_graph(self.select(outputs, observed), self.independence, outputs, observed)

    @cached_property
    def symbolic_parameters(self) -> set[str]:
        """Those that :meth:`in_varied_graph` takes."""
        return list_symbolic_parameters(self.description)

    def in_varied_graph(
        self, outputs: Sequence[Quantity], observed: Sequence[Quantity], parameters: Sequence[str]
    ) -> ImplicitSystem | None:
        """Return the same with symbols for parameters; None where these change constraints, say."""
        if not self.symbolic_parameters.issuperset(parameters):
            return None
        values = {name: self.parameters[name] for name in parameters}
        return in_graph(self.select(outputs, observed), self.independence, outputs, observed, values)

    def _require_determined(self, output: Quantity) -> None:
        source = output.source
        if not isinstance(source, Sensor) or source.quantity not in ("reaction", "contact"):
            return
        if (source.of, locate_multiplier(source)[0]) in self.independence.undetermined:
            raise ModelError(
                f"The output '{output.signal.name}' is not determined: the constraints of '{source.of}' are "
                "redundant, and rigid bodies do not determine how they share the load. Use a loop with fewer "
                "constraints (spherical or point_on_line instead of revolute, say), or leave the output out."
            )


def _replace_activations(description: MechanismDescription, activations: FloatArray) -> MechanismDescription:
    """Return the description with these start values of activations."""
    if not len(activations):
        return description
    values = iter(activations.tolist())
    inputs = [
        replace(i, activation=next(values)) if isinstance(i, Actuator) and i.dynamics != "none" else i
        for i in description.inputs
    ]
    return replace(description, inputs=inputs)


def _list_constraints(system: System) -> tuple[Constraint, ...]:
    """Return the loops, wheels and skates, then the lengths of quaternions."""
    constraints = []
    for loop in system.loop_constraints:
        name = f"{loop.of}[{loop.index}]"
        slip = Expression.variable(f"{loop.of}.slip[{loop.index}]")
        if loop.level == "velocity":
            constraints.append(Constraint(slip, name, "velocity"))
            continue
        gap = Expression.variable(f"{loop.of}.gap[{loop.index}]")
        constraints.append(Constraint(gap, name, "position", rate=slip))
    names = system.tree.state_names[0]
    for joint, coordinates in system.tree.coordinates_of.items():
        if coordinates and int(coordinates[-1]) in system.tree.ball_coordinates:
            e = [f"`{names[i]}`" for i in coordinates[-4:]]
            text = " + ".join(f"{a}^2" for a in e)
            name = f"length of the quaternion of {joint}"  # its rate is zero by itself: nothing is hidden behind it
            constraints.append(Constraint.from_text(f"({text} - 1)/2", name=name, level="velocity"))
    return tuple(constraints)
