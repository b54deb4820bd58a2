"""A running FMU, shared by all views of the same model, and given back when the last one is done."""

import itertools
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from fmilin.errors import ModelError, UsageError, quote_first
from fmilin.fmi.client.arena import Arena
from fmilin.fmi.client.host_programs import Program
from fmilin.fmi.client.linux32 import describe_32_bits
from fmilin.fmi.client.wine import describe_wine
from fmilin.fmi.platforms import host as this_machine
from fmilin.fmi.read.archive import FmuFile
from fmilin.fmi.read.buffers import Buffers, Visit
from fmilin.fmi.read.component import LogSink
from fmilin.fmi.read.description import ModelDescription, is_true
from fmilin.fmi.read.discrete_states import with_discrete_states
from fmilin.fmi.read.instance import Instance
from fmilin.fmi.read.layout import ScalarLayout, ScalarVariable
from fmilin.fmi.read.library import choose_machine, class_of_instances, compile_sources, explain_library
from fmilin.fmi.read.settings import Assignment, Tuning, Value, resolve_settings, structural_sizes
from fmilin.model.interface import Model
from fmilin.model.locks import find_lock
from fmilin.signals import FloatArray, Signals

_LIVES_ALONE = (
    "The FMU does not support a second instance in one process, so each instance runs in a process of its own."
)
MAX_LOST_POINTS = 1000  # points at which the instance was lost, at most; the oldest are forgotten


def _describe(fmu: FmuFile, interface: str) -> ModelDescription:
    """Return the description through an interface, with discrete-time signals and states where they are requested."""
    description = fmu.description.through(interface)
    if fmu.options.sampled:
        description = replace(description, with_samples=True)
    if fmu.options.discrete_states is not None:
        description = with_discrete_states(description, fmu.options.discrete_states)
    return description


def _request(buffers: Buffers, point: FloatArray, extent: str) -> tuple[str, tuple[int, ...], bytes]:
    numbers = point[: 1 + buffers.n + buffers.k].tobytes()
    return extent, tuple(v.reference for v in buffers.further), numbers


def _reject_reopening(name: str, *_: object) -> Model:
    raise ModelError(f"'{name}' was not opened from a path and cannot be opened again from a pickled copy.")


class Session:
    """An FMU that was unpacked, loaded and initialized; of ``settings``, states and inputs are left to the point."""

    interface = "ModelExchange"
    most_points = 256  # that are evaluated in one message
    only_tunable = False  # whether only tunable parameters may be inputs: whoever starts anew would be somewhere else

    def __init__(
        self, fmu: FmuFile, parameters: Mapping[str, Value], time: float | None, settings: Mapping[str, float]
    ) -> None:
        description = _describe(fmu, self.interface)
        kind = class_of_instances(description)
        values: dict[str, Value] = {**parameters, **settings}
        self.turns = fmu.turns
        self.layout = ScalarLayout(description, structural_sizes(description, values))
        values, settings = self.layout.without_negatives(values), self.layout.without_negatives(settings)
        parameters = self.layout.without_negatives(parameters)
        self.settings = resolve_settings(
            self.layout, parameters if kind.tells_states else self._beginning(values, settings)
        )
        self.start_time = description.start_time if time is None else time
        # opens the same FMU anew in the same way, for a view that is pickled
        self.reopening: Callable[..., Model] = partial(_reject_reopening, fmu.name)
        self.notes = [*description.notes, *self.layout.notes]
        self.directional = description.directional_derivatives
        self.indicators = description.event_indicators > 0
        self.generation = 0
        self.arena = Arena()
        self.lock = find_lock(self)
        self.left_start = False  # whether the instance has passed an event or a step since it began
        self.passed_event = False  # whether it has passed an event, and may be in another mode since
        self.tuning = Tuning()
        self._refusals: dict[tuple[str, tuple[int, ...], bytes], str] = {}  # by the point and what was asked for
        self._tokens = itertools.count()
        self._leases: set[int] = set()
        self._owner = 0
        machine, compiles = choose_machine(fmu, description, kind.version)
        self._instance: Instance | None = None
        sources = ("sources",) if compiles else ()
        self._folder = fmu.unpack(("resources", *sources, *(f"binaries/{b}" for b in machine.folders(kind.version))))
        (self._folder / "resources").mkdir(exist_ok=True)  # the path is handed over even when there are none
        try:
            if compiles:
                self.notes.append(compile_sources(self._folder, description, machine.folders(kind.version)[0]))
            if machine != this_machine():
                self.notes.append(describe_wine(machine) if machine.system == "windows" else describe_32_bits())
            sink = LogSink(fmu.name, description.float_names)
            instance = kind(self._folder, description, len(self.layout.states), sink, self.arena, machine)
            self._instance = instance
            self._declared_alone = instance.lives_alone
            if description.interface == "CoSimulation":
                instance.tolerance = fmu.options.solver_tolerance
            if library := explain_library(fmu, description, machine, kind.version):
                self.note(f"The library '{library}' was used, although the description has another name.")
            instance.begin(self.start_time, self.settings)
            self._complete(instance, values, settings)
            self._take_stock(instance)
        except BaseException:
            self.close()
            raise

    def visit(self, buffers: Buffers, extent: str = "everything", prepared: Visit | None = None) -> None:
        """Evaluate at the point of the buffers, and store the states that the model really holds there."""
        states, at_start = buffers.x.tobytes(), not (self.left_start or self.tuning.changed or prepared)
        if at_start and self._refusals:
            self._repeat_refusal(_request(buffers, buffers.values, extent))
        instance = self.instance
        try:
            instance.visit(buffers, extent, prepared)
        except ModelError as error:
            if at_start:
                point = buffers.values.copy()
                point[1 : 1 + buffers.n] = np.frombuffer(states)
                self._remember_refusal(_request(buffers, point, extent), instance, error)
            raise
        if buffers.x.tobytes() != states:
            self._note_moved_state(np.frombuffer(states), buffers.x)

    def visit_points(
        self, buffers: Buffers, count: int, extent: str = "everything", prepared: Program | None = None
    ) -> None:
        """Evaluate at the points of the first rows of the buffers, all in one message; maybe with further calls."""
        points = buffers.rows[:count, : 1 + buffers.n + buffers.k].copy()
        at_start = not (self.left_start or self.tuning.changed or prepared)
        if at_start and self._refusals:
            for point in points:
                self._repeat_refusal(_request(buffers, point, extent))
        instance = self.instance
        failure = instance.visit_points(buffers, count, extent, prepared)
        if failure is not None:
            error = instance.component.error_at_point(failure)
            if at_start and isinstance(error, ModelError) and failure.repetition < count:
                request = _request(buffers, points[failure.repetition], extent)
                self._remember_refusal(request, instance, error)
            raise error
        requested_points, actual_points = points[:, 1 : 1 + buffers.n], buffers.rows[:count, 1 : 1 + buffers.n]
        if requested_points.tobytes() != actual_points.tobytes():
            for requested, actual in zip(requested_points, actual_points, strict=True):
                self._note_moved_state(requested, actual)

    def _repeat_refusal(self, request: tuple[str, tuple[int, ...], bytes]) -> None:
        """Raise the error of an earlier evaluation to a point at which the instance was lost."""
        # An instance is not asked again after an error (FMI 2.0.4 section 2.1.3), and a fresh one would repeat it.
        text = self._refusals.get(request)
        if text:
            refusal = ModelError(text)
            refusal.costs_start = True
            raise refusal

    def _remember_refusal(
        self, request: tuple[str, tuple[int, ...], bytes], instance: Instance, error: ModelError
    ) -> None:
        """Remember the point, where the instance was lost there."""
        if instance.component.is_usable:
            return
        if len(self._refusals) >= MAX_LOST_POINTS:
            del self._refusals[next(iter(self._refusals))]
        self._refusals[request] = str(error)
        error.costs_start = True

    def event_indicators(self, buffers: Buffers) -> FloatArray:
        """Return the event indicators at the point of the buffers; empty from then on when the FMU fails."""
        instance = self.instance
        if not instance.is_current(buffers):  # states that are set again would have the model solve its equations again
            instance.visit(buffers, "")
        try:
            return instance.event_indicators()
        except ModelError as error:
            self.indicators = False
            self.note(f"Event indicators were declared but failed, so events are not detected. {error}")
            return np.empty(0)

    def restart(self) -> None:
        """Return to the mode of the start, if the instance has left it."""
        if self.left_start:
            self._begin_again(self.instance)

    def pass_event(self, buffers: Buffers) -> bool:
        """Carry out an event, after which the buffers hold the states; return whether the FMU asks to end."""
        instance = self.instance
        instance.visit(buffers, "")
        self.left_start = self.passed_event = True
        terminates = instance.pass_event(buffers.sampled_inputs)
        instance.read_states(buffers)
        self.generation += 1
        return terminates

    def complete_step(self, buffers: Buffers) -> tuple[bool, bool]:
        """Say that a step ends, which may change the states; return whether an event, and to end, is asked for."""
        if is_true(self.layout.description.capabilities, "completedIntegratorStepNotNeeded"):
            return False, False
        instance = self.instance
        instance.visit(buffers, "")
        self.left_start = True
        answer = instance.complete_step()
        instance.read_states(buffers)
        return answer

    @property
    def next_event_time(self) -> float | None:
        """When the next time event is due, as the FMU said at its last event."""
        return None if self._instance is None else self._instance.next_event

    def tune(self, parameters: Sequence[ScalarVariable], values: FloatArray) -> None:
        """Give parameters these values, others moved before their first: at an event (FMI 2.0.4, 3.2.2), or anew."""
        changed = self.tuning.change(self.instance.values, self.layout, parameters, values)
        if not changed:
            return
        if self.tuning.live and all(s.variable.variability == "tunable" for s in changed):
            try:
                self.instance.tune(changed)
            except ModelError:
                self.tuning.live = False
            else:
                self.generation += 1
                return
        if self.passed_event:
            raise UsageError(
                f"'{changed[0].variable.name}' of '{self.layout.description.source}' is read at the start only, and "
                "the model has passed an event since: its present mode would be lost. Use it as an input before that "
                "event."
            )
        if (instance := self._instance) is not None:
            self._begin_again(instance)

    @property
    def notes_of_now(self) -> tuple[str, ...]:
        """Notes on the present mode of the instance, which changes while the model is simulated."""
        due = self.next_event_time
        if due is None:
            return ()
        advice = "fl.Stepping(lifted=True)"
        if not self.layout.states:
            advice = "fl.load(..., discrete_states=['auto']), which makes a sampled model of its discrete-time numbers"
        return (
            f"The model schedules an event at t = {due:g} s: the linear model is that before the event, with sampled "
            f"parts held. For periodically sampled parts: {advice}.",
        )

    @property
    def remembers_mode(self) -> bool:
        """Whether the instance is still in the mode that it was led to: an error sends it back to its start."""
        return not self.left_start or (self._instance is not None and self._instance.component.is_usable)

    @property
    def instance(self) -> Instance:
        """The instance, ready to be asked: after an error, a fresh one at the same start."""
        instance = self._instance
        if instance is None:
            raise ModelError(f"'{self.layout.description.source}' was closed; load it again.")
        if not instance.component.is_usable:
            # After an error the standard allows no more than freeing the component (FMI 2.0.4 section 2.1.3).
            self._begin_again(instance)
        return instance

    def number(self, scalar: ScalarVariable) -> float:
        """Return the present value of a numeric variable, parameters included."""
        return float(self.instance.values(scalar.variable, self.layout.size(scalar.variable))[scalar.offset])

    def note(self, text: str) -> None:
        """Add a note once."""
        if text not in self.notes:
            self.notes.append(text)

    def lease(self) -> int:
        """Count one more view of the model; the first is the owner."""
        token = next(self._tokens)
        self._leases.add(token)
        return token

    def release(self, token: int, *, explicitly: bool = False) -> None:
        """Count one view less; the last one, or the owner's explicit word, closes everything."""
        self._leases.discard(token)
        if not self._leases or (explicitly and token == self._owner):
            self.close()

    def close(self) -> None:
        """Terminate, free, unload, and remove the unpacked files. Idempotent."""
        instance, self._instance = self._instance, None
        try:
            if instance is not None:
                instance.unload()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _begin_again(self, instance: Instance) -> None:
        instance.begin_again(self.start_time, self.tuning.settings(self.settings))
        self.note_process_of_each()
        self.generation += 1
        self.left_start = self.passed_event = False

    def note_process_of_each(self) -> None:
        """Say it where the FMU turned out to need a process for each instance, and had not declared it."""
        if self._instance is not None and self._instance.lives_alone and not self._declared_alone:
            self.note(_LIVES_ALONE)

    def _beginning(self, values: Mapping[str, Value], settings: Mapping[str, float]) -> dict[str, Value]:
        """Return what is set before initialization: of ``settings`` neither states nor inputs."""
        stepped = self.layout.description.is_stepped

        def waits(name: str) -> bool:
            scalar = self.layout.find(name) if name in settings else None
            role = None if scalar is None else self.layout.role(scalar)
            if scalar is None or role is None or role.kind == "derivative":
                return False
            # A co-simulation FMU may not let its states be set later, so it begins with them.
            return not (stepped and role.kind == "state" and scalar.variable.is_settable)

        return {name: value for name, value in values.items() if not waits(name)}

    def _complete(self, instance: Instance, values: Mapping[str, Value], settings: Mapping[str, float]) -> None:
        """Lay everything out anew when the code knows more than the description: in FMI 1.0, which are the states."""
        description, before = instance.described(), instance.description.notes
        if description is not instance.description:
            instance.description = description
            self.notes = [note for note in self.notes if note not in before or note in description.notes]
            self.layout = ScalarLayout(description)
            began_with = self.settings
            self.settings = resolve_settings(self.layout, self._beginning(values, settings))
            if self.settings != began_with:
                instance.begin_again(self.start_time, self.settings)

    def _take_stock(self, instance: Instance) -> None:
        """Read back where the model starts."""
        buffers = Buffers(self.layout, self.arena)
        instance.read_states(buffers)
        for group in (*buffers.inputs, *buffers.sampled_inputs):
            instance.read(group)
        self.start_states, self.start_inputs = buffers.x.copy(), buffers.u.copy()
        starts, nominals = self.start_states.tolist(), self._nominals(instance)
        self.states = Signals(
            replace(self.layout.signal(s, start=value), nominal=nominal)
            for s, value, nominal in zip(self.layout.states, starts, nominals, strict=True)
        )
        for setting in self.settings:
            self._compare(self.instance, setting)

    def _nominals(self, instance: Instance) -> list[float | None]:
        """Return the description's nominal values, and the code's where the description has none."""
        declared = [s.variable.nominal for s in self.layout.states]
        if None not in declared:
            return declared
        try:
            nominals = instance.nominals(len(declared))
        except ModelError as error:
            self.note(f"The nominal values of the states are not known. {error}")
            return declared
        usable = np.isfinite(nominals) & (nominals > 0)
        if not usable.all():
            names = [s.name for s, good in zip(self.layout.states, usable, strict=True) if not good]
            self.note(f"{quote_first(names)}: a nominal value that is not positive was treated as missing.")
        # 1 is what code answers that knows nothing.
        nominals[~usable | (nominals == 1.0)] = np.nan
        return [d if d is not None or np.isnan(t) else t for d, t in zip(declared, nominals.tolist(), strict=True)]

    def _compare(self, instance: Instance, setting: Assignment) -> None:
        v = setting.variable
        if not v.is_float:
            return
        actual = instance.values(v, self.layout.size(v))
        for scalar, requested, got in zip(self.layout.scalars(v), setting.values, actual, strict=True):
            exact = np.float32(requested) == np.float32(got) if v.type == "Float32" else requested == got
            if not exact:
                self.note(f"'{scalar.name}' was set to {requested:g}, but after initialization the model has {got:g}.")

    def _note_moved_state(self, requested: FloatArray, actual: FloatArray) -> None:
        moved = np.flatnonzero(~((requested == actual) | (np.isnan(requested) & np.isnan(actual))))
        if moved.size:
            i = int(moved[0])
            name = self.layout.states[i].name
            if not any(note.startswith(f"The state '{name}' was set") for note in self.notes):
                self.note(
                    f"The state '{name}' was set to {requested[i]:.17g}, but the model has {actual[i]:.17g}: it "
                    "changes given states."
                )
