"""Native mechanism or engine: the mechanism where all is understood and both say the same, the engine otherwise.

Of a tree either computes the linear models: what takes less time (:mod:`fmilin_mujoco.measured`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np

from fmilin import Model
from fmilin.adapters import InterfaceChoice
from fmilin.errors import FmilinError
from fmilin.models.mechanism import MechanismDescription, RollingShape, add_wheels, build_model
from fmilin.signals import FloatArray
from fmilin_mujoco.engine import MujocoEngine
from fmilin_mujoco.left_out import NotUnderstoodError
from fmilin_mujoco.measured import MeasuredEngine, MeasuredMechanism
from fmilin_mujoco.native import description_of
from fmilin_mujoco.rotations import triple
from fmilin_mujoco.stated import MujocoModel

__all__ = ["chosen_model", "native_mechanism", "rolling_mechanism"]

AGREEMENT = 1e-8
"""How well rates and sensors of both agree, relative to the largest."""


def chosen_model(engine: MujocoEngine) -> Model:
    """Return the native mechanism of a model, or that of the engine with the reason as a note."""
    try:
        mechanism = native_mechanism(engine)
    except NotUnderstoodError as reason:
        engine.notes = [*engine.notes, f"This model runs in MuJoCo's engine, not as a native mechanism: {reason}."]
        return MujocoModel(engine)
    limited = any(sensor.limits for sensor in mechanism.description.sensors)  # the engine does not name their ends
    if not len(mechanism.states):
        return mechanism  # nothing moves: there is nothing to compare the time of
    if not (limited or mechanism.constraints.observed) and mechanism.inputs.names == engine.inputs.names:
        mechanism.engine.through = engine
    return mechanism


def rolling_mechanism(engine: MujocoEngine, requests: Sequence[str]) -> Model:
    """Return the mechanism in which some bodies roll on the ground without slip.

    Raises
    ------
    NotUnderstoodError
        As :func:`native_mechanism`.
    """
    description = native_mechanism(engine).description
    compiled = engine.compiled

    def find_shape(name: str) -> RollingShape | None:
        body = mujoco.mj_name2id(compiled, mujoco.mjtObj.mjOBJ_BODY, name)
        return None if body < 0 else _find_rolling_shape(compiled, body)

    return build_model(add_wheels(description, requests, find_shape))


def _find_rolling_shape(compiled: Any, body: int) -> RollingShape | None:
    """Return the one cylinder or ball for contacts of a body; None without one."""
    shapes = []
    first = int(compiled.body_geomadr[body])
    for geom in range(first, first + int(compiled.body_geomnum[body])):
        kind = int(compiled.geom_type[geom])
        touches = bool(compiled.geom_contype[geom] or compiled.geom_conaffinity[geom])
        if not touches or kind not in (mujoco.mjtGeom.mjGEOM_CYLINDER, mujoco.mjtGeom.mjGEOM_SPHERE):
            continue
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, compiled.geom_quat[geom])
        axis = triple(rotation.reshape(3, 3)[:, 2]) if kind == mujoco.mjtGeom.mjGEOM_CYLINDER else None
        shapes.append(RollingShape(triple(compiled.geom_pos[geom]), axis, float(compiled.geom_size[geom, 0])))
    return shapes[0] if len(shapes) == 1 else None


def native_mechanism(engine: MujocoEngine) -> MeasuredMechanism:
    """Return the mechanism that the engine's compiled model is.

    Raises
    ------
    NotUnderstoodError
        When something in it is not understood, or the mechanism says something else than the engine.
    """
    try:
        description = description_of(engine.compiled, engine.start, engine.info.name, tuple(engine.notes))
        return _compared(_mechanism(description, engine), engine)
    except FmilinError as error:
        raise NotUnderstoodError(f"it is not valid as a mechanism ({error})") from error


def _mechanism(description: MechanismDescription, engine: MujocoEngine) -> MeasuredMechanism:
    native = MeasuredEngine(description)
    native.ground = engine.stance
    native.info = replace(engine.info, tool=f"{engine.info.tool}, as a native mechanism")
    native.start_points = engine.start_points
    native.outputs = engine.outputs if not description.sensors else native.outputs
    return MeasuredMechanism._of(native, InterfaceChoice())


def _compared(mechanism: MeasuredMechanism, engine: MujocoEngine) -> MeasuredMechanism:
    """Return the mechanism with the signs of quaternions that MuJoCo has, once both say the same."""
    start = mechanism.start
    names = [sensor.name for sensor in mechanism.description.sensors]
    numbers = [engine.quantities.index_of(name) for name in names]
    turned = _turned(mechanism, engine, numbers)
    if turned is not mechanism.description:
        mechanism = _mechanism(turned, engine)
    if mechanism.states.names != engine.states.names:
        raise NotUnderstoodError("its states would have other names")
    random = np.random.default_rng(1867)
    for velocities in (start.states, _moving(engine, start.states, random)):
        u = start.inputs + 0.01 * random.uniform(-1, 1, len(start.inputs))
        rates, quantities = engine.visit(0.0, velocities, u)
        own = mechanism.evaluate(0.0, velocities, u)
        ours = own.outputs if names else np.empty(0)
        for what, a, b in (("rates", own.derivatives, rates), ("sensors", ours, quantities[numbers])):
            if np.abs(a - b).max(initial=0.0) > AGREEMENT * max(1.0, float(np.abs(b).max(initial=0.0))):
                raise NotUnderstoodError(f"the {what} of the mechanism are not those of the engine")
    return mechanism


def _turned(mechanism: MeasuredMechanism, engine: MujocoEngine, numbers: list[int]) -> MechanismDescription:
    """Return the description with those quaternions turned over that are minus those of the engine."""
    d = mechanism.description
    if not any(s.quantity == "orientation" for s in d.sensors):
        return d
    start = mechanism.start
    shown = engine.visit(0.0, start.states, start.inputs)[1][numbers]
    ours = mechanism.evaluate(0.0, start.states, start.inputs).outputs
    products: dict[str, float] = {}
    for sensor, a, b in zip(d.sensors, ours, shown, strict=True):
        if sensor.quantity == "orientation":
            products[sensor.of] = products.get(sensor.of, 0.0) + float(a * b)
    sensors = [replace(s, factor=-1.0) if s.quantity == "orientation" and products[s.of] < 0 else s for s in d.sensors]
    return replace(d, sensors=sensors)


def _moving(engine: MujocoEngine, x: FloatArray, random: Any) -> FloatArray:
    """Return the state with other velocities that keep the constraints."""
    n_q, n = engine.compiled.nq, engine.compiled.nv
    G = engine.gradient_of_gaps(x)
    v = x[n_q : n_q + n] + random.uniform(-1, 1, n)
    allowed = x.copy()
    allowed[n_q : n_q + n] = v - (np.linalg.lstsq(G, G @ v, rcond=1e-10)[0] if len(G) else 0.0)
    return allowed
