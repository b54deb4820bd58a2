"""Wrenches between links: the rows of the constraint Jacobian, and the directions of springs and forces.

A row r acts with the wrench s_r W_r on a link b, and with the opposite one on a link a. It does work on the relative
velocity,

    W_r' (V_b - V_a),   G_r = W_r' (J_b - J_a),

so that constraints, springs and forces share everything. J are the Jacobians of the links, whose columns are the
screws: Spencer's G = A J (A.9), with the coordinates of virtual links eliminated by global transformations (A.3.3).
Without forming Gdot, the rate of W' (V_b - V_a) is W' (Vdot_b - Vdot_a) + Wdot' (V_b - V_a).

There are two kinds of wrenches: along a line through the point p, (p x l, l), where l is a direction of a link or the
vector between two points; and couples (m, 0), where m is a direction, or the product e_b x e_a of two, whose work
keeps the angle between them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.native.mechanism.markers import FixedMarkers, MarkerMotion
from fmilin.native.mechanism.screws import Array, cross
from fmilin.native.mechanism.tree import Tree

__all__ = ["FixedRows", "RowMotion", "Rows"]

Ints = NDArray[np.intp]
Terms = tuple[tuple[int, float], ...]


@dataclass
class Rows:
    """Collects rows of four kinds; :meth:`finished` puts them in one order and says where each went."""

    tree: Tree
    lines: list[tuple[int, int, int, int]] = field(default_factory=list)
    rods: list[tuple[int, int, int, int]] = field(default_factory=list)
    couples: list[tuple[int, int, int, Terms]] = field(default_factory=list)
    hinges: list[tuple[int, int, int, int]] = field(default_factory=list)

    def line(self, bodies: tuple[str, str], point: int, direction: int) -> tuple[str, int]:
        """Add (p x e, e) with a point and a direction; ``bodies`` are a and b."""
        return self._add("lines", (*self._links(bodies), point, direction))

    def rod(self, bodies: tuple[str, str], points: tuple[int, int]) -> tuple[str, int]:
        """Add (p_a x d, d), d = p_b - p_a."""
        return self._add("rods", (*self._links(bodies), *points))

    def couple(self, bodies: tuple[str, str], direction: int) -> tuple[str, int]:
        """Add (e, 0)."""
        return self._add("couples", (*self._links(bodies), direction, ()))

    def coupling(self, ground: str, direction: int, terms: Terms) -> tuple[str, int]:
        """Add constant factors of speeds, as (freedom, factor); its couple acts between the ground and itself."""
        return self._add("couples", (*self._links((ground, ground)), direction, terms))

    def hinge(self, bodies: tuple[str, str], directions: tuple[int, int]) -> tuple[str, int]:
        """Add (e_b x e_a, 0)."""
        return self._add("hinges", (*self._links(bodies), *directions))

    def _links(self, bodies: tuple[str, str]) -> tuple[int, int]:
        return self.tree.place[bodies[0]][0], self.tree.place[bodies[1]][0]

    def _add(self, kind: str, row: tuple[Any, ...]) -> tuple[str, int]:
        getattr(self, kind).append(row)
        return kind, len(getattr(self, kind)) - 1

    def keep(self, places: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """Drop all rows but these; return where they are now."""
        found = []
        kept: dict[str, list[tuple[Any, ...]]] = {kind: [] for kind in ("lines", "rods", "couples", "hinges")}
        for kind, number in places:
            kept[kind].append(getattr(self, kind)[number])
            found.append((kind, len(kept[kind]) - 1))
        for kind, rows in kept.items():
            setattr(self, kind, rows)
        return found

    @property
    def links(self) -> set[int]:
        """The links that rows act on."""
        return {i for row in (*self.lines, *self.rods, *self.couples, *self.hinges) for i in row[:2]}

    def finished(self, markers: FixedMarkers) -> FixedRows:
        """Return the rows as arrays: lines, rods, couples, hinges."""
        everything: list[tuple[Any, ...]] = [*self.lines, *self.rods, *self.couples, *self.hinges]
        k = len(markers.r)
        a = np.array([row[0] for row in everything], dtype=np.intp)
        b = np.array([row[1] for row in everything], dtype=np.intp)
        constant = np.zeros((len(everything), self.tree.n))
        for i, (*_, terms) in enumerate(self.couples, start=len(self.lines) + len(self.rods)):
            for freedom, factor in terms:
                constant[i, freedom] += factor
        return FixedRows(
            sizes=(len(self.lines), len(self.rods), len(self.couples), len(self.hinges)),
            a=a,
            b=b,
            sigma=self.tree.above[b] - self.tree.above[a],
            spread=_spread(a, b, len(self.tree.P)),
            line_points=_ints([k - 1 - p if p < 0 else p for _, _, p, _ in self.lines]),
            line_directions=_ints([row[3] for row in self.lines]),
            rod_first=_ints([row[2] for row in self.rods]),
            rod_second=_ints([row[3] for row in self.rods]),
            couple_directions=_ints([row[2] for row in self.couples]),
            hinge_first=_ints([row[2] for row in self.hinges]),
            hinge_second=_ints([row[3] for row in self.hinges]),
            constant=constant if constant.any() else None,
        )


def _ints(values: Any) -> Ints:
    return np.array(list(values), dtype=np.intp)


def _spread(a: Ints, b: Ints, links: int) -> NDArray[np.float64]:
    spread = np.zeros((links, len(a)))
    spread[b, np.arange(len(b))] += 1.0
    spread[a, np.arange(len(a))] -= 1.0
    return spread


@dataclass(frozen=True)
class RowMotion:
    """Wrenches and their rates, each (..., R, 6)."""

    W: Array
    W_dot: Array


@dataclass(frozen=True)
class FixedRows:
    """Rows as constant arrays, in the order lines, rods, couples, hinges."""

    sizes: tuple[int, int, int, int]  # 4 integers
    a: Ints  # (R,), links
    b: Ints  # (R,), links
    sigma: NDArray[np.float64]  # (R, n), 1 where a freedom moves b alone, -1 where it moves a alone
    spread: NDArray[np.float64]  # (N + 1, R), 1 at the link b of a row, -1 at a
    line_points: Ints
    line_directions: Ints
    rod_first: Ints
    rod_second: Ints
    couple_directions: Ints
    hinge_first: Ints
    hinge_second: Ints
    constant: NDArray[np.float64] | None  # (R, n), what couplings of joints add to the Jacobian

    def __len__(self) -> int:
        return len(self.a)

    def position(self, place: tuple[str, int]) -> int:
        """Return where a row went that was added as ``place``."""
        before = dict(zip(("lines", "rods", "couples", "hinges"), np.cumsum((0, *self.sizes)).tolist(), strict=False))
        return int(before[place[0]]) + place[1]

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
        found: Array = (W * self.relative(of_links, rows)).sum(axis=-1)
        return found if self.constant is None else found + v @ self.constant[rows].T

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
