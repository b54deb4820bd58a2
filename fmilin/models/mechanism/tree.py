"""Screws in R^6, and the open tree of a mechanism as constant arrays: links with one elementary joint each.

Arrays may have any leading axes; the last is that of the screw (6) or the vector (3). Only multiplication by constants,
sums and products of elements are used: the same code computes one point, thousands, complex numbers, and symbols.

A joint with several degrees of freedom is a product of elementary motions (Spencer (thesis), A.2.7), each of which
moves a massless link: turns and slides along a screw that is constant in the link, f = M e^(S q), or a ball, f = M
R(e) with a unit quaternion e. Bodies on fixed joints are welded to their parents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.models.mechanism.mechanism_description import MechanismDescription
from fmilin.models.mechanism.part import skew
from fmilin.models.mechanism.parts import Body, Joint

Array = Any  # an array of the array API standard, real or complex


class Partials(NamedTuple):
    """Derivatives by displacements theta, velocities v and inputs u: (..., k, n), (..., k, n), (..., k, nu)."""

    q: Array
    v: Array
    u: Array

    def with_rows(self, rows: Any, further: Partials) -> Partials:
        """Return the same with what others add to some rows."""
        sums = []
        for a, more in zip(self, further, strict=True):
            shape = np.broadcast_shapes(a.shape[:-2], more.shape[:-2])
            both = np.broadcast_to(a, (*shape, *a.shape[-2:])).astype(np.result_type(a, more))
            both[..., rows, :] += more
            sums.append(both)
        return Partials(*sums)


def _levi_civita() -> np.ndarray[Any, np.dtype[np.float64]]:
    e = np.zeros((3, 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        e[i, j, k], e[i, k, j] = 1.0, -1.0
    return e


def _ad_table() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return T with ad_g = (g @ T) as 6 x 6: [[w], 0; [v], [w]] (A.1.4)."""
    table = np.zeros((6, 6, 6))
    skews = np.transpose(_levi_civita(), (1, 0, 2))  # [w]_ik = sum_j e_ijk w_j
    table[:3, :3, :3] = skews
    table[:3, 3:, 3:] = skews
    table[3:, 3:, :3] = skews
    return table.reshape(6, 36)


def _inertia_table() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return T with I = (P @ T) as 6 x 6, P the pseudo-inertia as 16 numbers."""
    table = np.zeros((4, 4, 6, 6))
    for i in range(3):
        for j in range(3):
            table[i, i, j, j] += 1.0  # tr(Sigma) 1 - Sigma
            table[i, j, i, j] -= 1.0
    skews = np.transpose(_levi_civita(), (1, 0, 2))
    for j in range(3):
        table[j, 3, :3, 3:] += skews[j]  # m [c], and its transpose
        table[j, 3, 3:, :3] -= skews[j]
    table[3, 3, 3:, 3:] += np.eye(3)
    return table.reshape(16, 36)


AD, INERTIA = _ad_table(), _inertia_table()
FORCE = -np.transpose(AD.reshape(6, 6, 6), (1, 2, 0)).reshape(6, 36)  # H(h) = (h @ FORCE) as 6 x 6: H(h) x = -ad_x^* h
BEFORE, AFTER = np.array([1, 2, 0, 2, 0, 1]), np.array([2, 0, 1, 1, 2, 0])


def cross(a: Array, b: Array) -> Array:
    """Return a x b, shapes (..., 3)."""
    products = a[..., BEFORE] * b[..., AFTER]
    return products[..., :3] - products[..., 3:]


def ad(g: Array) -> Array:
    """Return the matrix of the Lie bracket, ad_g h = [g, h] (A.1.4), shape (..., 6, 6)."""
    return (g @ AD).reshape((*g.shape[:-1], 6, 6))


def along(matrix: Array, g: Array) -> Array:
    """Return matrix g for screws or vectors g, shape (..., m)."""
    return (matrix @ g[..., None])[..., 0]


def build_moment_matrix(h: Array) -> Array:
    """Return the matrix H with H x = -ad_x^* h, shape (..., 6, 6): the same bilinear form, as a function of x."""
    return (h @ FORCE).reshape((*h.shape[:-1], 6, 6))


def root(a: Array) -> Array:
    """Return the square roots of the elements: of symbols, too, where some may be plain numbers."""
    if a.dtype != object:
        return np.sqrt(a)
    flat = [x.sqrt() if hasattr(x, "sqrt") else float(np.sqrt(x)) for x in a.ravel()]
    return np.array([*flat, None], dtype=object)[:-1].reshape(a.shape)


def clip_to_limits(a: Array, limits: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[Array, Array]:
    """Return the elements a (..., k) within their limits (k, 2), and 1 where they are inside of them, 0 beyond."""
    if not np.isfinite(limits).any():
        return a, np.ones(len(limits))
    low, high = limits.T
    if a.dtype != object:
        inside = (np.real(a) >= low) & (np.real(a) <= high)
        return np.where(inside, a, np.where(np.real(a) < low, low, high)), inside.astype(float)
    pairs = [
        x.clip_symbolically(*pair)
        if hasattr(x, "clip_symbolically")
        else (min(max(x, pair[0]), pair[1]), float(pair[0] <= x <= pair[1]))
        for x, pair in zip(a, limits.tolist(), strict=True)
    ]
    values, insides = (np.array([*(pair[i] for pair in pairs), None], dtype=object)[:-1] for i in (0, 1))
    return values, insides


def pseudo_inertia(mass: float, center: Array, J: Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return P = int (r, 1) (r, 1)' dm about the body's frame (4, 4), which moves by X P X' and adds up (A.2.4)."""
    c = np.asarray(center)
    sigma = np.trace(J) / 2 * np.eye(3) - J + mass * np.outer(c, c)
    return np.block([[sigma, mass * c[:, None]], [mass * c[None, :], np.full((1, 1), mass)]])


def inertia_tensor(P: Array) -> Array:
    """Return the generalized inertia tensor I of a pseudo-inertia P (..., 4, 4), shape (..., 6, 6)."""
    return (P.reshape((*P.shape[:-2], 16)) @ INERTIA).reshape((*P.shape[:-2], 6, 6))


Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


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
    """Turns by a unit quaternion; the three degrees of freedom are the angular velocity in axes of what turns."""

    @property
    def screws(self) -> Floats:
        """S, shape (3, 6)."""
        return np.eye(3, 6)


Step = Screw | Ball | None


def list_steps(joint: Joint) -> list[Screw | Ball]:
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


@dataclass
class _Link:
    """A link while the tree grows."""

    parent: int
    depth: int
    M: Floats
    step: Step = None
    speeds: Sequence[int] = ()
    coordinates: Sequence[int] = ()
    inertia: Floats | float = 0.0


class Tree:
    """Links 0 (the ground) .. N in the order of their depth, n degrees of freedom, n_q position coordinates."""

    def __init__(self, description: MechanismDescription) -> None:
        # of positions and of velocities
        names = (tuple(name for j in description.joints for name in j.state_names[k]) for k in (0, 1))
        self.state_names: tuple[tuple[str, ...], ...] = tuple(names)
        # of each joint, in the order in which the joints were given
        self.coordinates_of, self.speeds_of = (_ranges(description.joints, k) for k in (0, 1))
        links, frames = _build_links(description, self.coordinates_of, self.speeds_of)
        order = sorted(range(len(links)), key=lambda i: links[i].depth)
        new = {old: i for i, old in enumerate(order)}
        # link of each body, and the body's frame in it
        self.frame_of = {name: (new[link], offset) for name, (link, offset) in frames.items()}
        # (N + 1,), parent P_i of each link; that of the ground is the ground
        self.P: Ints = np.array([new[links[i].parent] for i in order], dtype=np.intp)
        self._set_motions([links[i] for i in order])
        self._set_reach([links[i] for i in order])

    def with_bodies(self, bodies: Sequence[Body], before: Sequence[Body]) -> Tree:
        """Return the same tree with the masses and inertias of other ``bodies``, named as those ``before``."""
        other = copy(self)
        other.inertia = self.inertia.copy()
        links = {self.frame_of[b.name][0] for b, old in zip(bodies, before, strict=True) if b is not old} - {0}
        other.inertia[sorted(links)] = 0.0
        for body in bodies:
            link, offset = self.frame_of[body.name]
            if body.mass is not None and link in links:
                other.inertia[link] += offset @ pseudo_inertia(body.mass, body.center, body.J) @ offset.T
        return other

    def _set_motions(self, links: list[_Link]) -> None:
        count, n = len(links), len(self.state_names[1])
        # (N + 1, 4, 4), pseudo-inertia of all that is fixed to a link; zero for the ground
        self.inertia = np.stack([np.zeros((4, 4)), *(np.zeros((4, 4)) + link.inertia for link in links[1:])])
        # (N + 1, 4, 4), fixed transformations from the parent's frame to the zero position of the joint
        self.M = np.stack([link.M for link in links])
        self.L: Ints = np.zeros(n, dtype=np.intp)  # (n,), the link that each freedom moves
        self.axes = np.zeros((n, 6))  # screw of each freedom, in the frame of its link
        # (N + 1, 4, 4) each, f = M + turn[0] sin q + turn[1] (1 - cos q) + turn[2] q for links on a screw
        self.turn = np.zeros((3, count, 4, 4))
        # (N + 1,), position coordinate of links on a screw; the first of four for a ball
        self.coordinate: Ints = np.zeros(count, dtype=np.intp)
        for i, link in enumerate(links[1:], 1):
            assert link.step is not None  # noqa: S101 - only the ground stands still
            self.coordinate[i] = link.coordinates[0]
            self.L[list(link.speeds)] = i
            self.axes[list(link.speeds)] = link.step.screws
            if isinstance(link.step, Screw):
                self.turn[:, i] = self.M[i] @ link.step.turn
        balls = [i for i, link in enumerate(links) if isinstance(link.step, Ball)]
        screws = [i for i, link in enumerate(links) if isinstance(link.step, Screw)]
        self.balls = np.array(balls, dtype=np.intp)  # (nb,), links on balls
        self.ball_speeds = _indices([links[i].speeds for i in balls], 3)
        self.ball_coordinates = _indices([links[i].coordinates for i in balls], 4)
        # degrees of freedom on screws, and their position coordinates
        self.screw_speeds = np.array([links[i].speeds[0] for i in screws], dtype=np.intp)
        self.screw_coordinates = self.coordinate[screws]
        # (n,), position coordinate of each freedom; any for balls
        self.freedom_coordinates: Ints = np.zeros(n, dtype=np.intp)
        self.freedom_coordinates[self.screw_speeds] = self.screw_coordinates

    def _set_reach(self, links: list[_Link]) -> None:
        depths = [link.depth for link in links]
        # links of the same depth, as ranges
        self.levels = [(depths.index(d), depths.index(d) + depths.count(d)) for d in range(1, max(depths) + 1)]
        self.above = np.zeros((len(links), self.n))  # 1 where a freedom moves a link
        for i, link in enumerate(links[1:], 1):
            self.above[i] = self.above[self.P[i]]
            self.above[i, list(link.speeds)] = 1.0
        self.below = self.above.T.copy()  # (n, N + 1), 1 where a link is in the subtree of a freedom's link
        # (n, n), 1 at (k, j) where both move the same link first; where the link of j lies beyond that of k
        self.same = (self.L[:, None] == self.L[None, :]).astype(float)
        self.strict = self.above[self.L].T - self.same

    def list_speeds(self, coordinates: Iterable[int]) -> list[int]:
        """Return the speeds that are the rates of position coordinates; those of balls have none."""
        speeds = dict(zip(self.screw_coordinates.tolist(), self.screw_speeds.tolist(), strict=True))
        return [speeds[i] for i in coordinates if i in speeds]

    @property
    def n(self) -> int:
        """Number of degrees of freedom of the open tree."""
        return len(self.L)

    @property
    def n_q(self) -> int:
        """Number of position coordinates: one more than degrees of freedom for each ball."""
        return len(self.L) + len(self.balls)


def _ranges(joints: Sequence[Joint], kind: int) -> dict[str, range]:
    """Return position coordinates (kind 0) or speeds (1) of each joint."""
    ends = np.cumsum([0, *(len(joint.state_names[kind]) for joint in joints)]).tolist()
    return {joint.name: range(*pair) for joint, pair in zip(joints, pairwise(ends), strict=True)}


def _build_links(
    description: MechanismDescription, coordinates_of: dict[str, range], speeds_of: dict[str, range]
) -> tuple[list[_Link], dict[str, tuple[int, Floats]]]:
    """Return the links, each after its parent, and link and frame of each body."""
    links = [_Link(0, 0, np.eye(4))]
    frames: dict[str, tuple[int, Floats]] = {description.ground: (0, np.eye(4))}
    for joint in description.ordered_joints:
        link, offset = frames[joint.parent]
        M = offset @ joint.placement.matrix
        coordinates, speeds = iter(coordinates_of[joint.name]), iter(speeds_of[joint.name])
        for step in list_steps(joint):
            n_q, n = (4, 3) if isinstance(step, Ball) else (1, 1)
            joint_indices = tuple(islice(speeds, n)), tuple(islice(coordinates, n_q))
            links.append(_Link(link, links[link].depth + 1, M, step, *joint_indices))
            link, M = len(links) - 1, np.eye(4)
        frames[joint.child] = link, M @ np.linalg.inv(joint.child_placement.matrix)
    for body in description.bodies:
        link, offset = frames[body.name]
        if body.mass is not None:
            moved = offset @ pseudo_inertia(body.mass, body.center, body.J) @ offset.T
            links[link].inertia = links[link].inertia + moved
    return links, frames


def _indices(rows: list[Sequence[int]], width: int) -> Ints:
    return np.array(rows, dtype=np.intp).reshape(len(rows), width)
