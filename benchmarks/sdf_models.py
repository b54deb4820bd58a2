"""SDF models through fmilin and through Drake: positions, velocities, accelerations of all links, their derivatives.

``python -m benchmarks sdf_models FOLDER ...`` (``pip install drake``): folders with SDF files, as Drake's own below
its ``examples`` and ``multibody``, and URDF files with Drake's ball constraints, as its strandbeest after ``xacro``.
Without a folder: models with loops that are written here. Each model is compared at its start and moving.

Drake's plants in continuous time have no constraints. Loops are cut for Drake, and closed by Drake's own mass matrix
and Jacobians: M (v' - v'_open) = J' lambda, J v' = -J' v. Derivatives are those of Drake's numbers along fmilin's
directions of motion, by central differences of eighth order.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

import fmilin as fl
from benchmarks.sdf_loops import LOOPED_MODELS, RECOVERING, LoopJoint, PointPair, cut_loops, write_sdf
from benchmarks.tables import show
from fmilin.errors import FmilinError
from fmilin.models.mechanism import Mechanism
from fmilin.models.mechanism.part import Placement
from fmilin.models.mechanism.parts import COORDINATES
from fmilin.signals import FloatArray

TOLERANCE = 1e-9
EIGHTH_ORDER = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
STEP = 2.0**-7
REDUNDANCY = 1e-10
"""Singular values of J M^-1 J', relative to the largest, below which a row repeats others."""
QUANTITIES = ("x", "y", "z", "vx", "vy", "vz", "ax", "ay", "az")
MOVING_POINTS = 2
MAX_NAME_LENGTH, MAX_REASON_LENGTH = 40, 110


def main(arguments: Sequence[str] = ()) -> int:
    try:
        import pydrake.all  # noqa: F401 - only whether it is there
    except ImportError:
        print("Drake is not installed: pip install drake")
        return 1
    logging.getLogger("drake").setLevel(logging.CRITICAL)
    rows, outside = [], []
    with tempfile.TemporaryDirectory() as work:
        for name, path, packages in list_models([Path(argument) for argument in arguments], Path(work)):
            print(f"{name} ...", file=sys.stderr)
            try:
                rows.append(compare(path, packages).row(name))
            except (FmilinError, RuntimeError) as error:
                outside.append([name, " ".join(str(error).replace(str(path), "").split())[:MAX_REASON_LENGTH]])
    equal = sum(row[-1] == "kept" for row in rows)
    show(
        "SDF models against Drake", COLUMNS, rows, f"{equal} of {len(rows)} models are equal to {TOLERANCE:g}. {REMARK}"
    )
    if outside:
        show("Not compared", ["model", "reason"], outside, "Rejected by Drake, or by fmilin.")
    return 0


COLUMNS = ("model", "links", "loops", "states", "order", "start", "moving", "derivatives", f"<= {TOLERANCE:g}")
REMARK = (
    "start, moving: largest difference of positions, velocities and accelerations of links, relative to the largest. "
    "derivatives: of the same along the independent states, at all points; empty where nothing moves."
)


@dataclass(frozen=True)
class Comparison:
    """How far fmilin is from Drake: relative differences."""

    links: int
    loops: int
    states: int
    order: int
    start: float
    moving: float
    derivatives: float

    def row(self, name: str) -> list[str]:
        """Return a line of the table."""
        worst = max(self.start, self.moving, self.derivatives)
        counts = [str(value) for value in (self.links, self.loops, self.states, self.order)]
        if self.order == 0:
            return [name, *counts, f"{self.start:.1e}", "", "", "kept" if worst <= TOLERANCE else "MISSED"]
        numbers = [f"{value:.1e}" for value in (self.start, self.moving, self.derivatives)]
        return [name, *counts, *numbers, "kept" if worst <= TOLERANCE else "MISSED"]


def list_models(folders: Sequence[Path], work: Path) -> Iterator[tuple[str, Path, list[Path]]]:
    """Yield names, SDF files, and folders of packages; loops of this module without a folder."""
    if not folders:
        for name, text in LOOPED_MODELS.items():
            path = work / f"{name}.sdf"
            path.write_text(text, encoding="utf-8")
            yield name, path, []
    for folder in folders:
        packages = sorted({path.parent.parent for path in folder.rglob("*.sdf")})
        os.environ["SDF_PATH"] = os.pathsep.join(map(str, packages))
        for path in sorted([*folder.rglob("*.sdf"), *folder.rglob("*.urdf")]):
            if path.suffix == ".urdf" and "ball_constraint" not in path.read_text(encoding="utf-8"):
                continue
            converted = path
            if path.suffix == ".urdf":
                converted = work / f"{path.stem}.sdf"
                converted.write_text(write_sdf(path), encoding="utf-8")
            yield "/".join(path.relative_to(folder).parts[-2:])[-MAX_NAME_LENGTH:], converted, packages


def compare(path: Path, packages: Sequence[Path] = ()) -> Comparison:
    """Compare a model at its start, and at moving points."""
    model = fl.load(path)
    if not isinstance(model, Mechanism):
        raise TypeError(f"'{path}' is not a mechanism")
    plant = DrakePlant(path, packages, model)
    outputs = [f"{link}.{quantity}" for link in plant.links for quantity in QUANTITIES]
    model = model.with_interface(outputs=outputs)
    inputs = np.zeros(len(model.inputs.names))
    errors, slope_error, order = [], 0.0, 0
    for point in list_points(model, plant):
        x = point.states
        ours = model.evaluate(0.0, x, inputs).outputs
        theirs = plant.measure(x)
        errors.append(float(np.abs(ours - theirs).max(initial=0.0) / max(1.0, np.abs(theirs).max(initial=0.0))))
        if not len(x):
            continue
        lin = fl.linearize(model, replace(point, inputs=inputs), keep_inaccurate=True)
        order = len(lin.states.names)
        slopes = differentiate(plant.measure, x, lin.T)
        size = max(1.0, float(np.abs(slopes).max(initial=0.0)))
        slope_error = max(slope_error, float(np.abs(lin.C - slopes).max(initial=0.0)) / size)
    moving = max(errors[1:], default=0.0)
    counts = len(plant.links), len(plant.loops), len(model.states)
    return Comparison(*counts, order, errors[0], moving, slope_error)


def differentiate(measure: Callable[[FloatArray], FloatArray], x: FloatArray, T: FloatArray) -> FloatArray:
    """Return derivatives along the columns of T."""
    columns = []
    for direction in T.T:
        h = STEP / max(1.0, float(np.abs(direction).max()))
        total = np.zeros(0)
        for k, weight in enumerate(EIGHTH_ORDER, 1):
            change = weight * (measure(x + k * h * direction) - measure(x - k * h * direction)) / h
            total = change if k == 1 else total + change
        columns.append(total)
    return np.array(columns).T


def list_points(model: Mechanism, plant: DrakePlant) -> Iterator[Any]:
    """Yield the start, at rest, and moving points; those of loops are assembled from independent states."""
    random = np.random.default_rng(7)
    start = fl.operating_point(model)
    start = replace(start, inputs=np.zeros(len(start.inputs)))
    yield start
    if not len(model.states):
        return
    names = list(model.states.names)
    independent = list(fl.linearize(model, start, keep_inaccurate=True).states.names)
    for _ in range(MOVING_POINTS):
        if plant.loops or plant.is_coupled:
            values = {name: start.states[names.index(name)] + random.uniform(-0.2, 0.2) for name in independent}
            yield replace(fl.operating_point(model, values), inputs=start.inputs)
            continue
        x = start.states + random.uniform(-0.7, 0.7, len(names))
        for joint in model.description.joints:
            positions, _ = joint.state_names
            if positions and COORDINATES[joint.type][-1] == "e3":
                places = [names.index(name) for name in positions[-4:]]
                x[places] /= np.linalg.norm(x[places])
        yield replace(start, states=x)


class DrakePlant:
    """Drake's numbers of a model at states of fmilin.

    Parameters
    ----------
    path : pathlib.Path
        SDF; its loops are cut for Drake.
    packages : sequence of pathlib.Path
    model : Mechanism
        The same in fmilin: names of states and of links.
    """

    def __init__(self, path: Path, packages: Sequence[Path], model: Mechanism) -> None:
        import pydrake.all as drake

        self._drake = drake
        text, self.loops = cut_loops(path.read_text(encoding="utf-8"))
        self._plant = plant = drake.MultibodyPlant(0.0)
        parser = drake.Parser(plant)
        for package in packages:
            for folder in package.iterdir() if package.is_dir() else ():
                if folder.is_dir() and not parser.package_map().Contains(folder.name):
                    parser.package_map().Add(folder.name, str(folder))
        parser.SetAutoRenaming(value=True)
        if self.loops:
            parser.AddModelsFromString(text, "sdf")
        else:
            parser.AddModels(str(path))
        self._description = description = model.description
        plant.mutable_gravity_field().set_gravity_vector(np.array(description.gravity))
        root = etree.fromstring(path.read_bytes(), RECOVERING)
        top = "" if root.find("world") is not None else f"{root.find('model').get('name')}::"
        self._top = top
        plant.Finalize()
        self._bodies: dict[str, Any] = {}
        self._joints: dict[str, Any] = {}
        for instance in map(drake.ModelInstanceIndex, range(plant.num_model_instances())):
            self._bodies |= {self._name(b): b for b in map(plant.get_body, plant.GetBodyIndices(instance))}
            self._joints |= {self._name(j): j for j in map(plant.get_joint, plant.GetJointIndices(instance))}
        self.links = [body.name for body in description.bodies if body.name in self._bodies]
        self.is_coupled = bool(description.couplings)
        if self.is_coupled:
            raise RuntimeError("Drake has no coupled joints in continuous time")
        self._context = plant.CreateDefaultContext()
        plant.get_actuation_input_port().FixValue(self._context, np.zeros(plant.num_actuators()))
        names = list(model.states.names)
        self._places = {name: i for i, name in enumerate(names)}
        self._frames = [self._close(loop) for loop in self.loops]

    def _name(self, element: Any) -> str:
        instance = self._plant.GetModelInstanceName(element.model_instance())
        return f"{instance}::{element.name()}".removeprefix(self._top)

    def _find_joint(self, name: str) -> Any:
        if name in self._joints:
            return self._joints[name]
        model, _, last = name.rpartition("::")
        (joint,) = [j for key, j in self._joints.items() if key.rpartition("::")[2] == last and key.startswith(model)]
        return joint

    def _close(self, loop: PointPair | LoopJoint) -> tuple[Any, Any, FloatArray, FloatArray, FloatArray | None]:
        """Return the ends of a loop, their points in the axes of the ends, and the axis of a hinge in the first's."""
        first, second = (self._plant.world_body() if end == "world" else self._bodies[end] for end in loop.ends)
        if isinstance(loop, PointPair):
            return first, second, np.array(loop.points[0]), np.array(loop.points[1]), None
        plant, context = self._plant, self._plant.CreateDefaultContext()
        to_first, to_second = (plant.EvalBodyPoseInWorld(context, body) for body in (first, second))
        point = np.array(loop.position)
        axis = to_first.rotation().inverse() @ (to_second.rotation() @ np.array(loop.axis))
        return first, second, to_first.inverse() @ (to_second @ point), point, axis

    def measure(self, x: FloatArray) -> FloatArray:
        """Return positions, velocities and accelerations of the links at states of fmilin."""
        plant, context, drake = self._plant, self._context, self._drake
        self._set_states(x)
        world = plant.world_frame()
        change = self._find_change() if self.loops else None
        values: list[float] = []
        for name in self.links:
            body = self._bodies[name]
            acceleration = plant.EvalBodySpatialAccelerationInWorld(context, body).translational()
            if change is not None:
                J = plant.CalcJacobianTranslationalVelocity(
                    context, drake.JacobianWrtVariable.kV, body.body_frame(), np.zeros(3), world, world
                )
                acceleration = acceleration + J @ change
            values += [
                *plant.EvalBodyPoseInWorld(context, body).translation(),
                *plant.EvalBodySpatialVelocityInWorld(context, body).translational(),
                *acceleration,
            ]
        return np.array(values)

    def _find_change(self) -> FloatArray:
        """Return what the loops add to the accelerations (nv,) of the open mechanism."""
        plant, context, drake = self._plant, self._context, self._drake
        kind, world = drake.JacobianWrtVariable.kV, plant.world_frame()
        rows, rates = [], []
        for first, second, a, b, axis in self._frames:
            ends = ((first.body_frame(), a), (second.body_frame(), b))
            J = [plant.CalcJacobianTranslationalVelocity(context, kind, f, p, world, world) for f, p in ends]
            bias = [plant.CalcBiasTranslationalAcceleration(context, kind, f, p, world, world).ravel() for f, p in ends]
            rows.append(J[0] - J[1])
            rates.append(bias[0] - bias[1])
            if axis is not None:
                turn, turning = self._hinge_rows(first, second, axis)
                rows.append(turn)
                rates.append(turning)
        G, bias_of_all = np.vstack(rows), np.concatenate(rates)
        open_rates = plant.EvalTimeDerivatives(context).CopyToVector()[plant.num_positions() :]
        MG = np.linalg.solve(plant.CalcMassMatrix(context), G.T)
        multipliers = np.linalg.lstsq(G @ MG, -(bias_of_all + G @ open_rates), rcond=REDUNDANCY)[0]
        change: FloatArray = MG @ multipliers
        return change

    def _hinge_rows(self, first: Any, second: Any, axis: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows of the relative turn across a hinge's axis, and their rates without accelerations.

        P = I - a a' with the axis a of the first end: P (w2 - w1) = 0, and a turns with w1, so that along the motion
        only the biases of both and w1 x w2, of which a part lies across, are left.
        """
        plant, context, drake = self._plant, self._context, self._drake
        kind, world = drake.JacobianWrtVariable.kV, plant.world_frame()
        parts = []
        for body in (first, second):
            J = plant.CalcJacobianAngularVelocity(context, kind, body.body_frame(), world, world)
            bias = plant.CalcBiasSpatialAcceleration(context, kind, body.body_frame(), np.zeros(3), world, world)
            omega = plant.EvalBodySpatialVelocityInWorld(context, body).rotational()
            parts.append((J, bias.rotational(), omega))
        a = plant.EvalBodyPoseInWorld(context, first).rotation() @ axis
        relative = parts[1][2] - parts[0][2]
        da = np.cross(parts[0][2], a)
        across = np.eye(3) - np.outer(a, a)
        turning = across @ (parts[1][1] - parts[0][1]) - (np.outer(da, a) + np.outer(a, da)) @ relative
        return across @ (parts[1][0] - parts[0][0]), turning

    def _set_states(self, x: FloatArray) -> None:
        """Set Drake's joints by the states of fmilin's."""
        drake, plant, context = self._drake, self._plant, self._context
        for joint in self._description.joints:
            position_names, velocity_names = joint.state_names
            if not position_names:
                continue
            q = x[[self._places[name] for name in position_names]]
            v = x[[self._places[name] for name in velocity_names]]
            if joint.type == "free":
                R = Placement.from_quaternion((0, 0, 0), q[3:]).R
                body = self._bodies[joint.child]
                plant.SetFreeBodyPose(context, body, drake.RigidTransform(drake.RotationMatrix(R), q[:3]))
                velocity = drake.SpatialVelocity(R @ v[3:], v[:3])
                plant.SetFreeBodySpatialVelocity(context=context, body=body, V_JpJc=velocity)
                continue
            self._set_joint(self._find_joint(joint.name), joint, q, v)

    def _set_joint(self, target: Any, joint: Any, q: FloatArray, v: FloatArray) -> None:
        drake, plant, context = self._drake, self._plant, self._context
        if joint.type == "spherical":
            R = Placement.from_quaternion((0, 0, 0), q).R
            target.set_angles(context, drake.RollPitchYaw(drake.RotationMatrix(R)).vector())
            target.set_angular_velocity(context, R @ v)
            return
        positions, velocities = plant.GetPositions(context).copy(), plant.GetVelocities(context).copy()
        positions[target.position_start() : target.position_start() + len(q)] = q
        velocities[target.velocity_start() : target.velocity_start() + len(v)] = v
        plant.SetPositions(context, positions)
        plant.SetVelocities(context, velocities)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
