"""Coordinates that are expressions, R(x, y) = rho(x) - y (Spencer 2.3.4): a user's own, and those of turning bodies.

Steady motions of bodies that turn by a unit quaternion, q(t) = exp(n Omega t) q0 exp(s sigma t), are uniform in such:
where the body is symmetric about its axis s, in the direction of s, the angle about it, and rates in axes of the
surroundings; where these are symmetric about their axis n, in the direction of n as the body sees it, the angle about
it, and rates in axes of the body; where both are, in Euler's angles and what both axes see of the rates.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from os.path import commonprefix
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmilin.constraints.expression_functions import ExpressionFunctions, find_expression_turn
from fmilin.constraints.expressions import Expression, ExpressionError, name_in_expression, parse
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.manifold.coordinates import NonlinearCoordinates, conditioning
from fmilin.manifold.selection import Manifold, Selection, select_partition
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.support.dataclass import dataclass
from fmilin.tolerances import MAX_COORDINATE_CONDITION_NUMBER


@dataclass(frozen=True, slots=True)
class _Coordinate:
    name: str
    unit: str
    expression: Expression


def has_expressions(named: Sequence[str]) -> bool:
    """Whether any of the coordinates is given as ``name = expression``."""
    return any("=" in text for text in named)


def select_expressions(manifold: Manifold, named: Sequence[str], parameters: Mapping[str, float]) -> Selection:
    """Take P coordinates, or those of positions (eq. 2.26), as states or ``name = expression`` with ``parameters``."""
    chosen = [_coordinate(text, manifold.states, parameters) for text in named]
    values = dict(parameters) | dict(zip(manifold.states.names, manifold.x0.tolist(), strict=True))
    chosen = [replace(c, expression=c.expression.center_angles(values)) for c in chosen]
    names = [c.name for c in chosen]
    if len(set(names)) != len(names):
        raise UsageError(f"A coordinate is named twice in {', '.join(names)}.")
    if len(chosen) != manifold.order:
        chosen = _with_rates(manifold, chosen)
    coordinates = _built(manifold, chosen, parameters)
    y0 = coordinates.values(manifold.x0)
    condition = conditioning(coordinates.R, manifold.H, manifold.scales) if np.isfinite(y0).all() else np.inf
    if condition > MAX_COORDINATE_CONDITION_NUMBER:
        raise NumericalError(
            f"The coordinates {', '.join(names)} are not one-to-one on the manifold at this point: different motions "
            f"give them the same change (condition number {condition:.3g}). Use "
            f"{', '.join(select_partition(manifold).signals.names)}.",
            condition_number=condition,
        )
    texts = [text.partition("=")[2].strip() for text in named] + [""] * (len(chosen) - len(named))
    signals = Signals(
        Signal(c.name, c.unit, start=float(v), description=text, turn=find_expression_turn(c.expression, parameters))
        for c, v, text in zip(chosen, y0, texts, strict=True)
    )
    return Selection("named", signals, coordinates, condition)


def expressed(manifold: Manifold, texts: Sequence[str]) -> NonlinearCoordinates:
    """Return as many functions of the states as there are texts, which need not be coordinates together."""
    return _built(manifold, [_coordinate(text, manifold.states, {}) for text in texts], {})


def _built(manifold: Manifold, chosen: Sequence[_Coordinate], parameters: Mapping[str, float]) -> NonlinearCoordinates:
    positions = manifold.states.positions_of_own_names
    used = {n: parameters[n] for c in chosen for n in c.expression.names if n not in positions}
    functions = ExpressionFunctions([c.expression for c in chosen], positions, len(manifold.states), used)
    return NonlinearCoordinates(functions, manifold.x0)


def _coordinate(text: str, states: Signals, parameters: Mapping[str, float]) -> _Coordinate:
    name, _, right = (part.strip() for part in text.partition("="))
    if not right:
        i = states.index_of(name, "a state of the model")
        return _Coordinate(name, states[i].unit, Expression.variable(states[i].name))
    try:
        expression = parse(right)
    except ExpressionError as error:
        raise UsageError(f"In the coordinate '{name}': {error}") from None
    for variable in expression.names:
        if variable not in states.positions_of_own_names and variable not in parameters:
            candidates = [*states.positions_of_own_names, *parameters]
            raise UnknownNameError.among(variable, candidates, f"a state or parameter (in the coordinate '{name}')")
    if states.has(name):
        raise UsageError(f"The coordinate '{name}' has the name of a state: give it another name.")
    return _Coordinate(name, "", expression)


def _with_rates(manifold: Manifold, chosen: list[_Coordinate]) -> list[_Coordinate]:
    """Complete position coordinates by their time derivatives D rho(q) v."""
    p, positions = manifold.order, manifold.states.positions_of_own_names
    paired = all(positions[n] in manifold.pairs for c in chosen for n in c.expression.names if n in positions)
    if 2 * len(chosen) != p or not paired:
        raise UsageError(
            f"{len(chosen)} independent coordinates were given, but the model has {p} at this point"
            + (f" (or {p // 2} of position level)" if manifold.pairs and p % 2 == 0 else "")
            + f". For example: {', '.join(select_partition(manifold).signals.names) or 'none'}."
        )
    names = manifold.states.names
    moving = {names[q]: names[v] for q, v in manifold.pairs.items()}
    rates = []
    for c in chosen:
        plain = c.name in positions
        name = moving[c.name] if plain else f"der({c.name})"
        unit = manifold.states[positions[name]].unit if plain else ""
        rates.append(_Coordinate(name, unit, c.expression.rate(moving)))
    return [*chosen, *rates]


SAME_STATE_TOLERANCE = 1e-6  # gap, relative, up to which a state is what a quaternion says
CONSTANT_AXIS_TOLERANCE = 1e-6  # change of a body's rates over their square, below which its axis stays where it is
CONE_TOLERANCE = 1e-3  # gap, relative, up to which its rates go round a cone; the search confirms it more sharply
ABSENT_COMPONENT_TOLERANCE = 1e-12  # component of a direction that rounding left

Mask = NDArray[np.bool_]
Vector = Sequence[str] | FloatArray  # its components, as texts or numbers


class Turn(NamedTuple):
    """A body that turns, by numbers of states."""

    e: list[int]  # its quaternion, real part first
    w: list[int]  # its angular velocity in axes of the body

    def may_be_steady(self, x: FloatArray, f: FloatArray, second: FloatArray) -> Mask:
        """Return where the rates stay in the body, or go round a cone, from x, x', x'', each (k, N); not at rest."""
        w, change, bend = (part[:, self.w] for part in (x, f, second))
        nu = _cone(change, bend)
        gaps = ((np.cross(nu, w) - change, change), (np.cross(nu, change) - bend, bend))
        conical = [np.linalg.norm(gap, axis=1) <= CONE_TOLERANCE * np.linalg.norm(a, axis=1) for gap, a in gaps]
        return np.asarray(w.any(axis=1) & (_straight(w, change) | np.logical_and(*conical)))


def detect_turns(
    x: FloatArray, f: FloatArray, *, H: FloatArray, structure: Mask, T: FloatArray, f_y: FloatArray
) -> list[Turn]:
    """Return bodies with unit quaternions by constraints, from rates f (N,) and derivatives f_y (N, P)."""
    turns: list[Turn] = []
    if not len(structure):
        return turns
    for row in np.flatnonzero(structure.sum(axis=1) == 4):
        four = np.flatnonzero(structure[row])
        # The constraint |e|^2 = 1 has its gradient along e, and e has length one.
        across = H[row, four] - (H[row, four] @ x[four]) * x[four]
        if (
            abs(np.linalg.norm(x[four]) - 1) > SAME_STATE_TOLERANCE
            or np.abs(across).max() > SAME_STATE_TOLERANCE * np.abs(H[row]).max()
        ):
            continue
        for e in (four, np.roll(four, 1)):  # the real part stands first, or last
            values, slopes = 2 * _inside(x[e]) @ f[e], 2 * (_inside(x[e]) @ f_y[e] - _inside(f[e]) @ T[e])
            gaps = np.abs(T[:, None] - slopes).max(axis=2, initial=0.0) + np.abs(x[:, None] - values)
            w = gaps.argmin(axis=0)
            # A rate that nothing changes equals states by chance.
            if slopes.any(axis=1).all() and (gaps[w, range(3)] <= SAME_STATE_TOLERANCE * (1 + np.abs(values))).all():
                turns.append(Turn(e.tolist(), w.tolist()))
                break
    return turns


class Chart(NamedTuple):
    """Coordinates of a body that turns, as texts."""

    texts: list[str]
    velocity: list[str]  # that of its point in the same axes; empty where it may stay
    replaced: list[int]  # states that its own replace


def charts(
    turns: Sequence[Turn], names: Sequence[str], pairs: Mapping[int, int], x: FloatArray, f: FloatArray, f2: FloatArray
) -> Iterator[tuple[list[str], set[int]]]:
    """Yield coordinates for bodies that turn at a point, as texts, and the states that they replace."""
    bodies = [
        _TurningBody(turn, names, pairs, x) for turn in turns if turn.may_be_steady(x[None], f[None], f2[None])[0]
    ]
    listed: list[list[str]] = []
    # In free flight a velocity keeps its axes, on a wheel it turns with them.
    for of_body, moved in product((True, False), (False, True)):
        chosen = [body.chart(f, f2, of_body=of_body) for body in bodies]
        texts = [text for chart in chosen for text in (*chart.texts, *(chart.velocity if moved else ()))]
        if texts and texts not in listed:
            listed.append(texts)
            moving = [i for body, chart in zip(bodies, chosen, strict=True) if moved and chart.velocity for i in body.v]
            yield texts, {*moving, *(i for chart in chosen for i in chart.replaced)}


class _TurningBody:
    """One body that turns, as texts."""

    def __init__(self, turn: Turn, names: Sequence[str], pairs: Mapping[int, int], x: FloatArray) -> None:
        from scipy.spatial.transform import Rotation

        self._turn, self._x, self._q = turn, x, x[turn.e]
        before = range(min(turn.e) - 3, min(turn.e))  # where a free body's point stands
        self.v = [pairs[i] for i in before] if all(i in pairs for i in before) else []
        self._e, self._w, self._v = ([name_in_expression(names[i]) for i in part] for part in (*turn, self.v))
        self._prefix = commonprefix([names[i] for i in turn.e]).rstrip("eqQ[")  # noqa: RUF071 - names are no paths
        self._R = Rotation.from_quat(np.roll(self._q, -1)).as_matrix()  # from the body to its surroundings
        a, b, c, d = self._e
        self._rows = (
            (f"{a}^2 + {b}^2 - {c}^2 - {d}^2", f"2*{b}*{c} - 2*{a}*{d}", f"2*{b}*{d} + 2*{a}*{c}"),
            (f"2*{b}*{c} + 2*{a}*{d}", f"{a}^2 - {b}^2 + {c}^2 - {d}^2", f"2*{c}*{d} - 2*{a}*{b}"),
            (f"2*{b}*{d} - 2*{a}*{c}", f"2*{c}*{d} + 2*{a}*{b}", f"{a}^2 - {b}^2 - {c}^2 + {d}^2"),
        )
        self._columns = tuple(zip(*self._rows, strict=True))

    def chart(self, f: FloatArray, second: FloatArray, *, of_body: bool) -> Chart:
        """Return the coordinates that fit the motion: axes of the body, or of the surroundings, where both may be."""
        w, change, bend = (part[self._turn.w] for part in (self._x, f, second))
        if not _straight(w, change):
            nu = _cone(change, bend)
            return self._precessing(_unit(nu), _unit(self._R @ (w + nu)))
        s = _unit(w)
        if of_body:
            texts = [*self._direction("axis", self._R @ s, s, self._rows), self._angle("spin", s)]
            return Chart([*texts, *self._seen("w_", "XYZ", self._w, self._rows)], [], [*self._turn.e, *self._turn.w])
        texts = [*self._direction("pole", s, self._R @ s, self._columns), self._angle("turn", s)]
        return Chart(texts, self._seen("v_", "123", self._v, self._columns), self._turn.e)

    def _precessing(self, s: FloatArray, n: FloatArray) -> Chart:
        """Return Euler's angles from n to s, the first by its cosine, and what both axes see of the velocities."""
        a, b = [_dot(s, row) for row in self._rows], [_dot(n, column) for column in self._columns]
        axis, pole = self._R @ s, self._R.T @ n
        m, k = _unit(axis - (axis @ n) * n), _unit(pole - (pole @ s) * s)
        texts = [
            f"{self._prefix}tilt = {_dot(n, a)}",
            f"{self._prefix}precession = atan2({_dot(np.cross(n, m), a)}, {_dot(m, a)})",
            f"{self._prefix}spin = atan2({_dot(np.cross(k, s), b)}, {_dot(k, b)})",
            *self._seen("w_", ("pole", "axis", "across"), self._w, (b, s, _cross(b, s))),
        ]
        velocity = self._seen("v_", ("pole", "axis", "across"), self._v, (n, a, _cross(n, a)))
        return Chart(texts, velocity, [*self._turn.e, *self._turn.w])

    def _seen(self, what: str, words: Sequence[str], vector: Sequence[str], axes: Sequence[Vector]) -> list[str]:
        """Return the components of a vector along axes; none of none."""
        parts = zip(words, axes, strict=True) if vector else ()
        return [f"{self._prefix}{what}{word} = {_dot(axis, vector)}" for word, axis in parts]

    def _direction(self, name: str, value: FloatArray, of: FloatArray, axes: Sequence[Vector]) -> list[str]:
        """Return the two components of a direction that tell the third best."""
        axes_with_small_components = sorted(np.argsort(np.abs(value), kind="stable")[:2].tolist())
        return [f"{self._prefix}{name}_{'xyz'[i]} = {_dot(of, axes[i])}" for i in axes_with_small_components]

    def _angle(self, name: str, s: FloatArray) -> str:
        """Return the angle since the point: the quaternion is q0 cos of its half + (q0 s) sin of it."""
        return f"{self._prefix}{name} = 2*atan2({_dot(_inside(self._q).T @ s, self._e)}, {_dot(self._q, self._e)})"


def _straight(w: FloatArray, change: FloatArray) -> Mask:
    """Return where rates (..., 3) stay in the body."""
    return np.asarray(np.linalg.norm(change, axis=-1) <= CONSTANT_AXIS_TOLERANCE * (w * w).sum(axis=-1))


def _cone(change: FloatArray, bend: FloatArray) -> FloatArray:
    """Return the rate nu (..., 3) at which rates w go round in the body: w' = nu x w, w'' = nu x w', nu across w'."""
    square = (change * change).sum(axis=-1, keepdims=True)
    return np.asarray(np.cross(change, bend) / np.where(square > 0, square, 1.0))


def _inside(q: FloatArray) -> FloatArray:
    """Return G (3, 4) with w = 2 G q' in axes of the body; G' s is the product of q and (0, s)."""
    a, b, c, d = q
    return np.array([[-b, a, d, -c], [-c, -d, a, b], [-d, c, -b, a]])


def _unit(a: FloatArray) -> FloatArray:
    return np.asarray(a / np.linalg.norm(a))


def _dot(a: Vector, b: Vector) -> str:
    """Return the text of a sum of products of numbers or texts; a zero is left out, and a one."""
    terms = []
    for pair in zip(a, b, strict=True):
        factor = float(np.prod([p for p in pair if not isinstance(p, str)]))
        parts = [f"({p})" if " " in p else p for p in pair if isinstance(p, str)]
        if abs(factor) > ABSENT_COMPONENT_TOLERANCE:
            terms.append(
                "*".join([*([] if abs(factor - 1) <= ABSENT_COMPONENT_TOLERANCE else [f"({factor!r})"]), *parts])
            )
    return " + ".join(terms) or "0"


def _cross(a: Vector, b: Vector) -> list[str]:
    """Return the texts of the product of two vectors across both."""
    pairs = ((1, 2), (2, 0), (0, 1))
    return [f"{_dot([a[i]], [b[j]])} - ({_dot([a[j]], [b[i]])})" for i, j in pairs]
