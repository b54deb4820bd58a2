"""The code that runs inside an FMU that wraps a Python model, imported by its script alone: pythonfmu calls it."""

import atexit
import ctypes
import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement

import numpy as np
from pythonfmu import Fmi2Causality, Fmi2Initial, Fmi2Slave, Fmi2Variability, Real
from scipy.integrate import solve_ivp

from fmilin.errors import NumericalError
from fmilin.loading.load import load
from fmilin.manifold.invariants import Invariants
from fmilin.manifold.operating_points import operating_point
from fmilin.manifold.projection import project
from fmilin.manifold.selection import kinematic_pairs
from fmilin.model.evaluator import PointEvaluator
from fmilin.model.interface import Evaluation, Model
from fmilin.signals import FloatArray, Signal, rate_unit
from fmilin.wrapping import WRAPPED, residual_name

Getter = Callable[[], float]
Setter = Callable[[float], None]
RELATIVE_TOLERANCE = 1e-9  # tolerance of the integration within a step


@cache
def _release_interpreter_at_exit(folder: Path) -> None:
    """Let pythonfmu's library in the unpacked FMU release its interpreter before the process ends.

    On Linux, pythonfmu 0.7 releases it twice when the process ends: by the destructor of the C++ object and by that of
    the library, which reads freed memory. Released before, both find nothing to do.
    """
    if not sys.platform.startswith("linux"):
        return
    for file in (folder / "binaries").glob("linux*/*.so"):
        release = getattr(ctypes.CDLL(str(file)), "finalizePythonInterpreter", None)
        if release is not None:
            atexit.register(release)


class WrappedModel(Fmi2Slave):  # type: ignore[misc]  # pythonfmu has no types
    """A model of fmilin as a co-simulation FMU, integrated on the manifold of its constraints.

    Its states can be set before the first step, and are projected when initialization ends. Inputs are held in a step.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.resources = arguments["resources"].removeprefix("file://")
        _release_interpreter_at_exit(Path(self.resources).parent)
        wrapped = json.loads((Path(self.resources) / WRAPPED).read_text(encoding="utf-8"))
        self.model: Model = load(wrapped["source"].replace("{resources}", self.resources))
        self.description = wrapped["description"]
        start = operating_point(self.model, project=True)
        self.time = start.time
        self.x, self.u = start.states.copy(), start.inputs.copy()
        self._pairs = kinematic_pairs(self.model, start)
        self._last: tuple[object, Evaluation] | None = None
        self._units: dict[str, str] = {}
        for i, signal in enumerate(self.model.inputs):
            self._register(signal, Fmi2Causality.input, self._entry("u", i), self._setter("u", i))
        for i, signal in enumerate(self.model.states):
            self._register(signal, Fmi2Causality.local, self._entry("x", i), self._setter("x", i))
        for i, signal in enumerate(self.model.states):
            rate = Signal(f"der({signal.name})", rate_unit(signal.unit))
            self._register(rate, Fmi2Causality.local, self._part("derivatives", i), None)
        for i in range(len(self.model.constraints)):
            self._register(Signal(residual_name(i)), Fmi2Causality.local, self._part("residuals", i), None)
        for i, signal in enumerate(self.model.outputs):
            copy = self.model.copies.get(i)
            name = signal.name if copy is None or copy.kind == "input" else f"out.{signal.name}"
            self._register(Signal(name, signal.unit), Fmi2Causality.output, self._part("outputs", i), None)

    def exit_initialization_mode(self) -> None:
        """Project the states that were set onto the manifold."""
        values = dict(zip(self.model.states.names, self.x.tolist(), strict=True))
        moved = {n: x for (n, x), old in zip(values.items(), self.model.start.states, strict=True) if x != old}
        self.x = operating_point(self.model, moved, project=True).states.copy()

    def do_step(self, current_time: float, step_size: float) -> bool:
        """Integrate over a step with the inputs held, and return to the manifold."""

        def rates(t: float, x: FloatArray) -> FloatArray:
            return self.model.evaluate(t, x, self.u).derivatives

        scales, span = self.model.states.scales(self.x), (current_time, current_time + step_size)
        moved = solve_ivp(
            rates, span, self.x, method="DOP853", rtol=RELATIVE_TOLERANCE, atol=RELATIVE_TOLERANCE * 1e-2 * scales
        )
        if not moved.success:
            raise NumericalError(f"The integration of the step from t = {current_time:g} s failed: {moved.message}")
        self.time = current_time + step_size
        self.x = moved.y[:, -1].copy()
        if len(self.model.constraints):
            invariants = Invariants(PointEvaluator(self.model), self.u, self._pairs, scales)
            self.x = project(invariants, self.time, self.x)
        return True

    def _get_fmu_state(self) -> dict[str, Any]:
        return {"time": self.time, "x": self.x.tolist(), "u": self.u.tolist()}

    def _set_fmu_state(self, state: dict[str, Any]) -> None:
        self.time, self.x, self.u = state["time"], np.array(state["x"]), np.array(state["u"])

    def _register(self, signal: Signal, causality: Any, getter: Getter, setter: Setter | None) -> None:
        if signal.name in self._units:
            return
        self._units[signal.name] = signal.unit
        settable = setter is not None and causality == Fmi2Causality.local
        fields = {"initial": Fmi2Initial.exact if settable else None, "description": signal.description or None}
        fields |= {
            "causality": causality,
            "variability": Fmi2Variability.continuous,
            "getter": getter,
            "setter": setter,
        }
        self.register_variable(Real(signal.name, **fields), nested=False)

    def _entry(self, vector: str, i: int) -> Getter:
        return lambda: float(getattr(self, vector)[i])

    def _setter(self, vector: str, i: int) -> Setter:
        def put(value: float) -> None:
            changed: FloatArray = getattr(self, vector).copy()
            changed[i] = value
            setattr(self, vector, changed)

        return put

    def _part(self, part: str, i: int) -> Getter:
        return lambda: float(getattr(self._visit(), part)[i])

    def _visit(self) -> Evaluation:
        key = (self.time, self.x.tobytes(), self.u.tobytes())
        if self._last is None or self._last[0] != key:
            self._last = (key, self.model.evaluate(self.time, self.x, self.u))
        return self._last[1]

    def to_xml(self, model_options: dict[str, str] | None = None) -> Element:
        """Return the model description: pythonfmu's, with units and with states and their derivatives declared."""
        root: Element = super().to_xml(model_options or {})
        variables = root.find("ModelVariables")
        assert variables is not None  # noqa: S101 - pythonfmu has just written it
        order = {variable.get("name"): i + 1 for i, variable in enumerate(variables)}
        units = Element("UnitDefinitions")
        for name in dict.fromkeys(unit for unit in self._units.values() if unit):
            SubElement(units, "Unit", {"name": name})
        if len(units):
            root.insert(list(root).index(root.find("CoSimulation")) + 1, units)  # type: ignore[arg-type]
        rates = {f"der({name})": name for name in self.model.states.names}
        for variable in variables:
            name, [real] = str(variable.get("name")), list(variable)
            if self._units.get(name):
                real.set("unit", self._units[name])
            if name in rates:
                real.set("derivative", str(order[rates[name]]))
        derivatives = Element("Derivatives")
        for rate in rates:
            SubElement(derivatives, "Unknown", {"index": str(order[rate])})
        structure = root.find("ModelStructure")
        assert structure is not None  # noqa: S101 - as above
        if len(derivatives):
            structure.append(derivatives)
        unknown = Element("InitialUnknowns")
        outputs = [order[v.get("name")] for v in variables if v.get("causality") == "output"]
        for index in sorted([*outputs, *(order[rate] for rate in rates)]):
            SubElement(unknown, "Unknown", {"index": str(index)})
        if len(unknown):
            structure.append(unknown)
        return root
