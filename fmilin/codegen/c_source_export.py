"""A system as C99 code: as an FMU has it, and compiled to answer at one point in one call.

The linear system and the products are written by hand in ``runtime/``; this module prints the equations.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from fmilin.codegen.compiler import Compiler, is_built, library_seconds, load_library
from fmilin.codegen.elimination_order import Order, band_order
from fmilin.codegen.implicit import (
    CONTRACTION_RATIO,
    ITERATIONS,
    MIN_STEP_FRACTION,
    NEWTON_STEP_TOLERANCE,
    STALLED_STEP_TOLERANCE,
    ImplicitSystem,
    jacobian,
)
from fmilin.codegen.statements import Statements, c_string, wrap_items
from fmilin.errors import ModelError
from fmilin.signals import FloatArray

SX = Any  # casadi.SX: casadi ships no types
Sparsity = Any  # casadi.Sparsity
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class GeneratedModel:
    """The code of a system and its structure."""

    sources: Mapping[str, str]  # file name to text. ``model.c`` includes the others and leaves only static functions
    # for each row of z, derivatives of the states first, the entries of (x, u, t, p) on which it depends, directly or
    # through the unknowns: by sparsity, not by value
    depends: tuple[tuple[int, ...], ...]
    instructions: int  # of all functions together: what a compiler's time goes by


def generate(system: ImplicitSystem, watched: Sequence[SX] = (), *, derivatives: bool = True) -> GeneratedModel:
    """Return C99 code for a system, its outputs and what is watched, a third as large without derivatives."""
    equations = _CodeEquations(system, watched)
    statements, tables = equations.statements(derivatives=derivatives)
    sizes = equations.sizes() | _table_sizes(tables)
    sizes |= {"NV": statements.stored, "HAS_DERIVATIVES": int(derivatives)}
    title = f"/* The equations of {_comment(system.name)}. Generated; model.c says how they are used. */\n"
    runtime = files("fmilin.codegen") / "runtime"
    sources = {name: (runtime / name).read_text(encoding="utf-8") for name in ("model.h", "model.c", "adjoint.c")}
    sources["equations.h"] = title + "".join(f"#define {name} {value}\n" for name, value in sizes.items())
    entries = {name: [f"{{{i}, {j}}}" for i, j in table] or ["{0, 0}"] for name, table in tables.items()}
    printed = [_array("const Entry", name, items) for name, items in entries.items()]
    sources["equations.c"] = "\n".join([title, *_data(system, equations.order), *printed, *statements.functions()])
    return GeneratedModel(sources, equations.depends(), statements.instructions)


_Table = list[tuple[int, int]]


class _CodeEquations:
    """The computed quantities, and the places of the results."""

    def __init__(self, system: ImplicitSystem, watched: Sequence[SX]) -> None:
        self.system = system
        self.differentiated = ca.vertcat(system.derivatives, system.outputs)
        self.z = ca.vertcat(self.differentiated, *watched)
        self.settings = ca.vertcat(system.time, system.parameters)
        of_unknowns = ca.depends_on(ca.veccat(system.matrix, system.right_hand_side), system.unknowns)
        if system.guess is None and of_unknowns:
            raise ModelError(
                f"In {system.name} the matrix W or the right-hand side r contains an unknown w of the equations W w = "
                "r. Solve for them, or move them into W."
            )
        self.order = band_order(set(_entries(system.matrix)), system.unknowns.numel())

    def statements(self, *, derivatives: bool) -> tuple[Statements, dict[str, _Table]]:
        """Return the functions of the code, and the table of entries for each block of partial derivatives."""
        s, n = self.system, self.system.unknowns.numel()
        rows, columns = self.order.rows, self.order.columns
        results = [s.matrix, s.right_hand_side, self.z]
        W = [f"m->W[{rows[i] * n + columns[j]}]" for i, j in _entries(s.matrix)]
        r = [f"m->{'w' if s.guess is None else 'dw'}[{rows[i]}]" for i in range(n)]
        z = [f"m->z[{i}]" for i in range(self.z.numel())]
        stages = {"equations_system": {0: W, 1: r}, "equations_values": {2: z}}
        tables = self._jacobians(results) if derivatives else {}
        start = 0
        for k, (name, table) in enumerate(tables.items(), 3):
            stage = stages.setdefault("equations_settings" if name.endswith("SETTINGS") else "equations_motion", {})
            stage[k] = [f"m->jacobian[{start + i}]" for i in range(len(table))]
            start += len(table)
        arguments = [*s.arguments, s.unknowns]
        function = ca.Function("equations", arguments, [_nonzeros(e) for e in results], {"cse": True})
        vectors = {"x": s.states, "u": s.inputs, "p": s.parameters}
        inputs = [["m->time"], *([f"m->{a}[{i}]" for i in range(v.numel())] for a, v in vectors.items())]
        inputs.append([f"m->w[{column}]" for column in columns])
        return Statements(function, inputs, stages, arguments=("Model *m",), array="m->v"), tables

    def _jacobians(self, results: list[SX]) -> dict[str, _Table]:
        """Differentiate e = r - W w and z; append the blocks to ``results`` and return their tables."""
        s, rows, columns = self.system, self.order.rows, self.order.columns
        first = s.motion.numel()
        variables = ca.vertcat(s.motion, self.settings)
        further = variables if s.slopes is None else self.settings  # all at once, so that they share what they can
        e = ca.horzcat(*([] if s.slopes is None else [s.slopes]), s.residual_slopes(further))
        z, z_w = jacobian(self.differentiated, variables), jacobian(self.differentiated, s.unknowns)
        blocks = {
            "E_MOTION": e[:, :first],
            "Z_MOTION": z[:, :first],
            "Z_W": z_w,
            "E_SETTINGS": e[:, first:],
            "Z_SETTINGS": z[:, first:],
        }
        results += blocks.values()
        tables = {name: _entries(block) for name, block in blocks.items()}
        for name in ("E_MOTION", "E_SETTINGS"):
            tables[name] = [(rows[i], j) for i, j in tables[name]]
        for name in ("E_SETTINGS", "Z_SETTINGS"):
            tables[name] = [(i, first + j) for i, j in tables[name]]
        tables["Z_W"] = [(i, columns[j]) for i, j in tables["Z_W"]]
        return tables

    def sizes(self) -> dict[str, int]:
        s = self.system
        n = s.states.numel()
        return {
            "NX": n, "NU": s.inputs.numel(), "NP": s.parameters.numel(), "NW": s.unknowns.numel(),
            "NY": self.z.numel() - n, "ND": self.differentiated.numel() - n,
            "BAND_LOWER": self.order.lower, "BAND_UPPER": self.order.upper, "NEWTON": int(s.guess is not None),
        }  # fmt: skip

    def depends(self) -> tuple[tuple[int, ...], ...]:
        s = self.system
        variables, n = ca.vertcat(s.motion, self.settings), s.unknowns.numel()
        of_entries = _pattern(ca.vertcat(_nonzeros(s.matrix), s.right_hand_side), variables)
        of_rows = of_entries[s.matrix.nnz() :]
        np.logical_or.at(of_rows, s.matrix.sparsity().row(), of_entries[: s.matrix.nnz()])
        of_unknowns = _through(s.matrix.sparsity(), of_rows) if n else of_rows
        of_z = _pattern(self.z, variables) | (_pattern(self.z, s.unknowns) @ of_unknowns)
        return tuple(tuple(np.flatnonzero(row).tolist()) for row in of_z)


def _through(W: Sparsity, of_rows: Flags) -> Flags:
    """Return what unknowns of W w = r depend on, by blocks (Davis, Direct Methods for Sparse Linear Systems, 7.4)."""
    if ca.sprank(W) < W.size1():  # singular in structure: nothing can be said
        return np.broadcast_to(of_rows.any(axis=0), of_rows.shape)
    entries = np.array(ca.DM.ones(W).full(), dtype=bool)
    count, rows, columns, row_ends, column_ends, _, _ = W.btf()
    of_unknowns = np.zeros_like(of_rows)
    for k in range(count):
        block_rows, solved = rows[row_ends[k] : row_ends[k + 1]], columns[column_ends[k] : column_ends[k + 1]]
        active_columns = entries[block_rows].any(axis=0)
        active_columns[solved] = False
        of_unknowns[solved] = of_rows[block_rows].any(axis=0) | of_unknowns[active_columns].any(axis=0)
    return of_unknowns


def _pattern(e: SX, symbols: SX) -> Flags:
    """Return which entries of a column contain which symbols, shape (entries, symbols)."""
    return np.array(ca.DM.ones(ca.jacobian_sparsity(e, symbols)).full(), dtype=bool).reshape(e.numel(), symbols.numel())


def _nonzeros(e: SX) -> SX:
    """Return the nonzeros as a column."""
    return ca.vertcat(ca.SX(0, 1), *e.nonzeros())


def _entries(e: Any) -> _Table:
    """Return rows and columns of the nonzeros of a matrix."""
    return list(zip(*e.sparsity().get_triplet(), strict=True))


def _table_sizes(tables: Mapping[str, _Table]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    start = 0
    for name, table in tables.items():
        sizes |= {f"AT_{name}": start, f"N_{name}": len(table)}
        start += len(table)
    return sizes | {"NJ": start}


def _data(system: ImplicitSystem, order: Order) -> Iterator[str]:
    """Yield the numbers and names that belong to a system."""
    states, inputs = system.state_signals, system.input_signals
    nominals = [s.nominal if s.nominal is not None and 0 < s.nominal < math.inf else 1.0 for s in states]
    yield _array("const double", "X_START", _numbers(s.start for s in states))
    yield _array("const double", "X_NOMINAL", _numbers(nominals))
    yield _array("const double", "U_START", _numbers(s.start for s in inputs))
    yield _array("const double", "P_START", _numbers(system.parameter_values.tolist()))
    yield _array("const char *const", "UNKNOWN_NAMES", _order_texts(order.columns, system.unknown_names))
    if (guess := system.guess) is not None:
        limits = {
            "ITERATIONS": ITERATIONS,
            "CONVERGED": NEWTON_STEP_TOLERANCE,
            "STALLED": STALLED_STEP_TOLERANCE,
            "CONTRACTION": CONTRACTION_RATIO,
        }
        yield "".join(f"#define {name} {value}\n" for name, value in (limits | {"SHORTEST": MIN_STEP_FRACTION}).items())
        yield f"#define T_GUESS {guess.time!r}\n"
        for name, values in (("X_GUESS", guess.states), ("U_GUESS", guess.inputs), ("P_GUESS", guess.parameters)):
            yield _array("const double", name, _numbers(values.tolist()))
        for name, values in (("W_GUESS", guess.unknowns), ("W_SIZES", guess.sizes)):
            yield _array("const double", name, _numbers(values[np.argsort(order.columns)].tolist()))
        yield _array("const char *const", "EQUATION_NAMES", _order_texts(order.rows, guess.equations))


def _order_texts(order: Sequence[int], texts: Sequence[str]) -> list[str]:
    """Return C strings, each at its new position."""
    placed = dict(zip(order, texts, strict=True))
    return [c_string(placed[k]) for k in sorted(placed)] or ['""']


def _array(kind: str, name: str, items: Sequence[str]) -> str:
    return f"static {kind} {name}[] = {{\n{wrap_items(items)}}};\n"


def _numbers(values: Iterable[float]) -> list[str]:
    values = list(values)
    if not all(math.isfinite(value) for value in values):
        raise ModelError("A start value or parameter of the model is infinite or not a number. Give it a finite value.")
    return [repr(float(value)) for value in values] or ["0.0"]


def _comment(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text).replace("*/", "* /").replace("?", " ")


_UNIT = "values.c"


class PointCode:
    """The C code of a system as FMUs have it, printed but not yet compiled; its parameters keep their values."""

    def __init__(self, system: ImplicitSystem, compiler: Compiler | None = None) -> None:
        self._compiler = compiler or Compiler()
        code = generate(system, derivatives=False)
        runtime = files("fmilin.codegen") / "runtime"
        self._sources = {**code.sources, _UNIT: (runtime / _UNIT).read_text(encoding="utf-8")}
        self._system, self._instructions = system, code.instructions

    @property
    def price(self) -> float:
        """Seconds that :meth:`compile` takes: few where the same code was compiled before."""
        return library_seconds(self._instructions, is_built=is_built(self._sources, _UNIT, self._compiler))

    def compile(self) -> PointValues:
        """Return the compiled code."""
        return PointValues(self._system, load_library(self._sources, _UNIT, self._compiler, ctypes.PyDLL))


class PointValues:
    """Compiled rates and outputs; thread-safe: each call takes its own memory under the interpreter's lock."""

    def __init__(self, system: ImplicitSystem, library: ctypes.PyDLL) -> None:
        library.work_size.restype = ctypes.c_size_t
        library.run.argtypes, library.run.restype = [ctypes.c_void_p] * 3, ctypes.c_int
        self._library, self._parameters = library, system.parameter_values
        n, k = len(system.state_signals), len(system.input_signals)
        self._x, self._u = slice(1, 1 + n), slice(1 + n, 1 + n + k)
        self._size = system.derivatives.numel() + system.outputs.numel()
        self._free: list[tuple[FloatArray, FloatArray, partial[int], FloatArray]] = []

    def __call__(self, t: float, x: FloatArray, u: FloatArray) -> FloatArray | None:
        """Return rates, then outputs, shape (N + ny,); None where W is singular, nearly so, or holds no numbers."""
        try:
            room_left = self._free.pop()
        except IndexError:  # another thread has it
            room_left = self._room()
        s, z, run = room_left[:3]
        s[0], s[self._x], s[self._u] = t, x, u
        refused = run()
        values = None if refused else z.copy()
        self._free.append(room_left)
        return values

    def _room(self) -> tuple[FloatArray, FloatArray, partial[int], FloatArray]:
        """Return (t, x, u, p), the results, the function that computes them, and its memory, which lives as long."""
        s, z = np.zeros(self._u.stop + len(self._parameters)), np.zeros(max(self._size, 1))
        work = np.zeros(self._library.work_size() // 8 + 1)
        s[self._u.stop :] = self._parameters
        z = z[: self._size]
        return s, z, partial(self._library.run, s.ctypes.data, z.ctypes.data, work.ctypes.data), work
