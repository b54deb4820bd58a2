"""A filter by compiled code: the code that is written as a C file, called in the process, as soon as that pays.

Where compiled code has no answer (a singular matrix, no point of the manifold, an overflow), the slower filter computes
the sample again from the same estimate, so that errors are its errors.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from fmilin.codegen.compiler import (
    PRINT_SECONDS_PER_INSTRUCTION,
    CompilationBudget,
    Compiler,
    is_built,
    library_seconds,
    load_library,
)
from fmilin.design.estimation.charts import CoordinateSplit
from fmilin.design.estimation.corrections import Belief, Filter, Measured, MeasurementUpdate
from fmilin.design.estimation.filter_code import UNIT, CallableCode, FilterPlan, print_calls
from fmilin.design.estimation.filter_motion import ManifoldStepper
from fmilin.errors import ModelError, UsageError
from fmilin.models.batch_graph import batch_graph
from fmilin.signals import FloatArray

SECONDS_OF_SAMPLE = 4e-4  # of the slower filter, at least: a sample of an EKF of two coordinates
SECONDS_OF_CHECK = 0.03  # to print the code of a small filter, and to search for it in the cache of libraries
RUNTIME_INSTRUCTION_COUNT = 1500  # what the hand-written part of the code takes a compiler, in instructions
MAX_STACK = 512 * 1024  # bytes: half of what the smallest main thread has (Windows)
MAX_LOADED_LIBRARIES = 64  # libraries that are remembered


class _FilterFunctions(NamedTuple):
    """Functions of a loaded library."""

    predict: Any  # these two keep the interpreter's lock: they take microseconds
    correct: Any
    record: Any


@lru_cache(MAX_LOADED_LIBRARIES)
def _load(source: str) -> _FilterFunctions:
    """Compile and load the code of a filter; once for each text."""
    quick = load_library({UNIT: source}, UNIT, Compiler(), ctypes.PyDLL)
    slow = ctypes.CDLL(quick._name, handle=quick._handle)
    pointer = ctypes.c_void_p
    quick.predict_sample.argtypes, quick.predict_sample.restype = [pointer] * 2, ctypes.c_int
    quick.correct_sample.argtypes, quick.correct_sample.restype = [pointer] * 2, ctypes.c_int
    slow.filter_record.argtypes = [pointer, pointer, ctypes.c_long, pointer, pointer]
    slow.filter_record.restype = ctypes.c_long
    return _FilterFunctions(quick.predict_sample, quick.correct_sample, slow.filter_record)


class FilteredRows(NamedTuple):
    """The estimates of a filter over a record: K samples, N states, m outputs."""

    times: FloatArray  # (K,)
    states: FloatArray  # (K, N)
    deviations: FloatArray  # (K, N)
    innovations: FloatArray  # (K, m), NaN where nothing was measured
    whitened: FloatArray  # (K, m)


class _CallMemory(NamedTuple):
    """Memory of one call."""

    memory: FloatArray
    predict: partial[int]
    correct: partial[int]


class FilterCode:
    """Compiled code of a filter; thread-safe, as an estimate is handed over with every call."""

    def __init__(self, plan: FilterPlan, code: CallableCode) -> None:
        self._library, self._tables = _load(code.source), np.ascontiguousarray(code.tables)
        N, P = len(plan.motion.scales), len(plan.motion.chart.coordinates)
        NY, NU = len(plan.R), len(plan.model.inputs)
        ends = np.cumsum([3, N, P * P, 2 * N - P, NY, NY, NY, NU, NY]).tolist()
        names = "x", "S", "chart", "innovations", "whitened", "turns", "u", "y"
        self._at = {name: slice(a, b) for name, a, b in zip(names, ends[:-1], ends[1:], strict=True)}
        self._size, self._shape, self._outputs = ends[-1], (P, P), NY
        self._free: list[_CallMemory] = []

    def predict(self, motion: ManifoldStepper, at: Belief, u: FloatArray, sample_time: float) -> Belief | None:
        """Return the estimate a sample later; None without an answer."""
        area = self._take(motion, at, u)
        failed = area.predict()
        belief = None if failed else self._read(motion, area.memory, at.time + sample_time)
        self._free.append(area)
        return belief

    def correct(
        self, motion: ManifoldStepper, at: Belief, u: FloatArray, measured: Measured
    ) -> MeasurementUpdate | None:
        """Return the estimate with a measurement; None without an answer."""
        area = self._take(motion, at, u)
        m, rows = area.memory, measured.rows
        y, turns = m[self._at["y"]], m[self._at["turns"]]
        y[:] = np.nan
        y[rows] = measured.values
        turns[:] = 0.0
        turns[rows] = measured.turns
        update = None
        if not area.correct():
            innovations, whitened = (m[self._at[name]][rows] for name in ("innovations", "whitened"))
            belief = self._read(motion, m, at.time)
            update = MeasurementUpdate(belief, innovations, whitened, float(m[2]))
        self._free.append(area)
        return update

    def filter_record(
        self, motion: ManifoldStepper, at: Belief, rows: FloatArray, turns: FloatArray
    ) -> tuple[Belief, FilteredRows, FloatArray]:
        """Return the estimate at the end of a record of rows (u, y), and its samples, as far as there are answers.

        The third result are the logarithms of the determinants of the innovations' covariances, shape (K,).
        """
        area = self._take(motion, at, rows[0, : self._at["u"].stop - self._at["u"].start])
        m, NY = area.memory, self._outputs
        m[self._at["turns"]] = turns
        rows = np.ascontiguousarray(rows)
        N = self._at["x"].stop - self._at["x"].start
        results = np.empty((len(rows), 2 * N + 2 * NY + 2))
        addresses = (array.ctypes.data for array in (self._tables, m))
        count = self._library.record(*addresses, len(rows), rows.ctypes.data, results.ctypes.data)
        belief = self._read(motion, m, float(m[0]))
        self._free.append(area)
        ends = np.cumsum([1, N, N, NY, NY]).tolist()
        times, states, deviations, innovations, whitened, logarithms = np.split(results[:count], ends, axis=1)
        return belief, FilteredRows(times[:, 0], states, deviations, innovations, whitened), logarithms[:, 0]

    def _take(self, motion: ManifoldStepper, at: Belief, u: FloatArray) -> _CallMemory:
        """Return memory that no other thread uses, with an estimate in it; it is given back to ``_free``."""
        try:
            area = self._free.pop()
        except IndexError:  # all is in use
            memory = np.zeros(self._size)
            addresses = self._tables.ctypes.data, memory.ctypes.data
            area = _CallMemory(memory, *(partial(f, *addresses) for f in self._library[:2]))
        m, where, chart = area.memory, self._at, motion.chart
        m[0] = at.time
        m[where["x"]] = at.x
        m[where["S"]] = at.S.ravel()
        m[where["chart"]] = chart.numbers
        m[where["u"]] = u
        return area

    def _read(self, motion: ManifoldStepper, m: FloatArray, time: float) -> Belief:
        """Return the estimate in the memory; take over its coordinates."""
        if m[1]:
            chart = [int(number) for number in m[self._at["chart"]]]
            P = self._shape[0]
            N = len(motion.scales)
            motion.chart = CoordinateSplit(chart[:P], chart[P:N], chart[N:])
            motion.switches += int(m[1])
        return Belief(time, m[self._at["x"]].copy(), m[self._at["S"]].reshape(self._shape).copy())


class CompiledFilter(Filter):
    """A filter that goes over to compiled code when that pays; ``slower`` computes until then."""

    def __init__(self, slower: Filter, plan: FilterPlan) -> None:
        self.slower, self._plan = slower, plan
        self._budget = CompilationBudget(SECONDS_OF_SAMPLE, SECONDS_OF_CHECK)
        self._prices = self._further_prices()
        self._printed: CallableCode | None = None
        self._code: FilterCode | None = None
        self._is_settled = False  # whether compiling was tried

    def restart(self) -> None:
        """Forget samples, where any are remembered."""
        self.slower.restart()

    def copy_state(self) -> Filter:
        """Return the slower filter as it is now: who repeats a sample does so by the second way."""
        return self.slower.copy_state()

    def fork(self) -> Filter:
        """Return itself: an estimate is handed over with every sample, and none is remembered."""
        return self

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code computes by now."""
        return self._code is not None

    def compile(self) -> bool:
        """Compile now if that has not been tried; return whether compiled code computes."""
        if not self._is_settled:
            self._is_settled = True
            try:
                self._code = self._compile()
            except (ModelError, OSError) as error:  # no compiler, or a folder from which nothing may be loaded
                logging.getLogger(__name__).info("Compiled code would be quicker. %s", error)
            except UsageError as error:  # equations that have no C code
                logging.getLogger(__name__).info("This filter runs without compiled code. %s", error)
        return self.is_compiled

    def code(self, samples: int, motion: ManifoldStepper) -> FilterCode | None:
        """Count samples; return the compiled code where there is some for such a motion by now."""
        if not self._is_settled and self._pays(samples):
            self.compile()
        return self._code if motion.has_same_rules(self._plan.motion) else None

    def predict(self, motion: ManifoldStepper, at: Belief, u: FloatArray, sample_time: float) -> Belief:
        """Return the estimate a sample later."""
        code = self.code(1, motion)
        belief = None
        if code is not None and sample_time == self._plan.sample_time:
            belief = code.predict(motion, at, u, sample_time)
        return self.slower.predict(motion, at, u, sample_time) if belief is None else belief

    def correct(self, motion: ManifoldStepper, at: Belief, u: FloatArray, measured: Measured) -> MeasurementUpdate:
        """Return the estimate with the measurement."""
        code = self.code(0, motion)
        update = None if code is None else code.correct(motion, at, u, measured)
        return self.slower.correct(motion, at, u, measured) if update is None else update

    def _pays(self, samples: int) -> bool:
        is_spent = self._budget.count_toward_compilation(samples)
        while is_spent and (price := next(self._prices, None)) is not None:
            self._budget.add(price)
            is_spent = self._budget.count_toward_compilation(0)
        return is_spent

    def _further_prices(self) -> Iterator[float]:
        """Yield the seconds of what is to be done for compiled code, as far as is known."""
        graph = batch_graph(self._plan.model, ())
        if graph is None:
            return
        yield PRINT_SECONDS_PER_INSTRUCTION * graph.stacks.instructions
        try:
            code = self._print()
            built = is_built({UNIT: code.source}, UNIT, Compiler())
        except (ModelError, UsageError):  # to be found out, and said, when it is compiled
            return
        yield library_seconds(code.instructions + RUNTIME_INSTRUCTION_COUNT, is_built=built)

    def _print(self) -> CallableCode:
        if self._printed is None:
            self._printed = print_calls(self._plan)
        return self._printed

    def _compile(self) -> FilterCode:
        code = self._print()
        if code.stack > MAX_STACK:
            raise ModelError(f"A call would take {code.stack} bytes of the call stack, and {MAX_STACK} are allowed.")
        return FilterCode(self._plan, code)


def compile_later(slower: Filter, plan: FilterPlan) -> Filter:
    """Return the filter that goes over to compiled code; itself where the model has no graph."""
    return slower if batch_graph(plan.model, ()) is None else CompiledFilter(slower, plan)
