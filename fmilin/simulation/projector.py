"""The way back to the manifold (Spencer section 3.1.3), also close to a singular configuration.

First the positions, dq = -G^+ g(q), repeated until they satisfy their constraints, then the velocities, dv = -G^+ G v,
with distances in sizes of the states; states of other kinds in one go with the constraints that hold them. Where the
energy is kept, the states move along what its gradient leaves in the tangent space until it has its first value.
"""

from dataclasses import dataclass

import numpy as np

from fmilin.errors import FmilinError, NumericalError
from fmilin.manifold.manifold_verification import require_invariants
from fmilin.manifold.projection import pseudo_inverse
from fmilin.manifold.rank import ROW_ROUNDING_TOLERANCE
from fmilin.signals import FloatArray
from fmilin.simulation.stabilization import Plant
from fmilin.tolerances import EPS, INVARIANT_TOLERANCE, MANIFOLD_DISTANCE_TOLERANCE, MEASURED_INVARIANT_TOLERANCE, RANK

ITERATIONS = 30
ROUNDS = 4


@dataclass(frozen=True, eq=False)
class _Stage:
    """Rows of h that are satisfied together, and the states that may move for it (N,)."""

    rows: list[int]
    movable: FloatArray


class Projector:
    """(t, x) -> the nearest point of the manifold; x itself, the same object, where it is near enough."""

    def __init__(self, plant: Plant, tolerance: float = 0.0, *, keeps_energy: bool = False) -> None:
        self._plant = plant
        self._tolerance = max(tolerance, 4 * EPS)  # in sizes of the states
        self._energy = plant.energy if keeps_energy else None
        self._stages: list[_Stage] = []
        m = len(plant.invariants)
        self._sizes: FloatArray = np.ones(m)
        self._typical: FloatArray = np.zeros(m)

    def __call__(self, t: float, x: FloatArray) -> FloatArray:
        """Return the point, shape (N,)."""
        if not np.isfinite(x).all():
            return x
        if not self._stages:
            self._find_stages(t, x)
        x = self._onto_constraints(t, x)
        return x if self._energy is None else self._onto_energy(t, x)

    def _onto_constraints(self, t: float, x: FloatArray) -> FloatArray:
        if not len(self._plant.invariants):
            return x
        h = self._plant.h(t, x)
        if (np.abs(h) <= self._near(self._tolerance, x)).all():  # the end of most steps
            return x
        for _ in range(ROUNDS):
            for stage in self._stages:
                x, h = self._through(stage, t, x, h)
            if not (np.abs(h) > self._near(self._tolerance, x)).any():
                break
        if not (np.abs(h) <= self._near(max(MANIFOLD_DISTANCE_TOLERANCE, 2 * self._tolerance), x)).all():
            raise self._build_error(t, h)
        return x

    def _through(self, stage: _Stage, t: float, x: FloatArray, h: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Satisfy the rows of one stage; return x and h."""
        rows, previous = stage.rows, np.inf
        for _ in range(ITERATIONS):
            worst = float(np.max((np.abs(h) / self._near(self._tolerance, x))[rows]))
            if not worst > 1 or (worst >= 0.5 * previous and worst < 1e3):
                break
            previous = worst
            slopes = self._slopes(stage, t, x)
            if not (np.isfinite(slopes).all() and np.isfinite(h).all()):
                break
            self._sizes[rows] = self._row_sizes(rows, slopes)
            size = self._sizes[rows]
            step = pseudo_inverse(slopes / size[:, None], RANK) @ (h[rows] / size)
            x = x - self._plant.scales * step
            h = self._plant.h(t, x)
        return x, h

    def _slopes(self, stage: _Stage, t: float, x: FloatArray) -> FloatArray:
        """Return H D for the rows and the movable states of a stage, shape (rows, N)."""
        return self._plant.gradient(t, x).H[stage.rows] * (self._plant.scales * stage.movable)

    def _near(self, tolerance: float, x: FloatArray) -> FloatArray:
        """Return what each |h_i| may be: a distance times its slope, but no less than its rounding."""
        reach = max(1.0, float(np.abs(x / self._plant.scales).max()))
        return reach * np.maximum(tolerance * self._sizes, 16 * EPS * self._typical) + 1e-300

    def _row_sizes(self, rows: list[int], slopes: FloatArray) -> FloatArray:
        """Return the slope of each row; of one that has all but vanished, and says nothing, what it is elsewhere."""
        size = np.linalg.norm(slopes, axis=1)
        size = np.where(size > ROW_ROUNDING_TOLERANCE * self._terms[rows], size, 0.0)  # rounding is not a slope
        self._typical[rows] = np.maximum(self._typical[rows], size)
        usual = np.where(self._typical[rows] > 0, self._typical[rows], 1.0)
        return np.where(size > RANK * usual, size, usual)

    def _find_stages(self, t: float, x: FloatArray) -> None:
        """Find the stages, and the usual slope of each row: at the start itself it may be exceptional."""
        random = np.random.default_rng(1996)
        invariants, D = self._plant.invariants, self._plant.scales
        m = len(invariants)
        everything, unpaired = np.ones(len(D)), np.ones(len(D))
        unpaired[sorted(invariants.pairs)] = 0.0
        full_norms, reduced, self._terms = np.zeros(m), np.zeros(m), np.zeros(m)
        for amount in (0.0, 1e-3, 0.1):
            nearby = x + amount * D * random.uniform(-1, 1, len(x))
            try:
                gradient = self._plant.gradient(t, nearby)
                H = gradient.H * D
                if self._energy is not None:
                    self._energy.slope(t, nearby, self._plant.u(t))
            except FmilinError:  # outside the model's domain
                continue
            self._terms = np.fmax(self._terms, gradient.reference)
            full_norms = np.fmax(full_norms, np.linalg.norm(H, axis=1))
            reduced = np.fmax(reduced, np.linalg.norm(H * unpaired, axis=1))
        full_norms, reduced = (
            np.where(norms > ROW_ROUNDING_TOLERANCE * self._terms, norms, 0.0) for norms in (full_norms, reduced)
        )
        positions = invariants.is_position_level
        last = [i for i in range(m) if not positions[i] and invariants.pairs and reduced[i] > 1e-6 * full_norms[i]]
        first = [i for i in range(m) if i not in last]
        self._typical = np.where(np.isin(np.arange(m), last), reduced, full_norms)
        stages = [_Stage(first, everything), _Stage(last, unpaired)]
        self._stages = [s for s in stages if s.rows] or [_Stage([], everything)]
        for stage in self._stages:
            self._sizes[stage.rows] = self._row_sizes(stage.rows, self._slopes(stage, t, x))

    def _build_error(self, t: float, h: FloatArray) -> NumericalError:
        distance = np.abs(h) / self._sizes
        worst = int(np.argmax(np.where(np.isfinite(distance), distance, np.inf)))
        return NumericalError(
            f"The states cannot be brought back onto the manifold at t = {t:.9g} s: "
            f"'{self._plant.invariants.names[worst]}' stays off by {h[worst]:.3g}. The steps are too long there, or "
            "the configuration is nearly singular: use smaller tolerances or another stabilization."
        )

    def _onto_energy(self, t: float, x: FloatArray) -> FloatArray:
        """Move within the manifold to the energy that the motion began with."""
        energy, D = self._energy, self._plant.scales
        assert energy is not None  # noqa: S101 - asked before
        previous = np.inf
        for _ in range(ITERATIONS):
            excess = energy.excess(t, x, self._plant.u(t))
            limit = max(self._tolerance, 64 * EPS) * energy.size
            if not abs(excess) > limit or (abs(excess) >= 0.5 * previous and abs(excess) < 1e3 * limit):
                return x
            previous = abs(excess)
            along = self._tangential(t, x, energy.slope(t, x, self._plant.u(t)) * D)
            steepness = float(along @ along)
            if steepness <= (RANK * energy.size) ** 2:
                return x  # at rest at an equilibrium: no motion changes the energy
            x = self._onto_constraints(t, x - D * along * (excess / steepness))
        raise NumericalError(
            f"The energy cannot be brought back to its first value at t = {t:.9g} s: it is off by {excess:.3g}. If "
            "the model gains or loses energy, leave out energy=."
        )

    def _tangential(self, t: float, x: FloatArray, vector: FloatArray) -> FloatArray:
        """Return what ``vector`` (N,), in sizes of the states, has in the tangent space."""
        H = self._plant.gradient(t, x).H * self._plant.scales
        if not len(H):
            return vector
        size = np.linalg.norm(H, axis=1)
        usual = np.where(self._typical > 0, self._typical, np.inf)
        H = H / np.where(size > RANK * usual, size, usual)[:, None]
        return np.asarray(vector - pseudo_inverse(H, RANK) @ (H @ vector))


NEARBY_DISTANCE = 1e-3  # how far from the start the motion is checked, too, in sizes of the states
SAMPLES = 3


def require_invariance(plant: Plant, t: float, x: FloatArray) -> None:
    """Check that h stays zero along f at the start and near it, relative to the largest size of its terms there."""
    if not len(plant.invariants):
        return
    drift, size = np.zeros(len(plant.invariants)), np.zeros(len(plant.invariants))
    measured = False
    random = np.random.default_rng(1972)
    project = Projector(plant)
    points = []  # fewer where the model or the projection cannot go
    for _ in range(SAMPLES):
        try:
            points.append(project(t, x + NEARBY_DISTANCE * plant.scales * random.uniform(-1.0, 1.0, len(x))))
        except FmilinError:
            continue
    for point in [x, *points]:
        f = plant.f(t, point)
        if not np.isfinite(f).all():
            continue
        gradient = plant.gradient(t, point)
        measured = measured or not gradient.is_exact
        step = 1e-5 * max(abs(t), 1.0)  # with time and inputs h mostly does not change at all
        own_change = (plant.h(t + step, point) - plant.h(t - step, point)) / (2 * step)
        drift = np.fmax(drift, np.abs(gradient.H @ f + own_change))
        fastest = float(np.max(np.abs(f) / plant.scales, initial=0.0))
        size = np.fmax(size, np.abs(gradient.H) @ np.abs(f) + 1e-3 * fastest * gradient.reference)
    tolerance = MEASURED_INVARIANT_TOLERANCE if measured else INVARIANT_TOLERANCE
    relative = np.where(size > 0, drift / np.where(size > 0, size, 1.0), 0.0)
    require_invariants(plant.invariants.names, relative, tolerance)
