"""Points and directions fixed in links, and contact points of wheels: where they are, how they move, and derivatives.

All seen from the ground: p' = v + w x p, p'' = vdot + wdot x p + w x p' and e' = w x e in a link with V = (w, v). With
the axle e of a wheel, the normal n of its plane, N = n.e and s = sqrt(1 - N^2), its lowest point lies at the centre
plus r d - rho n, d = (N e - n) / s: down in the plane of the wheel, then through the tyre. A ball has r = 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fmilin.models.mechanism.part import Vector
from fmilin.models.mechanism.recursions import AccelerationTerms, LinkColumns, Velocities, link_columns
from fmilin.models.mechanism.tree import Array, Tree, along, cross, root

Floats = NDArray[np.float64]
FLAT_WHEEL_TOLERANCE = 1e-7  # sine of the angle between axle and normal below which a wheel lies flat


@dataclass(frozen=True)
class Rims:
    """Wheels as constant arrays."""

    centers: NDArray[np.intp]  # (k,), points
    axles: NDArray[np.intp]  # (k,), directions
    normals: Floats  # shape (k, 3)
    radii: Floats  # (k,), r
    tubes: Floats  # (k,), rho

    def __len__(self) -> int:
        return len(self.centers)

    def some(self, chosen: NDArray[np.intp]) -> Rims:
        """Return some of the wheels, in the given order."""
        return Rims(
            self.centers[chosen], self.axles[chosen], self.normals[chosen], self.radii[chosen], self.tubes[chosen]
        )

    def axle_matrix(self, e: Array) -> Array:
        """Return the transpose of d down/de, shape (..., k, 3, 3)."""
        s, N = (a[..., None, None] for a in self._lean(e))
        n, e = self.normals, e[..., None, :]
        across = e - N * n[:, None, :]
        return self.radii[:, None, None] * (n[:, :, None] * across / s**3 + N / s * np.eye(3))

    def down(self, e: Array) -> Array:
        """Return the vectors from the centres to the lowest points, for axles e (..., k, 3)."""
        s, N = (a[..., None] for a in self._lean(e))
        d = (N * e - self.normals) / s
        return self.radii[:, None] * d - self.tubes[:, None] * self.normals

    def down_rate(self, e: Array, e_dot: Array) -> Array:
        """Return its rate: (1/s)' = N N'/s^3 and (N/s)' = N'/s^3."""
        s, N = (a[..., None] for a in self._lean(e))
        N_dot = self._along_normal(e_dot)
        return self.radii[:, None] * (N_dot / s**3 * (e - N * self.normals) + N / s * e_dot)

    def on_axle(self, e: Array, e_dot: Array, f: Array, f_rate: Array) -> tuple[Array, Array]:
        """Return the gradients by e and e' of f . down + f_rate . down_rate; e, e_dot, f, f_rate (..., k, 3)."""
        s, N = (a[..., None] for a in self._lean(e))
        n, N_dot = self.normals, self._along_normal(e_dot)
        across = e - N * n
        dot = self._dot
        by_N = dot(across, f) + 3 * N_dot * N / s**2 * dot(across, f_rate)
        by_N = by_N - N_dot * self._along_normal(f_rate) + dot(e_dot, f_rate)
        on_e = n * by_N / s**3 + N / s * f + N_dot / s**3 * f_rate
        on_rate = n * dot(across, f_rate) / s**3 + N / s * f_rate
        return self.radii[:, None] * on_e, self.radii[:, None] * on_rate

    def _lean(self, e: Array) -> tuple[Array, Array]:
        N = (self.normals * e).sum(axis=-1)
        s = root(1 - N * N * (self.radii > 0))
        if s.dtype.kind == "f":  # a wheel that lies flat has no lowest point: it says so without a warning
            s = np.where(s > FLAT_WHEEL_TOLERANCE, s, np.nan)
        return s, N

    def _along_normal(self, a: Array) -> Array:
        return self._dot(self.normals, a)

    @staticmethod
    def _dot(a: Array, b: Array) -> Array:
        return (a * b).sum(axis=-1, keepdims=True)


class Markers:
    """Collects points and directions, each once; then computes all of them together."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._points: dict[tuple[int, tuple[float, ...]], int] = {}
        self._directions: dict[tuple[int, tuple[float, ...]], int] = {}
        # of each wheel its centre, its axle, the normal of its plane, the radii of wheel and tube
        self._wheels: list[tuple[int, int, Vector, float, float]] = []
        self.links: set[int] = set()  # with a requested motion and without any marker

    def point(self, body: str, position: tuple[float, ...]) -> int:
        """Return the number of a point of a body."""
        link, offset = self.tree.frame_of[body]
        p = offset[:3, 3] + offset[:3, :3] @ np.array(position)
        return self._points.setdefault((link, tuple(p.tolist())), len(self._points))

    def direction(self, body: str, vector: tuple[float, ...]) -> int:
        """Return the number of a direction of a body."""
        link, offset = self.tree.frame_of[body]
        return self._directions.setdefault((link, tuple((offset[:3, :3] @ vector).tolist())), len(self._directions))

    def contact(self, center: int, axle: int, normal: Vector, sizes: tuple[float, float]) -> int:
        """Return the number of the contact point of a wheel, counted from -1 downwards: they come after the points."""
        self._wheels.append((center, axle, normal, *sizes))
        return -len(self._wheels)

    def build(self, more: set[int]) -> FixedMarkers:
        """Return the markers as arrays; the motion of the links ``more`` is needed, too."""
        centers, axles, normals, *radii = list(zip(*self._wheels, strict=True)) or [()] * 5
        rims = Rims(
            np.array(centers, dtype=np.intp),
            np.array(axles, dtype=np.intp),
            np.array(normals).reshape(-1, 3),
            *(np.array(of_all, dtype=float) for of_all in radii),
        )
        return FixedMarkers(self.tree, {0} | more | self.links, list(self._points), list(self._directions), rims)


@dataclass(frozen=True)
class MarkerMotion:
    """Where points (k of them, contact points last) and directions (d) are: p, p' and e, e'."""

    p: Array  # of shape (..., k, 3)
    p_dot: Array  # of shape (..., k, 3)
    e: Array  # of shape (..., d, 3)
    e_dot: Array  # of shape (..., d, 3)


@dataclass(frozen=True)
class MarkerColumns:
    """Derivatives along the degrees of freedom; those of p' and e' with respect to v are p and e again."""

    # p, p_dot, e, e_dot: (..., k or d, n, 3), with respect to theta; of points without contact points
    p: Array
    p_dot: Array
    e: Array
    e_dot: Array
    links: LinkColumns  # of ``FixedMarkers.links``


Fixed = Sequence[tuple[int, Sequence[float]]]  # points or directions: the link of each, and its components there


class FixedMarkers:
    """Points and directions as constant arrays, and the links ``more``."""

    def __init__(self, tree: Tree, more: Iterable[int], points: Fixed, directions: Fixed, rims: Rims) -> None:
        self.tree = tree
        self.rims = rims  # of wheels; their contact points come after the points
        # links that carry markers; ``point_links`` and ``direction_links`` count in them
        links = sorted({*more, *(link for link, _ in points), *(link for link, _ in directions)})
        self.links = np.array(links, dtype=np.intp)
        self.point_links, self.direction_links = (
            np.array([links.index(link) for link, _ in markers], dtype=np.intp) for markers in (points, directions)
        )
        # in the frames of the links, (k, 3) and (d, 3)
        self.r, self.e = (np.array([a for _, a in markers]).reshape(-1, 3) for markers in (points, directions))

    def some(self, points: list[int], directions: list[int], more: set[int]) -> FixedMarkers:
        """Return some points and directions, and the links ``more``, without wheels."""
        at = [(int(self.links[self.point_links[i]]), self.r[i].tolist()) for i in points]
        of = [(int(self.links[self.direction_links[i]]), self.e[i].tolist()) for i in directions]
        return FixedMarkers(self.tree, more, at, of, self.rims.some(np.empty(0, dtype=np.intp)))

    def positions(self, X: Array) -> tuple[Array, Array]:
        """Return points p and directions e for the frames X (..., N + 1, 4, 4)."""
        X = X[..., self.links, :, :]
        frames = X[..., self.point_links, :, :]
        p = frames[..., :3, 3] + along(frames[..., :3, :3], self.r)
        e = along(X[..., self.direction_links, :3, :3], self.e)
        if len(self.rims):
            lowest = p[..., self.rims.centers, :] + self.rims.down(e[..., self.rims.axles, :])
            p = np.concatenate((p, lowest), axis=-2)
        return p, e

    def motion(self, at: Velocities) -> MarkerMotion:
        """Return positions and velocities."""
        p, e = self.positions(at.X)
        k = len(self.r)
        V = at.V[..., self.links, :]
        V_p, V_e = V[..., self.point_links, :], V[..., self.direction_links, :]
        p_dot = V_p[..., 3:] + cross(V_p[..., :3], p[..., :k, :])
        e_dot = cross(V_e[..., :3], e)
        if len(self.rims):
            axles = self.rims.axles
            falling = self.rims.down_rate(e[..., axles, :], e_dot[..., axles, :])
            p_dot = np.concatenate((p_dot, p_dot[..., self.rims.centers, :] + falling), axis=-2)
        return MarkerMotion(p, p_dot, e, e_dot)

    def columns(self, motion: AccelerationTerms, now: MarkerMotion) -> MarkerColumns:
        """Return the derivatives along all degrees of freedom at a motion."""
        links = link_columns(self.tree, motion, self.links)
        k = len(self.r)
        p = now.p[..., :k, None, :]
        V = motion.at.V[..., self.links, :]
        V_p, V_e = V[..., self.point_links, :], V[..., self.direction_links, :]
        S, T = links.V_v[..., self.point_links, :, :], links.V_q[..., self.point_links, :, :]
        dp = S[..., 3:] + cross(S[..., :3], p)
        dp_dot = T[..., 3:] + cross(T[..., :3], p) + cross(V_p[..., None, :3], dp)
        S, T = links.V_v[..., self.direction_links, :, :3], links.V_q[..., self.direction_links, :, :3]
        e = now.e[..., None, :]
        de = cross(S, e)
        de_dot = cross(T, e) + cross(V_e[..., None, :3], de)
        return MarkerColumns(dp, dp_dot, de, de_dot, links)

    def accelerations(self, at: Velocities, A: Array, now: MarkerMotion) -> Array:
        """Return p'' of the points (no contact points), seen from a ground that falls freely, shape (..., k, 3)."""
        k = len(self.r)
        V, A = at.V[..., self.links, :][..., self.point_links, :], A[..., self.links, :][..., self.point_links, :]
        return A[..., 3:] + cross(A[..., :3], now.p[..., :k, :]) + cross(V[..., :3], now.p_dot[..., :k, :])

    def acceleration_columns(
        self, motion: AccelerationTerms, now: MarkerMotion, columns: MarkerColumns
    ) -> tuple[Array, Array]:
        """Return d p''/d theta and d p''/dv of the points, each (..., k, n, 3)."""
        k = len(self.r)
        links = columns.links
        V = motion.at.V[..., self.links, :][..., self.point_links, None, :]
        A = motion.A[..., self.links, :][..., self.point_links, None, :]
        p, p_dot = now.p[..., :k, None, :], now.p_dot[..., :k, None, :]
        dp, dp_dot = columns.p[..., :k, :, :], columns.p_dot[..., :k, :, :]
        A_q, A_v = links.A_q[..., self.point_links, :, :], links.A_v[..., self.point_links, :, :]
        V_q, V_v = links.V_q[..., self.point_links, :, :3], links.V_v[..., self.point_links, :, :3]
        q = A_q[..., 3:] + cross(A_q[..., :3], p) + cross(A[..., :3], dp) + cross(V_q, p_dot)
        v = A_v[..., 3:] + cross(A_v[..., :3], p) + cross(V_v, p_dot) + cross(V[..., :3], dp)
        return q + cross(V[..., :3], dp_dot), v
