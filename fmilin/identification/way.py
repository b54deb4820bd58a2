"""The interface of the ways to a linear model of a model that is run in steps, and what the measured ones share.

A way says whether it is possible (``why_not``), and makes the linear model (``identify``), with its findings besides
it. :mod:`fmilin.identification.identify` chooses among them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np

from fmilin.diagnostics import Remark, equilibrium_not_tested, off_equilibrium
from fmilin.errors import NumericalError, UsageError
from fmilin.identification.discrete_models import Continuous, Sampled, find_continuous_model
from fmilin.identification.experiments import Experiments
from fmilin.identification.findings import Findings
from fmilin.identification.integrators import EXACT, find_plant_of_integrator
from fmilin.identification.realization import Realized, choose_named_states
from fmilin.identification.step_size import confirm_at_half_step
from fmilin.linear_model.builder import IndependentCoordinates, LinearMatrices, build_matrices, name_point
from fmilin.linear_model.model import LinearModel
from fmilin.linear_model.no_response import is_at_rest
from fmilin.manifold.selection import Selection
from fmilin.model.interface import Model, OperatingPoint
from fmilin.model.stepping import Stepped
from fmilin.options import Stepping
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.tolerances import MOTION_RATE_TOLERANCE

STILL_STEPS = 6  # steps that show whether an output moves by itself


class DerivativeMethod(Protocol):
    """A method that linearizes a model from derivatives of its rates and outputs, where they can be read."""

    def linearize(self, model: Model, point: OperatingPoint, derivatives: str | None) -> tuple[LinearModel, Selection]:
        """Return the linear model at a point and its coordinates, which the next point of a path continues.

        ``derivatives`` is their kind, ``"exact"``; the one that the user chose if None.
        """


@dataclass(frozen=True, kw_only=True)
class IdentificationOptions:
    """The options of an identified model, and the method for derivatives where they can be read."""

    by_derivatives: DerivativeMethod
    stepping: Stepping = field(default_factory=Stepping)
    independent: Sequence[str] | None = None  # states that the user wants as coordinates
    coordinates: str = "partition"  # how coordinates are chosen otherwise
    keep_inaccurate: bool = False


@dataclass(frozen=True)
class Setting:
    """A model at a point, the options, and the experiments with which the model is identified."""

    model: Model
    point: OperatingPoint
    options: IdentificationOptions
    experiments: Experiments  # with the inputs that may jump between steps
    begin: float  # a communication step that the model takes, in seconds
    repetition: str = ""  # what it takes that equal runs give equal answers, one sentence
    between_steps: str = ""  # how the model takes steps other than its solver's own; empty where it takes any

    @property
    def stepped(self) -> Stepped:
        """The model as one that is run in steps."""
        return self.experiments.stepped

    @property
    def stepping(self) -> Stepping:
        """How the user wants the model to be identified."""
        return self.options.stepping

    @property
    def missing_channels(self) -> list[str]:
        """Which there are none of, inputs that can be moved or outputs."""
        channels = (("inputs", self.model.inputs), ("outputs", self.model.outputs))
        return [word for word, signals in channels if not signals]

    @property
    def has_channels(self) -> bool:
        """Whether an input can be moved in steps, and there is an output that may answer."""
        return bool(len(self.experiments.scales)) and bool(len(self.model.outputs))


def inputs_that_may_jump(model: Model) -> list[int]:
    """Return the positions of inputs that neither prescribe a motion nor are rates of inputs that do.

    An input is held during a step. One that prescribes a motion would jump without the impulse of its rate, and the
    responses would be those of a model that has left its constraints.
    """
    smooth = set(model.constraints.prescribing)
    rates = model.inputs.rates
    for j in list(smooth):
        while (j := rates.get(j, -1)) >= 0:
            smooth.add(j)
    return [j for j in range(len(model.inputs)) if j not in smooth]


class Way(ABC):
    """One way to a linear model: what it needs, and the linear model with its findings."""

    name: ClassVar[str]
    option: ClassVar[str]  # what ``fl.Stepping(method=)`` calls it
    what: ClassVar[str]  # what is done, as the subject of a sentence
    needs_responses: ClassVar[bool] = True  # whether the model counts only where responses confirm it
    reads_derivatives: ClassVar[bool] = False
    keeps_inaccurate: ClassVar[bool] = False  # whether large errors are stated, and the model is returned all the same

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.model, self.point, self.experiments = setting.model, setting.point, setting.experiments
        self.stepping = setting.stepping
        self.findings = Findings(
            self.name,
            self.experiments.cadence,
            inputs=self.model.inputs.names,
            outputs=self.model.outputs.names,
            solver=setting.stepped.how_it_solves(),
            repetition=setting.repetition,
            takes_halves=not setting.between_steps,
            lifted=self.stepping.lifted and not self.reads_derivatives,
        )
        if len(self.model.inputs) and not len(self.experiments.scales):
            self.findings.unmeasured = "all inputs prescribe a motion and cannot jump between steps"

    @abstractmethod
    def why_not(self) -> str:
        """Return why this way is not possible, one sentence; empty where it is."""

    @abstractmethod
    def identify(self) -> LinearModel:
        """Return the linear model."""

    def require_possible(self) -> None:
        """Raise a UsageError if this way is not possible."""
        if reason := self.why_not():
            raise UsageError(
                f"method='{self.option}' is not possible. {reason} Try method='response', which needs no states."
            )


class MeasuredWay(Way):
    """A way that measures runs of the model: names, coordinates, motion and confirmation of what they tell."""

    def name_model(
        self,
        matrices: Sampled | Continuous,
        errors: Sampled | Continuous,
        coordinates: IndependentCoordinates,
        method: str,
        step: float,
    ) -> LinearModel:
        """Put names, the point and accuracies to matrices and their errors, measured in steps of ``step`` seconds."""
        evaluations = self.setting.stepped.steps
        is_hidden = coordinates.full_states is coordinates.states
        outputs = self.setting.stepped.respond(self.point, self.point.inputs[None, :], step).at_once[0]
        point = name_point(self.model, self.point, outputs)
        if is_hidden:
            point = replace(point, states=dict.fromkeys(coordinates.states.names, 0.0))
        else:
            coordinates = replace(coordinates, T=matrices.T, T_error=errors.T)
        if isinstance(matrices, Sampled):
            f0, sample_time = matrices.drift, matrices.step
        else:
            f0, sample_time = matrices.f0, 0.0
        # No entry is more accurate than what held-out responses are missed by, beyond noise.
        doubt = self.findings.doubt
        doubts = (
            np.maximum(getattr(errors, name), doubt * np.abs(getattr(matrices, name))) for name in ("A", "B", "C", "D")
        )
        slopes = LinearMatrices(matrices.A, matrices.B, matrices.C, matrices.D, f0, *doubts)
        linear = build_matrices(
            self.model, coordinates, slopes, point, (method, evaluations, 0), sample_time=sample_time
        )
        return replace(linear, warnings=(*linear.warnings, *self._describe_motion(linear, step)))

    def _describe_motion(self, linear: LinearModel, step: float) -> list[Remark]:
        """Say that the point moves, or that nothing shows whether it does."""
        if not len(self.model.outputs) and not len(self.model.states):
            return [
                equilibrium_not_tested("the model shows neither outputs nor states, so its motion is not observable")
            ]
        if is_at_rest(linear):
            return self._describe_hidden_motion(linear, step)
        rates = linear.f0 / (linear.sample_time or 1.0)
        sizes = linear.states.scales(linear.y0)
        fastest = int(np.argmax(np.abs(rates) / sizes))
        name = linear.states.names[fastest]
        what = f"'{name}' moves while inputs are held, at {rates[fastest]:.6g} per second"
        return [
            off_equilibrium(what, "f0 is the initial rate of that motion; the matrices belong to deviations from it.")
        ]

    def _describe_hidden_motion(self, linear: LinearModel, step: float) -> list[Remark]:
        """Say that an output moves while inputs are held, by states that no input moves."""
        outputs = self.experiments.run(np.zeros((STILL_STEPS, len(self.experiments.scales))), step).at_once
        change = outputs[-1] - outputs[0]
        sizes = self.model.outputs.scales(outputs[0])
        seconds = (STILL_STEPS - 1) * step
        is_moving = np.abs(change) > MOTION_RATE_TOLERANCE * seconds * sizes
        if not is_moving.any() or linear.f0.any():
            return []
        fastest = int(np.argmax(np.where(is_moving, np.abs(change) / sizes, 0.0)))
        rate = change[fastest] / seconds
        what = f"the output '{self.model.outputs.names[fastest]}' moves while inputs are held, at {rate:.6g} per second"
        return [off_equilibrium(what, "No input affects this motion, so the linear model does not contain it.")]

    def confirm(self, sampled: Sampled) -> Continuous:
        """Return the continuous model, confirmed at half the step, and note how well it is."""
        confirmation = confirm_at_half_step(sampled, self.experiments, self.findings.error)
        self.findings.half_error = confirmation.error
        self.findings.integrator = confirmation.integrator
        self.findings.nyquist = confirmation.model.nyquist
        return confirmation.model

    def convert_to_continuous(self, sampled: Sampled) -> Continuous:
        """Return the continuous model of another discrete one, for the integrator that was confirmed."""
        exact = find_continuous_model(sampled)
        integrator = self.findings.integrator
        return exact if integrator is EXACT else find_plant_of_integrator(integrator, sampled, exact)

    def choose_coordinates(self, realized: Realized) -> tuple[IndependentCoordinates, FloatArray, FloatArray]:
        """Return coordinates, and the matrices that turn the two realized models into them.

        Declared states are taken where they determine the states that were realized, ``z[1]``, ... otherwise.
        """
        model, n = realized.model, realized.model.order
        states, independent = self.model.states, self.setting.options.independent
        requested = [states.index_of(name, "a declared state of the model") for name in independent or ()]
        if independent is not None and len(requested) != n:
            raise UsageError(
                f"The responses show {n} independent states, {len(requested)} were named: name {n}, or leave "
                "independent= out of the options."
            )
        preferred = requested or [states.index_of(name) for name in self.model.independent]
        chosen = choose_named_states(model, states.scales(self.point.states), preferred)
        if chosen is None:
            hidden = Signals(Signal(f"z[{i + 1}]", description="identified, balanced") for i in range(n))
            coordinates = IndependentCoordinates(hidden, hidden, np.zeros(n), np.eye(n), np.zeros((n, n)), "identified")
            return coordinates, np.eye(n), np.eye(n)
        if requested and chosen != requested:
            raise NumericalError(
                f"The states {', '.join(independent or ())} do not determine the identified ones. Leave independent= "
                "out."
            )
        y0, T = self.point.states[chosen], model.T
        coordinates = IndependentCoordinates(states.select(chosen), states, y0, T, T, "identified")
        return coordinates, T[chosen], realized.half.T[chosen]

    def measure_drift(self, model: Sampled, coordinates: IndependentCoordinates) -> Sampled:
        """Return the model with how the point itself moves during a step, inputs held."""
        n = model.order
        drift, again = (self._measure_drift_once(model, coordinates) for _ in range(2))
        # two equal runs show noise once: ten times that is certain
        small = MOTION_RATE_TOLERANCE * model.step * coordinates.states.scales(coordinates.y0) + 10 * np.abs(
            drift - again
        )
        if n == 0 or not (np.abs(drift) > small).any():
            return replace(model, drift=np.zeros(n))
        return replace(model, drift=drift)

    def _measure_drift_once(self, model: Sampled, coordinates: IndependentCoordinates) -> FloatArray:
        n = model.order
        response = self.experiments.run(np.zeros((max(2 * n, 4), len(self.experiments.scales))), model.step)
        if coordinates.full_states is self.model.states:
            chosen = [self.model.states.index_of(name) for name in coordinates.states.names]
            return np.asarray(response.states[0][chosen] - self.point.states[chosen], dtype=np.float64)
        # d from outputs of a run with inputs held: y[k] - y[0] = C (1 + A + ... + A^(k-1)) d.
        outputs = response.at_once if model.reading == "at once" else response.after
        rows, S = [], np.zeros((n, n))
        for _ in range(len(outputs)):
            rows.append(model.C @ S)
            S = np.eye(n) + model.A @ S
        change = (outputs - outputs[0]).ravel()
        if n == 0 or not np.isfinite(change).all():
            return np.zeros(n)
        # directions below 1e-10 of the largest are rounding of the observations
        return np.asarray(np.linalg.lstsq(np.vstack(rows), change, rcond=1e-10)[0])
