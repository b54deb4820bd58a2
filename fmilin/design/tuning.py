"""Regulators of a fixed structure with parameters that are tuned to the loops of many plants.

The loop is L = P C, u = C (r - y), S = 1 / (1 + L); the disk margin is 1 / max |S - 1/2| (Seiler, Packard and Gahinet,
2020), the bandwidth the first frequency at which |S| reaches 1 / sqrt(2). Of what reaches the goals, the one with the
least effort max |C S| is taken. The Nelder-Mead simplex moves the logarithms of the parameters, from the best of
many points, and starts again where it has ended. The search evaluates loops on a grid of frequencies; disk margins of
the result are those of :func:`fmilin.design.margins`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from fmilin.design.margins import compute_disk_margin
from fmilin.errors import NumericalError, UnknownNameError, UsageError
from fmilin.families.family import LinearFamily
from fmilin.linear_model.model import LinearModel
from fmilin.numerics.feedback import StateSpace
from fmilin.signals import FloatArray, as_numbers
from fmilin.support.implemented_in import implemented_in
from fmilin.support.kinds import kinds_checked
from fmilin.support.table_repr import Sheet, TableRepr

if TYPE_CHECKING:
    import control

FREQUENCIES, DECADES = 400, 2.0  # on which loops are examined, and how far beyond poles, zeros and goals
RESTART_COUNT = 3
PID = ("kp", "ki", "kd", "tf")
TRIED_POINTS_PER_PARAMETER, SEARCH_WIDTH = (
    30,
    4.0,
)  # points for each parameter that are tried first, in logarithms around the start
UNSTABLE_LOOP_WEIGHT = 1e3  # what an unstable loop counts, relative to its growth
ATTAINED_GOAL_RATIO = 1.0 + 1e-3  # of a goal, as a ratio


@dataclass(frozen=True, eq=False, repr=False)
class Tuned(TableRepr):
    """What :func:`tune` found."""

    _attributes = ".parameters, .controller, .disk_margins, .bandwidths, .attained"

    parameters: dict[str, float]  #: by name
    controller: control.StateSpace | control.TransferFunction  #: from r - y to u
    disk_margins: FloatArray  #: of each loop, shape (plants,)
    bandwidths: FloatArray  #: of each loop in rad/s, shape (plants,)
    attained: bool  #: whether every loop reaches the goals
    plants: tuple[control.StateSpace, ...] = ()  #: between ``input`` and ``output``, as systems of python-control
    #: makes the controller from the parameters, where it is one of fmilin's structures
    structure: Callable[..., control.StateSpace | control.TransferFunction] | None = None

    @implemented_in("fmilin.report.designs:show_tuned")
    def _print_table(self, page: Sheet) -> None: ...


@kinds_checked
def tune(
    plants: LinearModel | LinearFamily | Iterable[LinearModel],
    structure: str | Callable[..., control.StateSpace | control.TransferFunction],
    start: Mapping[str, float],
    *,
    input: str,  # noqa: A002 - as in fl.frequency_response
    output: str,
    bandwidth: float,
    disk_margin: float = 0.75,
    decay: float | None = None,
    fixed: Mapping[str, float] | None = None,
) -> Tuned:
    """Return a regulator with parameters that are tuned for one plant or for all of a family.

    Raises UsageError or UnknownNameError when there is no plant, structure or name, or a goal is not positive;
    NumericalError when no parameters were found that stabilize every plant.

    Parameters
    ----------
    plants : LinearModel, LinearFamily or iterable of LinearModel
        Of a family the points that have a linear model.
    structure : {"P", "PI", "PD", "PID"} or callable
        With kp, ki, kd and tf, the time constant of the derivative; or from the parameters, by name, to a system of
        python-control from r - y to u.
    start : mapping of str to float
        Where the search starts; parameters keep their signs.
    input, output : str
        Between which the loop is closed.
    bandwidth : float
        The least of every loop, in rad/s.
    disk_margin : float
        The least of every loop: 0.75 bears gains of 0.45 to 2.2 and phases of 41 degrees at once.
    decay : float, optional
        The least of every motion, in 1/s; a twentieth of the bandwidth by default.
    fixed : mapping of str to float, optional
        Parameters that stay.
    """
    models = [plants] if isinstance(plants, LinearModel) else plants
    chosen = [m for _, m in models.good()] if isinstance(models, LinearFamily) else list(models)
    if other := [m for m in chosen if not isinstance(m, LinearModel)]:
        raise UsageError(f"A plant is of the type '{type(other[0]).__name__}': give linear models, or a family.")
    if (
        not chosen
        or not start
        or not all(np.isfinite(as_numbers(v, "The start of a parameter")) and v != 0 for v in start.values())
    ):
        raise UsageError("Tuning needs at least one plant, and a start other than 0 for every parameter.")
    if not (0 < disk_margin < 2 and 0 < bandwidth < np.inf and (decay is None or np.isfinite(decay))):
        raise UsageError(
            "The disk margin must be between 0 and 2, the bandwidth positive and finite in rad/s, and the decay finite."
        )
    if isinstance(structure, str) and structure not in ("P", "PI", "PD", "PID"):
        raise UsageError(f"'{structure}' is not a structure: use P, PI, PD, PID, or a function of the parameters.")
    for name in {**start, **(fixed or {})} if isinstance(structure, str) else ():
        if name not in PID:
            raise UnknownNameError.among(name, PID, "a parameter of the structure")
    make = _pid if isinstance(structure, str) else structure
    systems = [m.to_control()[m.outputs.index_of(output), m.inputs.index_of(input)] for m in chosen]
    loops = _Loops(systems, disk_margin, bandwidth, bandwidth / 20 if decay is None else decay)
    names, signs = list(start), np.sign(list(start.values()))

    def at(z: FloatArray) -> dict[str, float]:
        return dict(zip(names, (signs * np.exp(z)).tolist(), strict=True)) | dict(fixed or {})

    z, spread = np.log(np.abs(list(start.values()))), np.full(len(names), 1.0)
    around = z + np.random.default_rng(0).uniform(
        -SEARCH_WIDTH, SEARCH_WIDTH, (TRIED_POINTS_PER_PARAMETER * len(names), len(names))
    )
    z = min((z, *around), key=lambda z: loops.cost(make(**at(z))))
    for _ in range(RESTART_COUNT):
        simplex = np.vstack([z, z + np.diag(spread)])
        options = {"initial_simplex": simplex, "maxiter": 100 * len(names), "xatol": 1e-3, "fatol": 1e-5}
        result: Any = minimize(lambda z: loops.cost(make(**at(z))), z, method="Nelder-Mead", options=options)  # type: ignore[call-overload]
        z, spread = result.x, -spread / 2
    best = make(**at(z))
    if result.fun >= UNSTABLE_LOOP_WEIGHT:
        raise NumericalError(
            f"No parameters of this structure were found that stabilize all of the {len(chosen)} plants; the best "
            f"ones leave a motion that grows at {result.fun - UNSTABLE_LOOP_WEIGHT:.3g} 1/s. Start elsewhere (check "
            "signs), choose another structure, or schedule the gains (fl.design.schedule)."
        )
    bandwidths = loops.compute_bandwidths(best)
    margins = loops.compute_disk_margins(best)
    attained = loops.ratio(margins, bandwidths, loops.growth(best)) <= ATTAINED_GOAL_RATIO
    known_structure = _pid if isinstance(structure, str) else None
    return Tuned(at(z), best, margins, bandwidths, attained, tuple(systems), known_structure)


def _pid(kp: float = 0.0, ki: float = 0.0, kd: float = 0.0, tf: float = 0.0) -> control.TransferFunction:
    import control

    if kd and not tf > 0:
        raise UsageError(
            "The derivative part needs a filter: give tf, its time constant in seconds, in start or in fixed."
        )
    if not ki:
        return control.tf([kp * tf + kd, kp], [tf, 1.0])
    return control.tf([kp * tf + kd, kp + ki * tf, ki], [tf, 1.0, 0.0])


class _Loops:
    """How good the loops of all plants are with a regulator."""

    def __init__(self, systems: Sequence[Any], disk_margin: float, bandwidth: float, decay: float) -> None:
        self.systems = systems
        self.plants = [(s.A, s.B, s.C, s.D) for s in systems]
        self.goals, self.dt = (disk_margin, bandwidth, decay), float(systems[0].dt or 0.0)
        poles = np.concatenate([s.poles() for s in systems]).astype(complex)
        rates = np.abs(np.log(poles[poles != 0])) / self.dt if self.dt else np.abs(poles)
        sizes = np.append(rates[rates > 1e-6], bandwidth)
        grid = np.geomspace(sizes.min() / 10**DECADES, sizes.max() * 10**DECADES, FREQUENCIES)
        # The lowest frequency stands for all below the grid: |S| there may be near 1 / sqrt(2) without an integrator.
        self.w = np.append(grid[0] / 10 ** (2 * DECADES), grid)
        self.w = self.w[self.w < np.pi / self.dt] if self.dt else self.w
        self.s = np.exp(1j * self.w * self.dt) if self.dt else 1j * self.w
        self.answers = np.array([s(self.s) for s in systems])

    def growth(self, regulator: Any) -> float:
        """Return the growth of the fastest growing motion of all loops, in 1/s."""
        import control

        with warnings.catch_warnings():  # of scipy, on the way that python-control takes with slycot
            warnings.simplefilter("ignore")
            c = control.ss(regulator)
        worst = -np.inf
        for A, B, C, D in self.plants:
            u = np.linalg.solve(np.eye(len(D)) + c.D @ D, np.hstack([-c.D @ C, c.C]))  # of (x, states of C)
            y = np.hstack([C, np.zeros((len(C), c.nstates))]) + D @ u
            closed_matrix = np.block([[A, np.zeros((len(A), c.nstates))], [np.zeros((c.nstates, len(A))), c.A]])
            poles = np.linalg.eigvals(closed_matrix + np.vstack([B @ u, -c.B @ y]))
            size = np.log(max(np.abs(poles).max(), 1e-300)) / self.dt if self.dt else poles.real.max()
            worst = max(worst, float(size))
        return worst

    def compute_disk_margins(self, regulator: Any) -> FloatArray:
        """Return the disk margin of each loop, over all frequencies and not only those of the grid."""
        import control

        with warnings.catch_warnings():  # as in growth
            warnings.simplefilter("ignore")
            c = control.ss(regulator)
        disks = []
        for A, B, C, D in self.plants:
            states = np.block([[A, B @ c.C], [np.zeros((c.nstates, len(A))), c.A]])
            loop = StateSpace(states, np.vstack([B @ c.D, c.B]), np.hstack([-C, -D @ c.C]), -D @ c.D, self.dt)
            disks.append(compute_disk_margin(loop))
        return np.array(disks)

    def measure_loops(self, regulator: Any) -> tuple[FloatArray, FloatArray, float]:
        """Return disk margins and bandwidths, and the largest effort, of stable loops."""
        regulator_response = regulator(self.s)
        S = 1 / (1 + self.answers * regulator_response)
        bandwidths = np.array([self._interpolate_bandwidth(row) for row in np.abs(S)])
        return 1 / np.abs(S - 0.5).max(axis=1), bandwidths, float(np.abs(regulator_response * S).max())

    def _interpolate_bandwidth(self, sensitivity: FloatArray) -> float:
        """Return the first frequency at which |S| of one loop on the grid reaches 1 / sqrt(2), between its points."""
        k, excess = self._find_bandwidth(sensitivity)
        if k == 0 or excess[k] < 0:
            return float(self.w[k])
        part = excess[k - 1] / (excess[k - 1] - excess[k])
        return float(self.w[k - 1] * (self.w[k] / self.w[k - 1]) ** part)

    def _find_bandwidth(self, sensitivity: FloatArray) -> tuple[int, FloatArray]:
        """Return the first point of the grid at which |S| is 1 / sqrt(2) or more, or the last one; log(sqrt(2) |S|)."""
        excess = np.log(np.maximum(sensitivity, 1e-300)) + np.log(2) / 2
        reached = excess >= 0
        return (int(reached.argmax()) if reached.any() else len(self.w) - 1), excess

    def compute_bandwidths(self, regulator: Any) -> FloatArray:
        """Return the bandwidth of each loop in rad/s, by root finding between points of the grid, shape (plants,)."""
        from scipy.optimize import brentq

        regulator_response = regulator(self.s)
        bandwidths = []
        for system, answer in zip(self.systems, self.answers, strict=True):
            k, excess = self._find_bandwidth(np.abs(1 / (1 + answer * regulator_response)))

            def measure_excess(w: float, system: Any = system) -> float:
                s = np.exp(1j * w * self.dt) if self.dt else 1j * w
                return float(-np.log(abs(complex(1 + system(s) * regulator(s)))) + np.log(2) / 2)

            is_between = (
                k > 0 and excess[k] > 0 and measure_excess(float(self.w[k - 1])) < 0 < measure_excess(float(self.w[k]))
            )
            low, high = float(self.w[max(k - 1, 0)]), float(self.w[k])
            bandwidths.append(float(brentq(measure_excess, low, high, rtol=1e-12)) if is_between else high)
        return np.array(bandwidths)

    def ratio(self, margins: FloatArray, bandwidths: FloatArray, growth: float) -> float:
        """Return how far the worst loop is from its goals: 1 where it just reaches them."""
        reached = margins.min(), bandwidths.min(), -growth
        return float(max(goal / value for goal, value in zip(self.goals, reached, strict=True)))

    def cost(self, regulator: Any) -> float:
        """Return what the search makes small."""
        growth = self.growth(regulator)
        if growth >= 0:
            return UNSTABLE_LOOP_WEIGHT + growth
        margins, bandwidths, effort = self.measure_loops(regulator)
        return float(100 * max(0.0, np.log(self.ratio(margins, bandwidths, growth))) + np.log(effort))
