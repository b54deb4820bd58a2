"""Method b, from pulses to linear model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark, equilibrium_not_tested, off_equilibrium
from fmilin.errors import FmilinError, NumericalError, UsageError
from fmilin.identification.discrete_models import Continuous, Sampled, apart, continuous_of, sampled_from
from fmilin.identification.experiments import Markov, Runner, measured, reading_of, relative_change
from fmilin.identification.findings import Findings
from fmilin.identification.integrators import EXACT, continuous_by
from fmilin.identification.moving_point import identify_at_moving_point
from fmilin.identification.realization import Realized, named_coordinates, realize
from fmilin.identification.step_size import HeldOut, confirmed, fitting_step, given_step, held_out, usable_step
from fmilin.identification.time_dependence import find_change, require_equal_steps
from fmilin.linear_model.builder import IndependentCoordinates, LinearMatrices, built, point_of
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.no_response import is_at_rest
from fmilin.model.interface import Model, OperatingPoint
from fmilin.options import Stepping
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.tolerances import CONFIRMED, INACCURATE, MOVES, ROUNDING

SHORT, LONG = 60, 200  # steps of a run: while a step is searched for, and at last
SHORTEST = 20
STILL = 6  # steps that show whether an output moves by itself
GROWTH = 1e4  # A record ends where responses exceed the largest of its first steps by this
REDUCTIONS, REDUCED = 4, 1 / 30  # of pulses that lead an unstable plant far away
GROWN, NOT_HALF = 3.0, 1e-6  # or by this, and answers to half a pulse are off their half by that part
MOST_NUMBERS = 1_000_000  # of the Hankel matrix
SEEN = 3.0  # radians of a motion that runs must show, to tell it where the model errs
GLIMPSE = 0.1  # radians of the fastest motion: a record that is shorter shows but the beginning of any motion


@dataclass(frozen=True)
class Identification:
    """What every method begins with, and how what was measured becomes a linear model."""

    model: Model
    point: OperatingPoint
    stepping: Stepping
    runner: Runner
    findings: Findings

    def named(
        self, M: Sampled | Continuous, E: Sampled | Continuous, own: IndependentCoordinates, method: str, step: float
    ) -> LinearModel:
        """Put names, the point and accuracies to matrices M and their errors E, measured in steps of ``step``."""
        evaluations, hidden = self.runner.stepped.steps, own.full_states is own.states
        outputs = self.runner.stepped.respond(self.point, self.point.inputs[None, :], step).at_once[0]
        own = own if hidden else replace(own, T=M.T, T_error=E.T)
        held = point_of(self.model, self.point, outputs)
        if hidden:
            held = replace(held, states=dict.fromkeys(own.states.names, 0.0))
        f0, sample_time = (M.drift, M.step) if isinstance(M, Sampled) else (M.f0, 0.0)
        pairs = ((E.A, M.A), (E.B, M.B), (E.C, M.C), (E.D, M.D))
        # No entry is more accurate than what held-out responses are missed by, beyond noise.
        doubts = (np.maximum(error, self.findings.doubt * np.abs(matrix)) for error, matrix in pairs)
        slopes = LinearMatrices(M.A, M.B, M.C, M.D, f0, *doubts)
        linear = built(self.model, own, slopes, held, (method, evaluations, 0), sample_time=sample_time)
        return replace(linear, warnings=(*linear.warnings, *self._motion_remarks(linear, step)))

    def _motion_remarks(self, linear: LinearModel, step: float) -> list[Remark]:
        """Say that the point moves, or that nothing was there to see whether it does."""
        if not len(self.model.outputs) and not len(self.model.states):
            return [equilibrium_not_tested("the model shows neither outputs nor states, so no motion could be seen")]
        if is_at_rest(linear):
            return self._find_unexplained_motion(linear, step)
        rates = linear.f0 / (linear.sample_time or 1.0)
        sizes = linear.states.scales(linear.y0)
        fastest = int(np.argmax(np.abs(rates) / sizes))
        name = linear.states.names[fastest]
        what = f"'{name}' moves while inputs are held, at {rates[fastest]:.6g} per second"
        return [off_equilibrium(what, "f0 is the beginning of that motion; the matrices belong to deviations from it.")]

    def _find_unexplained_motion(self, linear: LinearModel, step: float) -> list[Remark]:
        """Say that an output moves while inputs are held, by states that no input moves."""
        shown = self.runner.run(np.zeros((STILL, len(self.runner.scales))), step).at_once
        moved = shown[-1] - shown[0]
        sizes = self.model.outputs.scales(shown[0])
        seconds = (STILL - 1) * step
        moving = np.abs(moved) > MOVES * seconds * sizes
        if not moving.any() or linear.f0.any():
            return []
        fastest = int(np.argmax(np.where(moving, np.abs(moved) / sizes, 0.0)))
        rate = moved[fastest] / seconds
        what = f"the output '{self.model.outputs.names[fastest]}' moves while inputs are held, at {rate:.6g} per second"
        return [off_equilibrium(what, "No input moves what it shows, so that the linear model does not contain it.")]

    @property
    def missing(self) -> list[str]:
        """Which there are none of, inputs or outputs."""
        every = (("inputs", self.model.inputs), ("outputs", self.model.outputs))
        return [word for word, signals in every if not signals]

    def confirmed(self, sampled: Sampled) -> Continuous:
        """Return the continuous model, confirmed at half the step, with the findings of that."""
        confirmation = confirmed(sampled, self.runner, self.findings.error)
        self.findings.half_error, self.findings.integrator = confirmation.error, confirmation.integrator
        self.findings.nyquist = confirmation.model.nyquist
        return confirmation.model

    def continuous_like(self, sampled: Sampled) -> Continuous:
        """Return the continuous model of another discrete one, for the integrator that was confirmed."""
        exact = continuous_of(sampled)
        integrator = self.findings.integrator
        return exact if integrator is EXACT else continuous_by(integrator, sampled, exact)


class ByResponse(Identification):
    """Linearizes by pulses on the inputs."""

    def linearize(self, independent: Sequence[str] | None) -> LinearModel:
        """Return the linear model."""
        self._require_channels()
        begin = self.stepping.step or usable_step(self.runner)
        if not self.stepping.lifted and not self.runner.cadence.sampled:
            change = find_change(self.runner, begin)
            if change:
                return self._at_moving_point(begin, independent, change)
            if self.runner.cadence.internal and not self.runner.is_noisy:
                require_equal_steps(self.runner, self.runner.cadence.internal)
        step = self._step()
        nu = len(self.runner.scales)
        long = self.runner.affords(f"runs of {LONG} steps, which show slower motions", 4 * nu, 4 * nu * LONG, step)
        count = LONG if long else SHORT
        self.findings.seconds = count * step
        realized, held = self._realized(step, count, halves=True)
        self._note(realized, held)
        return self._delivered(realized, independent)

    def _at_moving_point(self, step: float, independent: Sequence[str] | None, change: str) -> LinearModel:
        """Return the linear model at a point along the motion of which responses change."""
        cadence, findings = self.runner.cadence, self.findings
        shortens = not cadence.internal
        estimate = identify_at_moving_point(self.runner, step, self.stepping.order, shortens=shortens, change=change)
        findings.method, findings.step, findings.order = "response", estimate.step, len(estimate.model.A)
        findings.reading = reading_of(self.runner, step, [])
        findings.unmeasured = "the point moves, and the model holds at its beginning only"
        moving = sampled_from(estimate.model, estimate.step, findings.reading)
        coordinates, S, _ = self._coordinates(Realized(moving, moving, np.empty(0), float("nan")), independent)
        model = estimate.model.in_coordinates(S)
        inverse = np.linalg.inv(S)
        size, back = np.abs(S), np.abs(inverse)
        off = estimate.errors
        errors = replace(off, A=size @ off.A @ back, B=size @ off.B, C=off.C @ back, T=off.T @ back, f0=0 * off.f0)
        if estimate.rows is None:  # the motion of hidden states is that of the outputs
            drifting = self._with_drift(sampled_from(model, estimate.step, findings.reading), coordinates)
            model = replace(model, f0=continuous_of(drifting).f0)
            which = "hidden states"
        else:
            names = (*self.model.outputs.names, *self.model.states.names)
            which = "the coordinates " + ", ".join(f"'{names[row]}'" for row in estimate.rows)
            findings.is_limit_of_steps = shortens
            findings.change_in_step = estimate.change_in_step
        text = (
            f"{_CHANGES[change]} A and B are those at the point itself, from short "
            f"records in steps of {estimate.step:.3g} s, in {which}. Two estimates differ by {estimate.change:.1e}."
        )
        findings.extra.append(Remark("accuracy" if estimate.change > INACCURATE else "fit", text))
        return self.named(model, errors, coordinates, "responses", estimate.step)

    def _delivered(self, realized: Realized, independent: Sequence[str] | None) -> LinearModel:
        coordinates, S, S_half = self._coordinates(realized, independent)
        sampled = self._with_drift(realized.model.in_coordinates(S), coordinates)
        half = replace(realized.half.in_coordinates(S_half), drift=sampled.drift)
        if sampled.drift.any():
            self.findings.excess = max(self.findings.excess, self._change_on_the_way(sampled))
        method = {"response": "responses"}.get(self.findings.method, self.findings.method)
        if self.stepping.lifted:
            linear = self.named(sampled, apart(sampled, half), coordinates, method, sampled.step)
        else:
            model = self.confirmed(sampled)
            self._note_short_record(model, sampled.step)
            linear = self.named(model, self._continuous_errors(model, half), coordinates, method, sampled.step)
        return linear

    def _require_channels(self) -> None:
        if self.missing:
            raise UsageError(
                f"'{self.model.info.name}' has no {' and no '.join(self.missing)}, so there are no responses to "
                "identify a model from, and its states cannot be used instead. Export it for model exchange, or with "
                "inputs and outputs."
            )

    def _step(self) -> float:
        def attempt(step: float) -> tuple[Sampled, float]:
            realized, _ = self._realized(step, SHORT, halves=False)
            return realized.model, realized.error

        cadence = self.runner.cadence
        is_given = self.stepping.step or cadence.sampled or cadence.period
        return fitting_step(attempt, self.runner, given_step(self.stepping, self.runner) if is_given else None)

    def _realized(self, step: float, count: int, *, halves: bool) -> tuple[Realized, HeldOut | None]:
        rows = max(1, (len(self.model.outputs) + len(self.model.states)) * max(1, len(self.runner.scales)))
        count = max(SHORTEST, min(count, int(2 * np.sqrt(MOST_NUMBERS / rows))))
        markov = measured(self.runner, step, count, halves=halves)
        for _ in range(REDUCTIONS if halves and not self.runner.is_noisy else 0):
            if not _leaves_the_point(markov) or not self.runner.reduce_amplitudes(step, REDUCED):
                break
            smaller = measured(self.runner, step, count, halves=halves)
            if not _bent(smaller).sum() < _bent(markov).sum():
                break
            markov = smaller
        if not np.isfinite(markov.Y).all():
            raise NumericalError(
                f"The model answers pulses of its inputs with NaN within {count} steps of {step:g} s. Choose another "
                "point, or a smaller step=."
            )
        markov = before_growth(markov)
        held = held_out(self.runner, step)
        amplitudes = self.runner.choose_amplitudes(step)
        return realize(markov, len(self.model.outputs), held, self.stepping.order, amplitudes), held

    def _note(self, realized: Realized, held: HeldOut | None) -> None:
        findings = self.findings
        findings.method, findings.step, findings.lifted = "response", realized.model.step, self.stepping.lifted
        findings.reading, findings.order = realized.model.reading, realized.model.order
        findings.singular_values = realized.singular_values
        if held is not None:
            findings.fit(held.errors(realized.model), held.step, held.noise)
        if realized.significant is not None and realized.model.order > realized.significant:
            text = (
                f"Of the {realized.model.order} directions that were asked for, only {realized.significant} stand "
                "above noise and rounding: the other eigenvalues mean nothing. Choose a smaller order=."
            )
            findings.extra.append(Remark("order-beyond-noise", text))

    def _coordinates(
        self, realized: Realized, independent: Sequence[str] | None
    ) -> tuple[IndependentCoordinates, FloatArray, FloatArray]:
        model, n = realized.model, realized.model.order
        states = self.model.states
        wanted = [states.index_of(name, "a declared state of the model") for name in independent or ()]
        if independent is not None and len(wanted) != n:
            raise UsageError(
                f"The responses show {n} independent states, {len(wanted)} were named: name {n}, or leave it out."
            )
        preferred = wanted or [states.index_of(name) for name in self.model.independent]
        chosen = named_coordinates(model, states.scales(self.point.states), preferred)
        if chosen is None:
            hidden = Signals(Signal(f"z[{i + 1}]", description="identified, balanced") for i in range(n))
            own = IndependentCoordinates(hidden, hidden, np.zeros(n), np.eye(n), np.zeros((n, n)), "identified")
            return own, np.eye(n), np.eye(n)
        if wanted and chosen != wanted:
            raise NumericalError(
                f"The states {', '.join(independent or ())} do not determine the identified ones. Leave the choice out."
            )
        y0, T = self.point.states[chosen], model.T
        coordinates = IndependentCoordinates(states.select(chosen), states, y0, T, T, "identified")
        return coordinates, T[chosen], realized.half.T[chosen]

    def _with_drift(self, model: Sampled, coordinates: IndependentCoordinates) -> Sampled:
        """Measure how the point itself moves during a step, inputs held."""
        n = model.order
        once, again = (self._drift(model, coordinates) for _ in range(2))
        small = MOVES * model.step * coordinates.states.scales(coordinates.y0) + 10 * np.abs(once - again)
        if n == 0 or not (np.abs(once) > small).any():
            return replace(model, drift=np.zeros(n))
        return replace(model, drift=once)

    def _change_on_the_way(self, model: Sampled) -> float:
        """Return how a pulse that comes later is answered otherwise, where the point moves; relative."""
        deviations = np.zeros((2 * SHORT, len(self.runner.scales)))
        deviations[SHORT] = self.runner.choose_amplitudes(model.step)
        up, down = (self.runner.run(sign * deviations, model.step) for sign in (1.0, -1.0))
        part = "at_once" if model.reading == "at once" else "after"
        one, other = getattr(up, part), getattr(down, part)
        answer, whole = np.linalg.norm(one - other), np.linalg.norm(one)
        if not np.isfinite(whole) or answer <= ROUNDING * whole / CONFIRMED:  # the point has run away by then
            return 0.0
        return relative_change(model.response(deviations), (one - other) / 2)

    def _drift(self, model: Sampled, coordinates: IndependentCoordinates) -> FloatArray:
        still = self.runner.run(np.zeros((max(2 * model.order, 4), len(self.runner.scales))), model.step)
        if coordinates.full_states is self.model.states:
            chosen = [self.model.states.index_of(name) for name in coordinates.states.names]
            return np.asarray(still.states[0][chosen] - self.point.states[chosen], dtype=np.float64)
        # D from outputs of a run with inputs held: y[k] - y[0] = C (1 + A + ... + A^(k-1)) d.
        outputs = still.at_once if model.reading == "at once" else still.after
        n = model.order
        rows, S = [], np.zeros((n, n))
        for _ in range(len(outputs)):
            rows.append(model.C @ S)
            S = np.eye(n) + model.A @ S
        change = (outputs - outputs[0]).ravel()
        if n == 0 or not np.isfinite(change).all():
            return np.zeros(n)
        return np.asarray(np.linalg.lstsq(np.vstack(rows), change, rcond=1e-10)[0])

    def _continuous_errors(self, model: Continuous, half: Sampled) -> Continuous:
        try:
            other = self.continuous_like(half)
        except FmilinError:
            other = replace(model, A=np.zeros_like(model.A), B=np.zeros_like(model.B))
        off = apart(model, other)
        # one sample of rounding may be small by chance in an entry: what entries have in common is a floor
        floors = {name: np.maximum(getattr(off, name), _root_mean_square(getattr(off, name))) for name in "ABC"}
        return replace(off, **floors, f0=np.abs(model.f0 - other.f0))

    def _note_short_record(self, model: Continuous, step: float) -> None:
        """Warn when runs are far shorter than any motion, or show but the beginning of some in a model that errs."""
        if not len(model.A):
            return
        values, seconds = np.abs(np.linalg.eigvals(model.A)), self.findings.seconds
        slow = int(np.count_nonzero(values * seconds < SEEN))
        if slow and seconds and self.findings.doubt > INACCURATE:
            text = (
                f"The runs are {seconds:.3g} s long and show but the beginning of {slow} slower motions: what the "
                f"model says below {SEEN / seconds:.2g} rad/s is not known. Take a longer step= where that matters."
            )
            self.findings.extra.append(Remark("short-record", text))
        if self.stepping.step is None:
            return
        fastest = float(np.max(values))
        if fastest * step * LONG < GLIMPSE:
            text = (
                f"The {LONG} steps of {step:g} s of a run are far shorter than the fastest motion that was found "
                f"({fastest:.3g} rad/s): slower motions may be missing. Take a longer step=, or leave it out."
            )
            self.findings.extra.append(Remark("short-record", text))


_CHANGES = {
    "smooth": "The point moves, and responses change along its motion:",
    "event": "The point moves, and an event follows in which responses change:",
}


def _root_mean_square(matrix: FloatArray) -> float:
    return float(np.sqrt(np.mean(matrix**2))) if matrix.size else 0.0


def _bent(markov: Markov) -> NDArray[np.bool_]:
    """Return at which steps of the record a response that has grown is not twice that to half a pulse, shape (K,)."""
    sizes = np.max(np.abs(markov.Y), axis=(1, 2), initial=0.0)
    early = float(np.max(sizes[:SHORTEST], initial=0.0))
    off = np.max(markov.errors, axis=(1, 2), initial=0.0)
    return np.asarray((off > NOT_HALF * sizes) & (sizes > GROWN * early))


def _leaves_the_point(markov: Markov) -> bool:
    """Whether pulses move an unstable plant so far that it is not linear."""
    return bool(_bent(markov).any())


def before_growth(markov: Markov) -> Markov:
    """Return the part of the record before an unstable motion drowns all others."""
    sizes = np.max(np.abs(markov.Y), axis=(1, 2), initial=0.0)
    early = float(np.max(sizes[:SHORTEST], initial=0.0))
    # an unstable plant leaves the neighbourhood of the point before that: answers to half a pulse are no longer half
    late = np.flatnonzero((sizes > GROWTH * early)[SHORTEST:] | _bent(markov)[SHORTEST:])
    if not late.size or early == 0:
        return markov
    count = SHORTEST + int(late[0])
    half = markov.half and replace(markov.half, Y=markov.half.Y[:count], errors=markov.half.errors[:count])
    return replace(markov, Y=markov.Y[:count], errors=markov.errors[:count], half=half)
