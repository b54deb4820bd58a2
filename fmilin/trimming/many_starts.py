"""Several rests from many starts, and which of them stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self, overload

import numpy as np

from fmilin.errors import REFUSALS, NumericalError, UsageError
from fmilin.manifold.many_points import assemble_points
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.locks import one_at_a_time
from fmilin.signals import FloatArray, RealArray, Signals
from fmilin.support.implemented_in import implemented_in
from fmilin.trimming.damped_newton import Correction, NewtonStart, newton_correct, newton_correct_each, search_elsewhere
from fmilin.trimming.equilibrium_equations import Equations
from fmilin.trimming.equilibrium_solver import Solution, assess_point
from fmilin.trimming.search_algorithm import make_equations
from fmilin.trimming.stable_equilibrium import find_stable_equilibrium, stop_motion
from fmilin.trimming.trim_report import TrimmedPoint
from fmilin.trimming.trim_request import TrimRequest
from fmilin.trimming.trimmed_point import make_point
from fmilin.trimming.unknowns import assemble_guess, model_that_shows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

START_COUNT = 40  # by default
START_SPREAD_SIZES = (0.3, 1.0, 3.0, 10.0)  # of the starts, in sizes of the states; angles anywhere
SAME_EQUILIBRIUM_DISTANCE = 1e-6  # distance of two solutions, in sizes, that counts as none
MAX_LISTED_STATES = 6  # states in a line
STAYING_WORDS = {True: "stays", False: "unstable", None: "stability not determined"}
MAX_DEFLATED_SEARCHES = 8  # searches at most for what the starts did not lead to
SAME_FAMILY_TOLERANCE = 1e-2  # difference of eigenvalues of two members of one family, relative to the fastest


class OperatingPoints(tuple[TrimmedPoint, ...]):
    """Rests, those at which the motion stays first; ``starts`` (k, N) is where they were searched for.

    ``outside`` are rests at which a table of the model is extrapolated, where there are others inside of the data.
    """

    outside: tuple[TrimmedPoint, ...]
    starts: FloatArray
    signals: Signals  # of the states

    def __new__(cls, points: Iterable[TrimmedPoint], starts: FloatArray, signals: Signals) -> Self:  # noqa: D102
        points = list(points)
        inside = [point for point in points if not is_extrapolated(point)]
        made = super().__new__(cls, inside or points)
        made.outside = tuple(point for point in points if is_extrapolated(point)) if inside else ()
        made.starts, made.signals = starts, signals
        return made

    def __repr__(self) -> str:
        """Return a line for each rest, with the states in which they differ most."""
        x = np.array([point.states for point in self]).reshape(len(self), len(self.signals))
        most = np.argsort(-np.ptp(x, axis=0), kind="stable")[:MAX_LISTED_STATES] if len(x) else ()
        named = [(i, self.signals.names[i]) for i in sorted(most)]
        lines = [f"{len(self)} equilibria, {len(self.stable)} of them stable"]
        for point, row in zip(self, x, strict=True):
            values = ", ".join(f"{name} = {round(row[i], 9) + 0.0:.6g}" for i, name in named)
            verdict = STAYING_WORDS[point.report.stable]
            lines.append(f"{verdict}: {values}")
        if self.outside:
            lines.append(f"left out: {len(self.outside)} where a table is extrapolated (.outside)")
        return "\n".join(lines)

    @property
    def stable(self) -> tuple[TrimmedPoint, ...]:
        """Those at which certainly no deviation grows."""
        return tuple(point for point in self if point.report.is_stable)

    @implemented_in("fmilin.report.result_tables:points_figure")
    def plot(self, x: str | None = None, y: str | None = None) -> Figure:
        """Draw where they are, over two states; by default those in which they differ most."""
        ...


@overload
def operating_points(
    model: Model, values: Mapping[str, RealArray | Sequence[float] | float], *, time: float | None = None
) -> tuple[OperatingPoint, ...]: ...


@overload
def operating_points(
    model: Model,
    values: None = None,
    *,
    time: float | None = None,
    starts: int = START_COUNT,
    fixed: Mapping[str, float] | None = None,
    free: Sequence[str] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    seed: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> OperatingPoints: ...


@one_at_a_time
def operating_points(
    model: Model,
    values: Mapping[str, RealArray | Sequence[float] | float] | None = None,
    *,
    time: float | None = None,
    starts: int = START_COUNT,
    fixed: Mapping[str, float] | None = None,
    free: Sequence[str] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    seed: int = 0,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[OperatingPoint, ...]:
    """Return many points: assembled where ``values`` are given, else equilibria that many starts lead to.

    Equilibria at which a table of the model is extrapolated are omitted where there are others (``.outside``).
    From every second start Newton's method finds the nearest equilibrium, from the others damped motion a stable one.
    Each equilibrium is returned once, stable ones first; of a family one member for each kind of stability.

    Parameters
    ----------
    model : Model
    values : mapping of str to array, shape (k,), or float, optional
        States and inputs by name, held at each point; the other states follow on the start's branch. A number holds at
        all points. The options below are for equilibria, without values.
    time : float, optional
        In seconds; the model's own start time by default.
    starts : int
        How many, drawn around the model's start, within the bounds; velocities start at zero.
    fixed, free, bounds : optional
        As in :func:`trim`.
    seed : int
        Of the random starts.
    progress : callable, optional
        Called after each start with the number of finished starts.

    Raises
    ------
    UsageError, UnknownNameError
        When the arrays differ in length, or the request contradicts itself.
    ConstraintError
        When a point cannot be assembled; naming the first.
    NumericalError
        When no start leads to an equilibrium.

    Examples
    --------
    >>> import fmilin as fl
    >>> from fmilin.systems import cartesian_pendulum
    >>> points = fl.operating_points(cartesian_pendulum(angle=0.5), {"x": [0.6, 0.8]})
    >>> [round(float(p.states[1]), 12) for p in points]
    [-0.8, -0.6]
    >>> rests = fl.operating_points(fl.models.OdeModel("wells", {"x": "v", "v": "x - x^3 - v"}), starts=20)
    >>> sorted((round(float(p.states[0]), 9) + 0.0, p.report.unstable) for p in rests)
    [(-1.0, 0), (0.0, 1), (1.0, 0)]
    """
    if values is not None:
        return assemble_points(model, values, time=time)
    if starts < 1:
        raise UsageError(f"The number of starts must be at least 1, not {starts}.")
    if seed < 0:
        raise UsageError(f"The seed of the random starts must not be negative, and is {seed}.")
    request = TrimRequest(fixed or {}, (), free or (), bounds or {}, time).check(model)
    model = model_that_shows(model, [*request.targets, *request.bounds])
    candidate, _ = assemble_guess(PointEvaluator(model), request, {}, anywhere=True)
    equations = make_equations(candidate, request)
    random = np.random.default_rng(seed)
    points: list[TrimmedPoint] = []
    solutions: list[FloatArray] = []
    drawn = [stop_motion(equations, _draw_start(equations, random, spread)) for spread in _list_spreads(starts)]
    is_near = [bool(np.isfinite(z).all()) for z in drawn]  # whether there is a point of the manifold near the start
    to_nearest = [k for k in range(0, starts, 2) if is_near[k]]
    ends = newton_correct_each([NewtonStart(equations, drawn[k]) for k in to_nearest])
    nearest = dict(zip(to_nearest, ends, strict=True))
    for k, z in enumerate(drawn):
        progress(k + 1)
        if is_near[k]:
            solution = _find_equilibrium(equations, nearest.get(k, z))
            if solution is not None:
                _add_new(points, solutions, solution, equations, request)
    drawn = [z for z, near in zip(drawn, is_near, strict=True) if near]
    origins = [equations.unknowns.at(z).states for z in drawn]
    for z in [equations.unknowns.z0, *drawn][:MAX_DEFLATED_SEARCHES] if points else ():
        # Of three solutions the middle one may attract few starts: known ones are left out of the search.
        elsewhere = search_elsewhere(equations, z, solutions)
        end = None if elsewhere is None else newton_correct(equations, elsewhere)
        solution = None if end is None else _find_equilibrium(equations, end)
        if solution is not None:
            _add_new(points, solutions, solution, equations, request)
    if not points:
        raise NumericalError(
            f"None of {starts} starts leads to an equilibrium. Give bounds (bounds=) around a possible one, free an "
            "input, or run 'trim' for the cause."
        )
    order = sorted(points, key=lambda p: np.inf if p.report.unstable is None else p.report.unstable)
    return OperatingPoints(order, np.array(origins), model.states)


def is_extrapolated(point: TrimmedPoint) -> bool:
    """Whether an input of a table is outside of the table's data at a point."""
    return any(remark.kind == "extrapolated" for remark in point.report.remarks)


def _add_new(
    points: list[TrimmedPoint],
    solutions: list[FloatArray],
    solution: Solution,
    equations: Equations,
    request: TrimRequest,
) -> None:
    """Add the point at a solution unless it is among ``points``, and where it is to ``known``."""
    point = make_point(equations, solution, request)
    if not any(_is_same(point, other) for other in points):
        points.append(point)
        solutions.append(solution.z)


def _draw_start(equations: Equations, random: np.random.Generator, spread: float) -> FloatArray:
    """Return where a search starts (n,): within bounds where there are two, angles anywhere, the rest around z0."""
    unknowns = equations.unknowns
    low, high = unknowns.low, unknowns.high
    turned = np.array([unit == "rad" for unit in unknowns.units], dtype=bool)
    around = np.where(
        turned,
        random.uniform(-np.pi, np.pi, len(low)) / unknowns.scales,
        spread * random.standard_normal(len(low)) * unknowns.sizes(unknowns.z0),
    )
    inside = random.uniform(0.0, 1.0, len(low))
    bounded = np.isfinite(low) & np.isfinite(high)
    within = np.where(bounded, low, 0.0) + inside * np.where(bounded, high - low, 0.0)
    return np.asarray(np.where(bounded, within, np.clip(unknowns.z0 + around, low, high)))


def _list_spreads(count: int) -> list[float]:
    """Return how far from the model's start each start is drawn, alike for both kinds of searches."""
    return [START_SPREAD_SIZES[k // 2 % len(START_SPREAD_SIZES)] for k in range(count)]


def _find_equilibrium(equations: Equations, start: FloatArray | Correction) -> Solution | None:
    """Return the equilibrium where Newton's method, or else damped motion from a start, ended; None without one."""
    try:
        if isinstance(start, Correction):
            end: Solution | None = assess_point(equations, start, exact=True)
        else:
            end = find_stable_equilibrium(equations, start)
    except REFUSALS:
        return None
    return end if end is not None and end.is_zero else None


def _is_same(one: TrimmedPoint, other: TrimmedPoint) -> bool:
    """Whether two rests are one, up to whole turns; or members of one family, as far as their stability says."""
    signals = one.report.states
    apart = one.states - other.states
    turned = np.array([unit == "rad" for unit in signals.units], dtype=bool)
    apart = np.where(turned, (apart + np.pi) % (2 * np.pi) - np.pi, apart)
    sizes = signals.scales(one.states)
    distances = one.report.distance, other.report.distance
    doubt = np.array([sum(d.get(name, 0.0) for d in distances) for name in signals.names])
    # Bounds of distances are estimates: twice their sum is still one equilibrium.
    is_near = (np.abs(apart) <= np.maximum(SAME_EQUILIBRIUM_DISTANCE * sizes, 2 * doubt)).all()
    if is_near and np.allclose(one.inputs, other.inputs):
        return True
    a, b = one.report, other.report
    # Isolated equilibria stay apart, although those of two equal wells have the same eigenvalues.
    if not (a.free_directions or a.multiple) or a.eigenvalues is None or b.eigenvalues is None:
        return False
    if len(a.eigenvalues) != len(b.eigenvalues):  # one of them is a singular configuration
        return False
    tolerance = SAME_FAMILY_TOLERANCE * float(np.max(np.abs(a.eigenvalues), initial=0.0))
    parts = [(np.sort(np.abs(w)), np.sort(w.real)) for w in (a.eigenvalues, b.eigenvalues)]
    return all(np.allclose(p, q, rtol=0.0, atol=tolerance) for p, q in zip(*parts, strict=True))
