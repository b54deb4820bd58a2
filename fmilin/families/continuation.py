"""From one trimmed point to the next, and around folds, where a branch turns back.

At the point before, 0 = f0 + A dy + B du + f_p dp on the manifold. With the rates at the next values of what varies in
place of f0 + f_p dp this is one Newton step of the next problem, and the matrices serve for the steps after it (a
chord): each costs one visit to the model. What does not converge is left to the search of :mod:`fmilin.trimming`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from fmilin.errors import FmilinError, NumericalError
from fmilin.linear_model.model import LinearModel
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.projection import pseudo_inverse
from fmilin.manifold.selection import Selection, kinematic_pairs
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.numerics.newton import BoolArray, IntArray, NewtonRules, NewtonSystem, follow_zeros
from fmilin.signals import FloatArray
from fmilin.trimming.request import TrimRequest

CHORD_RULES = NewtonRules(iterations=11, trust_radius=np.inf, steps_to_halve=2, polishing_steps=0)
NEWTON_RULES = NewtonRules(iterations=10, trust_radius=np.inf, is_compared=False, polishing_steps=1)
"""A neighbour leads to a point by full steps; one that would need damping belongs to another branch."""

PROJECTED = 1e-12  # distance from the manifold at the end, in sizes of the states
ARRIVED = 1e-9  # the step that would follow the last one, in sizes: small rates alone do not say that it is short
SETTLED = 1e-11  # rates at the end, over the sizes of the states and the largest entries of A and B along the step


def is_solved(system: NewtonSystem, points: IntArray, r: FloatArray, rows: int) -> BoolArray:
    """Return where the first ``rows`` of r (k, m) have settled, the others are on the manifold, and no step follows."""
    settled = np.abs(r[:, :rows]).max(axis=1, initial=0.0) <= SETTLED
    solved = np.asarray(settled & (np.abs(r[:, rows:]).max(axis=1, initial=0.0) <= PROJECTED))
    if solved.any():
        some = np.flatnonzero(solved)
        following = system.measure(points[some], system.correct(points[some], r[some]))
        solved[some] = following <= ARRIVED
    return solved


@dataclass(frozen=True)
class ContinuationPoint:
    """A point that others start from."""

    values: Mapping[str, float]  # what varies, there
    point: OperatingPoint
    linear: LinearModel  # with all inputs of the model
    selection: Selection | None  # its coordinates, to be carried on


class Balance:
    """The equations of a trimmed point in the coordinates of a linear model: which rates vanish, what is held."""

    def __init__(self, model: Model, request: TrimRequest, linear: LinearModel, selection: Selection) -> None:
        states = model.states
        self.R = selection.coordinates.R
        names = linear.states.names
        self.rows = [i for i, name in enumerate(names) if name not in request.steady]
        self.held = [states.positions[n] for n in request.fixed if states.has(n)]
        self.free = [model.inputs.positions[n] for n in request.free]
        self.x_scales = states.scales(np.array(list(linear.point.states.values())))
        self.u_scales = model.inputs.scales(np.array(list(linear.point.inputs.values())))[self.free]
        self.y_scales = np.abs(self.R) @ self.x_scales
        self.A, self.B, self.T = linear.A, linear.B[:, self.free], linear.T
        p, sizes = len(names), self.y_scales[self.rows]
        top = np.hstack((self.A * self.y_scales, self.B * self.u_scales))[self.rows] / sizes[:, None]
        bottom = np.hstack((self.T * self.y_scales, np.zeros((len(self.T), len(self.free)))))[self.held]
        self.J = np.vstack((top, bottom / self.x_scales[self.held, None]))
        self.size = np.abs(top).max(initial=0.0)
        self._p = p
        self._inverse = pseudo_inverse(self.J, 1e-12)

    def residual(self, rates: FloatArray, gap: FloatArray) -> FloatArray:
        """Return the scaled residuals: rates of the coordinates that rest, and how far held states are off."""
        rest = (self.R @ rates)[self.rows] / self.y_scales[self.rows]
        return np.concatenate((rest, gap / self.x_scales[self.held]))

    def step(self, residual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dx on the tangent and du of the free inputs, the shortest scaled step that the residual asks for."""
        z = -self._inverse @ residual
        return self.T @ (z[: self._p] * self.y_scales), z[self._p :] * self.u_scales

    @property
    def volume(self) -> float:
        """The product of the singular values of the equations, zero at a fold: |det J| where J is square."""
        if not self.J.shape[0] or self.J.shape[0] > self.J.shape[1]:
            return 0.0
        return float(np.prod(np.linalg.svd(self.J, compute_uv=False)))


_pairs: WeakKeyDictionary[Model, dict[int, int]] = WeakKeyDictionary()


class ChordSystem:
    """The equations of one point, with the matrices of a neighbour: a system of Newton's method without damping.

    The unknowns are the states and the free inputs. Each step goes along the tangent of the neighbour, T dy, and back
    to the manifold along its normals, -D (H D)^+ h. It costs one evaluation of the model.
    """

    def __init__(self, model: Model, request: TrimRequest, predecessor: ContinuationPoint, balance: Balance) -> None:
        self._evaluator, self._balance = PointEvaluator(model), balance
        self._time, x = predecessor.point.time, predecessor.point.states
        self._inputs = predecessor.point.inputs.copy()
        self._wanted = np.array([request.fixed[n] for n in request.fixed if model.states.has(n)])
        for name, value in request.fixed.items():
            if model.inputs.has(name):
                self._inputs[model.inputs.positions[name]] = value
        self._invariants = _make_invariants(self._evaluator, self._time, x, self._inputs)
        self._back = _compute_normals(self._invariants, self._time, x)
        self._rows, self._size = len(balance.J), max(balance.size, 1.0)
        self.start = np.concatenate((x, self._inputs[balance.free]))
        self.low = np.full(len(self.start), -np.inf)
        self.high = np.full(len(self.start), np.inf)

    def split(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the states and all inputs of unknowns z (n,)."""
        n, u = len(self._balance.x_scales), self._inputs.copy()
        u[self._balance.free] = z[n:]
        return z[:n].copy(), u

    def finish(self, z: FloatArray) -> OperatingPoint:
        """Return the point of a solution, with fixed states exactly at their values."""
        x, u = self.split(z)
        x[self._balance.held] = self._wanted
        return OperatingPoint(self._time, x, u, dict(self._evaluator.model.start.parameters))

    def values(self, points: IntArray, z: FloatArray) -> FloatArray:
        """Return scaled rates that rest and gaps of held states, then the way back to the manifold in sizes."""
        return np.array([self._value(row) for row in z])

    def _value(self, z: FloatArray) -> FloatArray:
        balance = self._balance
        x, u = self.split(z)
        try:
            rates = self._evaluator.evaluate(self._time, x, u).derivatives
            normal = -self._back @ self._invariants.values(self._time, x, u)
        except FmilinError:
            return np.full(self._rows + len(x), np.nan)
        residual = balance.residual(rates, x[balance.held] + normal[balance.held] - self._wanted)
        return np.concatenate((residual / self._size, normal / balance.x_scales))

    def differentiate(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Keep the matrices of the neighbour."""
        return np.ones(len(points), dtype=bool)

    def correct(self, points: IntArray, r: FloatArray) -> FloatArray:
        """Return steps along the tangent and back to the manifold."""
        steps = []
        for row in r:
            dx, du = self._balance.step(row[: self._rows] * self._size)
            steps.append(np.concatenate((dx + row[self._rows :] * self._balance.x_scales, du)))
        return np.array(steps)

    def measure(self, points: IntArray, step: FloatArray) -> FloatArray:
        """Return the largest component of each step, in sizes of states and inputs."""
        sizes = np.concatenate((self._balance.x_scales, self._balance.u_scales))
        return np.asarray(np.max(np.abs(step) / sizes, axis=1, initial=0.0))

    def is_zero(self, points: IntArray, z: FloatArray, r: FloatArray) -> BoolArray:
        """Return where rates, distance from the manifold and the step that would follow are small."""
        return is_solved(self, points, r, self._rows)


def correct_by_chord(
    model: Model, request: TrimRequest, predecessor: ContinuationPoint, balance: Balance
) -> OperatingPoint | None:
    """Return the trimmed point nearest to ``predecessor`` with what is fixed, None where the chord does not end.

    The request, at the new values, has neither free parameters nor bounds.
    """
    try:
        system = ChordSystem(model, request, predecessor, balance)
        result = follow_zeros(system, system.start[None], CHORD_RULES)
    except FmilinError:
        return None
    return system.finish(result.z[0]) if result.has_converged[0] else None


def _make_invariants(evaluator: PointEvaluator, t: float, x: FloatArray, u: FloatArray) -> Invariants:
    model = evaluator.model
    pairs = _pairs.get(model)
    if pairs is None:
        pairs = _pairs[model] = dict(kinematic_pairs(model, OperatingPoint(t, x, u))) if len(model.constraints) else {}
    return Invariants(evaluator, u, pairs, model.states.scales(x))


def _compute_normals(invariants: Invariants, t: float, x: FloatArray) -> FloatArray:
    """Return D (H D)^+, shape (N, m): the way back to the manifold."""
    if not len(invariants):
        return np.zeros((len(x), 0))
    gradient = invariants.gradient(t, x)
    sizes = np.where(gradient.sizes > 0, gradient.sizes, 1.0)
    return np.asarray(invariants.scales[:, None] * pseudo_inverse(gradient.scaled, 1e-9) / sizes)


APPROACHES = 160  # steps towards a fold
NEAR = 1e-8  # of the step between two points of the grid: so exactly a fold is located
REST = 0.3  # part of the way to a fold that the next step leaves
TURNED = 0.05  # A fold is named when the determinant of the equations has fallen below this part of what it was


class FoldError(NumericalError):
    """No solution beyond a fold was found: ``fold`` says where the branch turns back, ``otherwise`` why no other."""

    def __init__(self, fold: str, otherwise: str) -> None:
        super().__init__(f"{fold} No other solution was found at this point: {otherwise}")


@dataclass(frozen=True)
class Fold:
    """Where a branch turns back."""

    sentence: str
    before: ContinuationPoint  # where it was still far
    last: ContinuationPoint  # next to it

    def to(self, reached: ContinuationPoint, sizes: FloatArray, *, around: bool) -> str:
        """Return the sentence on a point beyond, with the state that tells it from the fold."""
        x, at_fold = reached.point.states, self.last.point.states
        i = int(np.argmax(np.abs(x - at_fold) / sizes))
        name = list(reached.linear.point.states)[i]
        branch = "farther along it, around the fold" if around else "on another branch"
        return f"{self.sentence} This point lies {branch}: {name} = {x[i]:.6g}, at the fold {at_fold[i]:.6g}."


def fold_between(
    predecessor: ContinuationPoint,
    values: Mapping[str, float],
    onward: Callable[[Mapping[str, float], ContinuationPoint], ContinuationPoint | None],
    volume: Callable[[ContinuationPoint], float],
) -> Fold | ContinuationPoint:
    """Return where the branch through ``predecessor`` turns back before ``values``; if it does not, its last point.

    Near a fold at p* the determinant of the equations (``volume``) goes as the root of p* - p, so that two points
    on the way tell p*; the next one is taken before it.
    """
    start = {name: predecessor.values[name] for name in values}

    def at(s: float) -> dict[str, float]:
        return {name: (1 - s) * start[name] + s * value for name, value in values.items()}

    first = volume(predecessor)
    if first <= 0:
        return predecessor
    here, s, reach, fold = predecessor, 0.0, 1.0, np.nan
    history = [(0.0, first)]
    for _ in range(APPROACHES):
        aim = fold - REST * (fold - s) if s < fold and fold - REST * (fold - s) < reach else (s + reach) / 2
        reached = onward(at(aim), here)
        if reached is None:
            reach = aim
        else:
            here, s, reach = reached, aim, 1.0
            history.append((s, volume(reached)))
            fold = _extrapolated(history)
        if reach - s < NEAR or (np.isfinite(fold) and abs(fold - s) < NEAR):
            break
    if not history[-1][1] < TURNED * first:
        return here
    fold = fold if np.isfinite(fold) else s
    where = ", ".join(f"{n} = {v:.9g}" for n, v in at(fold).items() if v != start[n] or len(start) == 1)
    return Fold(f"The branch turns back at {where} (a fold: the equations are singular there).", predecessor, here)


def _extrapolated(history: list[tuple[float, float]]) -> float:
    """Return where the volume's square vanishes on the line through the last two points; NaN if it does not fall."""
    if len(history) < 2:
        return np.nan
    (a, x), (b, y) = history[-2:]
    return b + (b - a) * y**2 / (x**2 - y**2) if x > y else np.nan


# Around a fold the state that moves fastest leads (a local parametrization, Rheinboldt 1980).

STEPS = 120
LONGEST = 0.1  # step of the leading state, in sizes, and of the way from the fold where that is longer
SHORTEST = 1e-5
FIRST = 0.1  # part of the last way to the fold
GROWTH, SHRINKAGE = 1.5, 0.25
ASTRAY = 2.0  # steps that a state may be off its guess

Led = Callable[[int, FloatArray], FloatArray]
"""Return the point near a guess (states, inputs, what varies) whose state of this number is as guessed."""


class Turning:
    """A branch beyond its fold, as far as somebody asked.

    ``passed`` are two points on the way to the fold (states, inputs, what varies), ``sizes`` those of the states,
    ``leaders`` the states that are not held.
    """

    def __init__(self, passed: list[FloatArray], sizes: FloatArray, leaders: Sequence[int], led: Led) -> None:
        self._passed, self._sizes, self._leaders, self._led = passed, sizes, leaders, led
        self._fold = passed[-1]
        self._step = FIRST * self._far(*passed)
        self._left = STEPS if leaders and self._step > 0 else 0

    def crossings(self, value: float) -> Iterator[FloatArray]:
        """Yield guesses of the points with this value of what varies, in the order of the branch."""
        k = 2
        while k < len(self._passed) or self._goes_on():
            one, other = self._passed[k - 1], self._passed[k]
            if (one[-1] - value) * (other[-1] - value) <= 0 and one[-1] != other[-1]:
                yield one + (value - one[-1]) / (other[-1] - one[-1]) * (other - one)
            k += 1

    def _goes_on(self) -> bool:
        """Take one more step; False where the branch ends, or is long enough."""
        previous, here = self._passed[-2:]
        n = len(self._sizes)
        direction = (here - previous)[:n] / self._sizes
        leader = max(self._leaders, key=lambda i: abs(direction[i]))
        while self._left > 0 and self._step > SHORTEST:
            self._left -= 1
            guess = here + self._step / abs(direction[leader]) * (here - previous)
            try:
                point = self._led(leader, guess)
            except FmilinError:
                point = np.full(len(here), np.nan)
            if self._far(point, guess) <= ASTRAY * self._step:
                self._passed.append(point)
                self._step = min(GROWTH * self._step, LONGEST * max(1.0, self._far(point, self._fold)))
                return True
            self._step *= SHRINKAGE
        return False

    def _far(self, one: FloatArray, other: FloatArray) -> float:
        n = len(self._sizes)
        return float(np.max(np.abs(one - other)[:n] / self._sizes))
