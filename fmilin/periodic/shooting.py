"""Shooting: a start, and a period where it is not given, from which the motion comes back to where it began.

The motion is cut into stretches (one is mostly enough; of an unstable orbit one stretch would magnify every error by
its multipliers) that begin at nodes of their own, each in coordinates of its own. Newton's method closes the gaps: the
sensitivities of a stretch follow from the linear models along it, and need not be more accurate than its convergence.
Where the equations leave degrees of freedom (a phase, an energy) the smallest step is taken.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.interpolate import make_interp_spline

from fmilin.errors import ConstraintError, FmilinError, NumericalError
from fmilin.linearization.request import Request
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.projection import project
from fmilin.manifold.selection import kinematic_pairs
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.periodic.orbit import OrbitProblem, simulate_motion
from fmilin.periodic.path import (
    MAX_CONDITION_OF_STATES,
    LinearizedPath,
    NeighbouringMotions,
    linearize_ends,
    linearize_stretch,
)
from fmilin.periodic.transition import factors, product
from fmilin.signals import FloatArray
from fmilin.simulation.inputs import input_course
from fmilin.simulation.time_breaks import find_time_breaks
from fmilin.tolerances import RANK

POINTS = 48  # of a period at which the motion is linearized for a step of Newton's method
ITERATIONS = 25  # of Newton's method; those that stall end before
SENSITIVITY_PRECISION = 1e-9  # precision of the sensitivities
DEGREE = 9  # of splines through linear models: degree 5 takes two to four times as many points for the same accuracy
LEAST_GAIN, LARGEST_GAIN = 20.0, 300.0  # by which twice as many points reduce the error of a transition
GAIN_LOSS_FACTOR = 3.0  # times that the next doubling may gain less than the last one did
ORBIT_GAP_TOLERANCE = 1e-9  # in sizes of the states: what is left of the gaps
REFINED_GAP_TOLERANCE = 1e-12  # as long as steps help, they go on to here
STALL_STEPS = 6  # steps in which the gaps must become this part of what they were
STALL_RATIO = 0.5
MAX_CACHED_MOTIONS = 3  # motions that are not integrated again
PERIOD_WEIGHT = 1e3  # so many times rather than the start the period moves, and what is free: a start on an orbit stays
MAX_STEP_FRACTION = 0.5  # how much of the period, and of the sizes of the states, a step may change at once
DIFFERENCE = 1e-6  # relative: by what a free parameter is moved


@dataclass(frozen=True, eq=False)
class Arc:
    """A stretch of the motion from one node to the next."""

    path: LinearizedPath
    measured: FloatArray | None = (
        None  # (P, P + nu), the transition where linear models along the stretch do not say it
    )

    @cached_property
    def transition(self) -> FloatArray:
        """(y, u) at the end, in carried coordinates, on those at the start: shape (P, P + nu)."""
        if self.measured is not None:
            return self.measured
        return self._interpolate_transition(1)

    @property
    def transition_error(self) -> float:
        """The largest error of the transition between the points, relative: from every second and fourth one."""
        if self.measured is not None:
            return 0.0
        size = max(float(np.abs(self.transition).max(initial=0.0)), 1.0)
        halved = self._interpolate_transition(2)
        apart = float(np.abs(halved - self.transition).max(initial=0.0)) / size
        # Every fourth point is too few for the spline: the gain of the last doubling is taken as the least.
        if (len(self.path.times) - 1) // 4 <= DEGREE:
            return apart / LEAST_GAIN
        before = float(np.abs(self._interpolate_transition(4) - halved).max(initial=0.0)) / size
        # Where derivatives are smooth the last doubling gained a factor of hundreds, and at kinks two or four.
        gain = before / max(apart, 1e-300) / GAIN_LOSS_FACTOR  # 1e-300: no difference at all
        return apart / float(np.clip(gain, 1.0, LARGEST_GAIN))

    def _interpolate_transition(self, stride: int) -> FloatArray:
        """Return the transition by a spline through every so many points."""
        path = self.path
        B, moving, times = path.B[::stride], path.moving[::stride], path.times[::stride]
        m, order, inputs = B.shape
        system = np.zeros((m, order + inputs, order + inputs))
        system[:, :order, :order], system[:, :order, order:] = moving, B
        spline = make_interp_spline(times, system, k=min(DEGREE, m - 1), axis=0)
        length = times[-1] - times[0]
        steps = factors(
            lambda at: np.asarray(spline(times[0] + length * at)), length, m, precision=SENSITIVITY_PRECISION
        )
        return product(steps)[:order]


@dataclass(frozen=True, eq=False)
class Shot:
    """Nodes, the period, and what the free quantities are."""

    model: Model
    nodes: tuple[OperatingPoint, ...]
    period: float
    drift: FloatArray  # of the states that may drift


class ShootingEquations:
    """The equations of an orbit, residual and Jacobian: the gaps between stretches of the motion and the next nodes.

    How they are solved is another matter: :func:`solve_shooting`.
    """

    def __init__(self, problem: OrbitProblem) -> None:
        self.problem = problem
        model = problem.model
        self._pairs = kinematic_pairs(model, problem.start) if len(model.constraints) else {}
        self.scales = model.states.scales(problem.start.states)
        self._request = Request(keep_inaccurate=True)
        self._states: tuple[str, ...] | None = None  # the coordinates of the stretch that was linearized last
        self.points = POINTS  # of a period at which the motion is linearized
        self.is_stepped = isinstance(model, Stepped)
        self.measured = self.is_stepped  # whether deviations are measured near the motion, as past events
        self._motions: list[tuple[Shot, int, list[tuple[OperatingPoint, ...]]]] = []

    def linearize_arc(self, shot: Shot, points: tuple[OperatingPoint, ...]) -> Arc:
        """Return a stretch linearized at points along it."""
        if not (self.measured or self._is_pulsed(points)):
            return Arc(self._linearize(shot.model, points))
        problem = self.problem
        path = linearize_ends(shot.model, points, self._request)
        neighbours = NeighbouringMotions(shot.model, points[0], path, problem.request.run)
        transition = np.zeros((len(path.states), len(path.states) + len(points[0].inputs)))
        times = np.array([points[0].time, points[-1].time])
        columns = [*range(len(path.states)), *(len(path.states) + j for j in problem.free_inputs)]
        transition[:, columns] = path.R[-1] @ neighbours.sensitivities(times, columns)[0][-1]
        return Arc(path, transition)

    def _linearize(self, model: Model, points: tuple[OperatingPoint, ...]) -> LinearizedPath:
        """Return linear models along a stretch, in the coordinates of the stretch before as long as they are good."""
        if self._states is not None:
            try:
                path = linearize_stretch(model, points, replace(self._request, independent=self._states))
            except FmilinError:  # they are singular somewhere here: others are chosen
                pass
            else:
                if path.measure_dependence(self.scales) <= MAX_CONDITION_OF_STATES:
                    return path
        path = linearize_stretch(model, points, self._request)
        self._states = None if path.carried else path.states.names
        if path.is_exact:
            # Exact derivatives were compared with differences along this stretch. An error in others shows in the
            # certificate, and all points of the orbit are checked when it is linearized for the user.
            self._request = replace(self._request, checks="none")
        return path

    def _is_pulsed(self, points: tuple[OperatingPoint, ...]) -> bool:
        """Whether what acts on the model has jumps, kinks or pulses between points, which linear models do not show."""
        model, first = self.problem.model, points[0]
        course = input_course(model.inputs, first.inputs, self.problem.request.run.inputs)
        return bool(find_time_breaks(model, first, course, points[-1].time).times.size)

    def ends(self, shot: Shot, count: int | None = None) -> list[tuple[OperatingPoint, ...]]:
        """Return points along each stretch, integrated from its node to its end; ``count`` of them after the node."""
        # 8: fewer points leave too low a degree to the spline through them.
        count = count or max(8, self.points // len(shot.nodes))
        for of_shot, points_per_stretch, stretches in self._motions:
            if of_shot is shot and points_per_stretch % count == 0:
                stride = points_per_stretch // count
                return [points[::stride] for points in stretches]
        stretches = self._integrate(shot, count)
        self._motions = [*self._motions[1 - MAX_CACHED_MOTIONS :], (shot, count, stretches)]
        return stretches

    def _integrate(self, shot: Shot, count: int) -> list[tuple[OperatingPoint, ...]]:
        length = shot.period / len(shot.nodes)
        stretches = []
        for node in shot.nodes:
            times = node.time + length * np.linspace(0, 1, count + 1)
            motion = simulate_motion(shot.model, node, times, self.problem.request.run)
            stretches.append(tuple(motion.point(k) for k in range(len(times))))
            self.measured = self.measured or bool(motion.events)
        if self.measured and len(shot.nodes) > 1:
            raise NumericalError(
                "A motion that passes events needs a single segment: the modes at the start of later segments are "
                "unknown. Leave segments= out, and give a start near the orbit (start={'NAME': VALUE})."
            )
        return stretches

    def compute_gaps(self, shot: Shot, stretches: list[tuple[OperatingPoint, ...]]) -> list[FloatArray]:
        """Return what the end of each stretch is beyond the next node, each (N,)."""
        ends = [points[-1].states for points in stretches]
        starts = [*(node.states for node in shot.nodes[1:]), shot.nodes[0].states + self.shift(shot, ends[-1])]
        return [end - start for end, start in zip(ends, starts, strict=True)]

    def shift(self, shot: Shot, end: FloatArray) -> FloatArray:
        """Return what the states gain in a period, shape (N,): angles those whole turns that are nearest to ``end``."""
        problem, shift = self.problem, np.zeros(len(self.scales))
        for i, turn in problem.angles.items():
            shift[i] = turn * np.round((end[i] - shot.nodes[0].states[i]) / turn)
        if problem.turn is not None:
            shift[problem.turn] = problem.gain
        shift[list(problem.drifting)] = shot.drift
        return shift

    def measure(self, gaps: list[FloatArray]) -> float:
        """Return the largest of the gaps, in sizes of the states."""
        return float(np.max([np.max(np.abs(gap) / self.scales, initial=0.0) for gap in gaps]))

    def residual(self, arcs: list[Arc], gaps: list[FloatArray]) -> FloatArray:
        """Return the gaps in the coordinates of the nodes that follow, (K P,)."""
        return np.concatenate([arcs[(k + 1) % len(arcs)].path.R[0] @ gap for k, gap in enumerate(gaps)])

    def jacobian(self, shot: Shot, arcs: list[Arc], base: list[Arc]) -> FloatArray:
        """Return the derivatives of the residual in the coordinates of the arcs ``base``, from those of arcs nearby."""
        return np.asarray(np.subtract(*self.terms(shot, arcs, base)))

    def terms(self, shot: Shot, arcs: list[Arc], base: list[Arc]) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of the ends and of the nodes that follow, the difference of which is the Jacobian."""
        problem, K = self.problem, len(arcs)
        order = base[0].path.A.shape[1]
        free = len(problem.free_inputs) + len(problem.free_parameters)
        J = np.zeros((K * order, K * order + 1 + free + len(problem.drifting)))
        following_nodes = np.zeros_like(J)
        rows = [slice(k * order, (k + 1) * order) for k in range(K)]
        column = K * order
        # How the coordinates at the nodes of the arcs, and their states, follow from those of the base.
        starts = [arc.path.R[0] @ base_arc.path.T[0] for arc, base_arc in zip(arcs, base, strict=True)]
        for k, arc in enumerate(arcs):
            then = (k + 1) % K
            following = base[then].path.R[0]
            carried = following @ arc.path.T[-1] @ arc.transition
            J[rows[k], rows[k]] += carried[:, :order] @ starts[k]
            following_nodes[rows[k], rows[then]] = following @ arcs[then].path.T[0] @ starts[then]
            J[rows[k], column] = following @ (arc.path.T[-1] @ arc.path.f0[-1]) / K if problem.finds_period else 0.0
            inputs = [order + j for j in problem.free_inputs]
            J[rows[k], column + 1 : column + 1 + len(inputs)] = carried[:, inputs]
        for j, name in enumerate(problem.free_parameters, start=column + 1 + len(problem.free_inputs)):
            J[:, j] = self._along_parameter(shot, name, base)
        if problem.drifting:
            following_nodes[rows[-1], -len(problem.drifting) :] = base[0].path.R[0][:, list(problem.drifting)]
        return J, following_nodes

    def sizes(self, shot: Shot, arcs: list[Arc]) -> tuple[FloatArray, FloatArray]:
        """Return the sizes of the unknowns, (n,), and those of the residual, (K P,)."""
        K, order = len(arcs), arcs[0].path.A.shape[1]
        y_scales = np.concatenate([np.abs(arc.path.R[0]) @ self.scales for arc in arcs])
        drifts = self.scales[list(self.problem.drifting)]
        sizes = np.concatenate((y_scales, [shot.period], self._free_sizes(shot), drifts))
        return sizes, np.roll(y_scales.reshape(K, order), -1, axis=0).ravel()

    def _free_sizes(self, shot: Shot) -> FloatArray:
        problem, inputs = self.problem, shot.nodes[0].inputs
        sizes = [max(abs(float(inputs[j])), float(shot.model.inputs.scales(inputs)[j])) for j in problem.free_inputs]
        values = [abs(shot.model.parameters[name]) for name in problem.free_parameters]
        return np.array([*sizes, *(value if value > 0 else 1.0 for value in values)])

    def _along_parameter(self, shot: Shot, name: str, arcs: list[Arc]) -> FloatArray:
        """Return how the ends move with a free parameter, by a difference, in the coordinates of the next nodes."""
        value = shot.model.parameters[name]
        amount = DIFFERENCE * (abs(value) or 1.0)
        models = [shot.model.with_parameters({name: value + sign * amount}) for sign in (1, -1)]
        ends = zip(*(self.ends(replace(shot, model=model)) for model in models), strict=True)
        gaps = [(ahead[-1].states - behind[-1].states) / (2 * amount) for ahead, behind in ends]
        return np.concatenate([arcs[(k + 1) % len(arcs)].path.R[0] @ gap for k, gap in enumerate(gaps)])

    def move_shot(self, shot: Shot, arcs: list[Arc], step: FloatArray) -> Shot:
        """Return nodes, period and free quantities after a step."""
        problem, K = self.problem, len(shot.nodes)
        order = (len(step) - 1 - len(self._free_sizes(shot)) - len(problem.drifting)) // K
        rest = step[K * order :]
        period = shot.period + rest[0]
        inputs, parameters = len(problem.free_inputs), len(problem.free_parameters)
        model = shot.model
        if parameters:
            changes = zip(problem.free_parameters, rest[1 + inputs : 1 + inputs + parameters], strict=True)
            model = model.with_parameters({name: model.parameters[name] + float(by) for name, by in changes})
        nodes = []
        for k, node in enumerate(shot.nodes):
            u = node.inputs.copy()
            u[list(problem.free_inputs)] += rest[1 : 1 + inputs]
            time = problem.start.time + period * k / K
            moved = node.states + arcs[k].path.T[0] @ step[k * order : (k + 1) * order]
            invariants = Invariants(PointEvaluator(model), u, self._pairs, self.scales)
            # A step that does not lead to the manifold directly is too long: no other start is tried for it.
            states = project(invariants, time, moved, problem.fixed_states if k == 0 else (), restart=False)
            nodes.append(OperatingPoint(time, states, u, model.start.parameters))
        return Shot(model, tuple(nodes), period, shot.drift + rest[len(rest) - len(problem.drifting) :])


@dataclass(frozen=True, eq=False)
class ShootingResult:
    """Where Newton's method has come."""

    shot: Shot
    size: float  # of the largest gap, in sizes of the states
    gap: FloatArray  # the largest, (N,)


def solve_shooting(
    equations: ShootingEquations, shot: Shot, *, target: float = REFINED_GAP_TOLERANCE
) -> ShootingResult:
    """Return where the gaps are smallest, by damped Newton steps.

    Steps end where the gaps are below ``target``, or where they do not become smaller at a useful rate.

    :func:`fmilin.numerics.newton.find_zeros` solves for a vector of unknowns that is added to. Here they are points of
    the manifold, which a step leaves and a projection returns to, in coordinates that are chosen anew for the stretches
    of every iteration; the rank is decided each time from the error of the transition, which depends on how many points
    it was computed from. A residual costs the integration of the motion, and is made only where a step is tried.
    """
    ends = equations.ends(shot)
    gaps = equations.compute_gaps(shot, ends)
    best = equations.measure(gaps)
    sizes = [best]
    for _ in range(ITERATIONS):
        # Newton's method far from a solution gains little by little; what gains this little does not arrive.
        stalls = len(sizes) > STALL_STEPS and best > STALL_RATIO * sizes[-1 - STALL_STEPS]
        if best <= target or stalls:
            break
        arcs = [equations.linearize_arc(shot, points) for points in ends]
        step = _compute_step(equations, shot, arcs, gaps)
        improved = _search_line(equations, shot, arcs, step, best)
        if improved is None:
            break
        before = best
        shot, ends, gaps = improved
        best = equations.measure(gaps)
        sizes.append(best)
        # Closed already, and no longer by Newton's squares: what remains is the error of the integration.
        if best <= ORBIT_GAP_TOLERANCE and best > 0.3 * before:
            break
    return ShootingResult(shot, best, max(gaps, key=lambda gap: equations.measure([gap])))


def _search_line(
    equations: ShootingEquations, shot: Shot, arcs: list[Arc], step: FloatArray, best: float
) -> tuple[Shot, list[tuple[OperatingPoint, ...]], list[FloatArray]] | None:
    """Return where a step leads, shortened until the gaps are smaller; None where no part of it helps."""
    for part in (1.0, 0.5, 0.25, 0.1, 0.02):
        try:
            trial = equations.move_shot(shot, arcs, part * step)
            ends = equations.ends(trial)
            gaps = equations.compute_gaps(trial, ends)
        # Where a step leaves the manifold or what the model is defined for, a part of it may not.
        except (NumericalError, ConstraintError):
            continue
        if equations.measure(gaps) < best:
            return trial, ends, gaps
    return None


def _compute_step(equations: ShootingEquations, shot: Shot, arcs: list[Arc], gaps: list[FloatArray]) -> FloatArray:
    """Return the least step of (y at all nodes, period, free inputs, free parameters, drift)."""
    J = equations.jacobian(shot, arcs, arcs)
    sizes, row_sizes = equations.sizes(shot, arcs)
    r = equations.residual(arcs, gaps) / row_sizes
    weights = np.where(np.arange(len(sizes)) < len(row_sizes), 1.0, PERIOD_WEIGHT)
    limit = max([RANK, *(arc.transition_error for arc in arcs)])
    in_sizes = J * sizes / row_sizes[:, None]
    V = _find_free_directions(equations, arcs[0].path, sizes, weights)
    # The rank is that without the weights, which would push the slow decay of a cycle below the limit.
    rank = int(np.linalg.matrix_rank(in_sizes @ V, rtol=limit))
    z = weights * (V @ _solve_least(in_sizes * weights @ V, -r, rank))
    nonlinear = slice(0, len(r) + 1)  # states and period; the size of what is free is unknown
    largest = float(np.max(np.abs(z[nonlinear]), initial=0.0))
    return np.asarray(z * sizes if largest <= MAX_STEP_FRACTION else z * sizes * (MAX_STEP_FRACTION / largest))


def _find_free_directions(
    equations: ShootingEquations, first: LinearizedPath, sizes: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return an orthonormal basis of steps, in sizes over weights, along which fixed states of the start stay."""
    fixed = list(equations.problem.fixed_states)
    if not fixed:
        return np.eye(len(sizes))
    order = first.A.shape[1]
    F = np.zeros((len(fixed), len(sizes)))
    F[:, :order] = first.T[0][fixed] * sizes[:order] / equations.scales[fixed, None]
    values, V = np.linalg.svd(F * weights)[1:]
    # Of fixed states that depend on each other one says what the others do: rounding is left of these.
    return np.asarray(V[int(np.count_nonzero(values > 1e-9 * values.max(initial=1.0))) :].T)


def _solve_least(J: FloatArray, r: FloatArray, rank: int) -> FloatArray:
    """Return the least z with J z = r, for a matrix J of a known rank."""
    U, sigma, Vt = np.linalg.svd(J, full_matrices=False)
    return np.asarray(Vt[:rank].T @ (U[:, :rank].T @ r / sigma[:rank]))
