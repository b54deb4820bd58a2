"""Parameters of a model that put its modes where they are wanted, with the least change.

With q the parameters in halves of their ranges and c(q) the margins by which goals are met,

    min |q - q_0|^2 / 2   subject to   c(q) >= 0,   and where that fails   min s   subject to   c(q) + s >= 0,

both by sequential quadratic programming (Kraft: SLSQP) on exact derivatives of eigenvalues. Each eigenvalue is followed
from point to point by what its derivatives predict, in short steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.ground.errors import NumericalError, UsageError
from fmilin.ground.signals import FloatArray
from fmilin.ground.verbs import Shown
from fmilin.linear_model.model import LinearModel
from fmilin.linearization.procedure import linearize
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.visits import one_at_a_time
from fmilin.points.uncertainty import Box, VariedModel

Complex = NDArray[np.complex128]

NEAR = 0.2  # longest step of q in which eigenvalues are followed
MET = 1e-7  # by which goals are overfulfilled, in their own sizes: the optimizer keeps its constraints to rounding
STARTS = 4  # random points from which goals are tried, where they are not met from the given one
AT_REST = 1e-7  # of the largest eigenvalue: one below that, alone or in a group that rounding spreads, is zero


@dataclass(frozen=True, kw_only=True)
class ModeGoal:
    """What one mode shall be, or all of them."""

    near: complex | None = None  #: in 1/s, an eigenvalue of the model as it is, which is followed; all modes without
    damping: float | None = None  #: the smallest ratio -Re / modulus, without unit
    decay: float | None = None  #: the slowest, -Re in 1/s
    frequency: tuple[float, float] | None = None  #: the lowest and highest modulus, in rad/s

    def __post_init__(self) -> None:
        if self.damping is None and self.decay is None and self.frequency is None:
            raise UsageError("A goal has no number: give damping=, decay= or frequency=(lowest, highest).")


@dataclass(frozen=True, eq=False, repr=False)
class PlacedModes(Shown):
    """Parameters that meet goals; printed, it says what changed."""

    parameters: dict[str, float]  #: each in its unit
    before: dict[str, float]  #: what they were
    linear: LinearModel  #: made anew with them
    modes: tuple[tuple[complex, complex], ...]  #: the eigenvalues that goals are about, before and after, in 1/s

    def __str__(self) -> str:
        changes = (f"{n} = {v:.6g} (was {self.before[n]:.6g})" for n, v in self.parameters.items())
        return f"{', '.join(changes)}: {'; '.join(f'{a:.4g} became {b:.4g}' for a, b in self.modes)}."


@one_at_a_time
def place_modes(
    model: Model, parameters: Box, goals: Sequence[ModeGoal] | ModeGoal, point: OperatingPoint | None = None
) -> PlacedModes:
    """Return the parameters nearest to those of a model, in sizes of their ranges, with which its modes meet goals.

    Parameters
    ----------
    model : Model
        Continuous, with parameters that can be changed.
    parameters : mapping of str to (float, float)
        Lowest and highest value of each, in its unit.
    goals : ModeGoal or sequence of ModeGoal
        ``ModeGoal(near=-0.4 + 3.9j, damping=0.1)`` is about the mode whose eigenvalue is nearest to ``near`` in the
        model as it is, and is followed from there; without ``near`` about all modes.
    point : OperatingPoint, optional
        Where the model starts, for None. A trimmed point stays trimmed, any other one keeps its independent states.

    Raises
    ------
    UsageError, UnknownNameError
        When a range or a goal is none, or there is no such parameter.
    NumericalError
        When no parameters were found that meet the goals: how near one came, with which. The search is local, from the
        given parameters and four other points of the box.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.models.ode import OdeModel
    >>> cart = OdeModel("cart", {"s": "v", "v": "-k*s - d*v"}, parameters={"k": 4.0, "d": 0.1})
    >>> placed = fl.design.place_modes(cart, {"d": (0.0, 5.0)}, fl.design.ModeGoal(damping=0.5))
    >>> round(placed.parameters["d"], 5)  # 2 * 0.5 * sqrt(4)
    2.0
    """
    goals = [goals] if isinstance(goals, ModeGoal) else list(goals)
    varied = VariedModel(model, point, parameters)
    start = linearize(model, varied.point, parameters=list(parameters))
    wanted = [(g, i) for g in goals for i in _meant(g, start.eigenvalues())]
    if not wanted:
        raise UsageError("There is no goal, or no mode: give fl.design.ModeGoal(near=..., damping=...) or several.")
    search = _Search(varied, start, wanted)
    q = search.run()
    linear = linearize(*varied.at(varied.values(q)))
    after = linear.eigenvalues()[_matched(search.followed(q)[1], linear.eigenvalues())]
    if any(m < 0 for g, i in wanted for _, m, _ in _margins(g, after[i], after[:0], search.unit[i])):
        raise NumericalError(f"Linearized anew with {varied.values(q)} the model misses its goals: take a smaller box.")
    modes = tuple((complex(start.eigenvalues()[i]), complex(after[i])) for _, i in wanted)
    return PlacedModes(varied.values(q), varied.values(varied.q_of(start)), linear, modes)


def _meant(goal: ModeGoal, values: Complex) -> list[int]:
    """Return the eigenvalues that a goal is about, one of each pair."""
    if goal.near is not None:
        return [int(i) for i in np.argsort(np.abs(values - complex(goal.near.real, abs(goal.near.imag))))[:1]]
    if (np.abs(values) <= AT_REST * np.abs(values).max(initial=0.0)).any():
        raise UsageError(
            "An eigenvalue is zero, of a motion that nothing drives back: a goal for all modes cannot be met. Say "
            "which mode is meant: ModeGoal(near=...)."
        )
    return [int(i) for i in np.flatnonzero(values.imag >= 0)]


def _margins(goal: ModeGoal, value: complex, slopes: Complex, unit: float) -> list[tuple[str, float, Any]]:
    """Return each number in words, by how much it is met (beside ``unit`` where in 1/s), and the slopes of that."""
    size = max(abs(value), 1e-300)
    along, ratio = (np.conj(value) * slopes).real / size, -value.real / size
    told: list[tuple[str, float, Any]] = []
    if goal.damping is not None:
        told.append((f"damping {ratio + 0.0:.4g}", ratio - goal.damping, -(slopes.real + ratio * along) / size))
    if goal.decay is not None:
        told.append((f"decay {0.0 - value.real:.4g}", (-value.real - goal.decay) / unit, -slopes.real / unit))
    for sign, limit in zip((1, -1), goal.frequency or (), strict=False):
        told.append((f"frequency {size:.4g}", sign * (size - limit) / unit, sign * along / unit))
    return told


def _matched(predicted: Complex, values: Complex) -> NDArray[np.intp]:
    """Return which of ``values`` is nearest to each predicted one, all of them taken once."""
    from scipy.optimize import linear_sum_assignment

    return np.asarray(linear_sum_assignment(np.abs(predicted[:, None] - values))[1])


class _Search:
    """The optimization, and the eigenvalues on its way: q, values (P,) at their places, slopes (P, parameters) by q."""

    def __init__(self, varied: VariedModel, start: LinearModel, wanted: Sequence[tuple[ModeGoal, int]]) -> None:
        self.varied, self.wanted = varied, wanted
        first = varied.q_of(start), start.eigenvalues(), start.eigenvalue_derivatives() * varied.half
        self.visits, self.q0 = [first], np.clip(first[0], -1.0, 1.0)
        self.unit = np.maximum(np.abs(first[1]), 1e-300)

    def followed(self, q: FloatArray) -> tuple[FloatArray, Complex, Complex]:
        """Return the eigenvalues at q, by short steps from the nearest point that was visited."""
        last = min(self.visits, key=lambda visit: float(np.linalg.norm(visit[0] - q)))
        steps = int(np.ceil(np.linalg.norm(q - last[0]) / NEAR))
        for target in np.linspace(last[0], q, steps + 1)[1:]:
            linear = self.varied.linear(self.varied.values(target))
            order = _matched(last[1] + last[2] @ (target - last[0]), linear.eigenvalues())
            slopes = linear.eigenvalue_derivatives() * self.varied.half
            last = target, linear.eigenvalues()[order], slopes[order]
            self.visits.append(last)
        return last

    def margins(self, q: FloatArray) -> tuple[tuple[str, ...], FloatArray, FloatArray]:
        """Return all numbers in words, the margins by which they are met, and the derivatives of these by q."""
        _, values, slopes = self.followed(q)
        told = [t for g, i in self.wanted for t in _margins(g, complex(values[i]), slopes[i], self.unit[i])]
        words, met, along = zip(*told, strict=True)
        return words, np.array(met) - MET, np.array(along)

    def run(self) -> FloatArray:
        """Return the q that meets the goals, or say how near one came."""
        best = self.minimized(self.q0, missing=False)
        for start in [self.q0, *np.random.default_rng(34).uniform(-1, 1, (STARTS, len(self.q0)))]:
            if self.least(best) < -MET:
                best = max(best, self.minimized(start, missing=True), key=self.least)
                best = max(self.minimized(best, missing=False), best, key=lambda q: min(self.least(q), -MET))
        if self.least(best) >= -MET:
            return best
        words, met, _ = self.margins(best)
        at = [f"{name} = {value:.6g}" for name, value in self.varied.values(best).items()]
        at = [t + " (the end of its range)" if abs(x) > 1 - 1e-6 else t for t, x in zip(at, best, strict=True)]
        raise NumericalError(
            "No parameters in their ranges were found that meet the goals. The closest is "
            f"{', '.join(w for w, m in zip(words, met, strict=True) if m < -MET)} with {', '.join(at)}. Widen a range, "
            "let another parameter vary (lin.plot.sensitivities() shows which moves the mode), or ask for less."
        )

    def least(self, q: FloatArray) -> float:
        """Return the margin of what is met least."""
        return float(self.margins(q)[1].min())

    def minimized(self, start: FloatArray, *, missing: bool) -> FloatArray:
        """Return the nearest q that meets the goals, or with ``missing`` one that misses them least."""
        from scipy import optimize

        minimize: Any = optimize.minimize

        def cost(z: FloatArray) -> tuple[float, FloatArray]:
            away = z[:-1] - self.q0
            if missing:
                return float(z[-1]), np.append(0 * away, 1.0)
            return float(away @ away) / 2, np.append(away, 0.0)

        def slopes(z: FloatArray) -> FloatArray:
            along = self.margins(z[:-1])[2]
            return np.column_stack((along, np.ones(len(along))))

        slack = max(-self.least(start), 0.0) if missing else 0.0
        constraint = {"type": "ineq", "fun": lambda z: self.margins(z[:-1])[1] + z[-1], "jac": slopes}
        bounds, options = [*[(-1.0, 1.0)] * len(start), (0.0, slack)], {"ftol": 1e-9}
        z = np.append(start, slack)
        solution = minimize(cost, z, jac=True, bounds=bounds, constraints=constraint, method="SLSQP", options=options)
        return np.asarray(np.clip(solution.x[:-1], -1.0, 1.0), dtype=np.float64)
