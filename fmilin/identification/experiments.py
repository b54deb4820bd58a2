"""Runs of a stepped model from an operating point: their cost, and the amplitudes by which inputs are moved.

The amplitude of an input is the one at which halving it changes the response, per amplitude, least.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from math import ceil
from time import process_time
from typing import Any, TypeVar

import numpy as np

from fmilin.errors import FmilinError, NumericalError
from fmilin.linear_model.no_response import PUSH_SIZES
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Response, Stepped, respond_in_whole_steps
from fmilin.signals import FloatArray
from fmilin.tolerances import QUIET_RESPONSE_SIZE

T = TypeVar("T")

SHORT_RUN_STEPS, LONG_RUN_STEPS = 20, 60  # steps of the runs that compare amplitudes of pulses, and of random inputs
MAX_REDUCTIONS = 14  # to a fourth each
NONLINEAR_RESPONSE_RATIO = 1e-2  # answers to half the input that are off their half by this are not linear
AMPLITUDE_FRACTIONS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # of the sizes of the inputs, largest first
GOOD_CHANGE_TOLERANCE = 1e-9  # relative nonlinearity of the response at which no smaller pulse is tried: noise grows
TRIAL_STEPS = 5  # steps of a run that tells what steps cost


def clock() -> float:
    """Return the processor time that this process and its children have taken, in seconds."""
    return process_time() + sum(os.times()[2:4])


class Experiments:
    """Runs a stepped model from one point, and remembers the amplitudes that suit its inputs."""

    def __init__(
        self, model: Model, point: OperatingPoint, amplitude: float | None = None, budget: float = np.inf
    ) -> None:
        if not isinstance(model, Stepped):
            raise TypeError(model)
        self.model, self.point = model, point
        self.stepped: Stepped = model
        self.cadence = model.cadence  # with the solver's own step, once that is known
        self.scales = model.inputs.scales(point.inputs)
        self._requested_amplitude, self.budget, self._begun, self._until = amplitude, budget, clock(), 0.0
        self.left_out: dict[str, float] = {}  # what did not fit into the budget, and the seconds that it would take
        self._amplitudes: dict[float, FloatArray] = {}
        self._made: dict[object, Any] = {}
        self._changes: dict[int, tuple[float, float]] = {}  # by input: amplitude, and change when halved
        self._smooth = False
        self.looked = True  # whether it is known if the model stands still between steps of its own
        self.is_noisy = False  # whether equal runs were seen to differ
        self.takes_whole_steps = False  # each call takes steps of cadence.internal, for every requested length
        self.reduced = 0.0  # to which part of their sizes inputs were held, for the sake of proportion
        self.unresponsive: set[int] = set()  # inputs that moved nothing, however hard pushed
        self.in_dead_zone: list[str] = []  # inputs that move nothing unless pushed more

    @property
    def attempt(self) -> tuple[int, int]:
        """About how many runs a model from responses takes, and how many steps in all."""
        # an estimate for the budget: how many there are is known only when the step is found
        return 20 + 22 * len(self.scales), (1000 if self.looked else 1300) + 400 * len(self.scales)

    def affords(self, what: str, runs: int, steps: int, step: float) -> bool:
        """Whether runs with so many steps in all, of this length, fit into the budget; what does not is noted."""
        begin, each = self.once(("cost", step), lambda: self._cost(step))
        spent, needed = clock() - self._begun, runs * begin + steps * each
        if spent + needed > self.budget:
            self.left_out[what] = needed
            return False
        self._until = max(self._until, spent + needed)
        return True

    def require(self, runs: int, steps: int, step: float) -> None:
        """Reject experiments that do not fit into the budget."""
        if not self.affords("responses", runs, steps, step):
            total, spent, needed = self.seconds_of_all, clock() - self._begun, self.left_out["responses"]
            self.left_out.clear()
            raise NumericalError(
                f"Experiments have taken {spent:.2g} s of processor time, and would take about {ceil(needed)} s more, "
                f"for {steps} communication steps of {step:g} s in {runs} runs at least; {self.budget:g} s are "
                f"allowed. Raise the limit (budget={total}), or choose fewer inputs (inputs=)."
            )

    @property
    def remark(self) -> str:
        """A message that lists the omitted experiments."""
        return (
            f"Experiments may take {self.budget:g} s of processor time, which left out: {', '.join(self.left_out)}. "
            f"Including them takes about {self.seconds_of_all} s (budget={self.seconds_of_all})."
        )

    @property
    def to_go(self) -> float:
        """The seconds that what was afforded last takes from now on."""
        return max(0.0, self._until - (clock() - self._begun))

    @property
    def seconds_of_all(self) -> int:
        """The time of all experiments, omitted ones included, and a fifth more than predicted."""
        # a fifth more: times of single steps vary
        return ceil(1.2 * (clock() - self._begun + sum(self.left_out.values())))

    def _cost(self, step: float) -> tuple[float, float]:
        """Return the seconds that a run takes and those of a step in it; 0 where such steps are rejected."""
        # a hundredth of the sizes: what a step costs near the point; any fixed numbers
        moves = 1e-2 * self.scales * np.random.default_rng(5).uniform(-1.0, 1.0, (TRIAL_STEPS, len(self.scales)))
        times = [clock()]
        for count in (1, TRIAL_STEPS):
            try:
                self.run(moves[:count], step)
            except FmilinError:
                return 0.0, 0.0
            times.append(clock())
        one, several = np.diff(times).tolist()
        each = max(several - one, 0.0) / (TRIAL_STEPS - 1)
        return max(one - each, 0.0), each

    def run(self, deviations: FloatArray, step: float, tolerance: float | None = None) -> Response:
        """Run with inputs at the point's values plus ``deviations`` (K, nu), with another tolerance if one is given."""
        inputs, respond = self.point.inputs + deviations, self.stepped.respond
        if tolerance is not None:
            respond = partial(self.stepped.respond_accurately, tolerance)
        if self.takes_whole_steps and self.cadence.internal:
            return respond_in_whole_steps(respond, self.point, inputs, step, self.cadence.internal)
        return respond(self.point, inputs, step)

    def odd(self, deviations: FloatArray, step: float, size: float = 1.0) -> Response:
        """Return half the difference of the runs with ``deviations`` and their opposites, per ``size``."""
        return _halve_difference(self.run(deviations, step), self.run(-deviations, step), size)

    def respond_to_pulse(self, j: int, amplitude: float, step: float, count: int, first: int = 0) -> Response:
        """Return the response to a unit pulse on input j in step ``first``, from there on; two new runs."""
        deviations = np.zeros((first + count, len(self.scales)))
        deviations[first, j] = amplitude
        response = self.odd(deviations, step, amplitude)
        return Response(response.at_once[first:], response.after[first:], response.states[first:])

    def pulse(self, j: int, amplitude: float, step: float, count: int) -> Response:
        """Return the response to a unit pulse on input j in the first step, from two runs that are made once."""
        return _halve_difference(*self.pulses(j, amplitude, step, count), amplitude)

    def pulses(self, j: int, amplitude: float, step: float, count: int) -> tuple[Response, Response]:
        """Return the runs with a pulse on input j and with its opposite, each made once."""
        deviations = np.zeros((count, len(self.scales)))
        deviations[0, j] = amplitude
        return self.once((j, amplitude, step, count), lambda: (self.run(deviations, step), self.run(-deviations, step)))

    def once(self, key: object, make: Callable[[], T]) -> T:
        """Return what ``make`` returned when it was first asked for under this key."""
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    def choose_amplitudes(self, step: float) -> FloatArray:
        """Find the amplitudes for runs with this step, shape (nu,), by halving and superposition."""
        if step not in self._amplitudes and self._requested_amplitude is not None:
            self._amplitudes[step] = np.full_like(self.scales, self._requested_amplitude)
        if step not in self._amplitudes:
            twice = self._amplitudes.get(2 * step)  # answers to what is held for half as long are not larger
            self._amplitudes[step] = self._suitable(step) if twice is None else twice
            if not self._smooth:  # a matter of the point, not of the step
                self._require_smooth(self._amplitudes[step], step)
                self._smooth = True
        return self._amplitudes[step]

    def reduce_amplitudes(self, step: float, part: float) -> bool:
        """Take a part of the amplitudes for this step; False where the user has said how far inputs are moved."""
        if self._requested_amplitude is not None:
            return False
        self._amplitudes[step] = part * self.choose_amplitudes(step)
        self._made.pop(("held out", step), None)
        return True

    def _suitable(self, step: float) -> FloatArray:
        chosen = [self._amplitude(j, step) for j in range(len(self.scales))]
        halving = max((change for _, change in chosen), default=0.0)
        amplitudes = np.array([a for a, _ in chosen], dtype=np.float64)
        # ten times what halving changes is measured noise, and below 1e-6 nothing is out of proportion
        together = self._reduce_to_superposition(amplitudes, step, max(10 * halving, 1e-6))
        # Reduce all amplitudes until random inputs are answered in proportion by every output, where that helps.
        # any fixed numbers: equal calls give equal results
        pattern = np.random.default_rng(12).uniform(-1.0, 1.0, (LONG_RUN_STEPS, len(together)))
        smaller = together
        for _ in range(0 if self.is_noisy else MAX_REDUCTIONS):
            if not self.affords("smaller moves of the inputs", 4, 4 * LONG_RUN_STEPS, step):
                break
            try:
                full, half = (join(self.odd(part * smaller * pattern, step)) for part in (1, 0.5))
            except FmilinError:  # beyond what the model can do
                return together
            if not relative_change(2 * half, full) > NONLINEAR_RESPONSE_RATIO:
                if smaller is not together:
                    self.reduced = float(np.max(smaller / self.scales))
                return smaller
            smaller = smaller / 4
        return together  # noise, or nothing that is linear

    def _amplitude(self, j: int, step: float) -> tuple[float, float]:
        if j in self._changes:
            a, before = self._changes[j]
            change, _ = self._change(j, a, step)
            # an amplitude that was good at another step is kept unless it is worse by ten times
            if change <= 10 * max(before, GOOD_CHANGE_TOLERANCE):
                return a, change
        # where no amplitude moves anything: a hundredth of the size
        best, least = 1e-2 * float(self.scales[j]), np.inf
        moved, moves = False, False
        failure: FmilinError | None = None
        for part in AMPLITUDE_FRACTIONS:
            a = part * float(self.scales[j])
            try:
                change, size = self._change(j, a, step)
            except NumericalError as error:  # beyond what the model can do
                failure = error
                continue
            moved |= size > 0
            if change < least:
                best, least, moves = a, change, size > 0
            # beyond a hundred times the best one, amplitudes are in noise, and smaller ones more so
            if least < GOOD_CHANGE_TOLERANCE or change > 100 * max(least, GOOD_CHANGE_TOLERANCE):
                break
        if least == np.inf and failure is not None:
            raise failure
        if not moved:
            moved = self._moves_far(j, step)
        name = self.model.inputs.names[j]
        if moved and not moves and name not in self.in_dead_zone:
            self.in_dead_zone.append(name)
        (self.unresponsive.discard if moved else self.unresponsive.add)(j)
        self._changes[j] = best, least
        return best, least

    def _moves_far(self, j: int, step: float) -> bool:
        """Whether an input that moves nothing so far does so when it is pushed much more."""
        try:
            return self._change(j, PUSH_SIZES[-1] * float(self.scales[j]), step)[1] > 0
        except FmilinError:
            return False

    def _change(self, j: int, a: float, step: float) -> tuple[float, float]:
        """Return how much the response changes with half the amplitude, and how large that response is."""
        full, half = self.pulse(j, a, step, SHORT_RUN_STEPS), self.pulse(j, a / 2, step, SHORT_RUN_STEPS)
        one, other = join(full), join(half)
        size = float(np.linalg.norm(other))
        larger = float(np.linalg.norm(one))
        return (float(np.linalg.norm(one - other)) / size if size > 0 else float(larger > 0)), size

    def _reduce_to_superposition(self, amplitudes: FloatArray, step: float, allowed: float) -> FloatArray:
        """Reduce all amplitudes while the inputs together do not show the sum of their responses."""
        if len(amplitudes) < 2:
            return amplitudes
        for _ in range(3):
            deviations = np.zeros((SHORT_RUN_STEPS, len(amplitudes)))
            deviations[0] = amplitudes
            together = join(self.odd(deviations, step))
            parts = [a * join(self.pulse(j, a, step, SHORT_RUN_STEPS)) for j, a in enumerate(amplitudes.tolist())]
            size = max(float(np.linalg.norm(part)) for part in parts)
            if float(np.linalg.norm(together - sum(parts))) <= allowed * size:
                break
            # the part out of proportion is of second order: a tenth leaves a hundredth of it
            amplitudes = amplitudes / 10
        return amplitudes

    def _require_smooth(self, amplitudes: FloatArray, step: float) -> None:
        """Reject an input that is answered differently up and down however little it moves."""
        # The even part of a smooth model's answer falls with the square of the amplitude, at a kink with itself.
        still = np.zeros((SHORT_RUN_STEPS, len(amplitudes)))
        base, again = (join(self.run(still, step)) for _ in range(2))
        sizes = np.maximum(np.max(np.abs(base), axis=0, initial=0.0), 1.0)
        noise = float(np.linalg.norm((base - again) / sizes))
        for j, a in enumerate(amplitudes.tolist()):
            parts = []
            # half of it for the order of the even part, a hundredth to exclude a smooth function that bends within a
            for size in (a, a / 2, a / 100):
                up, down = (join(run) for run in self.pulses(j, size, step, SHORT_RUN_STEPS))
                even, odd = ((up + down) / 2 - base) / sizes, (up - down) / 2 / sizes
                parts.append((float(np.linalg.norm(even)), float(np.linalg.norm(odd))))
            (even, _), (half_even, half_odd), (least_even, _) = parts
            # of a kink the even part is as large as the odd one; a twentieth of it is not curvature of small pulses
            is_visible = half_even > max(0.05 * half_odd, 10 * noise, QUIET_RESPONSE_SIZE)
            # at half the amplitude: 0.5 at a kink, 0.25 of a smooth model; at a hundredth 0.01 and 1e-4
            if is_visible and half_even > 0.4 * even and (least_even > 5e-3 * even or even < 1e3 * noise):
                name = self.model.inputs.names[j]
                raise NumericalError(
                    f"The model has a kink or an event at the point: pulses of '{name}' up and down have different "
                    f"responses at every amplitude (tried from {a:.2g} down to {a / 100:.2g}). There is no linear "
                    "model of both sides: move the point, or keep the present mode in model exchange (interface='me', "
                    "hold_modes=True).",
                    variable=name,
                )


def relative_change(other: FloatArray, outputs: FloatArray) -> float:
    """Return the largest change of an output relative to its size, (K, ny) each; unmoved ones show rounding alone."""
    change, size = np.linalg.norm(other - outputs, axis=0), np.linalg.norm(outputs, axis=0)
    responding = size > QUIET_RESPONSE_SIZE * float(np.max(size, initial=0.0))
    return float(np.max(change[responding] / size[responding], initial=0.0))


def _halve_difference(up: Response, down: Response, size: float) -> Response:
    return Response(*((getattr(up, p) - getattr(down, p)) / (2 * size) for p in ("at_once", "after", "states")))


def join(response: Response) -> FloatArray:
    """Return outputs before and after the steps, and declared states, as columns of one array."""
    return np.hstack((response.at_once, response.after, response.states))
