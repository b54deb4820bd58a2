"""Where a model starts: at a keyframe, with its loops closed.

Bodies that a keyframe holds to the ground are held there, and open loops are closed. MuJoCo compiles where two bodies
are connected at its reference positions. Where a keyframe puts a foot elsewhere, it is meant to stand there: connects
and welds to what does not move are anchored anew at the start. Other loops are lengths of the mechanism: positions move
as little as possible until they are closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np

from fmilin.errors import UnknownNameError, UsageError
from fmilin.signals import FloatArray
from fmilin_mujoco.equalities import Equality
from fmilin_mujoco.names import name_of
from fmilin_mujoco.start import Start

__all__ = ["anchored", "closed_start", "start_of"]


ITERATIONS = 60
CLOSED = 1e-13
"""Gaps that are left, relative to the size of the model."""
AS_COMPILED = 1e-9
"""How well a weld fits the reference positions where MuJoCo took it from there, in m and rad."""
WORTH_A_REMARK = 1e-9
"""Changes from which on they are said, in m or rad."""


def anchored(model: Any, start: Start) -> tuple[str, ...]:
    """Anchor what holds bodies to something that does not move where they are at the start; return what was done.

    ``model`` is changed. Sites stay where they are, and a weld keeps a pose that the file gives it.
    """
    if not start.keyframe:
        return ()
    reference, now = _posed(model, model.qpos0), _posed(model, start.qpos)
    anchored = []
    for i in range(model.neq):
        kind, bodies = model.eq_type[i], (int(model.eq_obj1id[i]), int(model.eq_obj2id[i]))
        if model.eq_objtype[i] != mujoco.mjtObj.mjOBJ_BODY or not model.eq_active0[i] or not _to_ground(model, bodies):
            continue
        if kind == mujoco.mjtEq.mjEQ_CONNECT:
            moved = _anchor_connect(model, i, bodies, now)
        elif kind == mujoco.mjtEq.mjEQ_WELD and _gap_of_weld(model, i, bodies, reference) < AS_COMPILED:
            moved = _gap_of_weld(model, i, bodies, now)
            _anchor_weld(model, i, bodies, now)
        else:
            continue
        if moved > WORTH_A_REMARK:
            name = name_of(model, mujoco.mjtObj.mjOBJ_EQUALITY, i, "equality")
            anchored.append(f"'{name}' by {moved:.3g} m")
    if not anchored:
        return ()
    return (
        "The parts that these equality constraints hold to the ground stay at their positions in the keyframe "
        f"'{start.keyframe}', not at those of MuJoCo's compilation: {', '.join(anchored)}.",
    )


def closed_start(model: Any, start: Start, equalities: Sequence[Equality]) -> tuple[Start, tuple[str, ...]]:
    """Return the nearest start that closes all loops, positions and velocities, and by how much it differs.

    Where the loops cannot be closed the start stays what it was, to be rejected with its gaps.
    """
    if not equalities:
        return start, ()
    data = _posed(model, start.qpos, start.mocap)
    qpos = data.qpos.copy()
    size = max(float(model.stat.extent), 1e-3)
    opened = float(np.abs(_gaps(equalities, data)).max())
    for _ in range(ITERATIONS):
        g, G = (np.concatenate(parts) for parts in zip(*(e.rows(data) for e in equalities), strict=True))
        if float(np.abs(g).max()) <= CLOSED * size:
            break
        step = -np.linalg.lstsq(G, g, rcond=1e-10)[0]
        mujoco.mj_integratePos(model, data.qpos, step, 1.0)
        _pose(model, data)
    left = float(np.abs(_gaps(equalities, data)).max())
    if left > 1e3 * CLOSED * size:
        return start, ()
    change = np.zeros(model.nv)
    mujoco.mj_differentiatePos(model, change, 1.0, qpos, data.qpos)
    G = np.concatenate([e.rows(data)[1] for e in equalities])
    slip = G @ start.qvel
    qvel = start.qvel - (np.linalg.lstsq(G, slip, rcond=1e-10)[0] if np.abs(slip).max(initial=0.0) > 0 else 0.0)
    remarks = []
    if opened > CLOSED * size:
        start = replace(start, qpos=data.qpos.copy())
    if opened > WORTH_A_REMARK:
        remarks.append(
            f"At the start of the model its equality constraints are open by up to {opened:.3g} m or rad: positions "
            f"were moved by up to {np.abs(change).max():.3g} m or rad, as little as closes them."
        )
    turned = float(np.abs(qvel - start.qvel).max(initial=0.0))
    if turned > WORTH_A_REMARK:
        remarks.append(
            f"Velocities at the start were changed by up to {turned:.3g}, so that the constraints stay closed."
        )
    return replace(start, qvel=qvel), tuple(remarks)


def _to_ground(model: Any, bodies: tuple[int, int]) -> bool:
    """Whether one of two bodies does not move; a mocap body is moved from outside."""
    return any(model.body_weldid[b] == 0 and model.body_mocapid[model.body_rootid[b]] < 0 for b in bodies)


def _anchor_connect(model: Any, i: int, bodies: tuple[int, int], data: Any) -> float:
    first, second = bodies
    p = data.xpos[first] + data.xmat[first].reshape(3, 3) @ model.eq_data[i][:3]
    other = data.xpos[second] + data.xmat[second].reshape(3, 3) @ model.eq_data[i][3:6]
    if model.body_weldid[first] == 0:  # the anchor is a point of what moves
        p, other = other, p
        model.eq_data[i][:3] = data.xmat[first].reshape(3, 3).T @ (p - data.xpos[first])
    else:
        model.eq_data[i][3:6] = data.xmat[second].reshape(3, 3).T @ (p - data.xpos[second])
    return float(np.linalg.norm(p - other))


def _relative(bodies: tuple[int, int], data: Any) -> tuple[FloatArray, FloatArray]:
    """Return where the second body is in the first: position and quaternion."""
    first, second = bodies
    p, q, back = np.zeros(3), np.zeros(4), np.zeros(4)
    p[:] = data.xmat[first].reshape(3, 3).T @ (data.xpos[second] - data.xpos[first])
    mujoco.mju_negQuat(back, data.xquat[first])
    mujoco.mju_mulQuat(q, back, data.xquat[second])
    return p, q


def _gap_of_weld(model: Any, i: int, bodies: tuple[int, int], data: Any) -> float:
    p, q = _relative(bodies, data)
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, q)
    row = model.eq_data[i]
    apart = p + R.reshape(3, 3) @ row[:3] - row[3:6]
    turned = min(np.abs(q - row[6:10]).max(), np.abs(q + row[6:10]).max())
    return float(max(np.abs(apart).max(), turned))


def _anchor_weld(model: Any, i: int, bodies: tuple[int, int], data: Any) -> None:
    p, q = _relative(bodies, data)
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, q)
    model.eq_data[i][3:6] = p + R.reshape(3, 3) @ model.eq_data[i][:3]
    model.eq_data[i][6:10] = q


def _posed(model: Any, qpos: FloatArray, mocap: tuple[FloatArray, FloatArray] | None = None) -> Any:
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    if mocap is not None:
        data.mocap_pos[:], data.mocap_quat[:] = mocap
    mujoco.mj_normalizeQuat(model, data.qpos)
    _pose(model, data)
    return data


def _pose(model: Any, data: Any) -> None:
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)


def _gaps(equalities: Sequence[Equality], data: Any) -> FloatArray:
    return np.concatenate([e.rows(data)[0] for e in equalities])


KEY = mujoco.mjtObj.mjOBJ_KEY
HOME = "home"


def start_of(model: Any, keyframe: str | None = None) -> Start:
    """Return a keyframe by name; without a name ``home``, else the first, else the reference positions.

    Raises
    ------
    UnknownNameError
        When there is no keyframe of this name.
    UsageError
        When there are no keyframes at all.
    """
    names = tuple(name_of(model, KEY, i, "keyframe") for i in range(model.nkey))
    if keyframe is not None and not isinstance(keyframe, str):
        raise UsageError(f"'keyframe' must be the name of a keyframe, not {keyframe!r}.")
    if keyframe is not None and keyframe not in names:
        if not names:
            raise UsageError(f"There is no keyframe '{keyframe}': the model has no keyframes, and starts at its qpos0.")
        raise UnknownNameError.among(keyframe, list(names), "a keyframe of the model")
    data = mujoco.MjData(model)
    if not names:
        return _start("", names, data, ())
    taken = keyframe if keyframe is not None else HOME if HOME in names else names[0]
    mujoco.mj_resetDataKeyframe(model, data, names.index(taken))
    remarks: tuple[str, ...] = ()
    if keyframe is None and len(names) > 1:
        remarks = (f"The model starts at the keyframe '{taken}', one of {len(names)} ({_listed(names)}).",)
    return _start(taken, names, data, remarks)


def _start(taken: str, names: tuple[str, ...], data: Any, remarks: tuple[str, ...]) -> Start:
    return Start(
        keyframe=taken,
        keyframes=names,
        qpos=data.qpos.copy(),
        qvel=data.qvel.copy(),
        act=data.act.copy(),
        ctrl=data.ctrl.copy(),
        mocap=(data.mocap_pos.copy(), data.mocap_quat.copy()),
        time=float(data.time),
        remarks=remarks,
    )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
