"""The linear model at a point that moves by itself, from responses that are much shorter than its motion.

Deviations from a motion x(t) obey A(t), and a long record shows an average of A along it. What is wanted is A at the
point itself. Pulses in m steps and responses of later ones give the generalized Hankel matrix H = O R of a time-varying
model, with rank n (Shokoohi and Silverman 1987), where records of one pulse would have a higher one.

Inputs and outputs of a time-varying model do not determine A: new coordinates T(t) add T' T^-1 to it. So A is known
where outputs and declared states are enough to be coordinates: z[k+1] = Phi_k z[k], and Phi is extrapolated back to
k = 0. Where they are fewer, a model of short records is off by about what responses change by within the time constant
of the fastest motion: that is the stated error, and above the limit there is no linear model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from fmilin.errors import FmilinError, NumericalError
from fmilin.identification.comparison import align_models, combine_steps, measure_difference
from fmilin.identification.discrete_models import Continuous, Sampled, apart, continuous_of
from fmilin.identification.experiments import Markov, Runner, compute_markov, reading_of
from fmilin.identification.realization import realize, significant
from fmilin.identification.time_dependence import PULSE
from fmilin.signals import FloatArray
from fmilin.tolerances import RANK_MEASURED, TOO_INACCURATE

WINDOW = 8  # steps of a record that tells the order
# steps after the first n, from which matrices are extrapolated back to the point, tried one after another
WINDOW_OF_LIMIT, WINDOWS_OF_OWN_STEP = (6,), (5, 7, 10)
MOST_DEGREES = 7  # polynomials that do that are of a lower degree
ADJUSTMENTS = 6  # of steps, until a record is about as long as a time constant
MOST_STEPS = 400  # before a record that is compared with the first
PSEUDOINVERSE = 1e-12  # singular values of responses below this are rounding
LONGEST, SHORTEST = 6, -8  # powers of two, of the steps of records, in the step that suits the model
SMALLER = 3.0  # pulses are answered in proportion when these are smaller by this; not a power of 2, which rounds alike


@dataclass(frozen=True)
class Estimate:
    """A continuous model at the point, and how far its entries may be off."""

    model: Continuous
    errors: Continuous
    step: float  # of the shortest record that it was made from, in seconds
    change: float  # the difference of two estimates, relative: see :func:`measure_difference`
    rows: tuple[int, ...] | None  # outputs, and declared states after them, that are the coordinates; None: hidden ones
    change_in_step: float = 0.0  # of A and B, relative, where steps cannot be shortened


def identify_at_moving_point(
    runner: Runner, step: float, order: int | None, *, shortens: bool, change: str
) -> Estimate:
    """Return the model at the point; ``shortens``: whether the model takes steps of any length."""
    amplitudes = runner.choose_amplitudes(step) if change == "smooth" else PULSE * runner.scales
    if change == "event":  # records that end before it
        chosen = order or _find_order(runner, amplitudes, step, shortens=False)
        return _realize_short_records(runner, amplitudes, step, chosen, shortens=False, later=False)
    chosen = order or _find_order(runner, amplitudes, step, shortens=shortens)
    if not chosen:
        raise NumericalError(
            "The point moves, and no input moves an output there in a way that tells a model. Choose another point, or "
            "let it come to rest first (fl.snapshots(model, times=[T]))."
        )
    powers = range(LONGEST, SHORTEST - 1, -1) if shortens else range(1)
    visible = _limit_of_steps(runner, amplitudes, step, chosen, powers)
    if visible is not None:
        if not visible.change <= TOO_INACCURATE:
            raise _moves_too_fast(visible.change, hidden=False)
        return visible
    return _realize_short_records(runner, amplitudes, step, chosen, shortens=shortens)


def _measure(
    runner: Runner, amplitudes: FloatArray, step: float, count: int, first: int = 0, *, errors: bool = True
) -> Markov:
    """Return Markov parameters of pulses in step ``first``, with what smaller pulses differ by as their errors."""
    records = []
    for part in (1.0, 1.0 / SMALLER)[: 1 + errors]:
        responses = []
        for j, amplitude in enumerate((part * amplitudes).tolist()):
            deviations = np.zeros((first + count, len(amplitudes)))
            deviations[first, j] = amplitude
            response = runner.odd(deviations, step, amplitude)
            shown = (response.at_once, response.after, response.states)
            responses.append(type(response)(*(values[first:] for values in shown)))
        reading = reading_of(runner, step, responses)
        records.append(compute_markov(responses, reading, step))
    if not errors:
        return records[0]
    whole, smaller = records
    off = np.abs(whole.Y - smaller.Y)
    return replace(whole, errors=off, half=replace(smaller, errors=off))


def _find_order(runner: Runner, amplitudes: FloatArray, step: float, *, shortens: bool) -> int:
    """Return the rank of the generalized Hankel matrix, the largest over steps of several lengths."""
    most = 0
    nu = len(amplitudes)
    for power in (0, 3, LONGEST) if shortens else (0,):
        runner.require(4 * nu * WINDOW, 8 * nu * WINDOW**2, 2.0**power * step)
        try:
            most = max(most, _find_rank(runner, amplitudes, 2.0**power * step))
        except FmilinError:
            continue
    return most


def _find_rank(runner: Runner, amplitudes: FloatArray, step: float) -> int:
    blocks, errors = [], []
    for first in range(WINDOW):
        markov = _measure(runner, amplitudes, step, 2 * WINDOW - first + 1, first)
        # seen from the end of the window on: row i shows step WINDOW + i
        rows = slice(WINDOW - first - 1, 2 * WINDOW - first - 1)
        blocks.append(markov.Y[rows])
        errors.append(markov.errors[rows])
    H, E = (np.concatenate(parts, axis=2) for parts in (blocks, errors))  # (WINDOW, rows, WINDOW nu)
    sizes = np.max(np.abs(H), axis=(0, 2))
    if not np.isfinite(H).all() or not sizes.any():
        return 0
    scales = np.where(sizes > 0, sizes, 1.0)[:, None]
    columns = np.tile(amplitudes / np.max(amplitudes), WINDOW)
    shape = (WINDOW * len(sizes), len(columns))
    scaled = (H / scales * columns).reshape(shape)
    noise = (E / scales * columns).reshape(shape)
    return significant(np.asarray(np.linalg.svd(scaled, compute_uv=False), dtype=np.float64), 3.0 * noise, shape)


# Outputs and states as coordinates


def _limit_of_steps(
    runner: Runner, amplitudes: FloatArray, step: float, order: int, powers: Sequence[int]
) -> Estimate | None:
    """Return the limit of vanishing steps; None where outputs and states are too few to be coordinates."""
    nu = len(amplitudes)
    windows = WINDOW_OF_LIMIT if len(powers) > 1 else WINDOWS_OF_OWN_STEP
    rows: list[int] | None = None
    limits: list[tuple[Continuous, float]] = []  # extrapolated from steps and steps of twice the length, one by one
    before: Estimate | None = None  # from steps of twice the length
    for power in powers:
        h = 2.0**power * step
        count = order + max(windows) + 1
        if not runner.affords("records of other lengths", 2 * nu * count, 2 * nu * count**2, h):
            break
        try:
            responses = _Responses.measure(runner, amplitudes, h, count)
            rows = rows or responses.choose_rows(order)
            if rows is None:
                continue
            own = responses.model_at_start(rows, windows)
        except FmilinError:
            before = None
            limits = limits if len(limits) > 2 else []
            continue
        if len(powers) == 1:
            return own
        if before is not None:
            limits.append((combine_steps(own.model, before.model), h))
        before = own
    return _choose_limit(limits, tuple(rows)) if rows is not None else None


def _choose_limit(limits: list[tuple[Continuous, float]], rows: tuple[int, ...]) -> Estimate | None:
    """Return the limit that agrees best with both its neighbours: the least alone would be the luckiest."""
    best: Estimate | None = None
    for (coarse, _), (model, h), (fine, _) in zip(limits, limits[1:], limits[2:], strict=False):
        change = max(measure_difference(model, other, h) for other in (coarse, fine))
        if best is None or change < best.change:
            best = Estimate(model, _largest_differences(model, (coarse, fine)), h, change, rows)
    return best


def _largest_differences(model: Continuous, others: Sequence[Continuous]) -> Continuous:
    """Return by how much entries of others differ from those of a model at most."""
    differences = [apart(model, other) for other in others]
    matrices = {name: np.max([getattr(off, name) for off in differences], axis=0) for name in "ABCDT"}
    return replace(differences[0], **matrices)


@dataclass(frozen=True)
class _Responses:
    """Responses Z (k, j, rows, nu) at the beginning of step k to pulses in steps j < k, and the motion by itself."""

    Z: FloatArray
    D: FloatArray  # (ny, nu)
    drift: FloatArray  # (rows,), of all rows in the first step
    step: float
    outputs: int
    reading: str

    @classmethod
    def measure(cls, runner: Runner, amplitudes: FloatArray, step: float, count: int) -> _Responses:
        records = [_measure(runner, amplitudes, step, count - first + 1, first, errors=False) for first in range(count)]
        if not all(np.isfinite(markov.Y).all() for markov in records):
            raise NumericalError(f"The model answers pulses with NaN in steps of {step:g} s.")
        rows, nu = records[0].Y.shape[1:]
        Z = np.zeros((count + 1, count, rows, nu))
        for j, markov in enumerate(records):
            for k in range(j + 1, count + 1):
                Z[k, j] = markov.Y[k - j - 1]
        still = runner.run(np.zeros((2, len(amplitudes))), step)
        reading = records[0].reading
        shown = still.at_once if reading == "at once" else still.after
        states = np.vstack((runner.point.states, still.states[:1]))
        drift = np.concatenate((shown[1] - shown[0], states[1] - states[0]))
        return cls(Z, records[0].D, drift, step, len(runner.model.outputs), reading)

    def choose_rows(self, order: int) -> list[int] | None:
        """Return the rows that can be coordinates, declared states before outputs; None where they are too few."""
        k = len(self.Z) - 1
        seen = np.concatenate(list(self.Z[k]), axis=1)  # (rows, count nu)
        sizes = np.linalg.norm(seen, axis=1)
        scaled = seen / np.where(sizes > 0, sizes, 1.0)[:, None]
        # an output that an input moves at once is not a function of the states alone
        scaled[: self.outputs][self.D.any(axis=1)] = 0.0
        for rows in (list(range(self.outputs, len(seen))), list(range(len(seen)))):
            if len(rows) < order:
                continue
            _, R, pivots = linalg.qr(scaled[rows].T, mode="economic", pivoting=True)
            if abs(R[order - 1, order - 1]) > RANK_MEASURED * abs(R[0, 0]):
                return sorted(rows[i] for i in pivots[:order])
        return None

    def model_at_start(self, rows: list[int], windows: Sequence[int]) -> Estimate:
        """Return the model in the coordinates of some rows, extrapolated to the first step from later ones."""
        maps, shows, times = [], [], []
        for k in range(len(rows), len(self.Z) - 1):
            at = np.concatenate(list(self.Z[k, :k]), axis=1)  # (rows, k nu)
            then = np.concatenate(list(self.Z[k + 1, :k]), axis=1)
            inverse = np.linalg.pinv(at[rows], rcond=PSEUDOINVERSE)
            maps.append(then[rows] @ inverse)
            shows.append(at @ inverse)
            times.append(float(k))
        # a degree agrees with the one below and the one above where neither truncation nor rounding counts
        candidates = []
        for window in windows:
            models = [
                self._model(rows, *(_to_start(values[:window], times[:window], degree) for values in (maps, shows)))
                for degree in range(1, min(window, MOST_DEGREES))
            ]
            for lower, model, higher in zip(models, models[1:], models[2:], strict=False):
                change = max(measure_difference(model, other, self.step) for other in (lower, higher))
                if np.isfinite(change):
                    candidates.append((change, model, (lower, higher)))
        if not candidates:
            raise NumericalError(f"No model at the point follows from records in steps of {self.step:g} s.")
        candidates.sort(key=lambda candidate: candidate[0])
        _, model, neighbours = candidates[0]
        # The least of many differences is small by luck: the second best model counts, too.
        others = [*neighbours, *(second for _, second, _ in candidates[1:2])]
        change = max(measure_difference(model, other, self.step) for other in others)
        errors = _largest_differences(model, others)
        return Estimate(model, errors, self.step, change, tuple(rows), self._change_in_step(rows, maps))

    def _change_in_step(self, rows: list[int], maps: Sequence[FloatArray]) -> float:
        """Return by how much A and B change in a step, relative to the largest entries."""
        motion = np.max(np.abs(maps[0] - np.eye(len(rows))))
        of_A = float(np.max(np.abs(maps[1] - maps[0]))) / float(motion or 1.0)
        first, second = self.Z[1, 0][rows], self.Z[2, 1][rows]
        of_B = float(np.max(np.abs(second - first))) / float(np.max(np.abs(first)) or 1.0)
        return max(of_A, of_B)

    def _model(self, rows: list[int], Phi: FloatArray, shown: FloatArray) -> Continuous:
        n = len(rows)
        C, T = shown[: self.outputs], shown[self.outputs :]
        return continuous_of(
            Sampled(Phi, self.Z[1, 0][rows], C, self.D, self.step, self.reading, T.reshape(-1, n), self.drift[rows])
        )


def _to_start(values: Sequence[FloatArray], times: Sequence[float], degree: int) -> FloatArray:
    """Return the value at time 0 of the polynomial through values, in the least squares sense."""
    stacked = np.array([value.ravel() for value in values])
    powers = np.vander(np.array(times), degree + 1, increasing=True)
    start = np.linalg.lstsq(powers, stacked, rcond=None)[0][0]
    return np.asarray(start.reshape(values[0].shape))


# Fewer outputs than states


def _realize_short_records(
    runner: Runner, amplitudes: FloatArray, step: float, order: int, *, shortens: bool, later: bool = True
) -> Estimate:
    """Return the model of the first record; what later ones differ by is its error.

    Later ones begin after a time constant and after two, or, without ``later``, after the first.
    """
    count = 2 * order + 4
    model = None
    for _ in range(ADJUSTMENTS if shortens else 1):  # records about as long as the fastest time constant
        try:
            model = _realize(runner, amplitudes, step, order)
        except FmilinError:
            step = step / 4
            continue
        fastest = float(np.max(np.abs(np.linalg.eigvals(model.A)), initial=0.0))
        if not shortens or not fastest or 0.5 < fastest * count * step < 2.0:
            break
        step = float(np.clip(1.0 / (fastest * count), step / 16, 16 * step))
    if model is None:
        raise _moves_too_fast(float("nan"))
    model = _realize(runner, amplitudes, step, order)
    fastest = float(np.max(np.abs(np.linalg.eigvals(model.A)), initial=0.0))
    constant = round(1.0 / (fastest * step)) if fastest else count  # steps of a time constant
    change = 0.0
    off = replace(model, **{name: np.zeros_like(getattr(model, name)) for name in "ABCDT"})
    for first in (min(max(count, part * constant), MOST_STEPS) for part in (1, 2)) if later else (count,):
        try:
            other = align_models(_realize(runner, amplitudes, step, order, first=first), model, count * step)
        except FmilinError:
            raise _moves_too_fast(float("nan")) from None
        change = max(change, measure_difference(model, other, count * step))
        off = replace(
            off, **{name: np.maximum(getattr(off, name), value) for name, value in _differences(model, other)}
        )
    if not change <= TOO_INACCURATE:
        raise _moves_too_fast(change)
    errors = {name: np.maximum(getattr(off, name), change * _largest_of_rows(getattr(model, name))) for name in "ABC"}
    return Estimate(model, replace(off, **errors), step, change, None)


def _differences(one: Continuous, other: Continuous) -> list[tuple[str, FloatArray]]:
    off = apart(one, other)
    return [(name, getattr(off, name)) for name in "ABCDT"]


def _largest_of_rows(matrix: FloatArray) -> FloatArray:
    return np.broadcast_to(np.max(np.abs(matrix), axis=1, keepdims=True, initial=0.0), matrix.shape)


def _realize(runner: Runner, amplitudes: FloatArray, step: float, order: int, first: int = 0) -> Continuous:
    markov = _measure(runner, amplitudes, step, 2 * order + 4, first)
    if not np.isfinite(markov.Y).all():
        raise NumericalError(f"The model answers pulses with NaN in steps of {step:g} s.")
    realized = realize(markov, len(runner.model.outputs), None, order, amplitudes)
    return continuous_of(realized.model)


def _moves_too_fast(change: float, *, hidden: bool = True) -> NumericalError:
    amount = f" by {100 * change:.3g}%" if np.isfinite(change) else ""
    what = "a time constant: they determine no linear model of hidden states" if hidden else "a few steps"
    advice = ", or as many outputs as there are states" if hidden else ""
    return NumericalError(
        f"The point moves by itself, and what its responses tell changes{amount} along that motion, within {what}. Let "
        "it come to rest first (fl.snapshots(model, times=[T])), choose another point, or take model exchange "
        "(interface='me')"
        f"{advice}."
    )
