"""A Kalman filter on a model of equations as C99 or an FMU, with the equations and their exact slopes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import accumulate, chain, repeat
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Literal

import casadi as ca
import numpy as np

from fmilin.codegen.c_component import CComponent, Constant, Memory, Precision, described, runtime
from fmilin.codegen.implicit import ImplicitSystem, jacobian
from fmilin.codegen.statements import STATEMENTS_PER_FUNCTION, Statements, indented
from fmilin.errors import UsageError
from fmilin.fmi.write.fmu import NAME, block_fmu
from fmilin.formats import Writing, require_codec
from fmilin.linear_model.measured_angles import describe_wrapped
from fmilin.model.capabilities import has_graph, read_graph
from fmilin.signals import Signal

if TYPE_CHECKING:
    from fmilin.design.estimation.estimator import Estimator

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
TERMS_PER_LOOP = 8  # of sparse products
_NUMBER = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)")


@dataclass
class _Part:
    """C functions for some quantities and their slopes along directions of (x, u)."""

    name: str
    functions: list[str] = field(default_factory=list)
    instructions: int = 0
    entries: int = 0  # slopes that are not zero
    room: int = 0  # numbers on the stack


def save(
    kf: Estimator, path: str | Path, *, precision: Precision = "double", fmi: Literal["2.0", "3.0"] = "2.0"
) -> None:
    """Write an estimator as C code, or as an FMU around it."""
    target = Path(path)
    require_codec(target, "estimator").write(kf, target, Writing(target.stem, precision=precision, fmi=fmi))


def dumps(kf: Estimator, writing: Writing) -> bytes:
    """Return the content of a .c file for an estimator."""
    return component(kf, writing.name, writing.precision).text().encode("ascii")


def dumps_fmu(kf: Estimator, writing: Writing) -> bytes:
    """Return the content of an FMU around the C code."""
    made, model, start = component(kf, NAME, writing.precision), kf.model, kf.start
    measured = model.evaluate(start.time, start.x[: len(model.states)], kf.settings.inputs).outputs
    inputs = [s.starting_at(v) for s, v in zip(model.inputs, kf.settings.inputs, strict=True)]
    for s, value in zip(model.outputs, measured, strict=True):
        name = f"measured.{s.name}" if model.inputs.has(s.name) else s.name
        inputs.append(replace(s, name=name, start=value if np.isfinite(value) else 0.0))
    further = [Signal("nis", description=made.outputs[-2]), Signal("failed", description="1 where a step failed")]
    outputs = [*model.states, *further]
    return block_fmu(made, inputs, outputs, f"{writing.name}.fmu", fmi_version=writing.fmi, start_time=start.time)


def component(kf: Estimator, name: str, precision: Precision) -> CComponent:
    """Return the parts of the file."""
    from fmilin.design.estimation.corrections import Linearized

    correction = kf.settings.filter
    corrections = correction.iterations if isinstance(correction, Linearized) else 0
    system, h = _equations(kf)
    motion, start, limits = kf.motion, kf.start, dict(kf.motion.limits)
    N, P, M, NU = len(start.x), len(start.S), len(start.x) - len(start.S), system.inputs.numel()
    RENEWED = len(motion.renewed)
    U_w = motion.noise[1] if motion.noise[1].shape[1] else np.zeros((NU, 1))
    X_w = motion.noise[0] if motion.noise[0].shape[1] else np.zeros((N, 1))
    K, NY, H, terms = U_w.shape[1], system.outputs.numel(), h.numel(), len(motion.weights)
    sigma, kappa = kf.kind == "ukf", max(0.0, 3.0 - P)
    parts = [_part("rates", system, system.derivatives, P + K)]
    parts += [_part("outputs", system, system.outputs, 0 if sigma else P)]
    parts += [_part("motion", system, system.derivatives, 0)] if sigma else []
    if h.numel():
        parts.append(_surface(system, h))
    most = float(np.finfo(np.float32 if precision == "single" else np.float64).max)
    if precision == "single":
        limits |= {"QUADRATIC": 3e-4, "NO_PIVOT": 1e-5, "NO_ROW": 1e-5}
    sizes = {
        "N": N, "P": P, "M": M, "RENEWED": RENEWED, "SHOWN": N - RENEWED,
        "H": H, "NU": NU, "NY": NY, "K": K, "W": P + K, "D": N + NU, "TERMS": terms,
        "WIDE": P + K * terms, "LONGEST": P + NY, "TANGENTS": 1 + (kf.kind == "iekf"),
        "CORRECTIONS": corrections, "KAPPA": kappa,
        "FIRST": repr(kappa / (P + kappa)), "OTHERS": repr(0.5 / (P + kappa)),
        "SUBSTEPS": motion.substeps, "ADVANCES": 1 if sigma else motion.substeps,
        "STEP": repr(kf.sample_time / (1 if sigma else motion.substeps)),
        "SAMPLE_TIME": repr(kf.sample_time),
    } | limits  # fmt: skip
    wraps = bool(kf.turns.any())
    statements = {key: Template(text).substitute(sizes) if wraps else "" for key, text in WRAPPING.items()}
    sizes |= statements
    measured = kf.model.outputs.with_turns([turn or None for turn in kf.turns.tolist()])
    outputs, inputs, states = kf.model.outputs, kf.model.inputs, kf.model.states
    free = np.ones(N)
    free[list(motion.held)] = 0.0
    sizes_of_rows = np.maximum(motion.row_terms.usual, 0.0)
    usual = (
        [Constant("usual", sizes_of_rows, "usual norms of the gradients of constraints, 0 for rounding")] if M else []
    )
    text = "factor of the covariance of noise that is held over each sample, by rows"
    renewed = [Constant("renewed", motion.renewed.ravel(), text)] if RENEWED else []
    chart = [*kf.chart.kept, *kf.chart.others, *kf.chart.rows]
    return CComponent(
        name=name,
        about=[
            f"{NAMES[kf.kind]} on {kf.model.info.name}: {P - RENEWED} independent coordinates of {N - RENEWED} states, "
            "in square roots.",
            "in holds the inputs over the sample that ends, then what is measured at its end, or NAN. "
            "out[failed] is 1 where a step could not be computed: the estimate before it stays.",
            *([f"Innovations are taken modulo a turn: {describe_wrapped(measured)}."] if wraps else []),
        ],
        inputs=[*(described(s) for s in inputs), *(described(s) for s in outputs)],
        outputs=[*(described(s) for s in states), "normalized innovation squared", "failed"],
        memory=[
            Memory("x", start.x, [f"estimate of {described(s)}" for s in kf.settings.model.states]),
            Memory("S", start.S.ravel(), ["factor of the covariance S S', by rows"]),
            Memory(
                "chart", np.array(chart, dtype=np.float64), ["states: coordinates, others; then rows that give these"]
            ),
            Memory("t", np.array([start.time]), ["time in s"]),
        ],
        constants=[
            Constant("scales", motion.scales, "sizes of the states"),
            Constant("free", free, "0 for states that are always coordinates"),
            *usual,
            *renewed,
            Constant("through", U_w if NU else np.zeros(1), "noise through inputs, by rows"),
            Constant("walk", X_w, "noise of rates, by rows"),
            Constant("weights", motion.weights, "factor of the matrix of 1/(i + j + 1), by rows"),
            Constant("R", kf.R, "covariance of the measurements, by rows"),
            *([Constant("turns", kf.turns, "of the outputs, by which angles wrap; 0 for the others")] if wraps else []),
            Constant("ends", np.clip(kf.settings.ends, -most, most), "of the sensors: least values, largest values"),
        ],
        step=_typed(_text("step", sizes), precision),
        operations=_operations(parts, sizes),
        sample_time=kf.sample_time,
        functions=[
            _typed(f, precision)
            for f in (
                *_runtime("algebra", sizes),
                *(f for part in parts for f in part.functions),
                *_runtime("constrained" if M else "free", sizes),
                *_runtime("always", sizes),
                *_runtime("renewed" if RENEWED else "lasting", sizes),
                *((runtime("wrap.c"),) if wraps else ()),
                *_runtime("unscented" if sigma else "extended", sizes),
            )
        ],
        locals=_locals(parts, sizes),
        calls=2048,
        code=1024 * (16 + sum(p.instructions + p.entries for p in parts) // 20),
        precision=precision,
        headers=("math.h",),
    )


def _equations(kf: Estimator) -> tuple[ImplicitSystem, SX]:
    """Return the model's graph with numbers for its parameters, and the invariants h."""
    from fmilin.models.batch_graph import invariants_in

    graph = read_graph(kf.settings.model) if kf.kind in NAMES and has_graph(kf.settings.model) else None
    if graph is None:
        raise UsageError(
            f"C code is written of filters of a bounded time (ekf, iekf, ukf) on models of equations; this is the "
            f"{kf.kind.upper()} on '{kf.model.info.name}'. Take such a kind and a native model, or linearize: "
            "fl.design.kalman_filter(...).save('filter.c')."
        )
    h = invariants_in(kf.settings.model, graph)
    parts = [graph.matrix, graph.right_hand_side, graph.derivatives, graph.outputs, h]
    if graph.parameters.numel():
        parts = ca.substitute(parts, [graph.parameters], [ca.SX(ca.DM(graph.parameter_values))])
    W, r, f, c, h = parts
    return replace(graph, matrix=W, right_hand_side=r, derivatives=f, outputs=c, slopes=None), h


def _part(name: str, system: ImplicitSystem, z: SX, along: int) -> _Part:
    """Print ``NAME(t, x, u, X, z, dz)``: z, and its slopes along the columns of X (N + nu, along)."""
    s, w = system, system.unknowns
    implicit = bool(w.numel()) and ca.depends_on(z, w)
    w = w if implicit else ca.SX(0, 1)
    z_s, z_w, e = ca.SX(z.numel(), s.motion.numel()), ca.SX(z.numel(), w.numel()), ca.SX(w.numel(), s.motion.numel())
    if along:
        z_s, z_w, e = jacobian(z, s.motion), jacobian(z, w), s.motion_slopes if implicit else e
    sizes = {"t": 1, "x": s.states.numel(), "u": s.inputs.numel(), "w": w.numel()}
    sizes |= {"A": w.numel() ** 2, "z": z.numel(), "e": e.nnz(), "z_s": z_s.nnz(), "z_w": z_w.nnz()}
    at = dict(zip([*sizes, "v"], accumulate(sizes.values(), initial=0), strict=True))

    def entries_at(key: str, count: int) -> list[str]:
        return [f"m[{at[key] + i}]" for i in range(count)]

    results, stages = [ca.densify(z), _nonzeros(e), _nonzeros(z_s), _nonzeros(z_w)], {}
    values = {i: entries_at(key, sizes[key]) for i, key in enumerate(("z", "e", "z_s", "z_w"))}
    if implicit:
        rows, columns = s.matrix.sparsity().get_triplet()
        entries = [f"m[{at['A'] + i * w.numel() + j}]" for i, j in zip(rows, columns, strict=True)]
        results += [_nonzeros(s.matrix), ca.densify(s.right_hand_side)]
        stages[f"@{name}_system"] = {4: entries, 5: entries_at("w", w.numel())}
    stages[f"@{name}_values"] = values
    arguments = [s.time, s.states, s.inputs, w]
    function = ca.Function("equations", arguments, results, {"cse": True})
    inputs = [entries_at(key, sizes[key]) for key in ("t", "x", "u", "w")]
    printed = Statements(function, inputs, stages, arguments=("@real *m",), array="stored", number="@real")
    functions = _functions(printed, at["v"])
    filled = {"NAME": name, "SIZE": at["v"] + printed.stored, "N": sizes["x"], "NU": sizes["u"], "NW": w.numel()}
    filled |= {"D": s.motion.numel(), "NZ": z.numel(), "AT_A": at["A"], "AT_W": at["w"], "AT_Z": at["z"]}
    filled |= {"ALONG": along, "DW": _products([(e, at["e"], "X")], along, "dw")}
    filled["DZ"] = _products([(z_s, at["z_s"], "X"), (z_w, at["z_w"], "dw")], along, "dz")
    functions.append(_text("implicit" if implicit else "explicit", filled))
    room = at["v"] + printed.stored + w.numel() * (1 + s.motion.numel() + 8)
    return _Part(name, functions, printed.instructions, e.nnz() + z_s.nnz() + z_w.nnz(), room)


def _functions(printed: Statements, first: int) -> list[str]:
    """Return C functions of the file, what several of them need behind the other numbers of their room."""
    texts = (f.replace("PIECE @", "static void @").replace("ALL(", "(") for f in printed.functions())
    return [re.sub(r"stored\[(\d+)\]", lambda m: f"m[{first + int(m[1])}]", text) for text in texts]


def _products(matrices: Sequence[tuple[SX, int, str]], columns: int, result: str) -> str:
    """Return loops for the rows of a sum of sparse matrices, their entries from a number on, times what is named."""
    rows: list[list[str]] = [[] for _ in range(matrices[0][0].shape[0] if columns else 0)]
    for matrix, first, given in matrices:
        for i, (r, c) in enumerate(_entries(matrix)):
            rows[r].append(f"(m[{first + i}] * {given}[{c * columns} + c])")
    text = ""
    for r, terms in enumerate(rows):
        pieces = [terms[i : i + TERMS_PER_LOOP] for i in range(0, len(terms), TERMS_PER_LOOP)] or [["0.0"]]
        for sign, piece in zip(chain("=", repeat("+=")), pieces, strict=False):
            line = f"{result}[{r * columns} + c] {sign} {' + '.join(piece)};"
            text += f"    for (int c = 0; c < {columns}; c++) {{\n{indented(line, ' ' * 8, ' ' * 12)}    }}\n"
    return text.rstrip("\n")


def _surface(system: ImplicitSystem, h: SX) -> _Part:
    """Print ``surface(t, x, h, H)``: the invariants and their gradient (m, N)."""
    if ca.depends_on(h, ca.vertcat(system.unknowns, system.inputs)):
        raise UsageError(
            f"The rate of a constraint of '{system.name}' needs accelerations or inputs: there is no C code for such a "
            "constraint. Write it with positions and their velocities as states."
        )
    H, N = jacobian(h, system.states), system.states.numel()
    m = h.numel()
    results = [ca.densify(h), _nonzeros(H)]
    function = ca.Function("equations", [system.time, system.states], results, {"cse": True})
    entries_at = [[f"m[{1 + N + i}]" for i in range(m)], [f"m[{1 + N + m + r * N + c}]" for r, c in _entries(H)]]
    first = 1 + N + m + m * N
    printed = Statements(
        function, [["m[0]"], [f"m[{1 + i}]" for i in range(N)]], {"@surface_values": dict(enumerate(entries_at))},
        arguments=("@real *m",), array="stored", number="@real",
    )  # fmt: skip
    functions = _functions(printed, first)
    size = first + printed.stored
    functions.append(_text("surface", {"SIZE": size, "N": N, "H": m}))
    return _Part("surface", functions, printed.instructions, H.nnz(), size)


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


def _typed(text: str, precision: Precision) -> str:
    """Return C text for the precision: literals and functions of math.h have a type."""
    if precision == "double":
        return text
    return _NUMBER.sub(r"\1f", _FUNCTIONS.sub(r"\1f(", text))


def _operations(parts: list[_Part], sizes: dict[str, Any]) -> int:
    """Return a bound for the operations of a step."""
    N, P, M, H, NY, W, K, terms = (int(sizes[key]) for key in ("N", "P", "M", "H", "NY", "W", "K", "TERMS"))
    cost = {p.name: p.instructions + 2 * p.entries * W + p.room for p in parts}
    surface, cube = cost.get("surface", 0), 2 * M**3 + 2 * M * M * P
    wrap = 8 * NY if sizes["WRAP_MEAN"] else 0  # of the differences of one point
    manifold = (sizes["ITERATIONS"] + 4) * (surface + cube + 4 * M) + (M * H * N * 4 if M else 0)
    chosen, noise = 4 * P**3 + 10 * P, 2 * K * P * terms * (P + terms) + 2 * P * P
    if "motion" not in cost:
        advance = 4 * (cost["rates"] + 8 * N * P) + manifold + noise + 4 * (P + K * terms) * P * P + 10 * P + 2 * P**3
        rotations = NY * P * (6 * (NY + P) + 12)
        correct = cost["outputs"] + wrap + manifold + rotations + 4 * NY * P * P + NY**3 + 6 * (N + P) * P
        return int(sizes["SUBSTEPS"] * (advance + chosen) + sizes["CORRECTIONS"] * correct + chosen)
    points, substeps = 2 * P + 1, sizes["SUBSTEPS"]
    spread = points * (2 * N * P + manifold) + manifold
    advance = (
        spread + points * substeps * (4 * (cost["motion"] + 6 * N) + manifold) + 4 * P * P * (3 * P + 1) + manifold
    )
    added = cost["rates"] + noise + 2 * terms * P**3 + substeps * (4 * P * P * (P + K * terms) + 2 * P**3 + 10 * P)
    correct = spread + points * (cost["outputs"] + wrap + 4 * (NY + P)) + 4 * (points + NY) * (NY + P) ** 2 + manifold
    return int(advance + added + correct + NY**3 + 4 * chosen)


def _locals(parts: list[_Part], sizes: dict[str, Any]) -> int:
    """Return a bound for the numbers on the stack at once."""
    N, P, M, H, D, W, K, terms, NY = (int(sizes[key]) for key in ("N", "P", "M", "H", "D", "W", "K", "TERMS", "NY"))
    surface = max((p.room for p in parts if p.name == "surface"), default=0)
    manifold = N * P + P * P + 2 * (H + H * N) + M * (M + P + 1) + surface
    rows = P + K * terms
    advance = N * P * 2 + D * W + N * W + 4 * N + rows * P + terms * P * K + P * P
    correct = 2 * D * P + NY * (2 * P + 4) + (NY + P) * (P + 1) + NY * NY + 4 * P + N
    if any(p.name == "motion" for p in parts):
        points, added = (2 * P + 1) * N, D * W + N + N * W + 2 * P * rows + 3 * P * P + terms * P * K + P * P
        advance = N * P + points + P * P + P * (3 * P + 1) + added + 3 * N
        correct = N * P + points + (2 * P + 1) * NY + NY * (NY + 2) + (P + NY) * (2 * P + 1 + NY)
    deepest = max(p.room for p in parts) + 2 * STATEMENTS_PER_FUNCTION
    return 2 * N + P * P + M + max(advance, correct) + max(manifold, deepest) + 3 * P + 2 * NY
