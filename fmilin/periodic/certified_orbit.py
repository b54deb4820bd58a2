"""Whether a periodic motion is near one that nearly closes: by the Newton step of the shooting equations.

A small gap proves nothing: where two cycles have met and vanished, or where an oscillation decays slowly, the motion
comes back to its start within rounding, and there is no cycle. The equations of shooting, with a phase condition where
the period is found, are judged as those of an equilibrium are (:mod:`fmilin.numerics.certification`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fmilin.errors import REFUSALS, NumericalError
from fmilin.numerics.balanced import TERMS_ROUNDED, equilibrate_jacobian
from fmilin.numerics.certificate import Certificate, CertifiedZero
from fmilin.numerics.certification import CLEAR_RESIDUAL_FACTOR, UnboundedUnknowns, certify_zero
from fmilin.periodic.orbit import OrbitProblem
from fmilin.periodic.shooting import Arc, ShootingEquations, Shot
from fmilin.signals import FloatArray
from fmilin.simulation.method import Method
from fmilin.tolerances import EXTENT_OF_AN_ORBIT

LOOSER_TOLERANCE_FACTOR = 100.0  # how much larger the tolerances of the run are that shows the error of the integration
SECOND_ERROR = 4.0  # errors of the other run by so many times this ratio: they grow a little slower than tolerances
MIN_NOISE_LEVEL = 1e-13  # relative, of the integration
PROBE_DISTANCE = 1e-5  # how far aside, at least, the monodromy is taken again, in sizes of the unknowns
SHORTEST_PERIOD, LONGEST_PERIOD = 0.2, 3.0  # of the period of the shot: beyond that the equations are not examined
RESOLVED_TRANSITION_ERROR = (
    1e-9  # relative error of transitions with which a singular value below the limit of rank is zero
)
MAX_EXACT_JACOBIAN_ERROR = 1e-8  # from which the Jacobian counts as measured
MAX_POINTS = 768  # of a period
GAIN_OF_A_DOUBLING = 60.0  # of the error of transitions: splines of degree 5 are of order 6
DIRECTION_COUNT = 2  # random directions in which that is done
NEAR_DISTANCE = 1e-11  # a distance with which one direction is enough where it changes the monodromy matrix
UNIMPORTANT_ERROR_RATIO = 1e-10  # by less, relative, than its other errors


@dataclass(frozen=True, eq=False)
class CertifiedOrbit:
    """A shooting solution with bounds on its distance to the periodic motion and on the monodromy matrix's error."""

    shot: Shot  # a few Newton steps nearer
    certificate: Certificate  # of the states at the start, the period and what is free; the residual is the gap
    monodromy_error: FloatArray  # (N, N), of the deviations of all states after a period
    is_family: bool  # whether the motion is one of a family
    is_multiple: bool  # whether several periodic motions meet here
    resolution: float = 0.0  # of a family: the change over a period, in sizes of the states, that passes for none


class OrbitEquations:
    """The gaps of an orbit and its phase condition as functions of displacements from a shot, all in sizes."""

    moving = False
    # Nine more integrations would measure the noise; the error of the integration is larger, and known from one.
    measures_noise = False

    def __init__(self, shooting: ShootingEquations, shot: Shot) -> None:
        self.shooting, self.shot = shooting, shot
        self._arcs: dict[bytes, tuple[list[Arc], Shot]] = {}
        self._values: dict[bytes, FloatArray] = {}
        self._shots: dict[bytes, Shot] = {}
        self.arcs = self._resolve_arcs()
        self.column_sizes, self.row_sizes = shooting.sizes(shot, self.arcs)
        self.conditions = self._conditions()
        self.unknowns = UnboundedUnknowns(len(self.column_sizes))
        ends, following = shooting.terms(shot, self.arcs, self.arcs)
        self.J = self._in_sizes(ends - following)
        # Where a deviation comes back almost as it was, what is left of the entries is a difference of these.
        self.sizes = self._in_sizes(np.abs(ends) + np.abs(following))
        self.first_order = np.zeros(len(self.J), dtype=bool)
        # where derivatives were taken last, the monodromy there
        self.displaced: tuple[FloatArray, FloatArray] | None = None

    def _resolve_arcs(self) -> list[Arc]:
        """Return the arcs with so many points that their transitions are exact enough to tell a singular Jacobian."""
        shooting = self.shooting
        while True:
            arcs = [shooting.linearize_arc(self.shot, points) for points in shooting.ends(self.shot)]
            self.blur = max(arc.transition_error for arc in arcs)
            if self.blur <= RESOLVED_TRANSITION_ERROR or shooting.points >= MAX_POINTS:
                return arcs
            # Derivatives at all points are the larger part of the work: go at once to where they will be enough.
            doublings = 1
            # A doubling divides the error by a known factor: that tells how many are needed, two at once at most.
            if np.isfinite(self.blur):
                doublings = int(
                    np.clip(np.ceil(np.log(self.blur / RESOLVED_TRANSITION_ERROR) / np.log(GAIN_OF_A_DOUBLING)), 1, 2)
                )
            shooting.points = min(shooting.points * 2**doublings, MAX_POINTS)

    @property
    def order(self) -> int:
        """The number of coordinates at a node."""
        return int(self.arcs[0].path.A.shape[1])

    def _conditions(self) -> FloatArray:
        """Return rows (k, n): what is held at the start stays; else the phase does where the period is found."""
        problem, n, order = self.shooting.problem, len(self.column_sizes), self.order
        first = self.arcs[0].path
        if problem.fixed_states:
            rows = np.zeros((len(problem.fixed_states), n))
            scales = self.shooting.scales[list(problem.fixed_states)]
            rows[:, :order] = first.T[0][list(problem.fixed_states)] * self.column_sizes[:order] / scales[:, None]
        elif problem.finds_period:
            rows = np.zeros((1, n))
            rows[0, :order] = first.f0[0] / self.column_sizes[:order]
            rows /= max(float(np.linalg.norm(rows)), 1e-300)  # 1e-300: a motion at rest has no phase
        else:
            rows = np.zeros((0, n))
        fixed_period = np.zeros((0 if problem.finds_period else 1, n))
        fixed_period[:, len(self.row_sizes)] = 1.0
        rows = np.vstack((rows, fixed_period))
        # A row of zeros holds nothing: a fixed state that no coordinate moves, or a phase at rest.
        return np.asarray(rows[np.abs(rows).max(axis=1, initial=0.0) > 0])

    def _in_sizes(self, slopes: FloatArray) -> FloatArray:
        return np.vstack((slopes * self.column_sizes / self.row_sizes[:, None], self.conditions))

    @property
    def regularity(self) -> float:
        """The smallest singular value of the Jacobian over the largest, rows and columns in comparable sizes."""
        return equilibrate_jacobian(self.J, self.sizes).regularity

    def move_shot(self, z: FloatArray) -> Shot:
        """Return the shot at displacements z (n,)."""
        if not z.any():
            return self.shot
        key = z.tobytes()
        if key not in self._shots:
            shot = self.shooting.move_shot(self.shot, self.arcs, z * self.column_sizes)
            self._shots = {**dict(list(self._shots.items())[-2:]), key: shot}
        return self._shots[key]

    def values(self, z: FloatArray) -> FloatArray:
        """Return gaps and conditions at z (n,); NaN where the motion is not defined."""
        key = z.tobytes()
        if key not in self._values:
            self._values = {**dict(list(self._values.items())[-1:]), key: self._compute_values(z)}
        return self._values[key]

    def _compute_values(self, z: FloatArray) -> FloatArray:
        nothing = np.full(len(self.J), np.nan)
        if not np.isfinite(z).all():
            return nothing
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                shot = self.move_shot(z)
                if not SHORTEST_PERIOD * self.shot.period < shot.period < LONGEST_PERIOD * self.shot.period:
                    return nothing
                gaps = self.shooting.compute_gaps(shot, self.shooting.ends(shot, 1))
        except REFUSALS:
            return nothing
        r = self.shooting.residual(self.arcs, gaps) / self.row_sizes
        return np.concatenate((r, self.conditions @ z))

    def jacobian(self, z: FloatArray, *, exact: bool = True, quick: bool = False) -> tuple[FloatArray, bool]:
        """Return the derivatives of :meth:`values` at z (n,), and whether they are exact."""
        if not z.any():
            return self.J, exact
        arcs, shot = self.linearize_arcs(z)
        self.displaced = z, self.monodromy(arcs)
        return self._in_sizes(self.shooting.jacobian(shot, arcs, self.arcs)), exact

    def linearize_arcs(self, z: FloatArray) -> tuple[list[Arc], Shot]:
        """Return the arcs of the shot at z (n,), and the shot."""
        key = z.tobytes()
        if key not in self._arcs:
            shot = self.move_shot(z)
            arcs = [self.shooting.linearize_arc(shot, points) for points in self.shooting.ends(shot)]
            self._arcs = {**dict(list(self._arcs.items())[-1:]), key: (arcs, shot)}  # where it is, and a place nearby
        return self._arcs[key]

    def values_each(self, z: FloatArray) -> FloatArray:
        """Return the residuals (k, m) at several z (k, n)."""
        return np.array([self.values(row) for row in z])

    def entry_sizes(self, z: FloatArray) -> FloatArray:
        """Return how large the entries of the Jacobian are near z (n,)."""
        return np.abs(self.sizes)

    def monodromy(self, arcs: list[Arc]) -> FloatArray:
        """Return what becomes of deviations after a period, in the coordinates of the start, (P, P)."""
        P = self.order
        M = arcs[0].path.R[0] @ self.arcs[0].path.T[0]
        for k, arc in enumerate(arcs):
            # The last arc ends in the coordinates in which the first one of the shot itself begins.
            following = arcs[(k + 1) % len(arcs)] if k + 1 < len(arcs) else self.arcs[0]
            M = following.path.R[0] @ arc.path.T[-1] @ arc.transition[:, :P] @ M
        return np.asarray(M)


def certify_orbit(shooting: ShootingEquations, shot: Shot) -> CertifiedOrbit:
    """Return how near the periodic motion is; raise NumericalError where nothing says that there is one."""
    problem = shooting.problem
    equations = OrbitEquations(shooting, shot)
    n = len(equations.column_sizes)
    noise = _integration_error(problem, equations)
    exact = not shooting.measured and equations.blur <= MAX_EXACT_JACOBIAN_ERROR
    zero = certify_zero(equations, np.zeros(n), equations.J, noise, exact=exact)
    regularity = equations.regularity
    if not zero.is_close(equations.unknowns.sizes(zero.z)):
        raise NumericalError(_no_orbit(problem, equations, zero.step, zero.distance, regularity))
    certified = equations.move_shot(zero.z) if zero.z.any() else shot
    ends = shooting.ends(certified)
    gaps = shooting.compute_gaps(certified, ends)
    gap = shooting.measure(gaps)
    distance = zero.distance * equations.column_sizes
    if problem.finds_period:
        # With a given period an equilibrium may be the response; one that closes after any period is not an orbit.
        _require_extent(problem, equations, ends[0], distance)
    certificate = _name_unknowns(problem, equations, zero, gap)
    off = _monodromy_error(equations, zero.z, zero.distance)
    is_family = _is_family(equations, zero.multiple, exact=exact)
    resolution = _resolve_change(equations, noise) if is_family else 0.0
    off = off + resolution * np.outer(shooting.scales, 1 / shooting.scales)
    return CertifiedOrbit(
        certified, certificate, off, is_family=is_family, is_multiple=bool(zero.multiple), resolution=resolution
    )


def _resolve_change(equations: OrbitEquations, noise: FloatArray) -> float:
    """Return the change over a period, in sizes of the states, below which a motion passes for one of a family.

    A motion that decays more slowly than that is not periodic, and has no neighbours that are: the gap does not show
    it, because of the error of the integration, nor does the Jacobian.
    """
    sigma = equilibrate_jacobian(equations.J, equations.sizes).sigma
    from_slopes = float(np.min(sigma, initial=np.inf)) * float(np.max(np.abs(equations.J), initial=0.0))
    rounding = TERMS_ROUNDED * np.abs(equations.J).sum(axis=1)
    return CLEAR_RESIDUAL_FACTOR * max(float(np.max(noise + rounding, initial=0.0)), from_slopes)


def _integration_error(problem: OrbitProblem, equations: OrbitEquations) -> FloatArray:
    """Return by what the integrator may be off in each equation: from a run with looser tolerances."""
    run, z = problem.request.run, np.zeros(len(equations.column_sizes))
    least = MIN_NOISE_LEVEL * np.ones(len(equations.J))
    # The solver of such a model has no tolerances that could be varied here.
    if equations.shooting.is_stepped:
        return least
    method = run.method if isinstance(run.method, Method) else Method(run.method)
    # RK4 has a step instead of tolerances: with twice the step its error is 2^4 times as large.
    if method.name == "RK4":
        other, ratio = replace(method, longest_step=2 * method.longest_step), 2.0**4
    else:
        other = replace(
            method,
            relative=min(LOOSER_TOLERANCE_FACTOR * method.relative, 0.1),  # looser than 0.1 is not a tolerance
            absolute=LOOSER_TOLERANCE_FACTOR * method.absolute,
        )
        ratio = other.relative / method.relative
    loose = ShootingEquations(problem.with_run(replace(run, method=other)))
    shot = equations.shot
    try:
        gaps = loose.compute_gaps(shot, loose.ends(shot, 1))
    except REFUSALS:
        return least
    r = loose.residual(equations.arcs, gaps) / equations.row_sizes
    apart = np.abs(np.concatenate((r, equations.conditions @ z)) - equations.values(z))
    return np.maximum(least, SECOND_ERROR / ratio * np.nan_to_num(apart))


def _names(problem: OrbitProblem) -> list[str]:
    inputs = [problem.model.inputs.names[j] for j in problem.free_inputs]
    return ["period", *inputs, *problem.free_parameters]


def _name_unknowns(problem: OrbitProblem, equations: OrbitEquations, zero: CertifiedZero, gap: float) -> Certificate:
    """Return the certificate by the names of the states at the start, the period, free inputs and parameters."""
    P, count, T = equations.order, len(equations.row_sizes), equations.arcs[0].path.T[0]
    further = [name for name in _names(problem) if name != "period" or problem.finds_period]

    def by_name(values: FloatArray, T: FloatArray) -> dict[str, float]:
        named = dict(zip(problem.model.states.names, (T @ values[:P]).tolist(), strict=True))
        rest = dict(zip(_names(problem), values[count:].tolist(), strict=False))
        return named | {name: rest[name] for name in further}

    columns = equations.column_sizes
    sizes = dict(zip(problem.model.states.names, equations.shooting.scales.tolist(), strict=True))
    sizes |= {name: float(size) for name, size in zip(_names(problem), columns[count:], strict=False)}
    coordinates = [*equations.arcs[0].path.states.names, *[""] * (count - P), *_names(problem)]
    return Certificate(
        residual=gap,
        step=by_name(zero.step * columns, T),
        distance=by_name(zero.distance * columns, np.abs(T)),
        sizes=sizes,
        regularity=equations.regularity,
        multiple=tuple(coordinates[i] for i in zero.multiple if i < len(coordinates) and coordinates[i]),
        residual_measure="of the sizes of the states, after one period",
    )


def _no_orbit(
    problem: OrbitProblem, equations: OrbitEquations, step: FloatArray, distance: FloatArray, regularity: float
) -> str:
    """Return in words why what nearly closes is not known to be a periodic motion."""
    P, count = equations.order, len(equations.row_sizes)
    first = equations.arcs[0].path
    names = [*first.states.names, *[""] * (count - P), *_names(problem)]
    worst = int(np.argmax(np.where(np.isfinite(distance), np.abs(step), np.abs(step) + np.abs(distance))[:P]))
    size = abs(step[worst]) * equations.column_sizes[worst]
    return (
        f"The motion nearly closes after {equations.shot.period:.9g} s, without evidence of a periodic motion nearby: "
        f"the last Newton step changes '{names[worst]}' by {size:.2g}, and the shooting equations are nearly singular "
        f"there (regularity {regularity:.1g}). The motion decays slowly, or limit cycles merge and vanish near these "
        "parameters. Start elsewhere (start={'NAME': VALUE}), or free a parameter (free=)."
    )


def _require_extent(
    problem: OrbitProblem, equations: OrbitEquations, points: tuple[object, ...], distance: FloatArray
) -> None:
    """Raise a NumericalError where a motion is not larger than the error of its start: an equilibrium."""
    states = np.array([point.states for point in points])  # type: ignore[attr-defined]
    scales = equations.shooting.scales
    extent = float(np.max(np.ptp(states, axis=0) / scales, initial=0.0))
    off = float(np.max(np.abs(equations.arcs[0].path.T[0]) @ distance[: equations.order] / scales, initial=0.0))
    if extent > EXTENT_OF_AN_ORBIT * off:
        return
    raise NumericalError(
        f"The motion spans {extent:.2g} of the sizes of the states and is accurate to {off:.2g} only, so it cannot be "
        "distinguished from an equilibrium. Give a start on a larger orbit (start={'NAME': VALUE}), or the period of "
        f"the excitation ({problem.model.info.name})."
    )


def _is_family(equations: OrbitEquations, multiple: tuple[int, ...], *, exact: bool) -> bool:
    """Whether a null space of the equations is left that does not come from motions that meet."""
    from fmilin.tolerances import RANK, RANK_MEASURED

    form = equilibrate_jacobian(equations.J, equations.sizes)
    return not multiple and form.rank(RANK if exact else RANK_MEASURED) < equations.J.shape[1]


def _monodromy_error(equations: OrbitEquations, z: FloatArray, distance: FloatArray) -> FloatArray:
    """Return what the distance (n,) of the true orbit may change in the monodromy matrix, in all states, (N, N)."""
    base = equations.arcs
    R, T = base[0].path.R[0], base[0].path.T[0]
    largest = float(np.max(distance, initial=0.0))
    if not largest > 0:
        return np.zeros((len(T), len(T)))
    magnified = max(1.0, PROBE_DISTANCE / largest)
    M: FloatArray = equations.monodromy(equations.linearize_arcs(z)[0] if z.any() else base)
    change = _bound_change(equations, z, M, largest)
    if change is not None:
        return np.asarray(np.abs(T) @ change @ np.abs(R))
    random = np.random.default_rng(1883)
    worst = np.zeros_like(M)
    for _ in range(1 if equations.shooting.measured else DIRECTION_COUNT):  # measured derivatives take many runs
        aside = magnified * distance * random.choice((-1.0, 1.0), len(distance))
        other = _compute_monodromy(equations, z + aside)
        # On one side the motion may be undefined.
        if other is None:
            other = _compute_monodromy(equations, z - aside)
        change = np.full_like(M, np.inf) if other is None else np.abs(other - M) / magnified
        worst = np.maximum(worst, change)
    # 0 times an unknown (infinite) change is NaN: a coordinate that does not enter changes nothing.
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(np.abs(T) @ worst @ np.abs(R), nan=0.0, posinf=np.inf))


def _bound_change(equations: OrbitEquations, z: FloatArray, M: FloatArray, distance: float) -> FloatArray | None:
    """Return a bound of what ``distance`` changes in M, from where derivatives were taken last; None where it matters.

    That is one direction of many: with a margin it says enough where the change is far below the error of M itself.
    """
    if equations.displaced is None or distance > NEAR_DISTANCE:
        return None
    at, displaced = equations.displaced
    way = float(np.max(np.abs(at - z), initial=0.0))
    # Derivatives at the same place say nothing of how they change.
    if not way > 0:
        return None
    change = np.abs(displaced - M) * (distance / way)
    matters = UNIMPORTANT_ERROR_RATIO * max(float(np.abs(M).max(initial=0.0)), 1.0)
    # Other directions may show ten times as much.
    return 3 * change if bool((10 * change <= matters).all()) else None


def _compute_monodromy(equations: OrbitEquations, z: FloatArray) -> FloatArray | None:
    try:
        M = equations.monodromy(equations.linearize_arcs(z)[0])
    except REFUSALS:
        return None
    return M if np.isfinite(M).all() else None
