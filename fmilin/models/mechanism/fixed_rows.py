"""Wrenches between links: rows of the constraint Jacobian, directions of springs and forces; and their derivatives.

A row r acts with the wrench s_r W_r on a link b, and with the opposite one on a link a: W_r' (V_b - V_a) is its rate
and G_r = W_r' (J_b - J_a) its row of Spencer's G = A J (A.9), virtual links eliminated by global transformations
(A.3.3). The rate of W' (V_b - V_a) is W' (Vdot_b - Vdot_a) + Wdot' (V_b - V_a). Wrenches act along a line through the
point p, (p x l, l), l a direction of a link or the vector between two points; or they are couples (m, 0), m a
direction, or the product e_b x e_a of two, which keeps the angle between them.

A row's wrench W is made of two markers, each a point or a direction z of a link. The gradients f by z and f' by z' of
W' X + Wdot' Y, for screws X and Y, act on the link as forces would: its derivative along theta_j, j above the link, is

    a' S_j + b' psi_j,   a = P(f + f' x w) - ad_V^* P(f'),  b = P(f'),

with P(f) = (z x f, f) for points and (e x f, 0) for directions: no matrix of columns for every marker is formed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.models.mechanism.markers import FixedMarkers, MarkerMotion
from fmilin.models.mechanism.recursions import AccelerationTerms, Velocities
from fmilin.models.mechanism.tree import Array, Tree, ad, along, cross

Ints = NDArray[np.intp]
Terms = tuple[tuple[int, float], ...]


KINDS = ("lines", "rods", "couples", "hinges")
Key = tuple[str, int]  # A row before all are known: its kind, and which of them


class RowCollector:
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

    def __init__(self, rows: RowCollector, markers: FixedMarkers) -> None:
        lines, rods, couples, hinges = (rows.of[kind] for kind in KINDS)
        tree, k, keys = rows.tree, len(markers.r), [*lines, *rods, *couples, *hinges]
        self.sizes = len(lines), len(rods), len(couples), len(hinges)
        self.a, self.b = _column(keys, 0), _column(keys, 1)  # (R,), links
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
        constant = np.zeros((len(keys), tree.n))
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


_Pairs = list[tuple[Array, Array]]  # of the first and of the second markers, by sorts of rows


@dataclass(frozen=True)
class RowColumns:
    """Derivatives of all rows at given relative accelerations A = Vdot_b - Vdot_a."""

    # c_q, c_v: (..., R, n), of W' A + Wdot' (V_b - V_a), with respect to theta and v
    c_q: Array
    c_v: Array
    rate_q: Array  # (..., R, n), of W' (V_b - V_a), with respect to theta


@dataclass(frozen=True)
class Slots:
    """The first markers of all rows, then the second ones."""

    z: Array  # of shape (..., 2 R, 3)
    # F, F_dot: (..., 2 R, 3, 6), with f = F X + Fdot Y and f' = F Y
    F: Array
    F_dot: Array


class RowDerivatives:
    """The derivatives of fixed rows."""

    def __init__(self, tree: Tree, rows: FixedRows, markers: FixedMarkers) -> None:
        self.tree, self.rows, self.markers = tree, rows, markers
        points, directions = markers.links[markers.point_links], markers.links[markers.direction_links]
        k = len(points)
        self._rolling = np.flatnonzero(rows.line_points >= k)
        self._rims = rows.line_points[self._rolling] - k
        line_points = rows.line_points.copy()
        line_points[self._rolling] = markers.rims.centers[self._rims]
        self._turned = rows.line_directions.copy()
        self._turned[self._rolling] = markers.rims.axles[self._rims]  # the plane's directions do not move
        turned = directions[self._turned]
        none = np.zeros(len(rows.couple_directions), dtype=np.intp)
        first = (
            points[line_points],
            points[rows.rod_first],
            directions[rows.couple_directions],
            directions[rows.hinge_first],
        )
        second = (turned, points[rows.rod_second], none, directions[rows.hinge_second])
        self._links = np.concatenate((*first, *second))
        self._mask = tree.above[self._links]
        lines, rods, couples, hinges = rows.sizes
        rest = [0.0] * (couples + hinges)
        self._kappa = np.array([1.0] * (lines + rods) + rest + [0.0] * lines + [1.0] * rods + rest)[:, None]
        self._ends = [(rows.b, tree.above[rows.b]), (rows.a, -tree.above[rows.a])]
        self._line_points = line_points
        self._group()

    def _group(self) -> None:
        """Find the rows and markers that the same speeds move: their second derivatives are summed first."""
        a, b = self.rows.a.tolist(), self.rows.b.tolist()
        keys = list(zip(self._links.tolist(), 2 * a, 2 * b, strict=True))
        groups = [key for key in dict.fromkeys(keys) if key[0]]
        self._sums = np.array([[float(key == group) for key in keys] for group in groups]).reshape(
            len(groups), len(keys)
        )
        above = self.tree.above
        self._pairs = np.array([above[b] - above[a] for _, a, b in groups]).reshape(len(groups), self.tree.n)
        self._moved = np.array([above[link] for link, _, _ in groups]).reshape(len(groups), self.tree.n)

    def columns(self, motion: AccelerationTerms, now: MarkerMotion, slots: Slots, wrenches: RowMotion) -> RowColumns:
        """Return the derivatives of all rows."""
        at, rows = motion.at, self.rows
        if not len(rows):
            none = np.zeros((*at.S.shape[:-2], 0, self.tree.n))
            return RowColumns(none, none, none)
        V, A = rows.relative(at.V), rows.relative(motion.A)
        S, psi, phi = (np.swapaxes(a, -1, -2) for a in (at.S, motion.psi, motion.phi))
        S_psi = np.concatenate((S, psi), axis=-2)
        A_V = np.stack((A, V), axis=-1)
        f = slots.F @ np.concatenate((A_V, A_V), axis=-3)  # gradients by the markers of W' A and of W' V
        c_q = self._with_rates(at, now, slots, f, V, S_psi)
        rate_q = self._of_rows(_wrench(slots.z, f[..., 1], self._kappa) @ S_psi[..., :6, :])
        c_v = rate_q  # dWdot/dv is dW/dtheta
        W, W_dot = wrenches.W, wrenches.W_dot
        all_rows = np.concatenate((S_psi, phi), axis=-2)
        S_drift = np.concatenate((S, psi + np.swapaxes(at.Sdot, -1, -2)), axis=-2)
        for links, moves in self._ends:
            if not links.any():
                continue
            ad_V, ad_A = (np.swapaxes(ad(x[..., links, :]), -1, -2) for x in (at.V, motion.A))
            turn = -along(ad_V, W)
            on_S = -along(ad_A, W) - along(ad_V, W_dot)
            c_q = c_q + moves * (np.concatenate((on_S, turn + W_dot, W), axis=-1) @ all_rows)
            c_v = c_v + moves * (np.concatenate((turn + W_dot, W), axis=-1) @ S_drift)
            rate_q = rate_q + moves * (np.concatenate((turn, W), axis=-1) @ S_psi)
        return RowColumns(c_q, c_v, rate_q)

    def _of_rows(self, of_markers: Array) -> Array:
        """Return the derivatives (..., R, n) of rows from those by each of their markers, (..., 2 R, n)."""
        moved, R = self._mask * of_markers, len(self.rows)
        return moved[..., :R, :] + moved[..., R:, :]

    def _with_rates(
        self, at: Velocities, now: MarkerMotion, slots: Slots, by_screws: Array, V: Array, S_psi: Array
    ) -> Array:
        """Return the derivative of W' A + Wdot' V by the markers of W, from the gradients of W' A and W' V."""
        f = by_screws[..., 0] + along(slots.F_dot, np.concatenate((V, V), axis=-2))
        f_rate = by_screws[..., 1].copy()
        self._roll(now, f, f_rate)
        of_link = at.V[..., self._links, :]
        b = _wrench(slots.z, f_rate, self._kappa)
        a = _wrench(slots.z, f + cross(f_rate, of_link[..., :3]), self._kappa)
        a = a - along(np.swapaxes(ad(of_link), -1, -2), b)
        return self._of_rows(np.concatenate((a, b), axis=-1) @ S_psi)

    def _roll(self, now: MarkerMotion, f: Array, f_rate: Array) -> None:
        """Put what acts on contact points on the axles, too: the second markers of rows that roll."""
        if not len(self._rolling):
            return
        rims, rows = self.markers.rims.some(self._rims), self._rolling
        axles = len(self.rows) + rows
        e, e_dot = now.e[..., rims.axles, :], now.e_dot[..., rims.axles, :]
        f[..., axles, :], f_rate[..., axles, :] = rims.on_axle(e, e_dot, f[..., rows, :], f_rate[..., rows, :])

    def load_columns(self, at: Velocities, slots: Slots, s: Array) -> Array:
        """Return the derivative by theta_j of sum_r s_r W_r' (J_b - J_a)_k, W alone moving, at (k, j), s (..., R)."""
        if not len(self.rows):
            return np.zeros((*at.S.shape[:-2], self.tree.n, self.tree.n))
        F = slots.F * np.concatenate((s, s), axis=-1)[..., None, None]
        B = np.concatenate((_skew(slots.z) @ F, self._kappa[:, None] * F), axis=-2)
        sums = self._sums @ B.reshape(*B.shape[:-2], 36)
        B = sums.reshape(*sums.shape[:-1], 6, 6)
        S = at.S[..., None, :, :]
        each = (S @ B @ np.swapaxes(S, -1, -2)) * (self._moved[:, :, None] * self._pairs[:, None, :])
        return np.swapaxes(each.sum(axis=-3), -1, -2)

    def slots(self, now: MarkerMotion) -> Slots:
        """Return the markers, and the matrices that make gradients by them out of X and Y."""
        rows, z, F, F_dot = self.rows, _Pairs(), _Pairs(), _Pairs()
        lines, rods, couples, hinges = rows.sizes
        if not len(rows):
            none = np.zeros((*now.p.shape[:-2], 0, 3, 6))
            return Slots(none[..., 0], none, none)
        if lines + rods:
            self._line_slots(now, z, F, F_dot)
        if couples:
            e = now.e[..., rows.couple_directions, :]
            none = np.zeros((*e.shape[:-1], 3, 6))
            z.append((e, e))
            F.append((np.broadcast_to(np.eye(3, 6), none.shape), none))
            F_dot.append((none, none))
        if hinges:
            e_a, e_b = now.e[..., rows.hinge_first, :], now.e[..., rows.hinge_second, :]
            z.append((e_a, e_b))
            F.append((_pad_columns(-_skew(e_b)), _pad_columns(_skew(e_a))))
            f_a, f_b = now.e_dot[..., rows.hinge_first, :], now.e_dot[..., rows.hinge_second, :]
            F_dot.append((_pad_columns(-_skew(f_b)), _pad_columns(_skew(f_a))))
        return Slots(_join_pairs(z, -2), _join_pairs(F, -3), _join_pairs(F_dot, -3))

    def _line_slots(self, now: MarkerMotion, z: _Pairs, F: _Pairs, F_dot: _Pairs) -> None:
        rows, (lines, rods, _, _) = self.rows, self.rows.sizes
        p, p_dot, ell, ell_dot = rows.line_parts(now)
        first, second = now.p[..., self._line_points, :], now.e[..., self._turned, :]
        L, Q, L_dot, Q_dot = _skew(ell), _skew(p), _skew(ell_dot), _skew(p_dot)
        one = np.broadcast_to(np.eye(3), Q.shape)
        F_1, F_2 = _pad_columns(L), np.concatenate((-Q, one), axis=-1)
        if rods:
            first = np.concatenate((first, p[..., lines:, :]), axis=-2)
            second = np.concatenate((second, now.p[..., rows.rod_second, :]), axis=-2)
            F_1[..., lines:, :, :] -= F_2[..., lines:, :, :]
            L_dot[..., lines:, :, :] += Q_dot[..., lines:, :, :]
        if len(self._rolling):
            rims = self.markers.rims.some(self._rims)
            F_2[..., self._rolling, :, :] = rims.axle_matrix(now.e[..., rims.axles, :]) @ F_1[..., self._rolling, :, :]
        z.append((first, second))
        F.append((F_1, F_2))
        F_dot.append((_pad_columns(L_dot), _pad_columns(-Q_dot)))


def _join_pairs(pairs: _Pairs, axis: int) -> Array:
    return np.concatenate([array for side in zip(*pairs, strict=True) for array in side], axis=axis)


def _wrench(z: Array, f: Array, kappa: Array) -> Array:
    """Return (z x f, f) for points and (z x f, 0) for directions."""
    return np.concatenate((cross(z, f), kappa * f), axis=-1)


def _skew(a: Array) -> Array:
    """Return [a], shape (..., 3, 3)."""
    return (a @ SKEW).reshape((*a.shape[:-1], 3, 3))


def _pad_columns(F: Array) -> Array:
    """Return (F, 0): what X_v does not do."""
    return np.concatenate((F, np.zeros_like(F)), axis=-1)


SKEW = np.array([[0, 0, 0, 0, 0, -1, 0, 1, 0], [0, 0, 1, 0, 0, 0, -1, 0, 0], [0, -1, 0, 1, 0, 0, 0, 0, 0]], dtype=float)
