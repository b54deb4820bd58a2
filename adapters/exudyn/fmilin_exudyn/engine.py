"""The equations of a system of Exudyn, by Exudyn's own functions.

    M(q) v' = f(t, q, v) - G(q)' lambda,    G v' = -dw/dt at v' = 0,    q' = v,    z' = ODE1

f is ``ComputeODE2RHS``, M ``ComputeMassMatrix``. The algebraic equations g(q) = 0 and their time derivatives
w(q, v) = 0 come from ``ComputeAlgebraicEquations`` at position and velocity level. w is linear in v, so the columns of
G are differences of w that are exact but for rounding. Where ``ComputeJacobianAE`` agrees with them at random points,
it takes their place. dw/dt along the motion is a central difference of eighth order.
"""

from __future__ import annotations

from typing import Any

import exudyn as exu
import numpy as np
from numpy.typing import NDArray

from fmilin import Constraint
from fmilin.adapters import DenseFactors, Engine, Factors, ModelInfo, NullSpaceFactors, require_regular
from fmilin.errors import ModelError
from fmilin.signals import FloatArray, Signals
from fmilin_exudyn.names import name_constraints, name_coordinates, name_loads, name_sensors, read_sensor

__all__ = ["ExudynEngine"]

EIGHTH_ORDER = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
"""Weights of w(s) - w(-s) at s = h, 2h, 3h, 4h."""
STEP = 2.0**-9
"""h in sizes of the system: truncation is far below rounding, which is eps/h."""
UNIT_STEP = 0.5
"""Along a quaternion: gaps are of second degree in its length, so that a central difference of any step is exact."""
PROBE_DISPLACEMENT = 0.1
PROBES = 3
LATER = 0.37
JACOBIAN_TOLERANCE = 1e-12
"""Difference of Exudyn's Jacobian from that of the rates, relative to the largest entry, up to which it is read."""


class ExudynEngine(Engine):
    """A system of Exudyn with its constraints.

    Parameters
    ----------
    mbs : exudyn.MainSystem
    name : str

    Raises
    ------
    ModelError
        When Exudyn rejects the system, or coordinates of a node are of a Lie group.
    """

    def __init__(self, mbs: Any, name: str = "") -> None:
        self._mbs, self._data = mbs, mbs.systemData
        self._container = mbs.GetSystemContainer()  # the system ends with it
        self._solver = start_solver(mbs)
        self.info = ModelInfo(name or "exudyn", tool=f"Exudyn {exu.__version__}")
        coordinates = name_coordinates(mbs)
        self._n, self._n1 = len(coordinates.positions), len(coordinates.first_order)
        self._m = int(self._solver.GetAEsize())
        self.states = Signals([*coordinates.positions, *coordinates.velocities, *coordinates.first_order])
        self._loads = name_loads(mbs)
        self.inputs = Signals(load.signal for load in self._loads)
        self._set_loads: FloatArray | None = None
        self._size = measure_size(self._data)
        self._reference = np.array(self._data.GetODE2Coordinates(exu.ConfigurationType.Reference), dtype=np.float64)
        self.start_time = float(self._data.GetTime())
        self._quaternions = list_quaternions(mbs)
        self._last_jacobian: tuple[tuple[float, bytes], FloatArray] | None = None
        self._is_holonomic = np.ones(self._m, dtype=bool)  # of all equations
        self._is_jacobian_exact, self._is_driven = True, False
        self._gaps_alone = np.zeros(0, dtype=np.intp)
        self._gaps_alone = self._find_gaps_alone()
        self._active = self._classify_equations()
        is_holonomic = self._is_holonomic[self._active]
        self._holonomic = self._active[is_holonomic]
        self._holonomic_rows = np.flatnonzero(is_holonomic)
        names = name_constraints(mbs, self._active)
        gaps = [name for name, has_gap in zip(names, is_holonomic, strict=True) if has_gap]
        self._sensors = list(name_sensors(mbs))
        equations = [*(f"{name}.gap" for name in gaps), *(f"{name}.rate" for name in names)]
        self.quantities = Signals([*equations, *(sensor.signal for sensor in self._sensors)])
        self.constraints = tuple(
            Constraint.from_text(f"`{name}.gap`", name=name, rate=f"`{name}.rate`")
            if has_gap
            else Constraint.from_text(f"`{name}.rate`", name=name, level="velocity")
            for name, has_gap in zip(names, is_holonomic, strict=True)
        )
        self.outputs = tuple(sensor.signal.name for sensor in self._sensors) or tuple(
            signal.name for signal in coordinates.positions
        )
        self.freedoms_known = not self.constraints
        self.notes = list_omissions(mbs)

    def visit(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rates of all states, gaps and their rates, and what sensors measure."""
        n, data, mbs, solver = self._n, self._data, self._mbs, self._solver
        q, v, z = x[:n], x[n : 2 * n], x[2 * n :]
        self._apply_loads(u)
        if self._n1:
            data.SetODE1Coordinates(z)
        G = self._compute_jacobian(t, q)
        bias = self._differentiate_rates(t, q, v)
        gaps = self._evaluate_equations(t, q, v, is_rate=False)[self._holonomic]
        rates = self._evaluate_equations(t, q, v, is_rate=True)[self._active]
        self._set_motion(t, q, v)
        solver.ComputeMassMatrix(mbs)
        M = np.array(solver.GetSystemMassMatrix(), dtype=np.float64)[:n, :n]
        solver.ComputeODE2RHS(mbs)
        forces = np.array(solver.GetSystemResidual(), dtype=np.float64)[:n]
        first_order = np.zeros(0)
        if self._n1:
            solver.ComputeODE1RHS(mbs)
            first_order = np.array(solver.GetSystemResidual(), dtype=np.float64)[n : n + self._n1]
        factors: Factors = NullSpaceFactors(M, G) if len(G) else DenseFactors(M)
        require_regular(factors, f"The equations of '{self.info.name}'", self.states.names[n : 2 * n])
        solution = factors.solve(np.concatenate((forces, -bias)))
        accelerations = solution[:n]
        measured = self._measure(accelerations, solution[n:])
        return np.concatenate((v, accelerations, first_order)), np.concatenate((gaps, rates, measured))

    def positions(self, x: FloatArray) -> FloatArray | None:
        """Return gaps and their rates; NaN for what sensors measure."""
        n, t = self._n, self.start_time
        gaps = self._evaluate_equations(t, x[:n], x[n : 2 * n], is_rate=False)[self._holonomic]
        rates = self._evaluate_equations(t, x[:n], x[n : 2 * n], is_rate=True)[self._active]
        return np.concatenate((gaps, rates, np.full(len(self._sensors), np.nan)))

    def kinematics(self, t: float, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return gaps and their rates with their derivatives along all states; NaN for what sensors measure."""
        n, holonomic = self._n, self._holonomic
        q, v = x[:n], x[n : 2 * n]
        values = self._evaluate_equations(t, q, v, is_rate=False)[holonomic]
        rates = self._evaluate_equations(t, q, v, is_rate=True)[self._active]
        sensors = len(self._sensors)
        slopes = np.zeros((len(values) + len(rates) + sensors, len(x)))
        G = self._compute_jacobian(t, q)
        slopes[: len(values), :n] = self._complete_along_quaternions(t, q, G[self._holonomic_rows])
        of_rates = slice(len(values), len(values) + len(rates))
        slopes[of_rates, n : 2 * n] = G
        if v.any() and len(rates):
            slopes[of_rates, :n] = self._differentiate_rates_by_positions(t, q, v)
        slopes[len(slopes) - sensors :] = np.nan
        return np.concatenate((values, rates, np.full(sensors, np.nan))), slopes

    def _differentiate_rates_by_positions(self, t: float, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return dw/dq (m, n).

        G of equations of positions is a gradient, so that d(G v)/dq is the change of G along v. This does not hold
        with quaternions, to the length of which G is blind.
        """
        if len(self._quaternions) or len(self._holonomic) < len(self._active):
            return np.array([self._difference(t, q, v, unit, 0.0) for unit in np.eye(self._n)]).T
        h = STEP * self._size / max(float(np.abs(v).max()), self._size)
        total = np.zeros((len(self._active), self._n))
        for k, weight in enumerate(EIGHTH_ORDER, 1):
            ahead, behind = (self._compute_jacobian(t, q + side * k * h * v) for side in (1.0, -1.0))
            total += weight * (ahead - behind) / h
        return total

    def _complete_along_quaternions(self, t: float, q: FloatArray, G: FloatArray) -> FloatArray:
        """Return the gradient of gaps from that of their rates, to which the length of a quaternion is nothing."""
        still = np.zeros(self._n)
        reference = self._reference
        for positions in self._quaternions:
            normal = np.zeros(self._n)
            normal[positions] = q[positions] + reference[positions]
            ahead, behind = (
                self._evaluate_equations(t, q + side * UNIT_STEP * normal, still, is_rate=False)[self._holonomic]
                for side in (1.0, -1.0)
            )
            along = (ahead - behind) / (2 * UNIT_STEP)
            G = G + np.outer(along - G @ normal, normal) / (normal @ normal)
        return G

    def _measure(self, accelerations: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return what sensors measure: forces of joints belong to the multipliers."""
        if not self._sensors:
            return np.zeros(0)
        self._data.SetODE2Coordinates_tt(accelerations)
        forces = np.zeros(self._m)
        forces[self._active] = multipliers
        self._data.SetAECoordinates(forces)
        numbers = dict.fromkeys(sensor.number for sensor in self._sensors)
        values = {number: read_sensor(self._mbs, number) for number in numbers}
        self._data.SetAECoordinates(np.zeros(self._m))
        return np.array([values[sensor.number][sensor.component] for sensor in self._sensors])

    def _apply_loads(self, u: FloatArray) -> None:
        if self._set_loads is not None and np.array_equal(u, self._set_loads):
            return
        vectors: dict[int, list[float]] = {}
        for load, value in zip(self._loads, u.tolist(), strict=True):
            if load.component < 0:
                self._mbs.SetLoadParameter(load.number, "load", value)
            else:
                vectors.setdefault(load.number, []).append(value)
        for number, vector in vectors.items():
            self._mbs.SetLoadParameter(number, "loadVector", vector)
        self._set_loads = u.copy()

    def _set_motion(self, t: float, q: FloatArray, v: FloatArray) -> None:
        self._data.SetTime(t)
        self._data.SetODE2Coordinates(q)
        self._data.SetODE2Coordinates_t(v)

    # -- algebraic equations -----------------------------------------------------------------------

    def _evaluate_equations(self, t: float, q: FloatArray, v: FloatArray, *, is_rate: bool) -> FloatArray:
        """Return all algebraic equations (m,), at position level or their rates; multipliers are zero."""
        if not self._m:
            return np.zeros(0)
        self._set_motion(t, q, v)
        self._solver.ComputeAlgebraicEquations(self._mbs, velocityLevel=is_rate)
        first = self._n + self._n1
        values = np.array(self._solver.GetSystemResidual(), dtype=np.float64)[first : first + self._m]
        if is_rate and len(self._gaps_alone):
            values[self._gaps_alone] = self._differentiate_gaps(t, q, v)
        return values

    def _differentiate_gaps(self, t: float, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return the rates of equations that Exudyn has at position level alone, by their Jacobian and by time."""
        rates: FloatArray = self._read_jacobian(t, q)[self._gaps_alone] @ v
        if self._is_driven:
            for k, weight in enumerate(EIGHTH_ORDER, 1):
                ahead, behind = (
                    self._evaluate_equations(t + side * k * STEP, q, v, is_rate=False)[self._gaps_alone]
                    for side in (1.0, -1.0)
                )
                rates += weight * (ahead - behind) / STEP
        return rates

    def _compute_jacobian(self, t: float, q: FloatArray) -> FloatArray:
        """Return G (m, n) of the active equations, which has been computed where the positions are those of before."""
        key = (t, q.tobytes())
        if self._last_jacobian is None or self._last_jacobian[0] != key:
            G = self._read_jacobian(t, q) if self._is_jacobian_exact else self._difference_velocities(t, q)
            self._last_jacobian = (key, G[self._active])
        return self._last_jacobian[1]

    def _difference_velocities(self, t: float, q: FloatArray) -> FloatArray:
        """Return G (m, n) of all equations: w is linear in the velocities."""
        still = self._evaluate_equations(t, q, np.zeros(self._n), is_rate=True)
        columns = [self._evaluate_equations(t, q, unit, is_rate=True) - still for unit in np.eye(self._n)]
        return np.array(columns).reshape(self._n, self._m).T

    def _read_jacobian(self, t: float, q: FloatArray) -> FloatArray:
        """Return G (m, n) of all equations by Exudyn's own derivatives."""
        self._evaluate_equations(t, q, np.zeros(self._n), is_rate=False)
        first = self._n + self._n1
        parts = []
        for factor, factor_t in ((1.0, 0.0), (0.0, 1.0)):
            self._solver.ComputeJacobianODE2RHS(
                self._mbs, scalarFactor_ODE2=0.0, scalarFactor_ODE2_t=0.0, scalarFactor_ODE1=0.0
            )
            self._solver.ComputeJacobianAE(
                self._mbs, scalarFactor_ODE2=factor, scalarFactor_ODE2_t=factor_t, scalarFactor_ODE1=0.0
            )
            jacobian = np.array(self._solver.GetSystemJacobian(), dtype=np.float64)
            parts.append(jacobian[first : first + self._m, : self._n])
        return np.where(self._is_holonomic[:, None], *parts)

    def _differentiate_rates(self, t: float, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return dw/dt (m,) along the motion, accelerations left out."""
        if not len(self._active) or not (v.any() or self._is_driven):
            return np.zeros(len(self._active))
        return self._difference(t, q, v, v, 1.0)

    def _difference(self, t: float, q: FloatArray, v: FloatArray, direction: FloatArray, rate: float) -> FloatArray:
        """Return the derivative of w (m,) along a direction of the positions while t moves by ``rate``."""
        h = STEP * self._size / max(float(np.abs(direction).max(initial=0.0)), self._size)
        total = np.zeros(len(self._active))
        for k, weight in enumerate(EIGHTH_ORDER, 1):
            s = k * h
            ahead = self._evaluate_equations(t + rate * s, q + s * direction, v, is_rate=True)[self._active]
            behind = self._evaluate_equations(t - rate * s, q - s * direction, v, is_rate=True)[self._active]
            total += weight * (ahead - behind) / h
        return total

    def _find_gaps_alone(self) -> NDArray[np.intp]:
        """Return equations that depend on positions, and at velocity level not on velocities.

        A user function of a constraint may return the gap at both levels: Exudyn's solver of index 3 reads no rates.
        """
        if not self._m:
            return np.zeros(0, dtype=np.intp)
        t, start, still = self.start_time, self.states.starts[: self._n], np.zeros(self._n)
        has_gap, has_rate = np.zeros(self._m, dtype=bool), np.zeros(self._m, dtype=bool)
        random = np.random.default_rng(1743)
        gaps = self._evaluate_equations(t, start, still, is_rate=False)
        rates = self._evaluate_equations(t, start, still, is_rate=True)
        for _ in range(PROBES):
            q = start + PROBE_DISPLACEMENT * self._size * random.uniform(-1.0, 1.0, self._n)
            v = random.uniform(-1.0, 1.0, self._n)
            has_gap |= self._evaluate_equations(t, q, still, is_rate=False) != gaps
            has_rate |= self._evaluate_equations(t, start, v, is_rate=True) != rates
        return np.flatnonzero(has_gap & ~has_rate)

    def _classify_equations(self) -> NDArray[np.intp]:
        """Return the equations that constrain the motion; find which are of positions, and whether G can be read.

        An axis of a joint that is free has the equation lambda = 0; rolling has equations of velocities alone.
        """
        n, m, t = self._n, self._m, self.start_time
        random = np.random.default_rng(1743)
        start, still = self.states.starts[:n], np.zeros(n)
        constrains = np.zeros(m, dtype=bool)
        for _ in range(PROBES if m else 0):
            q = start + PROBE_DISPLACEMENT * self._size * random.uniform(-1.0, 1.0, n)
            v = random.uniform(-1.0, 1.0, n)
            for positions in self._quaternions:
                turned = (q + self._reference)[positions]
                q[positions] = turned / np.linalg.norm(turned) - self._reference[positions]
            G = self._difference_velocities(t, q)
            constrains |= np.abs(G).max(axis=1) > 0
            moving = self._evaluate_equations(t, q, v, is_rate=False)
            self._is_holonomic &= moving == self._evaluate_equations(t, q, still, is_rate=False)
            gap = np.abs(self._read_jacobian(t, q) - G).max(initial=0.0)
            self._is_jacobian_exact &= bool(gap <= JACOBIAN_TOLERANCE * np.abs(G).max(initial=1.0))
            later = self._evaluate_equations(t + LATER, q, still, is_rate=False)
            self._is_driven |= bool((later != self._evaluate_equations(t, q, still, is_rate=False)).any())
        return np.flatnonzero(constrains)


def start_solver(mbs: Any) -> Any:
    """Return a solver of Exudyn that evaluates the equations of a system, which it assembles; no file is written.

    Raises
    ------
    ModelError
        When Exudyn rejects the system.
    """
    settings = exu.SimulationSettings()
    settings.solution.file.write = False
    settings.solution.sensors.active = False
    settings.solution.solverInformationFileName = ""
    settings.timeIntegration.verboseMode = 0
    settings.timeIntegration.generalizedAlpha.computeInitialAccelerations = False
    solver: Any = exu.MainSolverImplicitSecondOrder()
    try:
        if not mbs.systemIsConsistent:
            mbs.Assemble()
        is_ready = solver.InitializeSolver(mbs, settings)
    except Exception as error:
        words = " ".join(str(error).split())
        raise ModelError(f"Exudyn cannot assemble the system: {words}. Correct it, and try again.") from error
    if not is_ready:
        raise ModelError(
            f"Exudyn cannot evaluate the system: {' '.join(str(solver.GetErrorString()).split())} Run its own solver "
            "(mbs.SolveDynamic()) to see more."
        )
    mbs.systemData.SetAECoordinates(np.zeros(int(solver.GetAEsize())))
    return solver


def list_quaternions(mbs: Any) -> list[NDArray[np.intp]]:
    """Return where the four coordinates of each quaternion are."""
    data = mbs.systemData
    numbers = [i for i in range(data.NumberOfNodes()) if str(mbs.GetNode(i)["nodeType"]) == "RigidBodyEP"]
    return [np.array(data.GetNodeLTGODE2(i), dtype=np.intp)[3:] for i in numbers]


def measure_size(data: Any) -> float:
    """Return how large coordinates are: the largest of the reference and initial ones, at most 1."""
    parts = [data.GetODE2Coordinates(kind) for kind in (exu.ConfigurationType.Reference, exu.ConfigurationType.Initial)]
    positions = np.abs(np.concatenate(parts))
    largest = float(positions.max(initial=0.0))
    return min(largest, 1.0) if largest > 0 else 1.0


def list_omissions(mbs: Any) -> tuple[str, ...]:
    """Return what the linear model leaves out."""
    notes = []
    if mbs.systemData.DataSize():
        notes.append(
            "Data coordinates of Exudyn (of contact, friction or plasticity) keep their initial values: these elements "
            "stay in the state in which they begin."
        )
    functions = (mbs.GetPreStepUserFunction, mbs.GetPostStepUserFunction, mbs.GetPreNewtonResidualUserFunction)
    if any(callable(get()) for get in functions):
        notes.append("User functions of Exudyn's time steps (such as preStepUserFunction) are not called.")
    return tuple(notes)
