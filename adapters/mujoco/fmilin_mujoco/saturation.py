"""Which actuators have reached a limit at a point: their inputs move nothing there, or only inwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from fmilin.adapters import classify_side, limit_remarks
from fmilin_mujoco.names import ACTUATOR, JOINT, name_of

__all__ = ["Muscle", "Saturation", "describe_branches", "muscles_of", "opened", "saturation_of"]

AT = 1e-12
"""How near a limit counts as there, relative to the range."""
FAR = 1e30
MUSCLE = mujoco.mjtDyn.mjDYN_MUSCLE


@dataclass(frozen=True)
class Saturation:
    """The actuators at a limit.

    Attributes
    ----------
    at : tuple of (int, int)
        Actuators with the control at its lower (0) or upper (1) limit.
    remarks : tuple of str
    """

    at: tuple[tuple[int, int], ...]
    remarks: tuple[str, ...]


def saturation_of(model: Any, data: Any) -> Saturation:
    """Return what stands at or beyond a limit, the forces of actuators in ``data`` being computed."""
    beyond, at = [], []
    for i in range(len(model.actuator_ctrllimited)):
        if not _takes_one(model, i):
            continue
        name = name_of(model, ACTUATOR, i, "actuator")
        limits = _limits(model, i)
        if limits is not None:
            value = float(data.ctrl[_address(model, "actuator_ctrladr", i)])
            side = classify_side(value, *limits)
            if side == "beyond":
                beyond.append(f"{name} ({value:.6g} is outside {limits[0]:.6g} .. {limits[1]:.6g})")
            elif side != "inside":
                at.append((i, int(side == "upper"), f"{name} ({value:.6g})"))
    remarks = limit_remarks(beyond, [text for _, _, text in at], _pushed(model, data))
    return Saturation(tuple((i, side) for i, side, _ in at), remarks)


def _pushed(model: Any, data: Any) -> list[str]:
    """Return the actuators and joints with forces at their limits."""
    saturated = []
    for i in np.flatnonzero(model.actuator_forcelimited).tolist():
        if _takes_one(model, i):
            force = float(data.actuator_force[_address(model, "actuator_outadr", i)])
            if classify_side(force, *model.actuator_forcerange[i]) != "inside":
                saturated.append(f"{name_of(model, ACTUATOR, i, 'actuator')} (force {force:.6g})")
    for j in np.flatnonzero(model.jnt_actfrclimited).tolist():
        force = float(data.qfrc_actuator[model.jnt_dofadr[j]])
        if classify_side(force, *model.jnt_actfrcrange[j]) != "inside":
            saturated.append(f"the joint {name_of(model, JOINT, j, 'joint')} (force {force:.6g})")
    return saturated


def opened(model: Any, at: tuple[tuple[int, int], ...]) -> None:
    """Let controls cross the limits at which they stand; ``model`` is changed."""
    for i, side in at:
        model.actuator_ctrlrange[i, side] = (-FAR, FAR)[side]


@dataclass(frozen=True)
class Muscle:
    """A muscle that rests at a limit of its control: activation and deactivation have different time constants there.

    Columns of both would belong to no linear model (the gain from control to activation would be their quotient), so
    all of them are those of the motion inwards, in which the activation follows the control away from the limit.

    Attributes
    ----------
    actuator, control, activation : int
        Its number, and the places of its values in ``ctrl`` and ``act``.
    limit : float
    rise, fall : float
        Time constants of activation and deactivation, before their dependence on the activation.
    """

    actuator: int
    control: int
    activation: int
    limit: float
    rise: float
    fall: float

    def rate(self, ctrl: Any, act: Any) -> float:
        """Return the rate of the activation in the branch in which it follows the control inwards."""
        a = float(act[self.activation])
        stretch = 0.5 + 1.5 * a
        inwards = self.rise * stretch if self.limit < 0.5 else self.fall / stretch
        return (float(ctrl[self.control]) - a) / inwards


def describe_branches(model: Any, muscles: tuple[Muscle, ...]) -> list[str]:
    """Return a note on muscles at a limit: which of their two time constants the linear model has, and the other."""
    notes = []
    for muscle in muscles:
        stretch = 0.5 + 1.5 * muscle.limit
        rise, fall = muscle.rise * stretch, muscle.fall / stretch
        kind, constant, other = ("activation", rise, fall) if muscle.limit < 0.5 else ("deactivation", fall, rise)
        name = name_of(model, ACTUATOR, muscle.actuator, "actuator")
        notes.append(
            f"The muscle '{name}' has a kink where its activation equals its control: the linear model has the branch "
            f"of {kind}, with a time constant of {constant:.4g} s; in the other direction it is {other:.4g} s."
        )
    return notes


def muscles_of(model: Any, data: Any, at: tuple[tuple[int, int], ...]) -> tuple[Muscle, ...]:
    """Return the muscles among actuators at a limit with an activation at its limit, too, and a sharp switch."""
    muscles = []
    for i, side in at:
        if model.actuator_dyntype[i] != MUSCLE or model.actuator_dynprm[i, 2] > 0:
            continue
        control, activation = _address(model, "actuator_ctrladr", i), int(model.actuator_actadr[i])
        if abs(data.act[activation] - data.ctrl[control]) <= AT and data.ctrl[control] in (0.0, 1.0):
            rise, fall = model.actuator_dynprm[i, :2]
            muscles.append(Muscle(i, control, activation, float(side), float(rise), float(fall)))
    return tuple(muscles)


def _limits(model: Any, i: int) -> tuple[float, float] | None:
    if not model.actuator_ctrllimited[i] or model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL):
        return (0.0, 1.0) if model.actuator_dyntype[i] == MUSCLE else None
    return float(model.actuator_ctrlrange[i, 0]), float(model.actuator_ctrlrange[i, 1])


def _address(model: Any, what: str, i: int) -> int:
    """Return where an actuator's control or force stands: before MuJoCo 4 at its own number."""
    return int(getattr(model, what)[i]) if hasattr(model, what) else i


def _takes_one(model: Any, i: int) -> bool:
    """Whether an actuator has one input and one force, as all had before MuJoCo 4."""
    return all(not hasattr(model, n) or getattr(model, n)[i] == 1 for n in ("actuator_ctrlnum", "actuator_outnum"))
