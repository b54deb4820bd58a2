"""The elements of an SDFormat file: models with links, frames and joints, each with its file and line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from fmilin.errors import ModelError, join_first
from fmilin.models.mechanism.part import ORIGIN, Placement, Vector
from fmilin.models.mechanism.urdf_elements import Inertial

MAX_LISTED_NAMES = 8  # so many names are listed in a diagnostic


@dataclass(frozen=True, slots=True)
class SdfLine:
    """A line of a file."""

    file: Path
    number: int

    def wrong(self, what: str) -> ModelError:
        """Return the error that something is wrong there; ``what`` is a sentence without its full stop."""
        return ModelError(f"'{self.file}', line {self.number}: {what}" + ("" if what.endswith(("?", ".")) else "."))

    @contextmanager
    def add_location(self) -> Iterator[None]:
        """Add the file and the line to what is wrong with a part that is made inside."""
        try:
            yield
        except ModelError as error:
            raise self.wrong(str(error)) from None


@dataclass(frozen=True, slots=True)
class SdfPose:
    """A frame in another one; in the default frame of its element where ``relative_to`` is empty."""

    placement: Placement = ORIGIN
    relative_to: str = ""


@dataclass(frozen=True, slots=True)
class SdfLink:
    """A link; without ``inertial`` it has the mass and inertia that SDFormat prescribes."""

    name: str
    line: SdfLine
    pose: SdfPose
    inertial: Inertial | None
    has_weight: bool


@dataclass(frozen=True, slots=True)
class SdfFrame:
    """A named frame, fixed to what it is attached to: the model's frame where that is empty."""

    name: str
    line: SdfLine
    pose: SdfPose
    attached_to: str
    placement_frame: str = ""  # of a merged model: the frame that stands where the pose says


@dataclass(frozen=True, slots=True)
class SdfMimic:
    """The position of an axis is multiplier q + offset, q that of an axis of another joint."""

    joint: str
    multiplier: float
    offset: float
    second: bool = False  # whether q is that of the other joint's second axis


@dataclass(frozen=True, slots=True)
class SdfAxis:
    """An axis of a joint with its damper and spring; in the joint's frame where ``expressed_in`` is empty."""

    xyz: Vector
    expressed_in: str = ""
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    lower: float = -inf
    upper: float = inf
    effort: float = inf
    mimic: SdfMimic | None = None


@dataclass(frozen=True, slots=True)
class SdfJoint:
    """A joint between two frames, or a frame and the world."""

    name: str
    type: str
    line: SdfLine
    parent: str
    child: str
    pose: SdfPose
    axes: tuple[SdfAxis, ...]
    pitch: float  # of a screw, in m/rad, right-handed
    gear_ratio: float
    gear_reference: str  # the link from which both angles of a gearbox are measured
    armature: float  # in kg m2 or kg


@dataclass(frozen=True, slots=True)
class SdfPointPair:
    """Points of two links that Drake's elements hold together, or connect by a spring and a damper."""

    name: str
    line: SdfLine
    links: tuple[str, str]
    points: tuple[Vector, Vector]  # in the links' frames
    spring: tuple[float, float, float] | None  # free length, stiffness and damping


@dataclass(frozen=True, slots=True)
class SdfModel:
    """A model with the models inside it, or a world."""

    name: str
    line: SdfLine
    pose: SdfPose
    placement_frame: str
    canonical_link: str
    static: bool
    links: tuple[SdfLink, ...]
    frames: tuple[SdfFrame, ...]
    joints: tuple[SdfJoint, ...]
    models: tuple[SdfModel, ...]
    pairs: tuple[SdfPointPair, ...] = ()


@dataclass(frozen=True, slots=True)
class SdfFile:
    """The whole file, with what it includes."""

    top: SdfModel
    is_world: bool
    gravity: Vector | None


@dataclass
class SdfNotes:
    """Collects what is left out or assumed."""

    unknown: dict[str, str] = field(default_factory=dict)  # what SDFormat does not know, with the first line of each
    plugins: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # what is known and could matter
    without_inertial: list[str] = field(default_factory=list)  # links
    locked: list[str] = field(default_factory=list)  # joints with limits that leave no motion

    def sentences(self) -> list[str]:
        """Return the diagnostics, one of each kind."""
        sentences = []
        if self.without_inertial:
            sentences.append(
                "Without <inertial>, SDFormat gives a link 1 kg and moments of inertia of 1 kg m2: "
                f"{join_first(self.without_inertial, MAX_LISTED_NAMES)}."
            )
        if self.locked:
            sentences.append(
                f"Limits leave no motion to the joints {join_first(self.locked, MAX_LISTED_NAMES)}, but limits are "
                "left out and the joints move. Fix them with fix_joint=[...]."
            )
        if self.plugins:
            sentences.append(
                f"The code of plugins is left out: {join_first(self.plugins, MAX_LISTED_NAMES)}. Forces that they "
                "exert are missing."
            )
        if self.left_out:
            sentences.append(f"Left out: {join_first(self.left_out.values(), MAX_LISTED_NAMES)}.")
        if self.unknown:
            sentences.append(
                f"Ignored, because SDFormat does not define it: {join_first(self.unknown.values(), MAX_LISTED_NAMES)}."
            )
        return sentences
