"""Feet that are held on the ground, and what the contact forces say of it.

A contact that sticks is a constraint, three rows for a point, six for a flat foot; its multipliers are the contact
forces. The linear model of a stance is valid as long as the ground pushes, and friction holds what acts sideways.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fmilin.diagnostics import Remark
from fmilin.errors import UnknownNameError, UsageError
from fmilin.signals import FloatArray, Signal

HeldPoint = Literal["contact", "center", "lowest"]
POINTS: dict[str, HeldPoint] = {"center": "center", "lowest": "lowest"}
WAYS = ("point", "flat", "center", "lowest")  # to hold a foot: FOOT:point, ...
FORCES = ("fx", "fy", "fz")
TORQUES = ("tx", "ty", "tz")
MAX_COMMON_FRICTION_RATIO = 1.0
"""More than this is remarked on where the friction of a contact is unknown: dry rubber on concrete has about it."""
CONTACT_FORCE_TOLERANCE = 1e-9  # of the largest contact force: rounding
MIN_FRICTION_FORCE_RATIO = 1e-6  # of the largest contact force: too little to be mentioned


@dataclass(frozen=True)
class Foot:
    """A foot: a part of the model that a contact constrains."""

    name: str  # of a part of the model
    flat: bool = False  # whether it may not turn either
    at: HeldPoint = "contact"  # which point of its geometry is held


def parse_feet(texts: Sequence[str]) -> tuple[Foot, ...]:
    """Return the feet that ``NAME``, ``NAME:point``, ``NAME:flat``, ``NAME:center`` and ``NAME:lowest`` ask for."""
    if isinstance(texts, str):
        raise UsageError(f"'hold' must be a sequence: write hold=['{texts}'] even for a single foot.")
    feet = []
    for text in texts:
        if not isinstance(text, str):
            raise UsageError(f"'hold' must contain names of feet, not {text!r}.")
        name, colon, how = text.rpartition(":")
        if not colon or how not in WAYS:
            name, how = text, "point"
        if not name:
            raise UsageError(f"The foot '{text}' has no name: write FOOT, {', '.join(f'FOOT:{w}' for w in WAYS)}.")
        feet.append(Foot(name, how == "flat", POINTS.get(how, "contact")))
    names = [foot.name for foot in feet]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"The foot '{twice[0]}' is named twice. Name each foot once.")
    return tuple(feet)


def unknown_foot_error(name: str, names: Iterable[str], what: str) -> UsageError:
    """Return the error for a foot that is not a part of a model, or has a misspelt kind of contact."""
    names = list(names)
    foot, colon, _ = name.rpartition(":")
    if colon and foot in names:
        ways = ", ".join(f"'{foot}:{way}'" for way in WAYS)
        return UsageError(f"'{name}' is not a way to hold a foot: write {ways}.")
    return UnknownNameError.among(name, names, what)


@dataclass(frozen=True)
class Contact:
    """A foot on the ground."""

    foot: Foot
    normal: FloatArray  # (3,), of the ground, upwards, in the world's axes
    friction: float | None = None  # coefficient of sliding friction; None where it is unknown
    # (k, 3), where a flat foot touches the ground, from its anchor, in the world's axes; empty where that is not known
    sole: FloatArray | None = None


def contact_signals(foot: Foot) -> list[Signal]:
    """Return the outputs of a held foot: the force on it in the world's axes, and the torque about its anchor."""
    forces = [Signal(f"{foot.name}.{f}", "N", description=f"contact force on {foot.name}") for f in FORCES]
    torques = [Signal(f"{foot.name}.{t}", "N.m", description=f"contact torque on {foot.name}") for t in TORQUES]
    return forces + (torques if foot.flat else [])


def contact_remarks(contacts: Sequence[Contact], forces: Mapping[str, FloatArray]) -> tuple[Remark, ...]:
    """Return how feet stand, with forces (3,) or (6,) by name, and what they could not do if they only stood."""
    determined = [contact for contact in contacts if np.isfinite(forces[contact.foot.name]).all()]
    largest = max((float(np.abs(forces[c.foot.name][:3]).max()) for c in determined), default=0.0)
    problems: list[str] = []
    loads: list[str] = []
    for contact in determined:
        name, force = contact.foot.name, forces[contact.foot.name]
        pushes = float(contact.normal @ force[:3])
        along = float(np.linalg.norm(force[:3] - pushes * contact.normal))
        if pushes < -CONTACT_FORCE_TOLERANCE * largest:
            problems.append(
                f"The ground would have to pull the foot '{name}' down with {-pushes:.4g} N at this point: a standing "
                "foot lifts off there, and the linear model is not valid for it. Choose another configuration or "
                "other torques, or do not hold this foot."
            )
        elif pushes <= CONTACT_FORCE_TOLERANCE * largest:
            loads.append(f"{name} carries nothing")
        else:
            problems += _slides(contact, pushes, along)
            problems += _tips(contact, pushes, force)
            friction = (
                f"a friction of {along / pushes:.2g}" if along > MIN_FRICTION_FORCE_RATIO * largest else "no friction"
            )
            loads.append(f"{name} carries {pushes:.4g} N and needs {friction}")
    undetermined = [c.foot.name for c in contacts if not np.isfinite(forces[c.foot.name]).all()]
    if undetermined:
        loads.append(f"how {', '.join(undetermined)} share their load is not determined")
    valid = "the linear model is valid while every foot is pressed to the ground and none slides"
    standing = (
        Remark("standing", f"Held on the ground: {'; '.join(loads)}. With these loads {valid}.") if loads else None
    )
    return (*(Remark("contact", problem) for problem in problems), *([] if standing is None else [standing]))


def _slides(contact: Contact, pushes: float, along: float) -> list[str]:
    needed, has = along / pushes, contact.friction
    if needed <= (MAX_COMMON_FRICTION_RATIO if has is None else has):
        return []
    ground = "few surfaces have that" if has is None else f"the contact has {has:.3g}"
    return [
        f"The foot '{contact.foot.name}' needs a friction of {needed:.3g} to stay where it is ({along:.4g} N along "
        f"the ground, {pushes:.4g} N across it), and {ground}: it slides there, and the linear model is not valid for "
        "it."
    ]


def _tips(contact: Contact, pushes: float, force: FloatArray) -> list[str]:
    """Warn if the centre of pressure of a flat foot is outside its sole."""
    if not contact.foot.flat or contact.sole is None or len(contact.sole) < 3:
        return []
    n = contact.normal
    height = float(np.mean(contact.sole @ n))
    # About the point r of the ground: torque - r x force has no part along the ground.
    r = (np.cross(n, force[3:]) + height * (force[:3] - pushes * n)) / pushes + height * n
    if inside(r, contact.sole, n):
        return []
    return [
        f"The foot '{contact.foot.name}' tips over at this point: its centre of pressure would have to be "
        f"{np.array2string(r, precision=3)} m from its anchor, outside its sole, and the linear model is not valid "
        "for it."
    ]


def inside(r: FloatArray, sole: FloatArray, n: FloatArray) -> bool:
    """Whether the point r (3,) is within the convex hull of ``sole`` (k, 3), seen along the normal n."""
    edges = sole[None, :, :] - sole[:, None, :]
    size = float(np.abs(edges).max())
    across = np.cross(n, edges)  # (k, k, 3): inwards or outwards of the line through two points
    heights = np.einsum("ijc,ikc->ijk", across, sole[None, :, :] - sole[:, None, :])
    is_edge = (heights >= -1e-12 * size**2).all(axis=2) & (np.linalg.norm(across, axis=2) > 1e-12 * size)
    of_point = np.einsum("ijc,ic->ij", across, r - sole)
    return bool((of_point[is_edge] >= -1e-9 * size**2).all())
