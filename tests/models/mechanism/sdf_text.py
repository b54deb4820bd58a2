"""SDFormat files that tests write."""

from __future__ import annotations

from pathlib import Path

import fmilin as fl
from fmilin.models.mechanism.mechanism_model import Mechanism
from tests.models.mechanism.described import written

__all__ = ["joint", "link", "load_sdf", "model", "parallelogram", "world"]


def link(name: str, pose: str = "", *, mass: float = 1.0, center: str = "0 0 0", moments: str = "1 1 1") -> str:
    """Return a link; ``pose`` is an element, ``center`` a pose of six numbers or a position."""
    xx, yy, zz = moments.split()
    inertia = f"<inertia><ixx>{xx}</ixx><iyy>{yy}</iyy><izz>{zz}</izz></inertia>"
    turn = " 0 0 0" if len(center.split()) == 3 else ""
    inertial = f"<inertial><pose>{center}{turn}</pose><mass>{mass}</mass>{inertia}</inertial>"
    return f"<link name='{name}'>{pose}{inertial}</link>\n"


def joint(name: str, kind: str, parent: str, child: str, axis: str = "", *, more: str = "", dynamics: str = "") -> str:
    """Return a joint; ``axis`` holds three numbers, ``dynamics`` elements of the axis, ``more`` of the joint."""
    xyz = f"<axis><xyz>{axis}</xyz>{f'<dynamics>{dynamics}</dynamics>' if dynamics else ''}</axis>" if axis else ""
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f"<joint name='{name}' type='{kind}'>{ends}{xyz}{more}</joint>\n"


def model(*parts: str, name: str = "robot", version: str = "1.9") -> str:
    """Return a file with a model."""
    return f"<sdf version='{version}'>\n<model name='{name}'>\n{''.join(parts)}</model>\n</sdf>\n"


def world(*parts: str, version: str = "1.9") -> str:
    """Return a file with a world."""
    return f"<sdf version='{version}'>\n<world name='scene'>\n{''.join(parts)}</world>\n</sdf>\n"


def parallelogram(damping: float = 0.0) -> str:
    """Return two cranks of length 0.5 that hang from the world and carry a coupler, which does not turn."""
    damper = f"<damping>{damping}</damping>" if damping else "<damping>0</damping>"
    return model(
        link("left", mass=2.0, center="0 0 -0.25", moments="0.1 0.1 0.1"),
        link("coupler", "<pose>0 0 -0.5 0 0 0</pose>", mass=3.0, center="0.4 0 0", moments="0.2 0.3 0.2"),
        link("right", "<pose>0.8 0 0 0 0 0</pose>", mass=4.0, center="0 0 -0.25", moments="0.1 0.2 0.1"),
        joint("a", "revolute", "world", "left", "0 1 0", dynamics=damper),
        joint("b", "revolute", "left", "coupler", "0 1 0", dynamics=damper),
        joint("c", "revolute", "world", "right", "0 1 0", dynamics=damper),
        joint("d", "revolute", "right", "coupler", "0 1 0", dynamics=damper, more="<pose>0.8 0 0 0 0 0</pose>"),
    )


def load_sdf(folder: Path, text: str, **options: object) -> Mechanism:
    """Return the mechanism of a file with this text."""
    loaded = fl.load(written(folder / "robot.sdf", text), options=options)
    assert isinstance(loaded, Mechanism)
    return loaded
