"""Feet held on the ground: sites, geoms and bodies that stay where they are, with what MuJoCo knows of the contact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from fmilin.adapters import Contact, Foot, unknown_foot_error
from fmilin.errors import ConstraintError, ModelError, UsageError
from fmilin.signals import FloatArray
from fmilin_mujoco.equalities import Connect, Weld, held_to_world
from fmilin_mujoco.shapes import points_of
from fmilin_mujoco.start import Start, placed

__all__ = ["HeldFoot", "held_feet"]

OBJECT = mujoco.mjtObj
KINDS = (OBJECT.mjOBJ_SITE, OBJECT.mjOBJ_GEOM, OBJECT.mjOBJ_BODY)
NEAR = 0.01
"""How far above the ground a foot still stands on it, in sizes of the model."""
WORTH_A_REMARK = 1e-3
"""How far a foot hovers or is pressed in before it is said, in sizes of the model."""
AT_REST = 1e-6
"""Speed of a foot at the point, in m/s or rad/s, relative to that of the fastest joint (or 1)."""


@dataclass(frozen=True)
class HeldFoot:
    """A foot with what holds it.

    Attributes
    ----------
    contact : Contact
    equality : Connect or Weld
    body : int
    remark : str
        That it is in the air; empty where it stands on something.
    """

    contact: Contact
    equality: Connect | Weld
    body: int
    remark: str


@dataclass(frozen=True)
class _Touch:
    """Where a foot touches what does not move.

    Attributes
    ----------
    points : array, shape (k, 3)
    normal : array, shape (3,)
        Towards the foot.
    friction : float
    distance : float
        Between the surfaces; negative where they overlap.
    """

    points: FloatArray
    normal: FloatArray
    friction: float
    distance: float


def held_feet(model: Any, start: Start, feet: Sequence[Foot]) -> list[HeldFoot]:
    """Return what holds each foot where it is at the start.

    A site and a body are held at their origins, a geom and a body that touch the ground where they touch it: halfway
    between the surfaces where they overlap. ``:center`` and ``:lowest`` hold that point of the geometry instead.

    Raises
    ------
    UnknownNameError
        With the nearest names.
    ModelError
        When a foot is fixed to the world.
    ConstraintError
        When a foot moves.
    """
    if not feet:
        return []
    near = copy(model)
    near.geom_margin[:] = NEAR * model.stat.extent
    data = placed(near, start)
    return [_held(near, data, foot) for foot in feet]


def _held(model: Any, data: Any, foot: Foot) -> HeldFoot:
    kind, index = _find(model, foot.name)
    body = index if kind == OBJECT.mjOBJ_BODY else int(_body_of(model, kind)[index])
    if model.body_weldid[body] == 0:
        raise ModelError(f"The foot '{foot.name}' is fixed to the world, so holding it has no effect. Leave it out.")
    touch = _touch(model, data, body, index if kind == OBJECT.mjOBJ_GEOM else None)
    g = np.array(model.opt.gravity)
    up = -g / np.linalg.norm(g) if g.any() else np.array([0.0, 0.0, 1.0])
    points = points_of(model, data, _shapes(model, kind, index, body), up if touch is None else touch.normal)
    if foot.at != "contact" and not points:
        raise UsageError(f"The foot '{foot.name}' has no shape of its own: leave ':{foot.at}' out.")
    p = _anchor(data, kind, index, touch) if foot.at == "contact" else points[foot.at]
    _require_rest(model, data, foot, body, p)
    remark = ""
    size = float(model.stat.extent)
    if touch is None:
        contact = Contact(foot, up)
        remark = f"The foot '{foot.name}' touches nothing at the start: it is held in the air."
    else:
        contact = Contact(foot, touch.normal, touch.friction, touch.points - p)
        if abs(touch.distance) > WORTH_A_REMARK * size:
            where = "above the ground" if touch.distance > 0 else "inside the ground"
            remark = f"The foot '{foot.name}' is {abs(touch.distance):.3g} m {where} at the start: it is held there."
            remark += _others(foot, p, points)
    anchors = held_to_world(model, data, body, p)
    name = f"{foot.name}.contact"
    if not foot.flat:
        return HeldFoot(contact, Connect(name, anchors), body, remark)
    back = np.array(data.xquat[body]) * np.array([1.0, -1.0, -1.0, -1.0])
    return HeldFoot(contact, Weld(name, anchors, back), body, remark)


def _others(foot: Foot, p: FloatArray, points: Mapping[str, FloatArray]) -> str:
    """Say which other points of the foot could be held, and how far they are from the one that is."""
    away = {how: float(np.linalg.norm(point - p)) for how, point in points.items() if how != foot.at}
    if not away or foot.flat:
        return ""
    said = " and ".join(f"'{foot.name}:{how}', {distance:.2g} m away," for how, distance in away.items())
    what = {"contact": "the point of contact", "center": "the centre", "lowest": "the lowest point"}[foot.at]
    return f" The held point is {what} of its geometry; {said} would give another linear model."


def _shapes(model: Any, kind: Any, index: int, body: int) -> list[int]:
    """Return the geoms of a foot: itself, or all that move with a body and can touch something; none of a site."""
    if kind == OBJECT.mjOBJ_GEOM:
        return [index]
    mine = model.body_weldid[model.geom_bodyid] == model.body_weldid[body]
    touching = (model.geom_contype | model.geom_conaffinity) != 0
    return [] if kind == OBJECT.mjOBJ_SITE else np.flatnonzero(mine & touching).tolist()


def _find(model: Any, name: str) -> tuple[Any, int]:
    for kind in KINDS:
        index = mujoco.mj_name2id(model, kind, name)
        if index >= 0:
            return kind, index
    counts = (model.nsite, model.ngeom, model.nbody)
    names = [mujoco.mj_id2name(model, k, i) for k, n in zip(KINDS, counts, strict=True) for i in range(n)]
    named = list(dict.fromkeys(n for n in names if n and n != "world"))
    raise unknown_foot_error(name, named, "a site, geom or body of the model that could be held")


def _body_of(model: Any, kind: Any) -> Any:
    return model.site_bodyid if kind == OBJECT.mjOBJ_SITE else model.geom_bodyid


def _touch(model: Any, data: Any, body: int, geom: int | None) -> _Touch | None:
    """Return where a geom, or any geom that moves with a body, touches what does not move; None where nowhere."""
    points, normals, friction, distances = [], [], [], []
    weld = model.body_weldid[model.geom_bodyid]
    mine = np.arange(model.ngeom) == geom if geom is not None else weld == model.body_weldid[body]
    for i in range(data.ncon):
        contact = data.contact[i]
        first, second = (int(g) for g in contact.geom)
        if min(first, second) < 0 or mine[first] == mine[second] or weld[second if mine[first] else first] != 0:
            continue
        points.append(np.array(contact.pos))
        normals.append(np.array(contact.frame[:3]) * (1.0 if mine[second] else -1.0))
        friction.append(float(contact.friction[0]) if contact.dim > 1 else 0.0)
        distances.append(float(contact.dist))
    if not points:
        return None
    normal = np.mean(normals, axis=0)
    return _Touch(np.array(points), normal / np.linalg.norm(normal), min(friction), min(distances, key=abs))


def _anchor(data: Any, kind: Any, index: int, touch: _Touch | None) -> FloatArray:
    if kind == OBJECT.mjOBJ_SITE:
        return np.array(data.site_xpos[index])
    if touch is not None:
        return np.asarray(touch.points.mean(axis=0))
    return np.array((data.geom_xpos if kind == OBJECT.mjOBJ_GEOM else data.xpos)[index])


def _require_rest(model: Any, data: Any, foot: Foot, body: int, p: FloatArray) -> None:
    J_p, J_r = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    mujoco.mj_jac(model, data, J_p, J_r, p, body)
    J = np.vstack((J_p, J_r)) if foot.flat else J_p
    speed = float(np.linalg.norm(J @ data.qvel))
    if speed > AT_REST * max(1.0, float(np.abs(data.qvel).max(initial=0.0))):
        raise ConstraintError(
            f"The foot '{foot.name}' cannot be held at this point: it moves there, at {speed:.3g} m/s. Choose a point "
            "at which it does not move."
        )
