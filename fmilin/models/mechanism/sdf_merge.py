"""Models that ``<include merge='true'>`` merges into the model around: their parts, with a frame in place of theirs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fmilin.models.mechanism.sdf_elements import SdfFrame, SdfJoint, SdfModel, SdfPose

MODEL = "__model__"


def list_merged_parts(model: SdfModel, *, in_world: bool) -> dict[str, list[Any]]:
    """Return the links, frames, joints and models of a merged model as parts of the model around it.

    The frame ``_merged__NAME__model__`` stands where the model's own would, and poses refer to it.
    """
    if in_world and model.links:
        raise model.line.wrong(f"the model '{model.name}' has links, so it cannot be merged into a world")
    if model.pairs:
        raise model.pairs[0].line.wrong("this element of Drake is not read in a merged model")
    if model.static:
        raise model.line.wrong(f"the model '{model.name}' is static, so it cannot be merged into another one")
    proxy = f"_merged__{model.name}__model__"
    canonical = model.canonical_link or next((link.name for link in model.links), "")
    pose = SdfPose(model.pose.placement, model.pose.relative_to or MODEL)

    def redirect(name: str, *, is_default: bool = True) -> str:
        return proxy if name == MODEL or (is_default and not name) else name

    def move(pose: SdfPose, *, is_default: bool = True) -> SdfPose:
        return replace(pose, relative_to=redirect(pose.relative_to, is_default=is_default))

    def move_joint(joint: SdfJoint) -> SdfJoint:
        axes = (replace(axis, expressed_in=redirect(axis.expressed_in, is_default=False)) for axis in joint.axes)
        return replace(
            joint,
            parent=redirect(joint.parent),
            child=redirect(joint.child),
            pose=move(joint.pose, is_default=False),
            axes=tuple(axes),
        )

    frames = [SdfFrame(proxy, model.line, pose, canonical, model.placement_frame)]
    frames += [
        replace(frame, attached_to=redirect(frame.attached_to), pose=move(frame.pose, is_default=False))
        for frame in model.frames
    ]
    return {
        "link": [replace(link, pose=move(link.pose)) for link in model.links],
        "frame": frames,
        "joint": [move_joint(joint) for joint in model.joints],
        "model": [replace(inner, pose=move(inner.pose)) for inner in model.models],
    }
