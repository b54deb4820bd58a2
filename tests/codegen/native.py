"""Generated C code, compiled and called without any FMI around it."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import sympy

from fmilin.codegen.c_source_export import GeneratedModel, generate
from fmilin.codegen.compiler import Compiler, load_library
from fmilin.model.equation_forms import SymbolicSystem
from fmilin.signals import FloatArray, Signal, Signals

HARNESS = r"""
#include "model.c"
#if HAS_DERIVATIVES
#include "adjoint.c"
#endif
#include <stdlib.h>
#ifdef _WIN32
#define OUT __declspec(dllexport)
#else
#define OUT __attribute__((visibility("default")))
#endif

OUT Model *model_new(void) { Model *m = calloc(1, sizeof *m); model_start(m); return m; }
OUT void model_free(Model *m) { free(m); }
OUT const char *culprit(const Model *m) { return UNKNOWN_NAMES[m->culprit]; }
OUT void starts(const Model *m, double *x, double *u, double *p)
{
    memcpy(x, m->x, NX * sizeof(double)), memcpy(u, m->u, NU * sizeof(double)), memcpy(p, m->p, NP * sizeof(double));
}
OUT int at(Model *m, double t, const double *x, const double *u, const double *p, double *z)
{
    m->time = t;
    memcpy(m->x, x, NX * sizeof(double)), memcpy(m->u, u, NU * sizeof(double)), memcpy(m->p, p, NP * sizeof(double));
    m->computed = NOTHING_COMPUTED;
    int outcome = model_evaluate(m);
    memcpy(z, m->z, NZ * sizeof(double));
    return outcome;
}
#if HAS_DERIVATIVES
OUT int product(Model *m, const double *ds, double *dz)
{
    memcpy(m->ds, ds, sizeof m->ds);
    int outcome = model_product(m);
    memcpy(dz, m->dz, NZ * sizeof(double));
    return outcome;
}
OUT int adjoint(Model *m, const double *dz, double *ds)
{
    memcpy(m->dz, dz, NZ * sizeof(double));
    int outcome = model_adjoint_product(m);
    memcpy(ds, m->ds, sizeof m->ds);
    return outcome;
}
#endif
"""

Vector = Sequence[float] | FloatArray

DOUBLES = ctypes.POINTER(ctypes.c_double)


class Native:
    """One instance of a generated model."""

    def __init__(
        self,
        system: SymbolicSystem,
        folder: Path,
        *,
        watched: Sequence[Any] = (),
        derivatives: bool = True,
        flags: tuple[str, ...] = (),
    ) -> None:
        graph = replace(system, extra_names={f"watched {i}": e for i, e in enumerate(watched)}).in_graph()
        self.code: GeneratedModel = generate(graph, list(graph.further.values()), derivatives=derivatives)
        self.system = system
        sources = {**self.code.sources, "harness.c": HARNESS}
        self._library = load_library(sources, "harness.c", Compiler(flags=flags, use_cache=False), ctypes.CDLL)
        self._library.model_new.restype = ctypes.c_void_p
        self._library.culprit.restype = ctypes.c_char_p
        self._model = ctypes.c_void_p(self._library.model_new())
        self.nz = len(system.derivatives) + len(system.outputs) + len(watched)
        self.ns = len(system.states) + len(system.inputs) + 1 + len(system.parameters)
        self.outcome = 0

    def at(self, t: float, x: Vector, u: Vector = (), p: Vector = ()) -> FloatArray:
        """Return z = (f, c) at a point; ``outcome`` says how the linear system came out."""
        z = np.zeros(max(self.nz, 1))
        values = [np.array([*v, 0.0], dtype=np.float64) for v in (x, u, p)]
        self.outcome = self._library.at(
            self._model, ctypes.c_double(t), *(v.ctypes.data_as(DOUBLES) for v in values), z.ctypes.data_as(DOUBLES)
        )
        return z[: self.nz]

    def product(self, ds: Vector) -> FloatArray:
        """Return dz along ds = (dx, du, dt, dp) at the last point."""
        return self._call("product", np.array(ds, dtype=np.float64), self.nz)

    def adjoint(self, dz: Vector) -> FloatArray:
        """Return ds along dz at the last point."""
        return self._call("adjoint", np.array([*dz, 0.0], dtype=np.float64), self.ns)

    def jacobian(self) -> FloatArray:
        """Return dz/ds, column by column."""
        return np.column_stack([self.product(column) for column in np.eye(self.ns)])

    def culprit(self) -> str:
        """Return the unknown that a singular system left undetermined."""
        return str(self._library.culprit(self._model).decode())

    def _call(self, name: str, given: FloatArray, size: int) -> FloatArray:
        result = np.zeros(max(size, 1))
        self.outcome = getattr(self._library, name)(
            self._model, given.ctypes.data_as(DOUBLES), result.ctypes.data_as(DOUBLES)
        )
        return result[:size]

    def __del__(self) -> None:
        self._library.model_free(self._model)


def system_of(
    derivatives: Mapping[Any, Any],
    outputs: Mapping[str, Any] | None = None,
    *,
    inputs: Sequence[Any] = (),
    parameters: Mapping[Any, float] | None = None,
    solve: tuple[Sequence[Any], Any, Sequence[Any]] = ((), (), ()),
    time: Any = None,
    starts: Mapping[Any, float] | None = None,
) -> SymbolicSystem:
    """Return a system from ``{state: rate}``, ``{name: output}`` and ``(w, W, r)``."""
    outputs, parameters, starts = outputs or {}, parameters or {}, starts or {}
    unknowns, matrix, right = solve

    def signals(symbols: Sequence[Any]) -> Signals:
        return Signals(Signal(str(s), start=starts.get(s, 0.0)) for s in symbols)

    return SymbolicSystem(
        name="sample",
        time=time if time is not None else sympy.Symbol("time"),
        states=tuple(derivatives),
        inputs=tuple(inputs),
        parameters=dict(parameters),
        derivatives=tuple(map(sympy.sympify, derivatives.values())),
        outputs=tuple(map(sympy.sympify, outputs.values())),
        state_signals=signals(list(derivatives)),
        input_signals=signals(inputs),
        output_signals=Signals(list(outputs)),
        parameter_signals=signals(list(parameters)),
        unknowns=tuple(unknowns),
        matrix={(i, j): e for i, row in enumerate(sympy.Matrix(matrix).tolist()) for j, e in enumerate(row) if e != 0},
        right_hand_side=tuple(map(sympy.sympify, right)),
    )
