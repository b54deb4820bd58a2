"""A symbolic system as C99 code.

W w = r is filled in and solved in C, then z = (f, c): the derivatives of the states and the outputs. With
e(s; w) = r - W w, the directional derivatives for s = (x, u, t, p) are

    dw = W^-1 (de/ds ds),    dz = dz/ds ds + dz/dw dw,

from the non-zero partial derivatives, which are evaluated once for each point. The solution of the linear
system and the products are written by hand in ``runtime/``; this module prints the equations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from fmilin.codegen.c99_writer import Assignment, Writer, c_string, wrapped
from fmilin.codegen.program import Atom, Program
from fmilin.codegen.structure import Order, band_order, dependencies_of_unknowns
from fmilin.errors import ModelError
from fmilin.model.symbolic_system import SymbolicSystem

__all__ = ["GeneratedModel", "generate"]

Expr = Any  # sympy.Expr: sympy ships no types


@dataclass(frozen=True)
class GeneratedModel:
    """The code of a system and its structure.

    Parameters
    ----------
    sources : mapping of str to str
        File name to text. ``model.c`` includes the others and leaves only static functions.
    depends : tuple of frozenset of Symbol
        For each row of z, derivatives of the states first, the symbols among time, states, inputs and
        parameters on which it depends, directly or through the unknowns: by sparsity, not by value.
    """

    sources: Mapping[str, str]
    depends: tuple[frozenset[Any], ...]


def generate(
    system: SymbolicSystem, outputs: Sequence[Expr], watched: Sequence[Expr] = (), *, derivatives: bool = True
) -> GeneratedModel:
    """Return C99 code for a system.

    Parameters
    ----------
    system : SymbolicSystem
        Its own ``outputs`` and ``constraints`` are not looked at: the caller says what is wanted.
    outputs : sequence of Expr
        Over time, states, inputs, parameters and unknowns.
    watched : sequence of Expr
        More of the same, without derivatives.
    derivatives : bool
        Whether the code can differentiate; without, it is a third of the size.

    Raises
    ------
    ModelError
        When an expression has an unknown symbol, or something that is no arithmetic or has no C code.
    """
    equations = _Equations(system, outputs, watched)
    writer = Writer(equations.program, equations.stages(derivatives=derivatives))
    sizes = equations.sizes() | equations.table_sizes()
    sizes |= {"NV": len(writer.stored), "HAS_DERIVATIVES": int(derivatives)}
    title = f"/* The equations of {_comment(system.name)}. Generated; model.c says how they are used. */\n"
    runtime = files("fmilin.codegen") / "runtime"
    sources = {name: (runtime / name).read_text(encoding="utf-8") for name in ("model.h", "model.c", "adjoint.c")}
    sources["equations.h"] = title + "".join(f"#define {name} {value}\n" for name, value in sizes.items())
    sources["equations.c"] = "\n".join(
        [title, *_data(system, equations.order), *equations.tables(), *writer.functions()]
    )
    return GeneratedModel(sources, equations.depends())


class _Equations:
    """The statements of a system, and where their results go."""

    def __init__(self, system: SymbolicSystem, outputs: Sequence[Expr], watched: Sequence[Expr]) -> None:
        n = len(system.unknowns)
        self.system = system
        self.known = [*system.states, *system.inputs, system.time, *system.parameters]
        pattern = {(i, j): w for i, row in enumerate(system.matrix) for j, w in enumerate(row) if w != 0}
        self.order = band_order(pattern.keys(), n)
        self.program = program = Program(_leaves(system, self.order))
        for symbol, expression in system.intermediate:
            program.define(symbol, expression)
        self.W = {place: program.add(w) for place, w in pattern.items()}
        self.r = [program.add(r) for r in system.right_hand_side]
        self.z = [program.add(z) for z in (*system.derivatives, *outputs, *watched)]
        self.differentiated = len(system.derivatives) + len(outputs)
        self._bits = {symbol: program.reach(leaf) for symbol, leaf in program.leaves.items()}
        self._check()
        self._tables: dict[str, list[tuple[int, int]]] = {}

    def _check(self) -> None:
        unknowns = sum(self._bits[w] for w in self.system.unknowns)
        if any(self.program.reach(a) & unknowns for a in (*self.W.values(), *self.r)):
            raise ModelError(
                f"In {self.system.name} the matrix W or the right-hand side r contains one of the unknowns w that "
                f"W w = r shall determine. Solve for them, or move them into W."
            )

    def stages(self, *, derivatives: bool) -> dict[str, list[Assignment]]:
        """Return the functions of the code: what each assigns, to which place."""
        n = len(self.r)
        W = [
            (f"m->W[{self.order.rows[i] * n + self.order.columns[j]}]", atom) for (i, j), atom in sorted(self.W.items())
        ]
        r = [(f"m->w[{self.order.rows[i]}]", atom) for i, atom in enumerate(self.r)]
        z = [(f"m->z[{i}]", atom) for i, atom in enumerate(self.z)]
        stages = {"equations_system": W + r, "equations_values": z}
        if derivatives:
            motion, settings = self._jacobians()
            stages |= {"equations_motion": motion, "equations_settings": settings}
        return stages

    def _jacobians(self) -> tuple[list[Assignment], list[Assignment]]:
        """Differentiate e = r - W w and z; number the non-zero entries."""
        program, system = self.program, self.system
        columns = len(system.states) + len(system.inputs)
        z = self.z[: self.differentiated]
        of_unknowns = program.gradients(z, system.unknowns)
        by_unknowns = [{self.order.columns[j]: atom for j, atom in row.items()} for row in of_unknowns]
        e = self._given_slopes() if system.slopes else self._residual_gradients(self.known[:columns])
        e_settings = self._residual_gradients(self.known[columns:], columns)
        z_motion = program.gradients(z, self.known[:columns])
        z_settings = [
            {columns + i: atom for i, atom in row.items()} for row in program.gradients(z, self.known[columns:])
        ]
        motion = [
            *self._numbered("E_MOTION", e),
            *self._numbered("Z_MOTION", z_motion),
            *self._numbered("Z_W", by_unknowns),
        ]
        return motion, [*self._numbered("E_SETTINGS", e_settings), *self._numbered("Z_SETTINGS", z_settings)]

    def _given_slopes(self) -> list[dict[int, Atom]]:
        """Return the derivatives of e = r - W w that came with the system, rows in their order of elimination."""
        rows: list[dict[int, Atom]] = [{} for _ in self.r]
        for i, row in enumerate(self.system.slopes):
            atoms = {k: self.program.add(slope) for k, slope in enumerate(row) if slope != 0}
            rows[self.order.rows[i]] = {k: atom for k, atom in atoms.items() if atom != 0}
        return rows

    def _residual_gradients(self, wanted: Sequence[Any], first: int = 0) -> list[dict[int, Atom]]:
        """Return the derivatives of e = r - W w with w held, rows in their order of elimination."""
        program, w = self.program, self.system.unknowns
        places = sorted(self.W)
        gradients = program.gradients([*self.r, *(self.W[place] for place in places)], wanted)
        terms: list[dict[int, list[Atom]]] = [
            {k: [atom] for k, atom in gradient.items()} for gradient in gradients[: len(self.r)]
        ]
        for (i, j), gradient in zip(places, gradients[len(self.r) :], strict=True):
            for k, slope in gradient.items():
                terms[i].setdefault(k, []).append(program.product(-1, slope, program.leaves[w[j]]))
        rows: list[dict[int, Atom]] = [{} for _ in self.r]
        for i, row in enumerate(terms):
            totals = {first + k: program.total(row[k]) for k in sorted(row)}
            rows[self.order.rows[i]] = {k: atom for k, atom in totals.items() if atom != 0}
        return rows

    def _numbered(self, name: str, rows: Sequence[Mapping[int, Atom]]) -> list[Assignment]:
        start = sum(len(table) for table in self._tables.values())
        entries = [((i, j), atom) for i, row in enumerate(rows) for j, atom in sorted(row.items())]
        self._tables[name] = [place for place, _ in entries]
        return [(f"m->jacobian[{start + k}]", atom) for k, (_, atom) in enumerate(entries)]

    def sizes(self) -> dict[str, int]:
        s = self.system
        return {
            "NX": len(s.states), "NU": len(s.inputs), "NP": len(s.parameters), "NW": len(s.unknowns),
            "NY": len(self.z) - len(s.states), "ND": self.differentiated - len(s.states),
            "BAND_LOWER": self.order.lower, "BAND_UPPER": self.order.upper,
        }  # fmt: skip

    def table_sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        start = 0
        for name, table in self._tables.items():
            sizes |= {f"AT_{name}": start, f"N_{name}": len(table)}
            start += len(table)
        return sizes | {"NJ": start}

    def tables(self) -> Iterator[str]:
        """Yield one table of places for each block of partial derivatives."""
        for name, table in self._tables.items():
            places = [f"{{{i}, {j}}}" for i, j in table]
            yield _array("const Place", name, places or ["{0, 0}"])

    def depends(self) -> tuple[frozenset[Any], ...]:
        program, system = self.program, self.system
        rows = [program.reach(r) for r in self.r]
        for (i, _), atom in self.W.items():
            rows[i] |= program.reach(atom)
        through = dependencies_of_unknowns(self.W.keys(), rows)
        result = []
        for atom in self.z:
            reach = program.reach(atom)
            for w, more in zip(system.unknowns, through, strict=True):
                reach |= more if reach & self._bits[w] else 0
            result.append(frozenset(symbol for symbol in self.known if reach & self._bits[symbol]))
        return tuple(result)


def _leaves(system: SymbolicSystem, order: Order) -> dict[Any, str]:
    """Return how each symbol of the system is written in C."""
    leaves = {system.time: "m->time"}
    leaves |= {symbol: f"m->x[{i}]" for i, symbol in enumerate(system.states)}
    leaves |= {symbol: f"m->u[{i}]" for i, symbol in enumerate(system.inputs)}
    leaves |= {symbol: f"m->p[{i}]" for i, symbol in enumerate(system.parameters)}
    return leaves | {symbol: f"m->w[{order.columns[j]}]" for j, symbol in enumerate(system.unknowns)}


def _data(system: SymbolicSystem, order: Order) -> Iterator[str]:
    """Yield the numbers and names that belong to a system."""
    states, inputs = system.state_signals, system.input_signals
    nominals = [s.nominal if s.nominal is not None and 0 < s.nominal < math.inf else 1.0 for s in states]
    yield _array("const double", "X_START", _numbers(s.start for s in states))
    yield _array("const double", "X_NOMINAL", _numbers(nominals))
    yield _array("const double", "U_START", _numbers(s.start for s in inputs))
    yield _array("const double", "P_START", _numbers(system.parameters.values()))
    names = dict(zip(order.columns, system.unknowns, strict=True))
    yield _array("const char *const", "UNKNOWN_NAMES", [c_string(str(names[k])) for k in sorted(names)] or ['""'])


def _array(kind: str, name: str, items: Sequence[str]) -> str:
    return f"static {kind} {name}[] = {{\n{wrapped(items)}}};\n"


def _numbers(values: Iterable[float]) -> list[str]:
    values = list(values)
    if not all(math.isfinite(value) for value in values):
        raise ModelError("A start value or parameter of the model is infinite or not a number. Give it a finite value.")
    return [repr(float(value)) for value in values] or ["0.0"]


def _comment(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text).replace("*/", "* /").replace("?", " ")
