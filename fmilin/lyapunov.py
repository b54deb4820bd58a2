"""Lyapunov characteristic exponents by Benettin's method, in independent states that are switched on the way.

Deviations, dy' = A(x(t)) dy, are integrated with the trajectory and made orthonormal after each interval, dy = Q R:
logarithms of the diagonal of R, summed up and divided by the time, tend to the exponents (Benettin et al. 1980).
Lengths are measured in all states, dx = T dy, so that they do not depend on which states are independent.
"""

from dataclasses import dataclass
from math import inf

import numpy as np
from scipy.integrate import DOP853

from fmilin.diagnostics import Remark
from fmilin.errors import NumericalError, UsageError
from fmilin.manifold.frame import build_manifold
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.point_parametrization import PointParametrization
from fmilin.manifold.projection import project, require_on_manifold
from fmilin.manifold.selection import kinematic_pairs, select_partition, select_states
from fmilin.model.capabilities import read_exact_slopes, read_products
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Evaluation, Model, OperatingPoint
from fmilin.signals import FloatArray
from fmilin.simulation.inputs import input_course
from fmilin.simulation.time_breaks import TimeBreaks, find_time_breaks

MAX_INDEPENDENT_CONDITION_NUMBER = 10.0  # condition number of the independent states beyond which better ones are taken


@dataclass(frozen=True, slots=True)
class Benettin:
    """How exponents are computed."""

    # seconds between two orthonormalizations; the largest exponent times this should stay below about 5
    interval: float = 0.25
    tolerance: float = 1e-9  # relative, of the integration (Runge-Kutta of order 8)
    transient: float = 0.0  # seconds that pass before anything is summed up
    # outputs in the space of which lengths are measured, instead of all states scaled by their nominal values. They
    # must tell all motions apart; two models with the same outputs then have the same exponents at any time
    measured_in: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (0 < self.interval < inf and 0 < self.tolerance < 1 and 0 <= self.transient < inf):
            raise UsageError(
                "The interval must be positive, the tolerance between 0 and 1, the transient 0 or more, none of them "
                "infinite."
            )


@dataclass(frozen=True)
class LyapunovExponents:
    """Exponents in 1/s, largest first."""

    values: FloatArray  # shape (k,)
    times: FloatArray  # (m,), when the deviations were made orthonormal, in seconds
    history: FloatArray  # (m, k), the exponents up to these times: how far they have converged
    end: OperatingPoint  # where the trajectory ended
    switches: tuple[float, ...]  # when the independent states were changed
    remarks: tuple[Remark, ...] = ()  # on the trajectory: pulses that may have been stepped over

    @property
    def dimension(self) -> float:
        """The Kaplan-Yorke dimension: of the attractor, when all exponents were computed."""
        sums = np.cumsum(self.values)
        j = int(np.count_nonzero(sums >= 0))
        if j == len(sums) or j == 0:
            return float(j)
        return j + float(sums[j - 1]) / abs(float(self.values[j]))


def lyapunov_exponents(
    model: Model,
    duration: float,
    point: OperatingPoint | None = None,
    *,
    count: int | None = None,
    method: Benettin | None = None,
) -> LyapunovExponents:
    """Return the largest (by default all) Lyapunov exponents along a trajectory of ``duration`` seconds, inputs held.

    >>> from fmilin.systems import cartesian_pendulum
    >>> pendulum = cartesian_pendulum(length=1.0, gravity=9.0)
    >>> up = OperatingPoint(0.0, np.array([0.0, 1.0, 0.0, 0.0]), np.zeros(1))
    >>> found = lyapunov_exponents(pendulum, 3.0, up, method=Benettin(transient=2.0))
    >>> [round(float(value), 1) for value in found.values]
    [3.0, -3.0]
    """
    if not 0 < duration < inf:
        raise UsageError(f"The duration of a trajectory must be positive and finite, not {duration:g} s.")
    options = method or Benettin()
    motion = _Integration(model, model.start if point is None else point, options)
    motion.find_breaks(motion.t + options.transient + duration)
    deviations = motion.begin(count)
    t0 = motion.t + options.transient
    while motion.t < t0 - 1e-12:
        deviations = motion.orthonormal(motion.advance(deviations, min(motion.t + options.interval, t0)))[0]
    total = np.zeros(deviations.shape[1])
    times: list[float] = []
    history: list[FloatArray] = []
    while motion.t < t0 + duration - 1e-12:
        deviations = motion.advance(deviations, min(motion.t + options.interval, t0 + duration))
        deviations, growth = motion.orthonormal(deviations)
        total = total + growth
        times.append(motion.t)
        history.append(total / (motion.t - t0))
    order = np.argsort(-history[-1])
    return LyapunovExponents(
        values=history[-1][order],
        times=np.array(times),
        history=np.array(history)[:, order],
        end=OperatingPoint(motion.t, motion.x, motion.u),
        switches=tuple(motion.switches),
        remarks=motion.breaks.remarks,
    )


@dataclass(frozen=True, slots=True)
class _Local:
    """The linear model at one point."""

    rates: FloatArray  # (N,), x'
    A: FloatArray  # shape (P, P)
    T: FloatArray  # (N, P), dx = T dy
    condition_number: float  # of the choice of independent states


class _Integration:
    """A trajectory with deviations, in independent states that stay well conditioned."""

    def __init__(self, model: Model, point: OperatingPoint, options: Benettin) -> None:
        if options.measured_in:
            model = model.with_interface(outputs=options.measured_in)
        self._model, self._options = model, options
        self.t, self.x, self.u = point.time, point.states.astype(np.float64), point.inputs
        self._scales = model.states.scales(self.x)
        pairs = kinematic_pairs(model, point) if len(model.constraints) else {}
        self._invariants = Invariants(PointEvaluator(model, remembers=False), point.inputs, pairs, self._scales)
        require_on_manifold(self._invariants, self.t, self.x, otherwise="The point is not on the manifold")
        self.switches: list[float] = []
        self.breaks = TimeBreaks(np.empty(0))
        self._independent = self._best()

    def _best(self) -> list[int]:
        point = OperatingPoint(self.t, self.x, self.u)
        return list(select_partition(build_manifold(self._invariants, point)[0]).independent or ())

    def _at(self, t: float, x: FloatArray) -> _Local:
        """Return the linear model at a point: by the model's procedure, else A = R f_x T by exact products."""
        independent, model = self._independent, self._model
        manifold, rows, _ = build_manifold(self._invariants, OperatingPoint(t, x, self.u))
        choice = select_states(manifold, independent, "partition")
        procedure = read_exact_slopes(model, t, x, self.u)
        if procedure is not None:
            tangent = procedure.along(independent)
            A = tangent.derivatives[independent, : len(independent)]
            return _Local(procedure.values.derivatives, A, tangent.T, choice.condition_number)
        T = PointParametrization(
            self._invariants, rows, choice.coordinates, t, x, condition_number=choice.condition_number
        ).derivative
        A = self._products(t, x, T).derivatives[independent]
        return _Local(model.evaluate(t, x, self.u).derivatives, A, T, choice.condition_number)

    def _products(self, t: float, x: FloatArray, T: FloatArray) -> Evaluation:
        """Return the directional derivatives along the columns of T, (N, k), inputs held."""
        products = read_products(self._model, t, x, self.u, T, np.zeros((len(self.u), T.shape[1])))
        if products is None:
            raise UsageError(
                f"The model '{self._model.info.name}' has no exact directional derivatives, which are needed at every "
                "point of a trajectory. Use a native model, or an FMU that provides them."
            )
        return products

    def find_breaks(self, end: float) -> None:
        """Let steps end, up to the time ``end``, where what acts on the model jumps or pulses."""
        start = OperatingPoint(self.t, self.x, self.u)
        course = input_course(self._model.inputs, self.u, None)
        self.breaks = find_time_breaks(self._model, start, course, end)

    def begin(self, count: int | None) -> FloatArray:
        """Return orthonormal deviations, shape (P, k)."""
        p = len(self._independent)
        k = p if count is None else count
        if not 0 < k <= p:
            raise UsageError(f"The model has {p} independent states and as many exponents; {k} cannot be computed.")
        measured = self._measured()
        random = np.random.default_rng(1980).normal(size=(len(measured), k))  # in general position: none is missed
        start, _, rank, _ = np.linalg.lstsq(measured, random)
        if rank < p:
            raise UsageError(
                f"The outputs {', '.join(self._options.measured_in)} distinguish only {rank} of {p} independent "
                "motions: lengths cannot be measured in them. Name more outputs, or none."
            )
        return self.orthonormal(start.astype(np.float64))[0]

    def advance(self, deviations: FloatArray, until: float) -> FloatArray:
        """Integrate trajectory and deviations, from one set of independent states to the next where one becomes bad."""
        n, shape = len(self.x), deviations.shape
        while self.t < until:
            later = self.breaks.times[self.breaks.times > self.t]
            stop = min(until, float(later[0])) if len(later) else until
            t, z, trouble = self._stretch(np.concatenate((self.x, deviations.ravel())), stop)
            progress, self.t = t > self.t, t
            self.x = project(self._invariants, t, z[:n])
            deviations, switched = self._switched(z[n:].reshape(shape))
            if trouble is not None and not (progress or switched):
                raise trouble
        return deviations

    def _stretch(self, start: FloatArray, until: float) -> tuple[float, FloatArray, NumericalError | None]:
        """Integrate as far as the independent states are good ones; return time, trajectory and deviations there."""
        n = len(self.x)
        condition = 1.0

        def rates(t: float, z: FloatArray) -> FloatArray:
            nonlocal condition
            local = self._at(t, z[:n])
            condition = local.condition_number
            return np.concatenate((local.rates, (local.A @ z[n:].reshape(len(local.A), -1)).ravel()))

        sizes = np.concatenate((self._scales, np.ones(len(start) - n)))
        tolerance = self._options.tolerance
        trouble = None
        try:
            solver = DOP853(rates, self.t, start, until, rtol=tolerance, atol=tolerance * sizes)  # type: ignore[arg-type]
        except NumericalError as error:
            return self.t, start, error
        while solver.status == "running":
            try:
                message = solver.step()
            except NumericalError as error:  # a stage of the step has met a singularity of the independent states
                trouble = error
                break
            if str(solver.status) == "failed":
                raise NumericalError(f"The trajectory cannot be integrated beyond time {solver.t:g} s: {message}")
            if condition > MAX_INDEPENDENT_CONDITION_NUMBER:
                break
        return float(solver.t), solver.y, trouble

    def orthonormal(self, deviations: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return deviations of length one at right angles, and the logarithms of how much they had grown."""
        R = np.linalg.qr(self._measured() @ deviations)[1]
        diagonal = np.abs(np.diag(R))
        if not np.all(diagonal > 0):
            raise NumericalError(
                "The deviations have become parallel: the interval between two orthonormalizations is too long. "
                "Shorten it."
            )
        return np.linalg.solve(R.T, deviations.T).T.astype(np.float64), np.log(diagonal)

    def _measured(self) -> FloatArray:
        """Return how deviations become what lengths are measured in, shape (rows, P)."""
        T = self._at(self.t, self.x).T
        return self._products(self.t, self.x, T).outputs if self._options.measured_in else T / self._scales[:, None]

    def _switched(self, deviations: FloatArray) -> tuple[FloatArray, bool]:
        """Return the deviations in better independent states where the present ones have become bad."""
        local, better = self._at(self.t, self.x), self._best()
        if local.condition_number <= MAX_INDEPENDENT_CONDITION_NUMBER / 2 or set(better) == set(self._independent):
            return deviations, False
        self.switches.append(self.t)
        self._independent = better
        return local.T[better] @ deviations, True  # dy_new = R_new T_old dy_old
