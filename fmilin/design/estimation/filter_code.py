"""A Kalman filter on a model of equations as C99, with the equations and their exact derivatives: a file, or calls.

A file is a filter by itself, with its numbers as constants. For calls in the process, parameters, noise and the sample
time are tables that a call is given, so that the same code serves every choice of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import accumulate, chain, repeat
from string import Template
from typing import Any

import casadi as ca
import numpy as np

from fmilin.codegen.c_component import Constant, Precision, resolve_names, runtime
from fmilin.codegen.implicit import (
    CONTRACTION_RATIO,
    ITERATIONS,
    NEWTON_STEP_TOLERANCE,
    STALLED_STEP_TOLERANCE,
    ImplicitSystem,
    cse_option,
    jacobian,
)
from fmilin.codegen.statements import MAX_STATEMENTS_PER_FUNCTION, Statements, indent_statement
from fmilin.design.estimation.filter_motion import ManifoldStepper
from fmilin.errors import UsageError
from fmilin.model.capabilities import has_graph, read_graph
from fmilin.model.interface import Model
from fmilin.signals import FloatArray, Signals

SX = Any  # casadi.SX: casadi ships no types

_FUNCTIONS = re.compile(
    r"\b(sqrt|pow|exp|expm1|log|log1p|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|asinh|acosh|atanh|hypot|erf|fabs|"
    r"floor|ceil|fmod|copysign|remainder|fmin|fmax)\("
)
# Statements that take differences of measured angles modulo their turns; left out where no output wraps.
WRAPPING = {
    "WRAP_RESIDUAL": "            residuals[i] = @wrap(residuals[i], rows[i]);\n",
    "WRAP_MEAN": "        residuals[i] = @wrap(residuals[i], rows[i]);\n",
    "WRAP_POINTS": (
        "    for (int p = 1; p < (2 * $P) + 1; p++) {\n"
        "        for (int i = 0; i < $NY; i++) {\n"
        "            c[(p * $NY) + i] = c[i] + @wrap(c[(p * $NY) + i] - c[i], i);\n"
        "        }\n"
        "    }\n"
    ),
}
NAMES = {"ekf": "extended Kalman filter", "iekf": "iterated Kalman filter", "ukf": "unscented Kalman filter"}
SINGLE_NEWTON = {"CONVERGED": 1e-6, "STALLED": 1e-4}  # steps of Newton's iteration for unknowns in single precision
TERMS_PER_LOOP = 8  # of sparse products
_NUMBER = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)")


# Of code that is called in the process: each thread has its tables. Every compiler that CC may name knows the word.
_HEAD = """#include <math.h>
#include <string.h>
#ifdef _WIN32
#define OUT __declspec(dllexport)
#else
#define OUT __attribute__((visibility("default")))
#endif
"""
UNIT = "filter.c"
_NAME = "kf"


@dataclass
class _CodePart:
    """C functions for some quantities and their derivatives along directions of (x, u)."""

    name: str
    functions: list[str] = field(default_factory=list)
    instructions: int = 0
    entries: int = 0  # derivatives that are not zero
    room: int = 0  # numbers on the stack


@dataclass(frozen=True)
class FilterPlan:
    """The properties that determine the code of a filter, except its first estimate."""

    kind: str  # "ekf", "iekf" or "ukf"
    iterations: int  # of a correction
    model: Model  # with the noise that is held over each sample among its states
    motion: ManifoldStepper
    R: FloatArray  # covariance of the measurements, (m, m)
    ends: FloatArray  # of the sensors, (2, m)
    turns: FloatArray  # of the outputs, 0 for those that do not wrap, (m,)
    sample_time: float


@dataclass(frozen=True)
class FilterParts:
    """The C functions of a filter, and the tables that they read."""

    functions: list[str]
    step: str
    tables: list[Constant]
    sizes: dict[str, Any]
    quantities: list[_CodePart]


# Outputs of the filter's code in addition to the estimate, by their place in the C text.
ADDED_OUTPUTS = {
    "TELL_RESIDUAL": (
        "            if (round == 0) {\n                @innovations[rows[i]] = residuals[i];\n            }\n"
    ),
    "TELL_UPDATE": (
        "        for (int i = 0; (round == 0) && (i < m); i++) {\n"
        "            @whitened[rows[i]] = residuals[i];\n"
        "            @determinant[0] += 2.0 * log(deviations[i]);\n"
        "        }\n"
    ),
    "TELL_MEAN": "        @innovations[rows[i]] = residuals[i];\n",
    "TELL_WHITENED": (
        "        @whitened[rows[i]] = residuals[i];\n        @determinant[0] += 2.0 * log(G[(i * wide) + i]);\n"
    ),
    "TELL_SWITCH": "        @switches[0] += 1.0;\n",
}


def assemble(plan: FilterPlan, precision: Precision, *, in_process: bool) -> FilterParts:
    """Print a filter; for a call in the process parameters and the sample time are tables, and it tells innovations."""
    system, h = _equations(plan, in_process=in_process)
    motion, limits = plan.motion, dict(plan.motion.limits)
    N, P, NU = system.states.numel(), len(motion.chart.coordinates), system.inputs.numel()
    M, RENEWED = N - P, len(motion.renewed)
    U_w = motion.noise[1] if motion.noise[1].shape[1] else np.zeros((NU, 1))
    X_w = motion.noise[0] if motion.noise[0].shape[1] else np.zeros((N, 1))
    K, NY, H, terms = U_w.shape[1], system.outputs.numel(), h.numel(), len(motion.weights)
    sigma, kappa = plan.kind == "ukf", max(0.0, 3.0 - P)
    parts = [_part("rates", system, system.derivatives, P + K, precision)]
    parts += [_part("outputs", system, system.outputs, 0 if sigma else P, precision)]
    parts += [_part("motion", system, system.derivatives, 0, precision)] if sigma else []
    if H:
        parts.append(_surface(system, h, precision))
    most = float(np.finfo(np.float32 if precision == "single" else np.float64).max)
    if precision == "single":
        limits |= {"QUADRATIC": 3e-4, "NO_PIVOT": 1e-5, "NO_ROW": 1e-5}
    advances = 1 if sigma else motion.substeps
    sample_time = "@sample_time[0]" if in_process else repr(plan.sample_time)
    step = f"({sample_time} / {float(advances)!r})" if in_process else repr(plan.sample_time / advances)
    sizes = {
        "N": N, "P": P, "M": M, "RENEWED": RENEWED, "SHOWN": N - RENEWED,
        "H": H, "NU": NU, "NY": NY, "K": K, "W": P + K, "D": N + NU, "TERMS": terms,
        "WIDE": P + K * terms, "LONGEST": P + NY, "TANGENTS": 1 + (plan.kind == "iekf"),
        "CORRECTIONS": plan.iterations, "KAPPA": kappa,
        "FIRST": repr(kappa / (P + kappa)), "OTHERS": repr(0.5 / (P + kappa)),
        "SUBSTEPS": motion.substeps, "ADVANCES": advances, "STEP": step, "SAMPLE_TIME": sample_time,
    } | limits  # fmt: skip
    wraps = in_process or bool(plan.turns.any())
    sizes |= {key: Template(text).substitute(sizes) if wraps else "" for key, text in WRAPPING.items()}
    sizes |= {key: text if in_process else "" for key, text in ADDED_OUTPUTS.items()}
    free = np.ones(N)
    free[list(motion.fixed_states)] = 0.0
    usual = np.maximum(motion.row_terms.usual, 0.0)
    renewed = "factor of the covariance of noise that is held over each sample, by rows"
    tables = [
        Constant("scales", motion.scales, "sizes of the states"),
        Constant("free", free, "0 for states that are always coordinates"),
        *([Constant("usual", usual, "usual norms of the gradients of constraints, 0 for rounding")] if M else []),
        *([Constant("renewed", motion.renewed.ravel(), renewed)] if RENEWED else []),
        Constant("through", U_w if NU else np.zeros(1), "noise through inputs, by rows"),
        Constant("walk", X_w, "noise of rates, by rows"),
        Constant("weights", motion.weights, "factor of the matrix of 1/(i + j + 1), by rows"),
        Constant("R", plan.R, "covariance of the measurements, by rows"),
        Constant("ends", np.clip(plan.ends, -most, most), "of the sensors: least values, largest values"),
    ]
    if wraps:
        tables.append(Constant("turns", plan.turns, "of the outputs, by which angles wrap; 0 for the others"))
    if in_process:
        tables.append(Constant("sample_time", np.array([plan.sample_time]), "in s"))
        tables.append(Constant("parameters", system.parameter_values, "of the model"))
    if (guess := system.guess) is not None:
        tables.append(Constant("guess", guess.unknowns, "of the unknowns, where Newton's iteration begins"))
        tables.append(Constant("unknown_sizes", guess.sizes, "sizes of the unknowns"))
    functions = [
        *_runtime("algebra", sizes),
        *(f for part in parts for f in part.functions),
        *_runtime("constrained" if M else "free", sizes),
        *_runtime("always", sizes),
        *_runtime("renewed" if RENEWED else "lasting", sizes),
        *((runtime("wrap.c"),) if wraps else ()),
        *_runtime("unscented" if sigma else "extended", sizes),
        *_runtime("sample", sizes),
    ]
    typed = [_apply_precision(f, precision) for f in functions]
    return FilterParts(typed, _apply_precision(_text("step", sizes), precision), tables, sizes, parts)


@dataclass(frozen=True)
class CallableCode:
    """C code of a filter for calls in the process, and what it is called with."""

    source: str
    tables: FloatArray
    instructions: int  # what a compiler's time goes by
    stack: int  # bytes that a call takes, at most


def print_calls(plan: FilterPlan) -> CallableCode:
    """Return the code of a filter for calls; UsageError where there is none for such a model."""
    parts = assemble(plan, "double", in_process=True)
    tables = [table for table in parts.tables if table.values.size]
    at = np.cumsum([0, *(table.values.size for table in tables)]).tolist()
    written = {"turns": "const ", **dict.fromkeys(("switches", "determinant", "innovations", "whitened"), "")}
    declared = [f"static __thread const double *@{table.name};" for table in tables if table.name != "turns"]
    declared += [f"static __thread {const}double *@{name};" for name, const in written.items()]
    names = [(table.name, first) for table, first in zip(tables, at, strict=False) if table.name != "turns"]
    entered = "".join(f"    @{name} = tables + {first};\n" for name, first in names)
    enter = f"static void @enter(const double *tables)\n{{\n{entered}}}\n"
    text = "\n".join([_HEAD, *declared, "", *parts.functions, enter, _text("calls", parts.sizes)])
    numbers = np.concatenate([table.values.ravel() for table in tables])
    instructions = sum(part.instructions + part.entries for part in parts.quantities)
    N, P = int(parts.sizes["N"]), int(parts.sizes["P"])
    stack = 8 * (count_locals(parts.quantities, parts.sizes) + 2 * P * (N + P) + 8 * N) + 4096
    return CallableCode(resolve_names(text, _NAME, "double"), numbers, instructions, stack)


def _equations(plan: FilterPlan, *, in_process: bool) -> tuple[ImplicitSystem, SX]:
    """Return the model's graph, in a file with numbers for its parameters, and the invariants h."""
    from fmilin.models.batch_graph import build_invariants

    model = plan.model
    graph = read_graph(model) if plan.kind in NAMES and has_graph(model) else None
    if graph is None:
        raise UsageError(
            "C code is available for filters with a bounded run time (ekf, iekf, ukf) on models of equations; this is "
            f"the {plan.kind.upper()} on '{model.info.name}'. Take such a kind and a native model, or linearize: "
            "fl.design.kalman_filter(...).save('filter.c')."
        )
    h = build_invariants(model, graph)
    if in_process or not graph.parameters.numel():
        return graph, h
    parts = [graph.matrix, graph.right_hand_side, graph.derivatives, graph.outputs, h]
    W, r, f, c, h = ca.substitute(parts, [graph.parameters], [ca.SX(ca.DM(graph.parameter_values))])
    numbers = replace(graph, matrix=W, right_hand_side=r, derivatives=f, outputs=c, slopes=None)
    return replace(numbers, parameters=ca.SX(0, 1), parameter_signals=Signals(())), h


def _part(name: str, system: ImplicitSystem, z: SX, along: int, precision: Precision) -> _CodePart:
    """Print ``NAME(t, x, u, X, z, dz)``: z, and its derivatives along the columns of X (N + nu, along)."""
    s, w = system, system.unknowns
    implicit = bool(w.numel()) and ca.depends_on(z, w)
    newton = implicit and s.guess is not None
    w = w if implicit else ca.SX(0, 1)
    z_s, z_w, e = ca.SX(z.numel(), s.motion.numel()), ca.SX(z.numel(), w.numel()), ca.SX(w.numel(), s.motion.numel())
    if along:
        z_s, z_w, e = jacobian(z, s.motion), jacobian(z, w), s.motion_slopes if implicit else e
    sizes = {"t": 1, "x": s.states.numel(), "u": s.inputs.numel(), "p": s.parameters.numel(), "w": w.numel()}
    sizes |= {"A": w.numel() ** 2, "z": z.numel(), "e": e.nnz(), "z_s": z_s.nnz(), "z_w": z_w.nnz()}
    sizes["dw"] = w.numel() if newton else 0
    at = dict(zip([*sizes, "v"], accumulate(sizes.values(), initial=0), strict=True))

    def list_entries(key: str, count: int) -> list[str]:
        return [f"m[{at[key] + i}]" for i in range(count)]

    results, stages = [ca.densify(z), _nonzeros(e), _nonzeros(z_s), _nonzeros(z_w)], {}
    values = {i: list_entries(key, sizes[key]) for i, key in enumerate(("z", "e", "z_s", "z_w"))}
    if implicit:
        rows, columns = s.matrix.sparsity().get_triplet()
        entries = [f"m[{at['A'] + i * w.numel() + j}]" for i, j in zip(rows, columns, strict=True)]
        results += [_nonzeros(s.matrix), ca.densify(s.right_hand_side)]
        stages[f"@{name}_system"] = {4: entries, 5: list_entries("dw" if newton else "w", w.numel())}
    stages[f"@{name}_values"] = values
    arguments = [s.time, s.states, s.inputs, s.parameters, w]
    function = ca.Function("equations", arguments, results, cse_option(*results))
    inputs = [list_entries(key, sizes[key]) for key in ("t", "x", "u", "p", "w")]
    printed = Statements(function, inputs, stages, arguments=("@real *m",), array="stored", number="@real")
    functions = _functions(printed, at["v"])
    filled = {"NAME": name, "SIZE": at["v"] + printed.stored, "N": sizes["x"], "NU": sizes["u"], "NW": w.numel()}
    filled |= {"D": s.motion.numel(), "NZ": z.numel(), "AT_A": at["A"], "AT_W": at["w"], "AT_Z": at["z"]}
    filled |= {"ALONG": along, "DW": _products([(e, at["e"], "X")], along, "dw")}
    filled |= {"PARAMETERS": _print_copy_loop(sizes["p"], at["p"], "@parameters"), "AT_DW": at["dw"]}
    filled |= {"NEWTON": ITERATIONS, "CONTRACTION": CONTRACTION_RATIO}
    filled |= (
        {"CONVERGED": NEWTON_STEP_TOLERANCE, "STALLED": STALLED_STEP_TOLERANCE}
        if precision == "double"
        else SINGLE_NEWTON
    )
    filled["DZ"] = _products([(z_s, at["z_s"], "X"), (z_w, at["z_w"], "dw")], along, "dz")
    functions.append(_text("newton" if newton else "implicit" if implicit else "explicit", filled))
    room = at["v"] + printed.stored + w.numel() * (1 + s.motion.numel() + 8)
    return _CodePart(name, functions, printed.instructions, e.nnz() + z_s.nnz() + z_w.nnz(), room)


def _print_copy_loop(count: int, first: int, values: str) -> str:
    """Return the loop that takes ``values`` over, from a number on; nothing where there are none."""
    if not count:
        return ""
    return f"    for (int i = 0; i < {count}; i++) {{\n        m[{first} + i] = {values}[i];\n    }}\n"


def _functions(printed: Statements, first: int) -> list[str]:
    """Return C functions of the file; their common work arrays lie behind the other numbers."""
    texts = (f.replace("PIECE @", "static void @").replace("ALL(", "(") for f in printed.functions())
    return [re.sub(r"stored\[(\d+)\]", lambda m: f"m[{first + int(m[1])}]", text) for text in texts]


def _products(matrices: Sequence[tuple[SX, int, str]], columns: int, result: str) -> str:
    """Return loops for the rows of a sum of sparse matrices, their entries from a number on, times what is named."""
    rows: list[list[str]] = [[] for _ in range(matrices[0][0].shape[0] if columns else 0)]
    for matrix, first, is_known in matrices:
        for i, (r, c) in enumerate(_entries(matrix)):
            rows[r].append(f"(m[{first + i}] * {is_known}[{c * columns} + c])")
    text = ""
    for r, terms in enumerate(rows):
        pieces = [terms[i : i + TERMS_PER_LOOP] for i in range(0, len(terms), TERMS_PER_LOOP)] or [["0.0"]]
        for sign, piece in zip(chain("=", repeat("+=")), pieces, strict=False):
            line = f"{result}[{r * columns} + c] {sign} {' + '.join(piece)};"
            text += f"    for (int c = 0; c < {columns}; c++) {{\n{indent_statement(line, ' ' * 8, ' ' * 12)}    }}\n"
    return text.rstrip("\n")


def _surface(system: ImplicitSystem, h: SX, precision: Precision) -> _CodePart:
    """Print ``surface(t, x, u, h, H)``: the invariants and their gradient (m, N)."""
    N, m = system.states.numel(), h.numel()
    if ca.depends_on(h, system.unknowns):  # a hidden constraint on rates: their gradient goes through W w = r
        part = _part("invariants", system, h, N, precision)
        text = _text("surface_of_rates", {"N": N, "D": system.motion.numel()})
        room = part.room + N * system.motion.numel()
        return replace(part, name="surface", functions=[*part.functions, text], room=room)
    H, NP = jacobian(h, system.states), system.parameters.numel()
    NU = system.inputs.numel() if ca.depends_on(h, system.inputs) else 0
    results = [ca.densify(h), _nonzeros(H)]
    arguments = [system.time, system.states, system.inputs, system.parameters]
    function = ca.Function("equations", arguments, results, cse_option(*results))
    sizes = {"t": 1, "x": N, "u": NU, "p": NP, "h": m}
    at = dict(zip([*sizes, "H"], accumulate(sizes.values(), initial=0), strict=True))
    targets = [[f"m[{at['h'] + i}]" for i in range(m)], [f"m[{at['H'] + r * N + c}]" for r, c in _entries(H)]]
    first = at["H"] + m * N
    inputs = [[f"m[{at[key] + i}]" for i in range(sizes[key])] for key in ("t", "x", "u", "p")]
    if not NU:
        inputs[2] = ["0.0"] * system.inputs.numel()  # none occurs
    printed = Statements(
        function, inputs, {"@surface_values": dict(enumerate(targets))},
        arguments=("@real *m",), array="stored", number="@real",
    )  # fmt: skip
    functions = _functions(printed, first)
    size = first + printed.stored
    filled = {"SIZE": size, "N": N, "H": m, "AT_H": at["h"], "PARAMETERS": _print_copy_loop(NP, at["p"], "@parameters")}
    functions.append(_text("surface", filled | {"INPUTS": _print_copy_loop(NU, at["u"], "u")}))
    return _CodePart("surface", functions, printed.instructions, H.nnz(), size)


def _entries(matrix: SX) -> list[tuple[int, int]]:
    return list(zip(*matrix.sparsity().get_triplet(), strict=True))


def _nonzeros(e: SX) -> SX:
    return ca.vertcat(ca.SX(0, 1), *e.nonzeros())


def _text(section: str, sizes: dict[str, Any]) -> str:
    """Return a section of the C text that is the same for all models, with its sizes."""
    text = (files("fmilin.codegen") / "runtime" / "filter.c").read_text(encoding="utf-8")
    body = "\n".join(part for part in text.split("//// ")[1:] if part.startswith(f"{section}\n"))
    return Template(body.replace(f"{section}\n", "", 1)).substitute(sizes)


def _runtime(section: str, sizes: dict[str, Any]) -> list[str]:
    """Return the functions of a section."""
    return [f"{piece}\n}}\n".lstrip("\n") for piece in _text(section, sizes).split("\n}\n") if piece.strip()]


def _apply_precision(text: str, precision: Precision) -> str:
    """Return C text for the precision: literals and functions of math.h have a type."""
    if precision == "double":
        return text
    return _NUMBER.sub(r"\1f", _FUNCTIONS.sub(r"\1f(", text))


def count_operations(parts: list[_CodePart], sizes: dict[str, Any]) -> int:
    """Return a bound for the operations of a step."""
    N, P, M, H, NY, W, K, terms = (int(sizes[key]) for key in ("N", "P", "M", "H", "NY", "W", "K", "TERMS"))
    cost = {p.name: p.instructions + 2 * p.entries * W + p.room for p in parts}
    surface, cube = cost.get("surface", 0), 2 * M**3 + 2 * M * M * P
    wrap = 8 * NY if sizes["WRAP_MEAN"] else 0  # of the differences of one point
    manifold = (sizes["ITERATIONS"] + 4) * (surface + cube + 4 * M) + (M * H * N * 4 if M else 0)
    chosen, noise = 4 * P**3 + P * P + 10 * P, 2 * K * P * terms * (P + terms) + 2 * P * P
    if "motion" not in cost:
        advance = (
            4 * (cost["rates"] + 8 * N * P) + manifold + noise + 4 * (P + K * terms) * P * P + P * P + 10 * P + 2 * P**3
        )
        rotations = NY * (P * (6 * (NY + P) + 12) + 1)
        correct = cost["outputs"] + wrap + manifold + rotations + 4 * NY * P * P + NY**3 + 6 * (N + P) * P
        return int(sizes["SUBSTEPS"] * (advance + chosen) + sizes["CORRECTIONS"] * correct + chosen)
    points, substeps = 2 * P + 1, sizes["SUBSTEPS"]
    spread = points * (2 * N * P + manifold) + manifold
    advance = (
        spread + points * substeps * (4 * (cost["motion"] + 6 * N) + manifold) + 4 * P * P * (3 * P + 1) + manifold
    )
    added = cost["rates"] + noise + 2 * terms * P**3 + substeps * (4 * P * P * (P + K * terms) + 2 * P**3 + 10 * P)
    correct = (
        spread
        + points * (cost["outputs"] + wrap + 4 * (NY + P))
        + 4 * (points + NY) * (NY + P) ** 2
        + manifold
        + (NY + P) ** 2
    )
    return int(advance + added + correct + NY**3 + 4 * chosen)


def count_locals(parts: list[_CodePart], sizes: dict[str, Any]) -> int:
    """Return a bound for the numbers on the stack at once."""
    N, P, M, H, D, W, K, terms, NY = (int(sizes[key]) for key in ("N", "P", "M", "H", "D", "W", "K", "TERMS", "NY"))
    surface = max((p.room for p in parts if p.name == "surface"), default=0)
    manifold = N * P + P * P + 2 * (H + H * N) + M * (M + P + 1) + surface
    rows = P + K * terms
    advance = N * P * 2 + D * W + N * W + 4 * N + rows * P + terms * P * K + P * P
    correct = 2 * D * P + NY * (2 * P + 5) + (NY + P) * (P + 1) + NY * NY + 4 * P + N
    if any(p.name == "motion" for p in parts):
        points, added = (2 * P + 1) * N, D * W + N + N * W + 2 * P * rows + 3 * P * P + terms * P * K + P * P
        advance = N * P + points + P * P + P * (3 * P + 1) + added + 3 * N
        correct = N * P + points + (2 * P + 1) * NY + NY * (NY + 2) + (P + NY) * (2 * P + 1 + NY)
    deepest = max(p.room for p in parts) + 2 * MAX_STATEMENTS_PER_FUNCTION
    return 2 * N + P * P + M + max(advance, correct) + max(manifold, deepest) + 3 * P + 2 * NY
