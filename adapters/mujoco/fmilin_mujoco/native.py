"""A compiled MuJoCo model as a mechanism of fmilin's own, where all of it is understood.

Everything is read from MuJoCo's own compiled model, nothing from XML. The first element that is not supported is
reported, and the model then runs in the engine. The mechanism is compared with the engine once, at its start and in
motion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from fmilin.models.mechanism import Body, Coupling, Joint, Loop, Marker, MechanismDescription, Placement
from fmilin.signals import FloatArray
from fmilin_mujoco.equalities import Factors, factors_of_tendon
from fmilin_mujoco.left_out import NotUnderstoodError, require_understood
from fmilin_mujoco.names import BODY, EQUALITY, SITE, joint_name, name_of, state_names
from fmilin_mujoco.native_drives import actuators_of, tendons_of
from fmilin_mujoco.native_sensors import sensors_of
from fmilin_mujoco.rotations import matrix_of, triple
from fmilin_mujoco.start import Start

__all__ = ["description_of"]


def description_of(model: Any, start: Start, name: str, remarks: tuple[str, ...] = ()) -> MechanismDescription:
    """Return a compiled model as a mechanism.

    Parameters
    ----------
    model : mujoco.MjModel
        With anchors as they are wanted.
    start : Start
    name : str
    remarks : tuple of str

    Raises
    ------
    NotUnderstoodError
        With the first reason.
    """
    require_understood(model)
    tree = _Tree(model, start)
    names = tree.names
    taken = {*(joint.name for joint in tree.joints)}
    loops, couplings = _equalities(model, names, taken)
    tendons = tendons_of(model, names)
    inputs = actuators_of(model, names, tendons, start)
    sensors = sensors_of(model, names)
    gravity = np.zeros(3) if model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_GRAVITY) else model.opt.gravity
    return MechanismDescription(
        name,
        [*tree.bodies, *sensors.bodies],
        [*tree.joints, *sensors.joints],
        loops,
        couplings=couplings,
        tendons=tendons,
        inputs=inputs,
        sensors=sensors.sensors,
        markers=_markers(model, names),
        gravity=triple(gravity),
        ground=names[0],
        remarks=remarks,
    )


@dataclass
class _NativePart:
    """A body that joints are being added to: where the next joint starts from."""

    parent: str
    placement: tuple[FloatArray, FloatArray]


class _Tree:
    """Bodies and joints. A body with several joints hangs on massless ones."""

    def __init__(self, model: Any, start: Start) -> None:
        self.model, self.start = model, start
        self.bodies: list[Body] = []
        self.joints: list[Joint] = []
        self.names = [name_of(model, BODY, i, "body") for i in range(model.nbody)]
        for i in range(1, model.nbody):
            self._add(i)

    def _add(self, i: int) -> None:
        m = self.model
        position, R = self._placed(i)
        part = _NativePart(self.names[int(m.body_parentid[i])], (position, R))
        first, count = int(m.body_jntadr[i]), int(m.body_jntnum[i])
        for k in range(count):
            child = self.names[i] if k == count - 1 else f"{self.names[i]}/{k + 1}"
            if child != self.names[i]:
                self.bodies.append(Body(child, None))
            self.joints.append(self._joint(first + k, part, child))
            part = _NativePart(child, (np.zeros(3), np.eye(3)))
        if not count:
            placement = Placement(tuple(position), R)
            self.joints.append(Joint(f"{self.names[i]}/fixed", "fixed", part.parent, self.names[i], placement))
        self.bodies.append(self._body(i))

    def _placed(self, i: int) -> tuple[FloatArray, FloatArray]:
        m, mocap = self.model, int(self.model.body_mocapid[i])
        if mocap >= 0:
            quaternion = self.start.mocap[1][mocap]
            return np.array(self.start.mocap[0][mocap]), matrix_of(quaternion / np.linalg.norm(quaternion))
        return m.body_pos[i].copy(), matrix_of(m.body_quat[i])

    def _body(self, i: int) -> Body:
        m = self.model
        mass, R = float(m.body_mass[i]), matrix_of(m.body_iquat[i])
        J = R @ np.diag(m.body_inertia[i]) @ R.T
        if not mass and not J.any():
            return Body(self.names[i], None)
        carried = float(m.body_gravcomp[i])
        return Body(self.names[i], mass, tuple(m.body_ipos[i]), J, any_inertia=True, gravity_compensation=carried)

    def _joint(self, j: int, part: _NativePart, child: str) -> Joint:
        m = self.model
        kind = mujoco.mjtJoint(m.jnt_type[j])
        position, R = part.placement
        q, v = int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j])
        anchor, axis = m.jnt_pos[j], m.jnt_axis[j]
        n_q, n = {mujoco.mjtJoint.mjJNT_FREE: (7, 6), mujoco.mjtJoint.mjJNT_BALL: (4, 3)}.get(kind, (1, 1))
        start = {"position": tuple(self.start.qpos[q : q + n_q]), "velocity": tuple(self.start.qvel[v : v + n])}
        name = joint_name(m, j)
        common: dict[str, Any] = {
            "armature": tuple(m.dof_armature[v : v + n]),
            "damping": tuple(m.dof_damping[v : v + n]),
            "names": state_names(m, j),
            **start,
        }
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            return Joint(name, "free", self.names[0], child, **common)
        if kind == mujoco.mjtJoint.mjJNT_BALL:
            placement = Placement(tuple(position + R @ anchor), R)
            return Joint(name, "spherical", part.parent, child, placement, Placement(tuple(anchor)), **common)
        common |= {"stiffness": float(m.jnt_stiffness[j]), "rest": float(m.qpos_spring[q])}
        if m.jnt_actfrclimited[j]:
            common["drive_limits"] = tuple(m.jnt_actfrcrange[j])
        reference = float(m.qpos0[q])
        if kind == mujoco.mjtJoint.mjJNT_SLIDE:
            placement = Placement(tuple(position - R @ axis * reference), R)
            return Joint(name, "prismatic", part.parent, child, placement, axis=tuple(axis), **common)
        back = Placement.from_axis((0, 0, 0), axis, -reference).R
        placement = Placement(tuple(position + R @ anchor), R @ back)
        return Joint(
            name, "revolute", part.parent, child, placement, Placement(tuple(anchor)), axis=tuple(axis), **common
        )


def _equalities(model: Any, names: list[str], taken: set[str]) -> tuple[list[Loop], list[Coupling]]:
    loops, couplings = [], []
    for i in range(model.neq):
        if not model.eq_active0[i]:
            continue
        name = name_of(model, EQUALITY, i, "equality")
        name = f"{name}/equality" if name in taken else name
        if model.eq_type[i] == mujoco.mjtEq.mjEQ_JOINT:
            first, second = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
            couplings.append(_coupling(model, i, name, ({first: 1.0}, {second: 1.0} if second >= 0 else {})))
        elif model.eq_type[i] == mujoco.mjtEq.mjEQ_TENDON:
            tendons = (factors_of_tendon(model, int(t), name) for t in (model.eq_obj1id[i], model.eq_obj2id[i]))
            couplings.append(_coupling(model, i, name, tuple(tendons)))
        else:
            loops.append(_loop(model, i, name, names))
    return loops, couplings


def _loop(model: Any, i: int, name: str, names: list[str]) -> Loop:
    ids, row = (int(model.eq_obj1id[i]), int(model.eq_obj2id[i])), model.eq_data[i]
    connects = model.eq_type[i] == mujoco.mjtEq.mjEQ_CONNECT
    if model.eq_objtype[i] == mujoco.mjtObj.mjOBJ_SITE:
        first, second = (
            Placement(tuple(model.site_pos[s]), np.eye(3) if connects else matrix_of(model.site_quat[s])) for s in ids
        )
        bodies = [names[int(model.site_bodyid[s])] for s in ids]
    elif connects:
        first, second = Placement(tuple(row[0:3])), Placement(tuple(row[3:6]))
        bodies = [names[b] for b in ids]
    else:
        first = Placement(tuple(row[3:6]), matrix_of(row[6:10] / np.linalg.norm(row[6:10])))
        second = Placement(tuple(row[0:3]))
        bodies = [names[b] for b in ids]
    if bodies[0] == bodies[1]:
        raise NotUnderstoodError(f"the equality constraint '{name}' holds the body '{bodies[0]}' to itself")
    return Loop(name, "spherical" if connects else "fixed", bodies[0], bodies[1], first, second)


def _coupling(model: Any, i: int, name: str, sides: tuple[Factors, ...]) -> Coupling:
    """Return sum f (q - q_0) = P(sum h (s - s_0)) as q_1 = offset + P's terms - the other f (q - q_0), over f_1."""
    follows, leads = sides
    polynomial = np.polynomial.Polynomial(model.eq_data[i][:5] if leads else model.eq_data[i][:1])
    if len(leads) > 1 and polynomial.degree() > 1 and polynomial.coef[2:].any():
        raise NotUnderstoodError(f"the equality constraint '{name}' has powers of a tendon over several joints")
    first = next((joint for joint, factor in follows.items() if factor and joint not in leads), None)
    if first is None:
        raise NotUnderstoodError(f"the equality constraint '{name}' has no joint that only follows")
    rest = {joint: float(model.qpos0[model.jnt_qposadr[joint]]) for joint in (*follows, *leads)}
    c, offset, ratios = np.zeros(5), rest[first], dict[int, float]()
    for joint, factor in follows.items():
        if joint != first:
            ratios[joint] = -factor / follows[first]
            offset += factor / follows[first] * rest[joint]
    # P over the leading length; the part before the joints' own positions is constant.
    before = -sum(factor * rest[joint] for joint, factor in leads.items())
    one = len(leads) == 1
    shifted = polynomial(np.polynomial.Polynomial([before, *leads.values()] if one else [before, 1.0])).coef
    c[: len(shifted)] = np.asarray(shifted, dtype=float) / follows[first]
    for joint, factor in leads.items():
        ratios[joint] = ratios.get(joint, 0.0) + c[1] * (1.0 if one else factor)
    # The leader of the powers comes first.
    order = [*leads, *(joint for joint in ratios if joint not in leads)]
    names, values = [joint_name(model, joint) for joint in order], [float(ratios[joint]) for joint in order]
    powers = tuple(float(a) for a in c[2:]) if c[2:].any() else ()
    return Coupling(
        name, joint_name(model, first), names[0] if names else "", values[0] if values else 1.0, offset + float(c[0]),
        powers, leaders=names[1:], ratios=values[1:],
    )  # fmt: skip


def _markers(model: Any, names: list[str]) -> list[Marker]:
    """Return the sites that have names of their own, to be held or measured."""
    taken, markers = set(names), []
    for s in range(model.nsite):
        name = mujoco.mj_id2name(model, SITE, s)
        if name and name not in taken:
            taken.add(name)
            markers.append(Marker(name, names[int(model.site_bodyid[s])], tuple(model.site_pos[s])))
    return markers
