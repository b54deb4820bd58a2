"""The open tree of a mechanism as constant arrays: links with one elementary joint each, coordinates and speeds.

A joint with several freedoms is a product of elementary motions (Spencer (thesis), A.2.7: a cylindrical joint is a
rotation followed by a translation), each of which moves a massless link: turns and slides along a screw that is
constant in the link, f = M e^(S q), or a ball, f = M R(e) with a unit quaternion e. The screw of the whole joint,
seen from the child, then depends on its coordinates, and its rate Sdot is what the links between contribute. Bodies on
fixed joints are welded to their parents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.native.mechanism.description import MechanismDescription
from fmilin.native.mechanism.parts import Joint
from fmilin.native.mechanism.placement import skew
from fmilin.native.mechanism.screws import pseudo_inertia

__all__ = ["Ball", "Screw", "Step", "Tree", "steps_of", "tree_of"]


@dataclass(frozen=True)
class Screw:
    """Turns about ``w`` (unit or zero) while it moves along ``v``: e^(S q) with S = (w, v), v parallel to w."""

    w: tuple[float, float, float]
    v: tuple[float, float, float]

    @property
    def screws(self) -> Floats:
        """S, shape (1, 6)."""
        return np.array([[*self.w, *self.v]])

    @property
    def turn(self) -> Floats:
        """E_1, E_2, E_3 with e^(S q) = 1 + E_1 sin q + E_2 (1 - cos q) + E_3 q (A.1.3), shape (3, 4, 4)."""
        E = np.zeros((3, 4, 4))
        E[0, :3, :3] = skew(self.w)
        E[1, :3, :3] = skew(self.w) @ skew(self.w)
        E[2, :3, 3] = self.v
        return E


@dataclass(frozen=True)
class Ball:
    """Turns by a unit quaternion; the three freedoms are the angular velocity in axes of what turns."""

    @property
    def screws(self) -> Floats:
        """S, shape (3, 6)."""
        return np.eye(3, 6)


Step = Screw | Ball | None


def steps_of(joint: Joint) -> list[Screw | Ball]:
    """Return the elementary motions of a joint, from the parent outwards."""
    zero = (0.0, 0.0, 0.0)
    a, b = joint.axis, joint.second_axis or zero
    c = np.cross(a, b)
    along = (joint.pitch * a[0], joint.pitch * a[1], joint.pitch * a[2])
    x, y, z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    steps: dict[str, list[Screw | Ball]] = {
        "revolute": [Screw(a, zero)],
        "prismatic": [Screw(zero, a)],
        "helical": [Screw(a, along)],
        "cylindrical": [Screw(a, zero), Screw(zero, a)],
        "universal": [Screw(a, zero), Screw(b, zero)],
        "spherical": [Ball()],
        "planar": [Screw(zero, b), Screw(zero, (float(c[0]), float(c[1]), float(c[2]))), Screw(a, zero)],
        "fixed": [],
        "free": [Screw(zero, x), Screw(zero, y), Screw(zero, z), Ball()],
    }
    return steps[joint.type]


Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True)
class Tree:
    """Links 0 (the ground) .. N in the order of their depth, n freedoms, n_q position coordinates."""

    P: Ints  # (N + 1,), parent P_i of each link; that of the ground is the ground
    levels: tuple[tuple[int, int], ...]  # links of the same depth, as ranges
    L: Ints  # (n,), the link that each freedom moves
    axes: Floats  # (n, 6), screw of each freedom, in the frame of its link
    M: Floats  # (N + 1, 4, 4), fixed transformations from the parent's frame to the zero position of the joint
    # (N + 1, 4, 4), f = M + turn[0] sin q + turn[1] (1 - cos q) + turn[2] q for links on a screw
    turn: tuple[Floats, Floats, Floats]
    coordinate: Ints  # (N + 1,), position coordinate of links on a screw; the first of four for a ball
    balls: Ints  # (nb,), links on balls
    ball_speeds: Ints  # shape (nb, 3)
    ball_coordinates: Ints  # shape (nb, 4)
    # screw_speeds, screw_coordinates: freedoms on screws, and their position coordinates
    screw_speeds: Ints
    screw_coordinates: Ints
    inertia: Floats  # (N + 1, 4, 4), pseudo-inertia of all that is fixed to a link; zero for the ground
    above: Floats  # (N + 1, n), 1 where a freedom moves a link
    below: Floats  # (n, N + 1), 1 where a link is in the subtree of a freedom's link
    # same, strict: (n, n), 1 at (k, j) where both move the same link first; where the link of j lies beyond that of k
    same: Floats
    strict: Floats
    place: dict[str, tuple[int, Floats]]  # link of each body, and the body's frame in it
    state_names: tuple[tuple[str, ...], tuple[str, ...]]  # of positions and of velocities
    speeds_of: dict[str, range]  # of each joint
    coordinates_of: dict[str, range]  # of each joint

    def speeds_at(self, coordinates: Iterable[int]) -> list[int]:
        """Return the freedoms whose speeds are the rates of position coordinates; those of balls have none."""
        speeds = dict(zip(self.screw_coordinates.tolist(), self.screw_speeds.tolist(), strict=True))
        return [speeds[i] for i in coordinates if i in speeds]

    @property
    def n(self) -> int:
        """Number of freedoms of the open tree."""
        return len(self.L)

    @property
    def n_q(self) -> int:
        """Number of position coordinates: one more than freedoms for each ball."""
        return len(self.L) + len(self.balls)


@dataclass
class _Link:
    parent: int
    depth: int
    M: Floats
    step: Step
    speeds: list[int]
    coordinates: list[int]
    inertia: Floats


def tree_of(description: MechanismDescription) -> Tree:
    """Return the tree of a description."""
    links = [_Link(0, 0, np.eye(4), None, [], [], np.zeros((4, 4)))]
    place: dict[str, tuple[int, Floats]] = {description.ground: (0, np.eye(4))}
    speeds_of, coordinates_of = _numbered(description)
    for joint in description.ordered_joints:
        _add_joint(links, place, joint, (coordinates_of[joint.name], speeds_of[joint.name]))
    for body in description.bodies:
        link, offset = place[body.name]
        if body.mass is not None:
            links[link].inertia = (
                links[link].inertia + offset @ pseudo_inertia(body.mass, body.center, body.J) @ offset.T
            )
    order = sorted(range(len(links)), key=lambda i: links[i].depth)
    new = {old: i for i, old in enumerate(order)}
    place = {name: (new[link], offset) for name, (link, offset) in place.items()}
    names = tuple(tuple(n for j in description.joints for n in j.state_names[k]) for k in (0, 1))
    return _assembled([links[i] for i in order], new, place, (names[0], names[1]), (speeds_of, coordinates_of))


def _numbered(description: MechanismDescription) -> tuple[dict[str, range], dict[str, range]]:
    """Return speeds and position coordinates of each joint, in the order in which the joints were given."""
    speeds_of, coordinates_of = {}, {}
    n = n_q = 0
    for joint in description.joints:
        positions, speeds = joint.state_names
        speeds_of[joint.name] = range(n, n + len(speeds))
        coordinates_of[joint.name] = range(n_q, n_q + len(positions))
        n, n_q = n + len(speeds), n_q + len(positions)
    return speeds_of, coordinates_of


def _add_joint(
    links: list[_Link], place: dict[str, tuple[int, Floats]], joint: Joint, numbers: tuple[range, range]
) -> None:
    link, offset = place[joint.parent]
    M = offset @ joint.placement.matrix
    coordinates, speeds = list(numbers[0]), list(numbers[1])
    for step in steps_of(joint):
        used = (4, 3) if isinstance(step, Ball) else (1, 1)
        taken = coordinates[: used[0]], speeds[: used[1]]
        coordinates, speeds = coordinates[used[0] :], speeds[used[1] :]
        links.append(_Link(link, links[link].depth + 1, M, step, taken[1], taken[0], np.zeros((4, 4))))
        link, M = len(links) - 1, np.eye(4)
    place[joint.child] = link, M @ np.linalg.inv(joint.child_placement.matrix)


def _assembled(
    links: list[_Link],
    new: dict[int, int],
    place: dict[str, tuple[int, Floats]],
    names: tuple[tuple[str, ...], tuple[str, ...]],
    numbers: tuple[dict[str, range], dict[str, range]],
) -> Tree:
    count, n = len(links), len(names[1])
    P = np.array([new[link.parent] for link in links], dtype=np.intp)
    L, axes = np.zeros(n, dtype=np.intp), np.zeros((n, 6))
    M = np.stack([link.M for link in links])
    turn = np.zeros((3, count, 4, 4))
    coordinate = np.zeros(count, dtype=np.intp)
    for i, link in enumerate(links):
        if link.step is None:
            continue
        coordinate[i] = link.coordinates[0]
        L[link.speeds] = i
        axes[link.speeds] = link.step.screws
        if not isinstance(link.step, Ball):
            turn[:, i] = M[i] @ link.step.turn
    above = np.zeros((count, n))
    for i in range(1, count):
        above[i] = above[P[i]]
        above[i, links[i].speeds] = 1.0
    reaches = above[L].T  # (k, j): k moves the link of j
    same = (L[:, None] == L[None, :]).astype(float)
    balls = [i for i, link in enumerate(links) if isinstance(link.step, Ball)]
    screws = [i for i, link in enumerate(links) if link.step is not None and i not in balls]
    depths = [link.depth for link in links]
    levels = tuple((depths.index(d), depths.index(d) + depths.count(d)) for d in range(1, max(depths) + 1))
    return Tree(
        P=P,
        levels=levels,
        L=L,
        axes=axes,
        M=M,
        turn=(turn[0], turn[1], turn[2]),
        coordinate=coordinate,
        balls=np.array(balls, dtype=np.intp),
        ball_speeds=_indices([links[i].speeds for i in balls], 3),
        ball_coordinates=_indices([links[i].coordinates for i in balls], 4),
        screw_speeds=np.array([links[i].speeds[0] for i in screws], dtype=np.intp),
        screw_coordinates=coordinate[screws],
        inertia=np.stack([link.inertia if i else np.zeros((4, 4)) for i, link in enumerate(links)]),
        above=above,
        below=above.T.copy(),
        same=same,
        strict=reaches - same,
        place=place,
        state_names=names,
        speeds_of=numbers[0],
        coordinates_of=numbers[1],
    )


def _indices(rows: list[list[int]], width: int) -> Any:
    return np.array(rows, dtype=np.intp).reshape(len(rows), width)
