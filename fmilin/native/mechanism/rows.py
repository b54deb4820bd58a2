"""Wrenches between links: the rows of the constraint Jacobian, and the directions of springs and forces.

A row r acts with the wrench s_r W_r on a link b, and with the opposite one on a link a: W_r' (V_b - V_a) is its rate
and G_r = W_r' (J_b - J_a) its row of Spencer's G = A J (A.9), virtual links eliminated by global transformations
(A.3.3). The rate of W' (V_b - V_a) is W' (Vdot_b - Vdot_a) + Wdot' (V_b - V_a). Wrenches act along a line through the
point p, (p x l, l), l a direction of a link or the vector between two points; or they are couples (m, 0), m a
direction, or the product e_b x e_a of two, whose work keeps the angle between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.native.mechanism.markers import FixedMarkers, MarkerMotion
from fmilin.native.mechanism.screws import Array, cross
from fmilin.native.mechanism.tree import Tree

Ints = NDArray[np.intp]
Terms = tuple[tuple[int, float], ...]


KINDS = ("lines", "rods", "couples", "hinges")
Key = tuple[str, int]  # A row before all are known: its kind, and which of them


class Rows:
    """Collects rows of four kinds; :class:`FixedRows` puts them in one order and says where each went."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.of: dict[str, list[tuple[Any, ...]]] = {kind: [] for kind in KINDS}

    def line(self, bodies: tuple[str, str], point: int, direction: int) -> Key:
        """Add (p x e, e) with a point and a direction; ``bodies`` are a and b."""
        return self._add("lines", bodies, point, direction)

    def rod(self, bodies: tuple[str, str], points: tuple[int, int]) -> Key:
        """Add (p_a x d, d), d = p_b - p_a."""
        return self._add("rods", bodies, *points)

    def couple(self, bodies: tuple[str, str], direction: int) -> Key:
        """Add (e, 0)."""
        return self._add("couples", bodies, direction, ())

    def coupling(self, ground: str, direction: int, terms: Terms) -> Key:
        """Add constant factors of speeds, as (freedom, factor); its couple acts between the ground and itself."""
        return self._add("couples", (ground, ground), direction, terms)

    def hinge(self, bodies: tuple[str, str], directions: tuple[int, int]) -> Key:
        """Add (e_b x e_a, 0)."""
        return self._add("hinges", bodies, *directions)

    def _add(self, kind: str, bodies: tuple[str, str], *markers: Any) -> Key:
        self.of[kind].append((*(self.tree.frame_of[body][0] for body in bodies), *markers))
        return kind, len(self.of[kind]) - 1

    def keep(self, keys: list[Key]) -> list[Key]:
        """Drop all rows but these; return their new keys."""
        before, self.of, new = self.of, {kind: [] for kind in KINDS}, []
        for kind, number in keys:
            self.of[kind].append(before[kind][number])
            new.append((kind, len(self.of[kind]) - 1))
        return new

    @property
    def links(self) -> set[int]:
        """The links that rows act on."""
        return {link for rows in self.of.values() for row in rows for link in row[:2]}


@dataclass(frozen=True)
class RowMotion:
    """Wrenches and their rates, each (..., R, 6)."""

    W: Array
    W_dot: Array


class FixedRows:
    """Rows as constant arrays, in the order lines, rods, couples, hinges."""

    def __init__(self, rows: Rows, markers: FixedMarkers) -> None:
        lines, rods, couples, hinges = (rows.of[kind] for kind in KINDS)
        tree, k, every = rows.tree, len(markers.r), [*lines, *rods, *couples, *hinges]
        self.sizes = len(lines), len(rods), len(couples), len(hinges)
        self.a, self.b = _column(every, 0), _column(every, 1)  # (R,), links
        # (R, n), 1 where a freedom moves b alone, -1 where it moves a alone
        self.sigma = tree.above[self.b] - tree.above[self.a]
        one = np.eye(len(tree.P))
        self.spread = one[:, self.b] - one[:, self.a]  # (N + 1, R), 1 at the link b of a row, -1 at a
        points = _column(lines, 2)
        self.line_points = np.where(points < 0, k - 1 - points, points)  # contact points come after the others
        self.line_directions = _column(lines, 3)
        self.rod_first, self.rod_second = _column(rods, 2), _column(rods, 3)
        self.couple_directions = _column(couples, 2)
        self.hinge_first, self.hinge_second = _column(hinges, 2), _column(hinges, 3)
        constant = np.zeros((len(every), tree.n))
        for i, (*_, terms) in enumerate(couples, start=len(lines) + len(rods)):
            for freedom, factor in terms:
                constant[i, freedom] += factor
        # (R, n), what couplings of joints add to the Jacobian
        self.constant = constant if constant.any() else None

    def __len__(self) -> int:
        return len(self.a)

    def position(self, key: Key) -> int:
        """Return where a row went."""
        return sum(self.sizes[: KINDS.index(key[0])]) + key[1]

    def motion(self, now: MarkerMotion) -> RowMotion:
        """Return W and Wdot."""
        shape, (lines, rods, couples, hinges) = now.p.shape[:-2], self.sizes
        parts, rates = [np.zeros((*shape, 0, 6))], [np.zeros((*shape, 0, 6))]
        if lines + rods:
            p, p_dot, ell, ell_dot = self.line_parts(now)
            parts.append(np.concatenate((cross(p, ell), ell), axis=-1))
            rates.append(np.concatenate((cross(p_dot, ell) + cross(p, ell_dot), ell_dot), axis=-1))
        if couples + hinges:
            e_a, e_b = now.e[..., self.hinge_first, :], now.e[..., self.hinge_second, :]
            f_a, f_b = now.e_dot[..., self.hinge_first, :], now.e_dot[..., self.hinge_second, :]
            m, m_dot = now.e[..., self.couple_directions, :], now.e_dot[..., self.couple_directions, :]
            m = np.concatenate((m, cross(e_b, e_a)), axis=-2)
            m_dot = np.concatenate((m_dot, cross(f_b, e_a) + cross(e_b, f_a)), axis=-2)
            parts.append(np.concatenate((m, np.zeros_like(m)), axis=-1))
            rates.append(np.concatenate((m_dot, np.zeros_like(m)), axis=-1))
        if len(parts) <= 2:  # rows of one sort, or none
            return RowMotion(parts[-1], rates[-1])
        return RowMotion(np.concatenate(parts[1:], axis=-2), np.concatenate(rates[1:], axis=-2))

    def jacobian(self, W: Array, S: Array, rows: Any = slice(None)) -> Array:
        """Return G_rj = W_r' (J_b - J_a)_j of some rows, shape (..., R, n)."""
        G: Array = (W @ np.swapaxes(S, -1, -2)) * self.sigma[rows]
        return G if self.constant is None else G + self.constant[rows]

    def slips(self, W: Array, of_links: Array, v: Array, rows: Any) -> Array:
        """Return G v of some rows from the velocities of the links (..., N + 1, 6) and of the joints (..., n)."""
        slips: Array = (W * self.relative(of_links, rows)).sum(axis=-1)
        return slips if self.constant is None else slips + v @ self.constant[rows].T

    def relative(self, of_links: Array, rows: Any = slice(None)) -> Array:
        """Return what link b has more than link a, (..., N + 1, 6) -> (..., R, 6)."""
        return of_links[..., self.b[rows], :] - of_links[..., self.a[rows], :]

    def line_parts(self, now: MarkerMotion) -> tuple[Array, Array, Array, Array]:
        """Return points and directions of lines and rods together, p, p', l, l', each (..., k, 3)."""
        ell, ell_dot = now.e[..., self.line_directions, :], now.e_dot[..., self.line_directions, :]
        first, second = self.rod_first, self.rod_second
        if not len(first):
            return now.p[..., self.line_points, :], now.p_dot[..., self.line_points, :], ell, ell_dot
        points = np.concatenate((self.line_points, first))
        rods = now.p[..., second, :] - now.p[..., first, :]
        rods_dot = now.p_dot[..., second, :] - now.p_dot[..., first, :]
        ell, ell_dot = np.concatenate((ell, rods), axis=-2), np.concatenate((ell_dot, rods_dot), axis=-2)
        return now.p[..., points, :], now.p_dot[..., points, :], ell, ell_dot


def _column(rows: list[tuple[Any, ...]], which: int) -> Ints:
    return np.array([row[which] for row in rows], dtype=np.intp)
