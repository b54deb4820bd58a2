"""Tendons and actuators of a compiled MuJoCo model as those of a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

from fmilin.models.mechanism import Actuator, Placement, Tendon
from fmilin_mujoco.left_out import NotUnderstoodError
from fmilin_mujoco.names import ACTUATOR, TENDON, joint_name, name_of
from fmilin_mujoco.rotations import matrix_of
from fmilin_mujoco.start import Start

__all__ = ["actuators_of", "tendon_name", "tendons_of"]

WRAP, GAIN, BIAS, DYN, TRN, JOINTS = (
    mujoco.mjtWrap,
    mujoco.mjtGain,
    mujoco.mjtBias,
    mujoco.mjtDyn,
    mujoco.mjtTrn,
    mujoco.mjtJoint,
)


def tendon_name(model: Any, i: int) -> str:
    """Return the name of a tendon: another one where an actuator is called like it."""
    name = name_of(model, TENDON, i, "tendon")
    actuators = {name_of(model, ACTUATOR, k, "actuator") for k in range(len(model.actuator_trntype))}
    return f"{name}/tendon" if name in actuators else name


def tendons_of(model: Any, names: Sequence[str]) -> list[Tendon]:
    """Return all tendons.

    Raises
    ------
    NotUnderstoodError
        When one wraps around a geom, or has limits for the forces of actuators.
    """
    tendons = []
    for i in range(model.ntendon):
        name = tendon_name(model, i)
        if model.tendon_actfrclimited[i]:
            raise NotUnderstoodError(f"the forces of actuators on the tendon '{name}' are limited")
        first = int(model.tendon_adr[i])
        wraps = range(first, first + int(model.tendon_num[i]))
        common: dict[str, Any] = {
            "stiffness": float(model.tendon_stiffness[i]),
            "damping": float(model.tendon_damping[i]),
            "rest": tuple(model.tendon_lengthspring[i]) if model.tendon_stiffness[i] else 0.0,
        }
        if model.wrap_type[first] == WRAP.mjWRAP_JOINT:
            joints = [joint_name(model, int(model.wrap_objid[w])) for w in wraps]
            tendons.append(Tendon(name, tuple(joints), tuple(model.wrap_prm[w] for w in wraps), **common))
        else:
            tendons.append(_along_sites(model, name, wraps, names, common))
    return tendons


def _along_sites(model: Any, name: str, wraps: range, names: Sequence[str], common: dict[str, Any]) -> Tendon:
    bodies: list[str] = []
    points: list[Any] = []
    weights: list[float] = []
    divisor, joined = 1.0, False
    for w in wraps:
        kind, i = model.wrap_type[w], int(model.wrap_objid[w])
        if kind == WRAP.mjWRAP_PULLEY:
            divisor, joined = float(model.wrap_prm[w]), False
        elif kind == WRAP.mjWRAP_SITE:
            if bodies:
                weights.append(1 / divisor if joined else 0.0)
            bodies.append(names[int(model.site_bodyid[i])])
            points.append(tuple(model.site_pos[i]))
            joined = True
        else:
            raise NotUnderstoodError(f"the tendon '{name}' wraps around a geom")
    return Tendon(name, bodies=tuple(bodies), points=tuple(points), weights=tuple(weights), **common)


def actuators_of(model: Any, names: Sequence[str], tendons: Sequence[Tendon], start: Start) -> list[Actuator]:
    """Return all actuators, in the order of the controls.

    Raises
    ------
    NotUnderstoodError
        When a law or a transmission is not that of a mechanism.
    """
    clamps = not model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL)
    actuators = []
    for i in range(len(model.actuator_trntype)):
        name = name_of(model, ACTUATOR, i, "actuator")
        for counts in ("actuator_ctrlnum", "actuator_outnum"):
            if hasattr(model, counts) and getattr(model, counts)[i] != 1:
                raise NotUnderstoodError(f"the actuator '{name}' has several inputs or outputs")
        target, has_length = _target(model, i, name, names, tendons)
        law = _law(model, i, name, has_length)
        state = int(model.actuator_actadr[i])
        control = int(model.actuator_ctrladr[i]) if hasattr(model, "actuator_ctrladr") else i
        limited = model.actuator_ctrllimited[i] and clamps
        actuators.append(
            Actuator(
                name,
                **target,
                **law,
                control_limits=tuple(model.actuator_ctrlrange[i]) if limited else (),
                force_limits=tuple(model.actuator_forcerange[i]) if model.actuator_forcelimited[i] else (),
                start=float(start.ctrl[control]),
                activation=float(start.act[state]) if state >= 0 else 0.0,
            )
        )
    return actuators


def _target(
    model: Any, i: int, name: str, names: Sequence[str], tendons: Sequence[Tendon]
) -> tuple[dict[str, Any], bool]:
    """Return what an actuator drives, and whether that has a length."""
    kind, (first, second), gear = TRN(model.actuator_trntype[i]), model.actuator_trnid[i], model.actuator_gear[i]
    if kind in (TRN.mjTRN_JOINT, TRN.mjTRN_JOINTINPARENT):
        joint = JOINTS(model.jnt_type[first])
        free = joint in (JOINTS.mjJNT_FREE, JOINTS.mjJNT_BALL)
        if free and kind == TRN.mjTRN_JOINTINPARENT:
            raise NotUnderstoodError(f"the actuator '{name}' drives a ball in axes of the parent")
        count = {JOINTS.mjJNT_FREE: 6, JOINTS.mjJNT_BALL: 3}.get(joint, 1)
        if joint == JOINTS.mjJNT_BALL and (model.actuator_biasprm[i, 1] or _gain(model, i)[1]):
            raise NotUnderstoodError(f"the actuator '{name}' is a servo of a ball")
        return {"joint": joint_name(model, int(first)), "gear": tuple(gear[:count])}, not free
    if kind == TRN.mjTRN_TENDON:
        return {"tendon": tendons[int(first)].name, "gear": float(gear[0])}, True
    if kind == TRN.mjTRN_SITE and second < 0:
        placement = Placement(tuple(model.site_pos[first]), matrix_of(model.site_quat[first]))
        return {"body": names[int(model.site_bodyid[first])], "gear": tuple(gear), "placement": placement}, False
    word = "a site relative to another" if kind == TRN.mjTRN_SITE else kind.name.removeprefix("mjTRN_").lower()
    raise NotUnderstoodError(f"the actuator '{name}' drives {word}")


def _gain(model: Any, i: int) -> Any:
    prm = model.actuator_gainprm[i]
    return prm[:3] if model.actuator_gaintype[i] == GAIN.mjGAIN_AFFINE else np.array([prm[0], 0.0, 0.0])


def _law(model: Any, i: int, name: str, has_length: bool) -> dict[str, Any]:  # noqa: FBT001 - a fact, no switch
    kinds = GAIN(model.actuator_gaintype[i]), BIAS(model.actuator_biastype[i]), DYN(model.actuator_dyntype[i])
    laws = (
        (GAIN.mjGAIN_FIXED, GAIN.mjGAIN_AFFINE),
        (BIAS.mjBIAS_NONE, BIAS.mjBIAS_AFFINE),
        (DYN.mjDYN_NONE, DYN.mjDYN_INTEGRATOR, DYN.mjDYN_FILTER, DYN.mjDYN_FILTEREXACT),
    )
    for kind, understood in zip(kinds, laws, strict=True):
        if kind not in understood:
            what, word = kind.name.removeprefix("mj").split("_", 1)
            raise NotUnderstoodError(f"the actuator '{name}' has the {what.lower()} '{word.lower()}'")
    if model.actuator_actearly[i]:
        raise NotUnderstoodError(f"the actuator '{name}' acts one step early (actearly)")
    gain = _gain(model, i).copy()
    bias = model.actuator_biasprm[i, :3].copy() if kinds[1] == BIAS.mjBIAS_AFFINE else np.zeros(3)
    if not has_length:  # which is zero in MuJoCo
        gain[1] = bias[1] = 0.0
    law: dict[str, Any] = {"gain": tuple(gain), "bias": tuple(bias)}
    if kinds[2] == DYN.mjDYN_INTEGRATOR:
        law["dynamics"] = "integrator"
    elif kinds[2] != DYN.mjDYN_NONE:
        law |= {"dynamics": "filter", "time_constant": max(float(model.actuator_dynprm[i, 0]), float(mujoco.mjMINVAL))}
    return law
