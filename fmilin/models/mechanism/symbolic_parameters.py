"""Parameters of a mechanism as symbols of its graph: masses, springs, dampers and weight, with geometry as numbers.

The recursion runs on symbols as on numbers (:mod:`fmilin.codegen.scalars`): only the arrays that hold the values of
parameters are replaced. Constraints depend on geometry alone, so that points stay on the manifold.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.models.mechanism.changes import AXES, MOMENTS, is_geometric, list_part_numbers
from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.multibody_system import System
from fmilin.models.mechanism.parts import TRIANGLE_INEQUALITY_TOLERANCE, Body
from fmilin.models.mechanism.tree import Array, Tree, pseudo_inertia
from fmilin.signals import FloatArray

BODY_FIELDS = ("mass", "center", "inertia")
JOINT_FIELDS = {"stiffness": "k", "rest": "rest", "damping": "d"}
"""Fields of joints, and the arrays that hold their values."""
SPRING_FIELDS = {"stiffness": "k", "length": "L_0", "damping": "c"}

Symbols = Mapping[str, Any]
"""Symbols by the names of parameters."""


def list_symbolic_parameters(description: MechanismDescription) -> set[str]:
    """Return the parameters for which the equations can have symbols: no constraint depends on them."""
    # The weight of compensated bodies is also a constant force.
    compensated = [body for body in description.bodies if body.gravity_compensation and body.mass]
    possible = set() if compensated else {f"gravity.{axis}" for axis in AXES}
    fields_of: list[tuple[Any, Collection[str]]] = [
        *((body, ("inertia",) if body in compensated else BODY_FIELDS) for body in description.bodies),
        *((joint, JOINT_FIELDS) for joint in description.joints),
        *((spring, SPRING_FIELDS) for spring in description.springs),
    ]
    possible |= {name for part, fields in fields_of for field in fields for name in list_part_numbers(part, field)}
    return {name for name in possible - _list_ball_stiffnesses(description) if not is_geometric(description, [name])}


def _list_ball_stiffnesses(description: MechanismDescription) -> set[str]:
    """Return the stiffnesses that must stay zero: those of quaternions."""
    balls = [joint for joint in description.joints if len(joint.position) != len(joint.velocity)]
    return {name for joint in balls for name in list(list_part_numbers(joint, "stiffness"))[-3:]}


def insert_symbols(system: System, symbols: Symbols) -> None:
    """Replace values of parameters by symbols in a system that nothing else uses."""
    description, forces = system.description, system.forces
    gravity = {f"gravity.{axis}": value for axis, value in zip(AXES, description.gravity, strict=True)}
    system.gravity = _replace_numbers(gravity, symbols)
    system.tree = _insert_bodies(system.tree, description.bodies, symbols)
    joints = forces.joints = copy(forces.joints)
    for field, array in JOINT_FIELDS.items():
        numbers = {k: v for joint in description.joints for k, v in list_part_numbers(joint, field).items()}
        setattr(joints, array, _replace_numbers(numbers, symbols))
    for field, array in SPRING_FIELDS.items():
        numbers = {k: v for spring in description.springs for k, v in list_part_numbers(spring, field).items()}
        values = getattr(forces, array).astype(object)
        values[: len(numbers)] = _replace_numbers(numbers, symbols)
        setattr(forces, array, values)
    # A spring that may get a free length or a damper needs its direction.
    directed = [
        any(f"{spring.name}.{field}" in symbols for field in ("length", "damping")) for spring in description.springs
    ]
    forces.linear = np.where([*directed, *[False] * (len(forces.linear) - len(directed))], 0.0, forces.linear)


def _insert_bodies(tree: Tree, bodies: Collection[Body], symbols: Symbols) -> Tree:
    """Return the tree with the inertia of links to which bodies with symbols are fixed."""
    numbers = {body.name: {f: list_part_numbers(body, f) for f in BODY_FIELDS} for body in bodies}
    is_symbolic = {name: any(symbols.keys() & field for field in fields.values()) for name, fields in numbers.items()}
    links = {tree.frame_of[name][0] for name, symbolic in is_symbolic.items() if symbolic} - {0}
    other = copy(tree)
    other.inertia = tree.inertia.astype(object)
    other.inertia[sorted(links)] = 0.0
    for body in bodies:
        link, offset = tree.frame_of[body.name]
        if body.mass is None or link not in links:
            continue
        mass, center, moments = (_replace_numbers(numbers[body.name][f], symbols) for f in BODY_FIELDS)
        J = np.empty((3, 3), dtype=object)
        for moment, (i, j) in zip(moments, MOMENTS.values(), strict=True):
            J[i, j] = J[j, i] = moment
        other.inertia[link] = other.inertia[link] + offset @ pseudo_inertia(mass[0], center, J) @ offset.T
    return other


def _replace_numbers(numbers: Mapping[str, float], symbols: Symbols) -> Array:
    """Return the numbers as an array, with symbols where there are some."""
    values = np.empty(len(numbers), dtype=object)
    values[:] = [symbols.get(name, value) for name, value in numbers.items()]
    return values


def find_valid_values(description: MechanismDescription, values: Mapping[str, FloatArray]) -> NDArray[np.bool_]:
    """Return where a mechanism with these values (k,) of parameters would be accepted, shape (k,)."""
    columns = [np.asarray(column, dtype=np.float64) for column in values.values()]
    is_valid: NDArray[np.bool_] = np.asarray(np.isfinite(columns).all(axis=0))
    for body in description.bodies:
        if any(name.startswith(f"{body.name}.") for name in values):
            is_valid &= _has_valid_inertia(body, values, len(is_valid))
    for spring in description.springs:
        if f"{spring.name}.length" in values:
            is_valid &= values[f"{spring.name}.length"] >= 0
    return is_valid


def _has_valid_inertia(body: Body, values: Mapping[str, FloatArray], count: int) -> NDArray[np.bool_]:
    mass = np.broadcast_to(values.get(f"{body.name}.mass", np.array(body.mass)), count)
    if body.any_inertia:
        return np.asarray(mass >= 0)
    J = np.empty((count, 3, 3))
    for moment, (i, j) in MOMENTS.items():
        J[:, i, j] = J[:, j, i] = values.get(f"{body.name}.inertia.{moment}", np.array(body.inertia[i][j]))
    is_finite: NDArray[np.bool_] = np.asarray(np.isfinite(J).all(axis=(1, 2)))
    moments = np.linalg.eigvalsh(np.where(is_finite[:, None, None], J, 0.0))
    small, middle, large = moments.T
    is_possible = (small >= -TRIANGLE_INEQUALITY_TOLERANCE * np.abs(large)) & (
        small + middle >= (1 - TRIANGLE_INEQUALITY_TOLERANCE) * large
    )
    return np.asarray(is_finite & is_possible & (mass > 0))
