"""Prescribed motions: joints that follow inputs, a moving ground under a wheel, a shaker, a driven crank.

Position, velocity and acceleration of such a joint are inputs, and it has no states. The equations are affine in its
driving force: with v_j' = alpha + beta f, f = beta^-1 (a - alpha) and df = beta^-1 (da - d alpha - d(beta) f).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from fmilin.constraints.declared import Constraint
from fmilin.constraints.expressions import add_driving_inputs
from fmilin.errors import ModelError
from fmilin.model.interface import ModelInfo
from fmilin.models.delayed_model import DelayedModel, delay_inputs
from fmilin.models.mechanism.loop_assembly import assemble
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.mechanism_elements import JointForce, Motion
from fmilin.models.mechanism.mechanism_engine import MechanismEngine
from fmilin.models.mechanism.mechanism_evaluator import MechanismQuantities
from fmilin.models.mechanism.mechanism_model import Mechanism, require_no_delays
from fmilin.models.mechanism.parts import Joint
from fmilin.models.native_engine import NativeEngine, Quantity, Values
from fmilin.models.native_model import NativeModel
from fmilin.signals import FloatArray, Signal, Signals, rate_unit

MAX_DRIVE_CONDITION_NUMBER = 1e12  # condition of d(accelerations of driven joints)/d(their forces)
LOOP_ENTRY_TOLERANCE = 1e-9  # entries of G above this belong to joints that loops, wheels or couplings tie to others
ENERGIES = ("kinetic_energy", "energy")


class MovedMechanism(NativeModel):
    """A mechanism some joints of which are moved by inputs: position, velocity (``.v``) and acceleration (``.a``).

    ``MOTION.force`` is an output: the force or torque that moves the joint. Whoever simulates gives the three inputs
    so that they belong to each other; a transfer function from the motion is that of the first, plus s times that of
    the second, plus s^2 times that of the third.

    >>> import fmilin as fl
    >>> from fmilin.models.mechanism import Body, Joint, Motion, MovedMechanism, MechanismDescription
    >>> bodies = [Body("table", 1.0), Body("mass", 2.0)]
    >>> joints = [Joint("shaker", "prismatic", "ground", "table"),
    ...           Joint("spring", "prismatic", "table", "mass", stiffness=8.0)]
    >>> description = MechanismDescription("m", bodies, joints, inputs=[Motion("z", "shaker")], gravity=(0, 0, 0))
    >>> fl.linearize(MovedMechanism(description)).inputs.names
    ('z', 'z.v', 'z.a')
    """

    engine: MovedEngine

    def __init__(self, description: MechanismDescription) -> None:
        require_no_delays(description)
        super().__init__(MovedEngine(description))


def build_model(description: MechanismDescription) -> Mechanism | MovedMechanism | DelayedModel:
    """Return the model of a description, with motions and delays of inputs or without.

    >>> import fmilin as fl
    >>> from fmilin.models.mechanism import Body, Joint, JointForce, MechanismDescription, build_model
    >>> cart, rail = Body("cart", 2.0), Joint("rail", "prismatic", "ground", "cart", stiffness=8.0)
    >>> push = JointForce("push", "rail", delay=0.02)
    >>> fl.linearize(build_model(MechanismDescription("cart", [cart], [rail], inputs=[push]))).delays
    {'push': 0.02}
    """
    moved = any(isinstance(i, Motion) for i in description.inputs)
    undelayed = description.without_delays()
    model = MovedMechanism(undelayed) if moved else Mechanism(undelayed)
    delays = description.input_delays
    return delay_inputs(model, delays) if delays else model


@dataclass(frozen=True, eq=False)
class MovedQuantities:
    """Outputs and observed quantities; those that the mechanism inside computes as it prepares them."""

    outputs: Sequence[Quantity]
    observed: Sequence[Quantity]
    inner: MechanismQuantities


class MovedEngine(NativeEngine[MovedQuantities]):
    """Rates and quantities of a mechanism with the driving forces that give its driven joints their accelerations."""

    autonomous = True
    may_wrap = False

    def __init__(self, description: MechanismDescription) -> None:
        self.description, self.info = description, ModelInfo(description.name)
        self.motions = [i for i in description.inputs if isinstance(i, Motion)]
        self.inner, self.massless = _drive_by_forces(description, self.motions)
        tree = self.inner.system.tree
        joints = [motion.joint for motion in self.motions]
        self.q = np.array([tree.coordinates_of[j][0] for j in joints], dtype=np.intp)
        self.v = np.array([tree.n_q + tree.speeds_of[j][0] for j in joints], dtype=np.intp)
        n = len(self.inner.states)
        self.free_states = np.setdiff1d(np.arange(n), [*self.q, *self.v])
        self.states = Signals(self.inner.states[int(i)] for i in self.free_states)
        self.force_input_count = len(self.inner.inputs) - len(self.motions)
        first = self.force_input_count + 3 * np.arange(len(self.motions))
        self._positions, self._speeds, self._accelerations = first, first + 1, first + 2
        self.inputs = Signals([*self.inner.inputs][: self.force_input_count] + self._motion_signals())
        self.outputs, self.constraints, self.notes = (
            self.inner.outputs,
            self._list_moving_constraints(),
            self.inner.notes,
        )
        self._solve_driving_forces(
            self._plain, 0.0, self.states.starts, self.inputs.starts
        )  # rejects joints that cannot be driven

    def _list_moving_constraints(self) -> tuple[Constraint, ...]:
        """Return the constraints, named after the motions that move the manifold where they drive a part of a loop."""
        system, x = self.inner.system, self.inner.states.starts
        q, v, _ = system.parts(x)
        shifts = np.random.default_rng(1877).uniform(-0.1, 0.1, (2, len(q))) * [[0], [1]]
        G = np.max([np.abs(system.state(q + s, v, np.zeros(system.nu)).G) for s in shifts], axis=0)
        constraints = list(self.inner.constraints)
        for i, moves in enumerate(G[:, self.v - system.tree.n_q] > LOOP_ENTRY_TOLERANCE):
            names = [motion.name for motion, through in zip(self.motions, moves, strict=True) if through]
            constraint, rates = constraints[i], [n for name in names for n in (name, f"{name}.v")]
            if constraint.rate is None:  # of velocities alone
                constraints[i] = replace(constraint, expression=add_driving_inputs(rates, constraint.expression))
            else:
                gap, slip = add_driving_inputs(names, constraint.expression), add_driving_inputs(rates, constraint.rate)
                constraints[i] = replace(constraint, expression=gap, rate=slip)
        return tuple(constraints)

    def _motion_signals(self) -> list[Signal]:
        """Return position, velocity and acceleration of each motion."""
        signals = []
        for motion, q, v in zip(self.motions, self.q, self.v, strict=True):
            position, speed = self.inner.states[int(q)], self.inner.states[int(v)]
            name, joint, a = motion.name, motion.joint, motion.acceleration
            signals += [
                Signal(name, position.unit, motion.nominal, position.start, f"position of {joint}"),
                Signal(f"{name}.v", speed.unit, None, speed.start, f"velocity of {joint}"),
                Signal(f"{name}.a", rate_unit(speed.unit), None, a, f"acceleration of {joint}"),
            ]
        return signals

    @cached_property
    def available(self) -> Mapping[str, Quantity]:
        """The quantities of the mechanism, and the motions; the driving forces among them."""
        numbers = {int(i): k for k, i in enumerate(self.free_states)}
        quantities = {}
        for name, quantity in self.inner.available.items():
            source: tuple[str, Any] = ("inner", quantity)
            match quantity.source:
                case ("state", i) if i in numbers:
                    source = ("state", numbers[i])
                case ("input", i):
                    source = ("input", i) if i < self.force_input_count else ("force", i - self.force_input_count)
            if not (self.massless and name in ENERGIES):  # those of the inertia that stands in for none
                quantities[name] = Quantity(quantity.signal, source)
        for i, signal in enumerate(self.inputs):
            quantities[signal.name] = Quantity(signal, ("input", i))
        return quantities

    def resolve_limits(self, t: float, x: FloatArray, u: FloatArray) -> Self:
        """Return the mechanism with limits opened at which controls stand, and diagnostics on what is saturated."""
        X, f, _ = self._solve_driving_forces(self._plain, t, x, u)
        inner = self.inner.resolve_limits(t, X, self._inputs(u, f))
        if inner is self.inner:
            return self
        if id(inner) not in self._seen:
            other = self._seen[id(inner)] = copy(self)
            for cached in ("available", "point_codes", "_seen", "_plain"):
                other.__dict__.pop(cached, None)
            other.inner, other.notes, other.names_limits = inner, inner.notes, True
        return self._seen[id(inner)]

    @cached_property
    def _seen(self) -> dict[int, Self]:
        """What :meth:`seen_at` has returned, by the mechanism inside, which it keeps alive."""
        return {}

    @cached_property
    def _plain(self) -> MechanismQuantities:
        """No outputs and nothing observed."""
        return self.inner.select((), ())

    def select(self, outputs: Sequence[Quantity], observed: Sequence[Quantity]) -> MovedQuantities:
        """Let the mechanism inside prepare its quantities."""
        inner = ([q.source[1] for q in quantities if q.source[0] == "inner"] for quantities in (outputs, observed))
        return MovedQuantities(outputs, observed, self.inner.select(*inner))

    def evaluate(self, selection: MovedQuantities, t: float, x: FloatArray, u: FloatArray) -> Values:
        """Return rates, outputs and observed quantities."""
        X, f, _ = self._solve_driving_forces(selection.inner, t, x, u)
        values = self.inner.evaluate(selection.inner, t, X, self._inputs(u, f))
        return self._merge_values(selection, values, (x, u, self._forces(f, u[self._accelerations])))

    def differentiate(
        self, selection: MovedQuantities, t: float, x: FloatArray, u: FloatArray, dx: FloatArray, du: FloatArray
    ) -> Values:
        """Return the exact derivatives along the columns of dx and du."""
        X, f, beta = self._solve_driving_forces(selection.inner, t, x, u)
        U, k = self._inputs(u, f), du.shape[1]
        dX, dU = self._states(dx, du), self._inputs(du, np.zeros((len(f), k)))
        unit = self._inputs(np.zeros((len(u), len(f))), np.eye(len(f)))
        directions = np.hstack((dX, np.zeros((len(X), len(f))))), np.hstack((dU, unit))
        slopes = self.inner.differentiate(selection.inner, t, X, U, *directions)
        df = self._force(beta, du[self._accelerations] - slopes[0][self.v, :k])
        rates, outputs, observed = (a[:, :k] + a[:, k:] @ df for a in slopes)
        forces = self._forces(df, du[self._accelerations])
        return self._merge_values(selection, (rates, outputs, observed), (dx, du, forces))

    def _solve_driving_forces(
        self, inner: MechanismQuantities, t: float, x: FloatArray, u: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return all states, the driving forces and beta."""
        X, k = self._states(x, u), len(self.motions)

        def accelerations(forces: FloatArray) -> FloatArray:
            return self.inner.evaluate(inner, t, X, self._inputs(u, forces))[0][self.v]

        alpha = accelerations(np.zeros(k))
        beta = np.stack([accelerations(force) - alpha for force in np.eye(k)], axis=1)
        return X, self._force(beta, u[self._accelerations] - alpha), beta

    def _force(self, beta: FloatArray, accelerations: FloatArray) -> FloatArray:
        """Return f of beta f = accelerations."""
        if not np.linalg.cond(beta) < MAX_DRIVE_CONDITION_NUMBER:
            names = "', '".join(motion.name for motion in self.motions)
            raise ModelError(
                f"The motions '{names}' are not possible at this point: a loop, a wheel or a coupling connects or "
                "fixes the driven joints, or the loop is at a dead point. Drive fewer joints, or move the point."
            )
        force: FloatArray = np.linalg.solve(beta, accelerations).astype(np.float64)
        return force

    def _states(self, x: FloatArray, u: FloatArray) -> FloatArray:
        X = np.zeros((len(self.inner.states), *x.shape[1:]))
        X[self.free_states], X[self.q], X[self.v] = x, u[self._positions], u[self._speeds]
        return X

    def _inputs(self, u: FloatArray, f: FloatArray) -> FloatArray:
        return np.concatenate((u[: self.force_input_count], f))

    def _forces(self, f: FloatArray, a: FloatArray) -> FloatArray:
        """Return the driving forces without what the inertia takes that stands in for none."""
        return f - a if self.massless else f

    def _merge_values(
        self, selection: MovedQuantities, inner: Values, moved: tuple[FloatArray, FloatArray, FloatArray]
    ) -> Values:
        """Return rates, outputs and observed quantities from those inside and from states, inputs and forces."""
        columns = dict(zip(("state", "input", "force"), moved, strict=True))

        def merge(quantities: Sequence[Quantity], values: FloatArray) -> FloatArray:
            rows = iter(values)
            chosen = [next(rows) if q.source[0] == "inner" else columns[q.source[0]][q.source[1]] for q in quantities]
            return np.array(chosen).reshape(len(quantities), *values.shape[1:])

        rates, outputs, observed = inner
        return rates[self.free_states], merge(selection.outputs, outputs), merge(selection.observed, observed)


def _drive_by_forces(description: MechanismDescription, motions: list[Motion]) -> tuple[MechanismEngine, bool]:
    """Return the mechanism driven by forces instead, and whether an inertia stands in for a mass that it lacks."""
    starts = {motion.joint: motion for motion in motions}
    forces = [JointForce(f"{motion.name}.force", motion.joint) for motion in motions]
    inputs = [*(i for i in description.inputs if not isinstance(i, Motion)), *forces]

    def joints(inertia: float) -> list[Joint]:
        changed = list(description.joints)
        for i, joint in enumerate(changed):
            if motion := starts.get(joint.name):
                moved = replace(joint, position=motion.start, velocity=motion.velocity)
                changed[i] = replace(moved, armature=joint.armature[0] + inertia)
        return changed

    fixed_names = [name for j in description.joints if j.name in starts for name in sum(j.state_names, ())]
    # Above a point mass a massless body has its inertia at some positions only.
    frames = {body.name for body in description.bodies if body.mass is None}
    bare = any(joint.child in frames for joint in description.joints if joint.name in starts)
    for massless in (True,) if bare else (False, True):
        driven = replace(description, joints=joints(float(massless)), inputs=inputs, independent=())
        try:
            engine = MechanismEngine(driven)
        except ModelError:
            if massless:
                raise
            continue
        if driven.loops or driven.couplings or driven.wheels:
            engine = MechanismEngine(assemble(driven, fixed_names).description)
        return engine, massless
    raise AssertionError  # the loop returns or raises
