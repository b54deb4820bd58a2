"""The model of a sweep with the parameters of its points: some stay open, so that neighbours need not open it again."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Literal

from fmilin.errors import FmilinError, UnknownNameError, join_first
from fmilin.families.sweep_plan import SweepPlan
from fmilin.loading.load import load_request
from fmilin.model.interface import Model
from fmilin.model.stepping import Stepped

OUTPUT_STEP_RATIO = 1e-3  # of a state or input, relative to its size, to find out whether an output follows it
OUTPUT_EFFECT_TOLERANCE = 1e-9  # smaller changes of the output are rounding
MAX_LISTED_NAMES = 6

MAX_OPEN_MODELS = 4
"""With other parameters than those of the source."""


class OpenModels:
    """The model of a plan, with the outputs that are requested and parameters among the inputs that are."""

    def __init__(self, plan: SweepPlan) -> None:
        self._plan = plan
        self._models: OrderedDict[tuple[tuple[str, float], ...], Model] = OrderedDict()
        self.base = self._add_signals(self._open_base())
        """With the parameters of the source."""

    def close(self) -> None:
        """Close the models that were opened here."""
        for model in self._models.values():
            model.close()
        if not isinstance(self._plan.source, Model):
            self.base.close()

    def find_kind(self, name: str) -> Literal["state", "input", "parameter"]:
        """Return what a name denotes; a parameter if it is nothing else."""
        if self.base.states.has(name):
            return "state"
        return "input" if self.base.inputs.has(name) else "parameter"

    def find(self, values: Mapping[str, float]) -> Model:
        """Return the model with the parameters among ``values``; of a stepped one also with its start states."""
        kinds = ("parameter", "state") if isinstance(self.base, Stepped) else ("parameter",)
        changed = {name: value for name, value in values.items() if self.find_kind(name) in kinds}
        if not changed:
            return self.base
        key = tuple(changed.items())
        if key not in self._models:
            self._models[key] = self._add_signals(self._open(changed))
            while len(self._models) > MAX_OPEN_MODELS:
                self._models.popitem(last=False)[1].close()
        self._models.move_to_end(key)
        return self._models[key]

    def require_parameter(self, name: str, value: float) -> None:
        """Raise UnknownNameError if a name denotes nothing; another error if the source cannot have parameters."""
        base = self.base
        try:
            self.find({name: value})
        except UnknownNameError as error:
            if base.outputs.has(name):
                raise UnknownNameError(_explain_output(base, name), name=name) from None
            names = [*base.states.positions, *base.inputs.positions, *base.parameters, *error.suggestions]
            raise UnknownNameError.among(name, names, "a state, an input or a parameter of the model") from None
        except FmilinError as error:
            if not base.parameters and isinstance(self._plan.source, Model):
                raise
            if base.parameters and name in base.parameters:
                return  # this value is not possible; others may be
            raise error from None

    def _open_base(self) -> Model:
        plan = self._plan
        if isinstance(plan.source, Model):
            parameters = {n: v for n, v in plan.point.settings.items() if n in plan.source.parameters}
            return plan.source.with_parameters(parameters)
        return load_request(plan.source, plan.load, plan.point)

    def _open(self, parameters: Mapping[str, float]) -> Model:
        """Return the model with these parameters: changed where the source can, loaded anew where it cannot."""
        plan = self._plan
        if self.base.parameters or isinstance(plan.source, Model):
            return self.base.with_parameters(parameters)
        return load_request(plan.source, plan.load, plan.request_point(parameters))

    def _add_signals(self, model: Model) -> Model:
        how = self._plan.how
        parameters = [name for name in how.inputs or () if model.moves_parameters and not model.inputs.has(name)]
        inputs = [*model.inputs.names, *parameters] if parameters else None
        if inputs is None and how.outputs is None:
            return model
        return model.with_interface(inputs, how.outputs)


def _explain_output(model: Model, name: str) -> str:
    """Return why an output is not varied, and the states, inputs and parameters that change it at the start."""
    text = f"'{name}' is an output of the model, and follows from its states, inputs and parameters."
    start, k = model.start, model.outputs.index_of(name)
    moving = []
    for signals, kind in ((model.states, "states"), (model.inputs, "inputs")):
        for i, signal in enumerate(signals.names):
            points = {"states": start.states.copy(), "inputs": start.inputs.copy()}
            values = []
            for displacement in (0.0, OUTPUT_STEP_RATIO):
                points[kind][i] += displacement * max(abs(points[kind][i]), 1.0)
                values.append(model.evaluate(start.time, points["states"], points["inputs"]).outputs[k])
            if abs(values[1] - values[0]) > OUTPUT_EFFECT_TOLERANCE * max(abs(values[0]), 1.0):
                moving.append(signal)
    return f"{text} Vary what changes it: {join_first(moving, MAX_LISTED_NAMES)}." if moving else text
