"""The map x[k+1] = F(x[k], u[k]) of an FMU with discrete states, one sample long, from states that are set.

F is a function of states and inputs alone: each sample begins where the FMU starts, and a run over several samples must
be what the map gives, one sample after the other. A model that depends on time or on further numbers fails that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fmilin.errors import ModelError, UsageError, quote_first
from fmilin.fmi.read.archive import FmuFile
from fmilin.fmi.read.discrete_states import find_discrete_states
from fmilin.fmi.read.sampled_instance import SampledInstance
from fmilin.fmi.read.settings import Value
from fmilin.fmi.read.stepped_model import SteppedFmu
from fmilin.fmi.read.stepped_session import SteppedSession
from fmilin.fmi.read.values import ParameterValues
from fmilin.model.stepping import Response
from fmilin.signals import FloatArray

REPEATED_SAMPLE_TOLERANCE = 1e-9  # relative; looser: models with hidden states pass. Tighter: rounding of solvers fails
_EVENT_COUNT = 24  # at the start of a run, from which the sample time is read
_SAMPLE_COUNT = 3  # of the run that is compared with the map
_EXCURSION_SIZE = 1e-2  # in sizes of states and inputs


class SampledSession(SteppedSession):
    """A session of a model-exchange FMU with discrete states."""

    interface = "ModelExchange"

    @property
    def notes_of_now(self) -> tuple[str, ...]:
        """Nothing: the events of the model are those of its samples."""
        return ()

    @property
    def sampled_instance(self) -> SampledInstance:
        """The instance, as the class that it has."""
        instance = self.come_back()
        assert isinstance(instance, SampledInstance)  # noqa: S101 - made so by class_of_instances
        return instance

    def find_event_times(self, count: int) -> FloatArray:
        """Return the times of the first events after the start."""
        instance = self.sampled_instance
        self._away = True
        return instance.find_event_times(count)

    def begin_later(self, lead: float) -> None:
        """Begin runs at the sample that is ``lead`` seconds after the FMU's start."""
        instance = self.sampled_instance
        self._forget_saved()
        instance.lead = lead
        instance.begin_again(self.start_time, self.settings)
        self._anchor()


class SampledFmu(SteppedFmu):
    """A view of a model-exchange FMU that is run from sample to sample."""

    session_class = SampledSession
    _session: SampledSession

    def find_sample_interval(self) -> float | None:
        """Return the time between samples by the FMU's time events, and begin at the first one; None without any.

        Where several rates alternate, the time after which the pattern of events repeats.
        """
        times = self._session.find_event_times(_EVENT_COUNT)
        if not len(times):
            return None
        if len(times) == 1:
            return float(times[0] - self.start.time)
        interval = find_period(np.diff(times))
        if interval is None:
            return None
        lead = float(times[0] - self.start.time)
        if lead > interval * (1 - REPEATED_SAMPLE_TOLERANCE) and not self._ticks_at_start(lead):
            self._session.begin_later(lead)
        return interval

    def _ticks_at_start(self, lead: float) -> bool:
        """Return whether a state changes at the FMU's start."""
        x, u = _draw_excursions(self, 1)
        if self.why_not_settable(self.start):
            x[0] = self.start.states
        response = self.respond(replace(self.start, states=x[0], inputs=u[0]), u, lead)
        return not np.array_equal(response.states[0], x[0])


def find_period(gaps: FloatArray) -> float | None:
    """Return the time after which a pattern of gaps between events repeats; None where it does not in what is given.

    >>> find_period(np.array([0.1, 0.1, 0.1])), find_period(np.array([0.2, 0.1, 0.1, 0.2] * 5))
    (0.1, 0.6)
    """
    for count in range(1, len(gaps) // 2 + 1):
        if np.allclose(gaps[count:], gaps[:-count], rtol=1e-6, atol=0):
            return float(f"{float(np.sum(gaps[:count])):.12g}")
    return float(f"{float(gaps[0]):.12g}") if len(gaps) == 1 else None


@dataclass(frozen=True)
class SampleMap:
    """The map of an FMU; its outputs are those that the FMU shows at a sample, some of them after the sample's step."""

    fmu: SteppedFmu
    interval: float  # in seconds

    @classmethod
    def open(
        cls,
        file: FmuFile,
        *,
        parameters: Mapping[str, Value],
        settings: Mapping[str, float],
        time: float | None,
        interface: str,
    ) -> SampleMap:
        """Open an FMU through an interface; ``discrete_states`` of its options are set.

        Raises
        ------
        UsageError
            When the time between samples is unknown.
        ModelError
            When states cannot be set, or do not determine the next sample.
        """
        kind = SteppedFmu if interface == "CoSimulation" else SampledFmu
        fmu = kind.opened(file, parameters=parameters, settings=settings, time=time)
        try:
            sample_map = cls(fmu, _find_interval(fmu, file.options.sample_interval))
            sample_map.require_determined()
        except BaseException:
            fmu.close()
            raise
        return sample_map

    def evaluate(self, x: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the states of the next sample (k, N) and the outputs (k, ny) of states (k, N) and inputs (k, nu)."""
        response = self._respond(x, u)
        return response.states, np.where(self._is_shown_later, response.after, response.at_once)

    def _respond(self, x: FloatArray, u: FloatArray) -> Response:
        return self.fmu.respond_points(replace(self.fmu.start, states=x[0], inputs=u[0]), x, u, self.interval)

    @cached_property
    def parameters(self) -> dict[str, float]:
        """Numbers of the FMU that are set before it is initialized, with their values."""
        session = self.fmu._session
        values = ParameterValues(session)
        names = [n for n in values if (v := session.layout.find(n)) and v.variable.is_float and v.variable.is_settable]
        return {name: values[name] for name in names}

    @cached_property
    def _is_shown_later(self) -> NDArray[np.bool_]:
        """Which outputs do not follow states and inputs before the step, but do so after it, shape (ny,)."""
        x, u = _draw_excursions(self.fmu, _SAMPLE_COUNT)
        response = self._respond(x, u)
        follows_at_once = np.ptp(response.at_once, axis=0) > 0
        return np.asarray(~follows_at_once & (np.ptp(response.after, axis=0) > 0))

    def require_determined(self) -> None:
        """Check that states can be set, and that they determine the next sample."""
        fmu, source = self.fmu, self.fmu.description.source
        if reason := fmu.why_not_settable(fmu.start):
            raise ModelError(
                f"The discrete states of '{source}' cannot be set, so that its map is not known elsewhere. {reason}"
            )
        x, u = _draw_excursions(fmu, _SAMPLE_COUNT)
        run = fmu.respond(replace(fmu.start, states=x[0], inputs=u[0]), u, self.interval).states
        alone = self._respond(np.vstack((x[:1], run[:-1])), u).states
        error = np.abs(run - alone) / np.maximum(np.abs(run), fmu.states.scales(fmu.start.states))
        if not np.isfinite(run).all() or np.max(error, initial=0.0) <= REPEATED_SAMPLE_TOLERANCE:
            return
        name = fmu.states.names[int(np.argmax(error.max(axis=0)))]
        unnamed = [v.name for v in find_discrete_states(fmu.description) if v.name not in fmu.states.names]
        advice = f" Other discrete-time numbers: {quote_first(unnamed)}." if unnamed else ""
        raise ModelError(
            f"States and inputs of '{source}' do not determine the next sample: '{name}' differs by "
            f"{np.max(error):.1e} of its size between a run and single samples of {self.interval:g} s. The model "
            f"depends on time, has further states, or another sample time (discrete_states=, sample_interval=).{advice}"
        )


def _draw_excursions(fmu: SteppedFmu, count: int) -> tuple[FloatArray, FloatArray]:
    """Return states (count, N) and inputs (count, nu) that differ from the start, always the same ones."""
    start, random = fmu.start, np.random.default_rng(2026)
    x, u = (
        values + _EXCURSION_SIZE * signals.scales(values) * random.uniform(0.5, 1.0, (count, len(values)))
        for values, signals in ((start.states, fmu.states), (start.inputs, fmu.inputs))
    )
    return x, u


def _find_interval(fmu: SteppedFmu, requested: float | None) -> float:
    if requested is not None:
        if not (np.isfinite(requested) and requested > 0):
            raise UsageError(f"The sample interval is {requested:g} s: give a positive number of seconds.")
        return float(requested)
    cadence = fmu.cadence
    declared = cadence.period or (fmu.find_sample_interval() if isinstance(fmu, SampledFmu) else cadence.declared)
    if declared is None:
        raise UsageError(
            f"'{fmu.description.source}' does not say how long a sample is: it has no periodic time events, no clock "
            "with an interval and no step size. Give it with sample_interval=."
        )
    return declared
