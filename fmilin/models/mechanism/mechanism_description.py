"""A mechanism as its builder describes it: bodies in a tree of joints, loops that close it, and what acts on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from fmilin.errors import ModelError, UnknownNameError
from fmilin.models.contacts import Contact
from fmilin.models.mechanism import mechanism_elements
from fmilin.models.mechanism.mechanism_elements import VECTORS, Actuator, Force, JointForce, LineForce, Motion, Torque
from fmilin.models.mechanism.part import Part, Vector, vector
from fmilin.models.mechanism.parts import SPEEDS, Body, Joint, Loop
from fmilin.support.implemented_in import implemented_in
from fmilin.support.table_repr import Sheet, TableRepr

Input = JointForce | Force | Torque | LineForce | Actuator | Motion
INPUTS: Mapping[str, type[Input]] = {
    kind.kind.replace(" ", "_"): kind for kind in (JointForce, Force, Torque, LineForce, Actuator, Motion)
}

PARTS: Mapping[str, type[Part]] = {
    "bodies": Body,
    "joints": Joint,
    "loops": Loop,
    "couplings": mechanism_elements.Coupling,
    "wheels": mechanism_elements.Wheel,
    "skates": mechanism_elements.Skate,
    "springs": mechanism_elements.PointSpring,
    "bushings": mechanism_elements.Bushing,
    "tendons": mechanism_elements.Tendon,
    "sensors": mechanism_elements.Sensor,
    "markers": mechanism_elements.Marker,
}
"""The type of each field of a description; its inputs are of several kinds."""
ON_BODIES = ("parent", "child", "first", "second", "body", "frame")  # fields of parts that name a body


@dataclass(frozen=True)
class Moved:
    """A start value that closing the loops had to change."""

    state: str
    given_value: float
    became: float


@dataclass(frozen=True, repr=False)
class MechanismDescription(TableRepr):
    """A mechanism in SI units and rad: bodies with one joint each to a parent, up to the ground; loops close circles.

    >>> pendulum = MechanismDescription(
    ...     "pendulum",
    ...     [Body("rod", 1.0, (0, -0.5, 0), (1 / 12, 0, 1 / 12))],
    ...     [Joint("pin", "revolute", "ground", "rod")],
    ... )
    >>> [joint.name for joint in pendulum.ordered_joints]
    ['pin']
    """

    _attributes = "its .bodies, .joints, .loops, .springs, .inputs and .sensors"

    name: str
    bodies: Sequence[Body]
    joints: Sequence[Joint]  # in any order
    loops: Sequence[Loop] = ()
    wheels: Sequence[mechanism_elements.Wheel] = ()
    skates: Sequence[mechanism_elements.Skate] = ()
    springs: Sequence[mechanism_elements.PointSpring] = ()
    inputs: Sequence[Input] = ()  # in the order of the model's inputs
    sensors: Sequence[mechanism_elements.Sensor] = ()  # in the order of the model's outputs
    gravity: Vector = (0.0, 0.0, -9.81)  # in the ground's frame, in m/s2
    ground: str = "ground"  # name of what does not move
    independent: Sequence[str] = ()  # states that the author recommends to keep
    # what a user should know of where the description comes from; every linear model says it
    remarks: Sequence[str] = ()
    couplings: Sequence[mechanism_elements.Coupling] = ()
    markers: Sequence[mechanism_elements.Marker] = ()  # points with names
    contacts: Sequence[Contact] = ()  # loops that are feet on the ground, and what is known of it
    tendons: Sequence[mechanism_elements.Tendon] = ()
    bushings: Sequence[mechanism_elements.Bushing] = ()
    moved: Sequence[Moved] = ()  # start values that are not those that were given
    followed: Mapping[str, float] = field(default_factory=dict)  # velocities that were not given, as the loops require
    ordered_joints: tuple[Joint, ...] = field(default=(), init=False, repr=False)
    """The joints, each after the joint of its parent."""

    @implemented_in("fmilin.report.result_tables:show_mechanism")
    def _print_table(self, page: Sheet) -> None: ...

    @property
    def given_speeds(self) -> frozenset[str]:
        """Names of the given velocities: those that follow from others are not among them."""
        return frozenset(
            name
            for joint in self.joints
            for name, v in zip(joint.state_names[1], joint.velocity, strict=True)
            if (v != 0 or joint.stands) and self.followed.get(name) != v
        )

    @property
    def input_delays(self) -> dict[str, float]:
        """Dead times of inputs in seconds, by name, where they are not zero."""
        return {i.name: i.delay for i in self.inputs if not isinstance(i, Motion) and i.delay}

    def without_delays(self) -> MechanismDescription:
        """Return the same with inputs that act at once."""
        inputs = [i if isinstance(i, Motion) or not i.delay else replace(i, delay=0.0) for i in self.inputs]
        return replace(self, inputs=inputs)

    def __post_init__(self) -> None:
        for f in fields(self):
            if f.type.startswith("Sequence"):
                object.__setattr__(self, f.name, tuple(getattr(self, f.name)))
        object.__setattr__(self, "gravity", vector(self.gravity, f"Gravity of the mechanism '{self.name}'"))
        problems = [*_check_repetitions(self), *_check_bodies(self), *_check_references(self)]
        if not problems:
            ordered, problems = _order_joints(self)
            object.__setattr__(self, "ordered_joints", tuple(ordered))
        if problems:
            raise ModelError(f"The mechanism '{self.name}' cannot be built: " + " ".join(problems))


def _check_repetitions(d: MechanismDescription) -> list[str]:
    problems = []
    groups: list[tuple[str, list[str]]] = [
        ("bodies (the ground is one) or markers", [d.ground, *_names(d.bodies), *_names(d.markers)]),
        ("joints, loops, couplings, wheels or skates", [*_names(d.joints), *_constraint_names(d)]),
        (
            "springs, bushings, tendons or inputs",
            [*_names(d.springs), *_names(d.bushings), *_names(d.tendons), *_names(d.inputs)],
        ),
        ("outputs", [s.name for s in d.sensors]),
        ("states or inputs", [*_states(d), *_names(d.inputs)]),
    ]
    for what, names in groups:
        counts = Counter(names)
        problems += [f"The name '{n}' is used for {count} {what}." for n, count in counts.items() if count > 1]
    return problems


def _states(d: MechanismDescription) -> list[str]:
    acting = (a for a in d.inputs if isinstance(a, Actuator) and a.dynamics != "none")
    return [*(n for j in d.joints for n in sum(j.state_names, ())), *(f"{a.name}.act" for a in acting)]


def _names(parts: Iterable[Any]) -> list[str]:
    return [part.name for part in parts]


def _constraint_names(d: MechanismDescription) -> list[str]:
    return [*_names(d.loops), *_names(d.couplings), *_names(d.wheels), *_names(d.skates)]


def _check_bodies(d: MechanismDescription) -> list[str]:
    bodies, problems = [d.ground, *_names(d.bodies)], []
    for part in (part for parts in (*PARTS, "inputs") for part in getattr(d, parts)):
        keys = (
            ON_BODIES[:-1] if isinstance(part, Force | Torque) else ON_BODIES
        )  # the frame of these is a choice of two
        named = [getattr(part, key) for key in keys if getattr(part, key, "")]
        for name in (*named, *getattr(part, "bodies", ())):
            problems += _name(part, name, bodies, "a body")
        if not isinstance(part, Joint) and len(named) == 2 and named[0] == named[1]:
            problems.append(f"The {part.kind} '{part.name}' connects '{named[0]}' with itself.")
    problems += [f"The wheel '{w.name}' is fixed to the ground." for w in d.wheels if w.body == d.ground]
    return problems


def _check_references(d: MechanismDescription) -> list[str]:
    joints, problems = {j.name: j for j in d.joints}, []
    for c in d.couplings:
        problems += [
            problem for name in (c.joint, *c.followed) for problem in _check_one_degree_of_freedom(c, name, joints)
        ]
    for t in d.tendons:
        problems += [problem for name in t.joints for problem in _check_one_degree_of_freedom(t, name, joints)]
    for i in d.inputs:
        if isinstance(i, JointForce):
            problems += _coordinate(i, i.joint, i.coordinate, joints)
        elif isinstance(i, Actuator):
            problems += _check_actuator(i, d, joints)
        elif isinstance(i, Motion):
            problems += _check_one_degree_of_freedom(i, i.joint, joints)
    for s in d.sensors:
        problems += _check_sensor(s, d, joints)
    for name in d.independent:
        problems += _name("recommended states", name, _states(d), "a state")
    return problems


def _check_sensor(s: mechanism_elements.Sensor, d: MechanismDescription, joints: dict[str, Joint]) -> list[str]:
    """Return what is wrong with what a sensor measures."""
    actuators = _names(i for i in d.inputs if isinstance(i, Actuator))
    if s.quantity.startswith("joint_"):
        return _coordinate(s, s.of, s.coordinate, joints)
    if s.quantity in VECTORS or s.quantity == "orientation":
        return _name(s, s.of, [d.ground, *_names(d.bodies)], "a body")
    if s.quantity.startswith("distance"):
        lines = [*_names(d.springs), *_names(i for i in d.inputs if isinstance(i, LineForce)), *_names(d.tendons)]
        return _name(s, s.of, [*lines, *actuators], "a spring, tendon, line force or actuator")
    if s.quantity == "actuator_force":
        return _name(s, s.of, actuators, "an actuator")
    if s.quantity in ("reaction", "contact"):
        return _name(s, s.of, _constraint_names(d), "a loop, coupling, wheel or skate")
    return []


def _check_one_degree_of_freedom(part: Part, name: str, joints: dict[str, Joint]) -> list[str]:
    problems = _coordinate(part, name, 0, joints)
    if name in joints and len(SPEEDS[joints[name].type]) > 1:
        problems.append(f"In {part.where}: the joint '{name}' must have one degree of freedom.")
    return problems


def _check_actuator(a: Actuator, d: MechanismDescription, joints: dict[str, Joint]) -> list[str]:
    """Return what is wrong with what an actuator drives."""
    if a.tendon:
        return _name(a, a.tendon, _names(d.tendons), "a tendon")
    if not a.joint:
        return []
    problems = _coordinate(a, a.joint, 0, joints)
    if not problems:
        kind = joints[a.joint].type
        freedoms = len(SPEEDS[kind])
        if len(a.gear) > freedoms:
            problems.append(f"In {a.where}: 'gear' has {len(a.gear)} numbers for {freedoms} speeds of '{a.joint}'.")
        if kind in ("spherical", "free") and (a.gain[1] or a.bias[1]):
            problems.append(f"In {a.where}: the {kind} joint '{a.joint}' has no length for gain and bias.")
    return problems


def _coordinate(part: Part, name: str, coordinate: int, joints: dict[str, Joint]) -> list[str]:
    if name not in joints:
        return _name(part, name, joints, "a joint")
    speeds = SPEEDS[joints[name].type]
    if coordinate in range(len(speeds)):
        return []
    return [
        f"In {part.where}: the {joints[name].type} joint '{name}' has {len(speeds)} degrees of freedom, so its "
        f"coordinate must be one of {list(range(len(speeds)))}, not {coordinate}."
    ]


def _name(part: Part | str, name: str, names: Iterable[str], what: str) -> list[str]:
    names, where = list(names), f"the {part}" if isinstance(part, str) else part.where
    return [] if name in names else [f"In {where}: {UnknownNameError.among(name, names, what)}"]


def _order_joints(d: MechanismDescription) -> tuple[list[Joint], list[str]]:
    """Return the joints from the ground outwards, and what keeps them from being a tree."""
    problems = []
    to_parent: dict[str, Joint] = {}
    for joint in d.joints:
        if joint.child == d.ground:
            problems.append(f"The joint '{joint.name}' has the ground as its child: exchange its parent and child.")
        elif joint.child in to_parent:
            problems.append(
                f"The body '{joint.child}' has two joints to a parent, '{to_parent[joint.child].name}' and "
                f"'{joint.name}', which closes a cycle in the tree: make one of them a loop."
            )
        else:
            to_parent[joint.child] = joint
    problems += [
        f"The body '{b.name}' is disconnected: no joint has it as its child."
        for b in d.bodies
        if b.name not in to_parent
    ]
    if problems:
        return [], problems
    ordered: list[Joint] = []
    placed = {d.ground}
    waiting = list(d.joints)
    while ready := [j for j in waiting if j.parent in placed]:
        ordered += ready
        placed |= {j.child for j in ready}
        waiting = [j for j in waiting if j.parent not in placed or j.child not in placed]
    if waiting:
        names = ", ".join(f"'{j.name}'" for j in waiting)
        problems.append(
            f"The joints {names} form a cycle that is not connected to the ground: connect one of their bodies to the "
            "ground, and make the joint that closes the cycle a loop."
        )
    return ordered, problems
