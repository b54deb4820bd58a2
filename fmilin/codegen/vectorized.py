"""Quantities of an implicit system and their derivatives at many points, as vectorized compiled code.

The C code computes dz/ds + dz/dw W^-1 e with vectors that have one entry for each of some points. A symmetric W is
eliminated in a fixed order for all of them; where that is not good enough, and where W is not symmetric, it is
factorized with row interchanges at each point. Unknowns of equations that are not linear are found by Newton's
iteration at each point.
"""

from __future__ import annotations

import ctypes
import platform
import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from fmilin.codegen.compiler import Compiler, is_built, load_library
from fmilin.codegen.elimination_order import Elimination, order_elimination
from fmilin.codegen.implicit import (
    CONTRACTION_RATIO,
    ITERATIONS,
    NEWTON_STEP_TOLERANCE,
    STALLED_STEP_TOLERANCE,
    ImplicitSystem,
    cse_option,
    jacobian,
    sparse,
)
from fmilin.codegen.statements import Statements
from fmilin.codegen.vectorized_code import VectorizedCode
from fmilin.errors import ModelError
from fmilin.signals import FloatArray

SX = Any  # casadi.SX: casadi ships no types
_UNIT = "vectorized.c"
BACKWARD_ERROR_TOLERANCE = 1e-13
"""Backward error of w up to which an elimination without interchanges counts; a point beyond is left to others."""

SMALL_PIVOT_TOLERANCE = 1e-11
"""Pivot of an elimination with interchanges, of rows and columns scaled to one, up to which W may be singular: such a
point is left to others, which state which unknowns are not determined. A larger value only costs time."""

MAX_DENSE_UNKNOWNS = 100  # of a W that is factorized with row interchanges, as a dense matrix
W_SYMMETRY_TOLERANCE = 1e-12  # how far W may be from its transpose, of its largest entry
CHUNK_SIZE = 16  # columns that are solved for together, as in vectorized.c
_CHOICES = {ca.OP_SIGN, ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_NOT, ca.OP_AND, ca.OP_OR, ca.OP_IF_ELSE_ZERO}
"""Operations that go different ways at different points."""


class VectorizedSource:
    """The C code of quantities (nz, 1) over time, states, inputs, parameters and unknowns, not yet compiled.

    The last of them, as many as ``invariants``, determine some of the states from the others.
    """

    def __init__(self, system: ImplicitSystem, quantities: SX, compiler: Compiler, invariants: int = 0) -> None:
        self.size = quantities.numel(), system.motion.numel()
        self.arguments = sum(a.numel() for a in system.arguments)
        problem = _CompiledProblem.of(system, quantities, invariants)
        self._problem = problem
        self.solves_invariants = problem.invariants is not None
        self.template = problem.template
        self._sources, flags = _generate_code(problem)
        self._compiler = Compiler(compiler.command, (*flags, *compiler.flags), compiler.use_cache)

    @property
    def is_built(self) -> bool:
        """Whether it was compiled before; rejects where there is no compiler."""
        return is_built(self._sources, _UNIT, self._compiler)

    def write_device_source(self) -> str:
        """Return the code as one text for a GPU, one point a thread; as plain C the same text computes them in turn."""
        sources, _ = _generate_code(self._problem, width=1)
        runtime = files("fmilin.codegen") / "runtime"
        header, kernel = (runtime.joinpath(name).read_text(encoding="utf-8") for name in ("device.h", "device.c"))
        entries = np.flatnonzero(self.template)
        values = ", ".join(map(repr, self.template.ravel()[entries].tolist())) or "0.0"
        constants = (
            f"#define N_CONSTANT {len(entries)}\n"
            f"static const int CONSTANT_ENTRY[] = {{{', '.join(map(str, entries)) or '0'}}};\n"
            f"static const double CONSTANT_VALUE[] = {{{values}}};\n"
        )
        unit = sources[_UNIT]
        for name in ("sizes.h", "equations.c"):
            unit = unit.replace(f'#include "{name}"', sources[name])
        return "".join((header, unit, constants, kernel))

    def compile(self) -> VectorizedCode:
        """Return the compiled code."""
        # Unlike for single points, the interpreter's lock is given up.
        library = load_library(self._sources, _UNIT, self._compiler, ctypes.CDLL)
        return VectorizedCode(library, self.arguments, self.template, solves_invariants=self.solves_invariants)


class _Nonzeros(NamedTuple):
    """Where the nonzeros of a matrix belong, column by column."""

    rows: list[int]
    columns: list[int]

    @classmethod
    def of(cls, matrix: SX) -> _Nonzeros:
        return cls(*matrix.sparsity().get_triplet())

    def chunks(self, columns: int) -> list[int]:
        """Return where each chunk of columns begins, and the end."""
        edges = [*range(0, columns, CHUNK_SIZE), columns]
        return [int(i) for i in np.searchsorted(self.columns, edges)]


@dataclass(frozen=True)
class _CompiledProblem:
    """The quantities to compute, with their system and elimination order."""

    system: ImplicitSystem
    quantities: SX
    order: Elimination | None  # of a symmetric W; None for a W that is factorized with row interchanges
    # e, z_s, z_w: d(r - W w)/ds, dz/ds without the rows that are constant, dz/dw
    e: SX
    z_s: SX
    z_w: SX
    rows: list[int]  # the rows of the derivatives that are not constant
    template: FloatArray  # (nz, N + nu), the others, zeros elsewhere
    invariants: SX | None  # the last quantities, where they need no unknowns

    @classmethod
    def of(cls, system: ImplicitSystem, quantities: SX, invariants: int) -> _CompiledProblem:
        order = _find_order(system)
        if order is None and system.unknowns.numel() > MAX_DENSE_UNKNOWNS:
            raise ModelError(
                f"The equations of '{system.name}' have {system.unknowns.numel()} unknowns and a matrix that is not "
                f"symmetric. Code for many points supports up to {MAX_DENSE_UNKNOWNS} unknowns."
            )
        z_s, z_w = (jacobian(quantities, s) for s in (system.motion, system.unknowns))
        entries = list(zip(*_Nonzeros.of(z_s), z_s.nonzeros(), strict=True))
        moving = set(_Nonzeros.of(z_w).rows) | {i for i, _, node in entries if not node.is_constant()}
        template = np.zeros(z_s.shape)
        for i, j, node in entries:
            if i not in moving:
                template[i, j] = float(node)
        time_derivatives = sparse({(i, j): node for i, j, node in entries if i in moving}, z_s.shape)
        alone = quantities[quantities.numel() - invariants :] if invariants else None
        if alone is not None and ca.depends_on(alone, system.unknowns):
            alone = None  # they need the rates
        return cls(
            system, quantities, order, system.motion_slopes, time_derivatives, z_w, sorted(moving), template, alone
        )

    def entries(self) -> tuple[list[tuple[int, int]], list[int]]:
        """Return the entries (row, column) of W that are computed, and where each is stored.

        Of a symmetric W these are one of each pair.
        """
        nonzeros = list(zip(*_Nonzeros.of(self.system.matrix), strict=True))
        if self.order is None:
            n = self.system.unknowns.numel()
            return nonzeros, [i * n + j for i, j in nonzeros]
        lower = [(i, j) for i, j in nonzeros if i >= j]
        return lower, [self.order.slot(*entry) for entry in lower]

    def tables(self) -> dict[str, list[int]]:
        """Return the integers that the C code is controlled by."""
        e, z_s, z_w = (_Nonzeros.of(matrix) for matrix in (self.e, self.z_s, self.z_w))
        columns, index = self.e.size2(), {row: i for i, row in enumerate(self.rows)}
        elimination = {} if self.order is None else _list_tables(self.order)
        return elimination | {
            "E_ROW": e.rows,
            "E_COLUMN": e.columns,
            "E_CHUNK": e.chunks(columns),
            "Z_S_ROW": [index[i] for i in z_s.rows],
            "Z_S_COLUMN": z_s.columns,
            "Z_S_CHUNK": z_s.chunks(columns),
            "Z_W_ROW": [index[i] for i in z_w.rows],
            "Z_W_COLUMN": z_w.columns,
            "ROWS": self.rows,
        }

    def results(self) -> dict[str, tuple[list[SX], list[str]]]:
        """Return what is computed by name, and what it is assigned to in C."""
        W, (entries, slots) = self.system.matrix, self.entries()
        nodes = {
            "r": self.system.right_hand_side.elements(),
            "z": self.quantities.elements(),
            "e": self.e.nonzeros(),
            "z_s": self.z_s.nonzeros(),
            "z_w": self.z_w.nonzeros(),
        }
        matrix_entries = [W[entry] for entry in entries], [f"m->whole[{slot}]" for slot in slots]
        return {"whole": matrix_entries} | {n: (e, [f"m->{n}[{i}]" for i in range(len(e))]) for n, e in nodes.items()}

    def sizes(self, stored: int, width: int) -> dict[str, int]:
        """Return the sizes that the C code is compiled for; arrays have at least one entry."""
        ns, nz = sum(a.numel() for a in self.system.arguments), self.quantities.numel()
        nw = self.system.unknowns.numel()
        stored_entries = nw * nw if self.order is None else len(self.order.slots)
        counts = {
            "SYMMETRIC": int(self.order is not None), "NEWTON": int(self.system.guess is not None),
            "DENSE": int(self.order is None or 0 < nw <= MAX_DENSE_UNKNOWNS),
            "WIDTH": width, "N_S": ns, "N_UNKNOWNS": nw, "N_QUANTITIES": nz, "N_COLUMNS": self.e.size2(),
            "N_ROWS": len(self.rows), "N_Z_W": self.z_w.nnz(),
        }  # fmt: skip
        room = {
            "NS": ns, "NW": nw, "NA": stored_entries, "NZ": nz, "NE": self.e.nnz(), "NZS": self.z_s.nnz(),
            "NZW": self.z_w.nnz(), "NR": len(self.rows), "NV": stored,
        }  # fmt: skip
        return counts | {name: max(size, 1) for name, size in room.items()}


def _list_tables(order: Elimination) -> dict[str, list[int]]:
    """Return the integers by which the C code eliminates in an order."""
    pairs = [(k, i) for k, below in zip(order.order, order.below, strict=True) for i in below]
    return {
        "PIVOT": list(order.order),
        "DIAGONAL": [order.slots[k, k] for k in order.order],
        "BELOW": np.cumsum([0, *(len(below) for below in order.below)]).tolist(),
        "BELOW_ROW": [i for _, i in pairs],
        "BELOW_SLOT": [order.slots[i, k] for k, i in pairs],
        "TARGETS": [order.slot(a, b) for below in order.below for i, a in enumerate(below) for b in below[: i + 1]],
    }


def _find_order(system: ImplicitSystem) -> Elimination | None:
    """Return the order in which a symmetric W is eliminated; None where it is not symmetric, or a pivot is zero."""
    W = system.matrix
    order = order_elimination(set(zip(*_Nonzeros.of(W), strict=True)), W.size1())
    return None if order is None or system.guess is not None or not _is_symmetric(system) else order


def _is_symmetric(system: ImplicitSystem) -> bool:
    """Whether W is its transpose, by its values at two points at random."""
    W = ca.Function("W", list(system.arguments), [system.matrix])
    random = np.random.default_rng(7)
    for _ in range(2):
        values = np.array(W(*(random.uniform(0.1, 0.9, a.numel()) for a in system.arguments)).full())
        if not np.abs(values - values.T).max(initial=0.0) <= W_SYMMETRY_TOLERANCE * np.abs(values).max(initial=0.0):
            return False
    return True


def _generate_code(problem: _CompiledProblem, width: int | None = None) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the sources, and the compiler's flags for the width of their vectors: by default that of the processor."""
    results = problem.results()
    nodes = [ca.densify(ca.vertcat(ca.SX(0, 1), *column)) for column, _ in results.values()]
    arguments = [*problem.system.arguments, problem.system.unknowns]
    function = ca.Function("equations", arguments, nodes, cse_option(*nodes))
    starts = np.cumsum([0, *(a.numel() for a in arguments)]).tolist()
    inputs = [[f"m->s[{i}]" for i in range(*ends)] for ends in pairwise(starts[:-1])]
    targets = [target for _, target in results.values()]
    statements = Statements(
        function,
        [*inputs, [f"m->w[{i}]" for i in range(arguments[-1].numel())]],
        {
            "equations_system": dict(enumerate(targets[:2])),
            "equations_values": {2: targets[2]},
            "equations_slopes": dict(enumerate(targets[3:], 3)),
        },
        arguments=("Work *m",),
        array="m->v",
        number="V",
    )
    has_choices = any(function.instruction_id(k) in _CHOICES for k in range(function.n_instructions()))
    flags: tuple[str, ...] = ()
    if width is None:
        width, flags = (1, ()) if has_choices else vector_flags()
    printed_invariants, invariant_sizes = _print_invariants(problem, inputs)
    sizes = problem.sizes(statements.stored, width) | invariant_sizes
    defined = "".join(f"#define {name} {value}\n" for name, value in sizes.items())
    tables = (
        f"static const int {name}[] = {{{', '.join(map(str, table)) or '0'}}};\n"
        for name, table in problem.tables().items()
    )
    tolerances = {"GOOD": BACKWARD_ERROR_TOLERANCE, "SMALL_PIVOT": SMALL_PIVOT_TOLERANCE}
    defined += "".join(f"#define {name} {value}\n" for name, value in tolerances.items())
    sources = {
        _UNIT: (files("fmilin.codegen") / "runtime" / _UNIT).read_text(encoding="utf-8"),
        "sizes.h": defined,
        "equations.c": "\n".join([_print_guess(problem.system), *tables, *statements.functions(), printed_invariants]),
    }
    return sources, flags


def _print_invariants(problem: _CompiledProblem, inputs: list[list[str]]) -> tuple[str, dict[str, int]]:
    """Return the C code of the invariants and their gradient alone, and its sizes."""
    h, system = problem.invariants, problem.system
    if h is None:
        return "", {"INVARIANTS_ALONE": 0}
    H = jacobian(h, system.states)
    nodes: list[SX] = [ca.densify(h), ca.vertcat(ca.SX(0, 1), *H.nonzeros())]
    function = ca.Function("invariants", list(system.arguments), nodes, cse_option(*nodes))
    names = "h", "h_x"
    targets = {k: [f"m->{names[k]}[{i}]" for i in range(node.numel())] for k, node in enumerate(nodes)}
    statements = Statements(
        function, inputs, {"invariants_values": targets}, arguments=("Work *m",), array="m->c", number="V"
    )
    nonzeros = _Nonzeros.of(H)
    tables = [
        f"static const int {name}[] = {{{', '.join(map(str, table)) or '0'}}};"
        for name, table in (("H_ROW", nonzeros.rows), ("H_COLUMN", nonzeros.columns))
    ]
    sizes = {"INVARIANTS_ALONE": 1, "N_INVARIANTS": h.numel(), "NHX": max(H.nnz(), 1), "NC": max(statements.stored, 1)}
    return "\n".join([*tables, *statements.functions()]), sizes


def _print_guess(system: ImplicitSystem) -> str:
    """Return the C text of where Newton's iteration begins, and when it ends; empty for linear equations."""
    if system.guess is None:
        return ""
    limits = {
        "ITERATIONS": ITERATIONS,
        "CONVERGED": NEWTON_STEP_TOLERANCE,
        "STALLED": STALLED_STEP_TOLERANCE,
        "CONTRACTION": CONTRACTION_RATIO,
    }
    lines = [f"#define {name} {value}" for name, value in limits.items()]
    for name, values in (("W_GUESS", system.guess.unknowns), ("W_SIZES", system.guess.sizes)):
        lines.append(f"static const double {name}[] = {{{', '.join(map(repr, values.tolist()))}}};")
    return "\n".join([*lines, ""])


@cache
def vector_flags() -> tuple[int, tuple[str, ...]]:
    """Return how many numbers the processor's registers hold, and the compiler's flags for them."""
    if platform.machine() in ("x86_64", "AMD64"):
        flags = _processor_flags()
        if "avx512f" in flags:
            return 8, ("-mavx512f",)
        if "avx2" in flags:
            return 4, ("-mavx2",)
    return 2, ()


def _processor_flags() -> set[str]:
    if sys.platform != "linux":
        return set()
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    match = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    return set(match.group(1).split()) if match else set()
