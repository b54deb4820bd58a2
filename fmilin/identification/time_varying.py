"""A time-varying model at the start of its motion, in the coordinates of outputs and declared states.

z[k+1] = Phi_k z[k] follows from the responses to pulses in several steps; Phi is extrapolated back to k = 0, and to
vanishing steps where a model takes steps of any length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from fmilin.errors import FmilinError, NumericalError
from fmilin.identification.discrete_models import Continuous, Sampled, compute_entry_differences, find_continuous_model
from fmilin.identification.experiments import Experiments
from fmilin.identification.realization import measure_pulses
from fmilin.signals import FloatArray
from fmilin.tolerances import RANK_MEASURED

# steps after the first n, from which matrices are extrapolated back to the point, tried one after another
WINDOW_OF_LIMIT, WINDOWS_OF_OWN_STEP = (6,), (5, 7, 10)
MAX_DEGREE = 7  # polynomials that do that are of a lower degree
RESPONSE_RANK_TOLERANCE = 1e-12  # singular values of responses below this are rounding
SLOWEST_ANGLE = 1e-2  # radians in a record: slower motions look like a constant


@dataclass(frozen=True)
class ModelAtPoint:
    """A continuous model at the point, and how far its entries may be off."""

    model: Continuous
    errors: Continuous
    step: float  # of the shortest record that it was made from, in seconds
    change: float  # the difference of two estimates, relative: see :func:`measure_difference`
    rows: tuple[int, ...] | None  # outputs, and declared states after them, that are the coordinates; None: hidden ones
    change_in_step: float = 0.0  # of A and B, relative, where steps cannot be shortened


def extrapolate_to_vanishing_steps(
    experiments: Experiments, amplitudes: FloatArray, step: float, order: int, powers: Sequence[int]
) -> ModelAtPoint | None:
    """Return the limit of vanishing steps; None where outputs and states are too few to be coordinates."""
    nu = len(amplitudes)
    windows = WINDOW_OF_LIMIT if len(powers) > 1 else WINDOWS_OF_OWN_STEP
    rows: list[int] | None = None
    limits: list[tuple[Continuous, float]] = []  # extrapolated from steps and steps of twice the length, one by one
    before: ModelAtPoint | None = None  # from steps of twice the length
    for power in powers:
        h = 2.0**power * step
        count = order + max(windows) + 1
        if not experiments.affords("records of other lengths", 2 * nu * count, 2 * nu * count**2, h):
            break
        try:
            responses = _ResponsesToLaterPulses.measure(experiments, amplitudes, h, count)
            rows = rows or responses.choose_rows(order)
            if rows is None:
                continue
            at_start = responses.model_at_start(rows, windows)
        except FmilinError:
            before = None
            limits = limits if len(limits) > 2 else []
            continue
        if len(powers) == 1:
            return at_start
        if before is not None:
            limits.append((combine_steps(at_start.model, before.model), h))
        before = at_start
    return _choose_limit(limits, tuple(rows)) if rows is not None else None


def _choose_limit(limits: list[tuple[Continuous, float]], rows: tuple[int, ...]) -> ModelAtPoint | None:
    """Return the limit that agrees best with both its neighbours: the least alone would be the luckiest."""
    best: ModelAtPoint | None = None
    for (coarse, _), (model, h), (fine, _) in zip(limits, limits[1:], limits[2:], strict=False):
        change = max(measure_difference(model, other, h) for other in (coarse, fine))
        if best is None or change < best.change:
            best = ModelAtPoint(model, largest_differences(model, (coarse, fine)), h, change, rows)
    return best


def largest_differences(model: Continuous, other_models: Sequence[Continuous]) -> Continuous:
    """Return by how much entries of others differ from those of a model at most."""
    differences = [compute_entry_differences(model, other) for other in other_models]
    matrices = {name: np.max([getattr(off, name) for off in differences], axis=0) for name in "ABCDT"}
    return replace(differences[0], **matrices)


@dataclass(frozen=True)
class _ResponsesToLaterPulses:
    """Responses Z (k, j, rows, nu) at the beginning of step k to pulses in steps j < k, and the motion by itself."""

    Z: FloatArray
    D: FloatArray  # (ny, nu)
    drift: FloatArray  # (rows,), of all rows in the first step
    step: float
    outputs: int
    reading: str

    @classmethod
    def measure(
        cls, experiments: Experiments, amplitudes: FloatArray, step: float, count: int
    ) -> _ResponsesToLaterPulses:
        records = [
            measure_pulses(experiments, amplitudes, step, count - first + 1, first=first, errors=False)
            for first in range(count)
        ]
        if not all(np.isfinite(markov.Y).all() for markov in records):
            raise NumericalError(f"The response of the model to pulses is NaN in steps of {step:g} s.")
        rows, nu = records[0].Y.shape[1:]
        Z = np.zeros((count + 1, count, rows, nu))
        for j, markov in enumerate(records):
            for k in range(j + 1, count + 1):
                Z[k, j] = markov.Y[k - j - 1]
        still = experiments.run(np.zeros((2, len(amplitudes))), step)
        reading = records[0].reading
        outputs = still.at_once if reading == "at once" else still.after
        states = np.vstack((experiments.point.states, still.states[:1]))
        drift = np.concatenate((outputs[1] - outputs[0], states[1] - states[0]))
        return cls(Z, records[0].D, drift, step, len(experiments.model.outputs), reading)

    def choose_rows(self, order: int) -> list[int] | None:
        """Return the rows that can be coordinates, declared states before outputs; None where they are too few."""
        k = len(self.Z) - 1
        responses = np.concatenate(list(self.Z[k]), axis=1)  # (rows, count nu)
        sizes = np.linalg.norm(responses, axis=1)
        scaled = responses / np.where(sizes > 0, sizes, 1.0)[:, None]
        # an output that an input moves at once is not a function of the states alone
        scaled[: self.outputs][self.D.any(axis=1)] = 0.0
        for rows in (list(range(self.outputs, len(responses))), list(range(len(responses)))):
            if len(rows) < order:
                continue
            _, R, pivots = linalg.qr(scaled[rows].T, mode="economic", pivoting=True)
            if abs(R[order - 1, order - 1]) > RANK_MEASURED * abs(R[0, 0]):
                return sorted(rows[i] for i in pivots[:order])
        return None

    def model_at_start(self, rows: list[int], windows: Sequence[int]) -> ModelAtPoint:
        """Return the model in the coordinates of some rows, extrapolated to the first step from later ones."""
        maps, observed, times = [], [], []
        for k in range(len(rows), len(self.Z) - 1):
            at = np.concatenate(list(self.Z[k, :k]), axis=1)  # (rows, k nu)
            then = np.concatenate(list(self.Z[k + 1, :k]), axis=1)
            inverse = np.linalg.pinv(at[rows], rcond=RESPONSE_RANK_TOLERANCE)
            maps.append(then[rows] @ inverse)
            observed.append(at @ inverse)
            times.append(float(k))
        # a degree agrees with the one below and the one above where neither truncation nor rounding counts
        candidates = []
        for window in windows:
            models = [
                self._model(
                    rows,
                    *(_extrapolate_to_start(values[:window], times[:window], degree) for values in (maps, observed)),
                )
                for degree in range(1, min(window, MAX_DEGREE))
            ]
            for lower, model, higher in zip(models, models[1:], models[2:], strict=False):
                change = max(measure_difference(model, other, self.step) for other in (lower, higher))
                if np.isfinite(change):
                    candidates.append((change, model, (lower, higher)))
        if not candidates:
            raise NumericalError(f"Records do not determine a model at the point, in steps of {self.step:g} s.")
        candidates.sort(key=lambda candidate: candidate[0])
        _, model, neighbours = candidates[0]
        # The least of many differences is small by luck: the second best model counts, too.
        compared_models = [*neighbours, *(second for _, second, _ in candidates[1:2])]
        change = max(measure_difference(model, other, self.step) for other in compared_models)
        errors = largest_differences(model, compared_models)
        return ModelAtPoint(model, errors, self.step, change, tuple(rows), self._change_in_step(rows, maps))

    def _change_in_step(self, rows: list[int], maps: Sequence[FloatArray]) -> float:
        """Return by how much A and B change in a step, relative to the largest entries."""
        motion = np.max(np.abs(maps[0] - np.eye(len(rows))))
        of_A = float(np.max(np.abs(maps[1] - maps[0]))) / float(motion or 1.0)
        first, second = self.Z[1, 0][rows], self.Z[2, 1][rows]
        of_B = float(np.max(np.abs(second - first))) / float(np.max(np.abs(first)) or 1.0)
        return max(of_A, of_B)

    def _model(self, rows: list[int], Phi: FloatArray, observed: FloatArray) -> Continuous:
        n = len(rows)
        C, T = observed[: self.outputs], observed[self.outputs :]
        return find_continuous_model(
            Sampled(Phi, self.Z[1, 0][rows], C, self.D, self.step, self.reading, T.reshape(-1, n), self.drift[rows])
        )


def _extrapolate_to_start(values: Sequence[FloatArray], times: Sequence[float], degree: int) -> FloatArray:
    """Return the value at time 0 of the polynomial through values, in the least squares sense."""
    stacked = np.array([value.ravel() for value in values])
    powers = np.vander(np.array(times), degree + 1, increasing=True)
    start = np.linalg.lstsq(powers, stacked, rcond=None)[0][0]
    return np.asarray(start.reshape(values[0].shape))


def combine_steps(fine: Continuous, coarse: Continuous) -> Continuous:
    """Return the limit of errors that are proportional to the step, of which one is twice the other."""
    names = ("A", "B", "C", "D", "T", "f0")
    matrices = {name: 2.0 * getattr(fine, name) - getattr(coarse, name) for name in names}
    return replace(fine, **matrices)


# Comparison of models of different records


def _observe(model: Continuous, seconds: float) -> FloatArray:
    """Return what outputs and states show of each state over some time."""
    n = len(model.A)
    step = linalg.expm(model.A * seconds / max(n, 1))
    rows = np.vstack((model.C, model.T.reshape(-1, n)))
    scale = np.max(np.abs(rows), axis=1, keepdims=True, initial=0.0)
    rows = rows / np.where(scale > 0, scale, 1.0)
    blocks = [rows]
    for _ in range(n - 1):
        blocks.append(blocks[-1] @ step)
    return np.vstack(blocks)


def align_models(other: Continuous, model: Continuous, seconds: float) -> Continuous:
    """Return ``other`` in the coordinates in which its outputs are most like those of ``model``."""
    S = np.linalg.lstsq(_observe(model, seconds), _observe(other, seconds), rcond=None)[0]
    if not np.isfinite(S).all() or np.linalg.matrix_rank(S) < len(S):
        raise NumericalError("Two records do not have common states.")
    return other.in_coordinates(np.asarray(S, dtype=np.float64))


def measure_difference(one: Continuous, other: Continuous, seconds: float) -> float:
    """Return how far two models are apart, relative: the largest of entries, eigenvalues and transfer functions."""
    parts: list[float] = []
    for name in "AB":
        a, b = getattr(one, name), getattr(other, name)
        largest = float(np.max(np.abs(a), initial=0.0))
        if largest:
            parts.append(float(np.max(np.abs(a - b))) / largest)
    values = np.linalg.eigvals(other.A)
    # slower motions than this look like 0 in the record: double zeros spread by the root of rounding
    fastest = max(float(np.max(np.abs(values), initial=0.0)), SLOWEST_ANGLE / seconds)
    parts += [_compare_transfer(one, other, fastest * point) for point in _POINTS]
    # coefficients do not have the roots of errors that double eigenvalues have
    n = len(one.A)
    coefficients = [np.poly(model.A) / fastest ** np.arange(n + 1) for model in (one, other)]
    parts.append(float(np.max(np.abs(coefficients[0] - coefficients[1]), initial=0.0)))
    return max(parts)


_POINTS: Sequence[complex] = (0.1 + 0.1j, 0.3 + 1j, 0.3 + 3j)


def _compare_transfer(one: Continuous, other: Continuous, s: complex) -> float:
    value, reference = one.evaluate_transfer(s), other.evaluate_transfer(s)
    largest = float(np.max(np.abs(reference), initial=0.0))
    if not np.isfinite(largest) or not np.isfinite(value).all():
        return float("inf")
    return float(np.max(np.abs(value - reference))) / largest if largest else 0.0
