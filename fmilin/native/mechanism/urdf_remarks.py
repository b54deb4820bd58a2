"""What a user should know of a URDF file, one sentence of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fmilin.native.mechanism.urdf_elements import UrdfTree

__all__ = ["UrdfRemarks"]

SHOWN = 8
"""So many names are listed in a remark."""


@dataclass
class UrdfRemarks:
    """Collects what there is to say."""

    massless: list[str] = field(default_factory=list)  # links with a mass of 0
    # by which part of it the largest moment of a link exceeds the sum of the others
    beyond: dict[str, float] = field(default_factory=dict)
    negative: dict[str, float] = field(default_factory=dict)  # the negative moment of a link, in kg m2
    astray: list[str] = field(default_factory=list)  # sentences about joints that mimic what is not there

    def told(self, tree: UrdfTree) -> list[str]:
        """Return the remarks, one of each kind."""
        found = []
        if rubbing := [joint.name for joint in tree.joints if joint.friction]:
            found.append(
                f"The dry friction of {', '.join(rubbing)} is left out: it has no slope at rest. Damping is taken as "
                "it is."
            )
        if self.massless:
            found.append(f"Massless frames, because their mass is 0: the links {_listed(self.massless)}.")
        if self.beyond:
            each = [f"{name} ({part:.2g} of its largest)" for name, part in self.beyond.items()]
            found.append(
                f"No body can have these inertias, in which one principal moment exceeds the sum of the other two: "
                f"{_listed(each)}. They are taken as they are."
            )
        if self.negative:
            each = [f"{name} ({moment:.2g} kg m2)" for name, moment in self.negative.items()]
            found.append(
                f"No body can have these inertias, with a negative principal moment: {_listed(each)}. They are taken "
                "as they are, being negligible beside the largest in the file."
            )
        if self.astray:
            found.append(" ".join(self.astray[:SHOWN]))
        if tree.unknown:
            found.append(f"Ignored, because URDF does not know it: {_listed(tree.unknown)}.")
        return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
