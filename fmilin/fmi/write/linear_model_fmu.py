"""``linear_fmu``: from a linear model to an FMU, its variables and the rows of matrices behind them."""

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fmilin.codegen.statements import wrap_items
from fmilin.errors import UsageError
from fmilin.fmi.platforms import machines
from fmilin.fmi.write import variables
from fmilin.fmi.write.binaries import compile_for_machines, compile_unit, get_standard, linear_library, runtime_sources
from fmilin.fmi.write.description_writer import FmuDescription
from fmilin.fmi.write.symbolic_fmu import archive_bytes, compute_token, to_identifier
from fmilin.fmi.write.variables import Causality, FmuVariable, build_variable
from fmilin.linear_model.model import LinearModel
from fmilin.signals import FloatArray, Signal, Signals, rate_unit


@dataclass(frozen=True)
class AffineEquations:
    """``x' = f0 + A (x - x0) + B (u - u0)``, ``z = g0 + C (x - x0) + D (u - u0)``, with every number that is needed."""

    A: FloatArray  # shape (P, P)
    B: FloatArray  # shape (P, nu)
    C: FloatArray  # computed outputs, then dependent states, shape (nz, P)
    D: FloatArray  # shape (nz, nu)
    f0: FloatArray  # shape (P,)
    x0: FloatArray  # shape (P,)
    u0: FloatArray  # shape (nu,)
    g0: FloatArray  # shape (nz,)


@dataclass(frozen=True)
class LinearLayout:
    """The variables, dependencies and equations of an FMU of a linear model."""

    variables: tuple[FmuVariable, ...]  # in the C runtime's order: time, x, x' if continuous, u, outputs, dependent x
    outputs: tuple[int, ...]  # references of the outputs, in their order
    depends: Mapping[int, Sequence[int]]  # for each derivative and each computed variable, what it depends on
    equations: AffineEquations
    n_outputs: int  # how many of the computed variables are outputs


def lay_out_linear(linear: LinearModel, *, deviation: bool) -> LinearLayout:
    """Decide the variables of an FMU, or deviations from the point; a name that is taken becomes ``output.NAME``."""
    point = _point(linear, deviation=deviation)
    names = _FmuNames(linear)
    copies = _copies(linear, point)
    computed_outputs = [i for i in range(len(linear.outputs)) if i not in copies]
    renamed = {i: names.take(linear.outputs[i].name, "output") for i in computed_outputs}
    visible_names = {*linear.states.names, *linear.outputs.names}
    dependent = [i for i, s in enumerate(linear.full_states) if s.name not in visible_names]
    hidden = {i: names.take(linear.full_states[i].name, "state") for i in dependent}
    rows = _OrderedVariables(linear, names, point)
    for i, copy in copies.items():
        rows.mark_as_output(copy, linear.outputs[i])
    computed = [rows.add(linear.outputs[i], renamed[i], "output") for i in computed_outputs]
    for i in dependent:
        rows.add(linear.full_states[i], hidden[i], "local")
    variables.check(rows.variables, linear.model.name or "the linear model")
    references = copies | dict(zip(computed_outputs, computed, strict=True))
    C, D = (
        np.vstack((linear.C[computed_outputs], linear.T[dependent])),
        np.vstack((linear.D[computed_outputs], linear.T_u[dependent])),
    )
    f0 = np.zeros_like(linear.f0) if deviation else linear.f0
    g0 = np.concatenate((point.g[computed_outputs], point.full[dependent]))
    equations = AffineEquations(linear.A, linear.B, C, D, f0, point.x, point.u, g0)
    outputs = tuple(references[i] for i in range(len(linear.outputs)))
    return LinearLayout(
        tuple(rows.variables), outputs, rows.dependencies(equations), equations, n_outputs=len(computed_outputs)
    )


@dataclass(frozen=True)
class _PointNumbers:
    """The operating point in numbers; all zero for deviations."""

    x: FloatArray
    u: FloatArray
    g: FloatArray
    full: FloatArray


def _point(linear: LinearModel, *, deviation: bool) -> _PointNumbers:
    for name in ("A", "B", "C", "D", "T", "T_u", "f0", "y0"):
        if not np.isfinite(getattr(linear, name)).all():
            raise UsageError(
                f"The matrix {name} contains NaN or infinite entries, with which an FMU cannot run. Linearize again "
                "at a point where the model is defined."
            )
    point, sizes = linear.point, [len(s) for s in (linear.states, linear.inputs, linear.outputs, linear.full_states)]
    if deviation:
        return _PointNumbers(*(np.zeros(size) for size in sizes))
    u, g = collect_values(linear.inputs, point.inputs, "input"), collect_values(linear.outputs, point.outputs, "output")
    return _PointNumbers(linear.y0, u, g, full=collect_values(linear.full_states, point.states, "state"))


def collect_values(
    signals: Signals, values_at_point: Mapping[str, float], what: str, form: str = "An FMU"
) -> FloatArray:
    """Return the values of signals, which ``form`` in absolute values needs, shape (k,)."""
    values = np.array([values_at_point.get(name, np.nan) for name in signals.names], dtype=np.float64)
    unknown = [name for name, value in zip(signals.names, values, strict=True) if not np.isfinite(value)]
    if unknown:
        raise UsageError(
            f"{form} in absolute values needs the operating point, but the {what} '{unknown[0]}' has no value there. "
            f"Write deviations instead: deviation=True."
        )
    return values


class _FmuNames:
    """The names of an FMU, each legal and taken once."""

    def __init__(self, linear: LinearModel) -> None:
        self._taken: set[str] = set()
        self.states = [self.take(name, "state") for name in linear.states.names]
        self.inputs = [self.take(name, "input") for name in linear.inputs.names]
        self.time = self.take("time", "fmilin")
        copied = _rates_among_outputs(linear)
        # Names of outputs, which the user chose, come before those of derivatives.
        used_names = {variables.legal_name(name) for name in (*linear.outputs.names, *linear.full_states.names)}
        self.rates: list[str] = []
        for i, name in enumerate(self.states if not linear.sample_time > 0 else ()):
            derivative_name = f"der({name})"
            rate = derivative_name if i in copied else variables.free_name(derivative_name, self._taken | used_names)
            self._taken.add(rate)
            self.rates.append(rate)

    def take(self, name: str, group: str) -> str:
        """Return ``name``, or one like it where it is not legal or taken."""
        return variables.name_in_group(name, group, self._taken)


def _rates_among_outputs(linear: LinearModel) -> dict[int, int]:
    """Return the states with derivatives that are outputs under their own names, with the numbers of the outputs."""
    if linear.sample_time > 0:
        return {}
    rates = {}
    for i, name in enumerate(linear.states.names):
        k = linear.outputs.positions_of_own_names.get(f"der({name})")
        if k is not None and np.array_equal(linear.C[k], linear.A[i]) and np.array_equal(linear.D[k], linear.B[i]):
            rates[i] = k
    return rates


def _copies(linear: LinearModel, point: _PointNumbers) -> dict[int, int]:
    """Return the outputs that are states or derivatives, with the references of these."""
    n = len(linear.states)
    copies = {}
    for i, name in enumerate(linear.states.names):
        k = linear.outputs.positions_of_own_names.get(name)
        if k is None or linear.D[k].any() or point.g[k] != point.x[i]:
            continue
        if np.count_nonzero(linear.C[k]) == 1 and linear.C[k, i] == 1.0:
            copies[k] = 1 + i
    return copies | {k: 1 + n + i for i, k in _rates_among_outputs(linear).items()}


class _OrderedVariables:
    """The variables in their order, with growing references."""

    def __init__(self, linear: LinearModel, names: _FmuNames, point: _PointNumbers) -> None:
        self.linear = linear
        self.variables: list[FmuVariable] = []
        self._add(Signal(names.time, "s", description="Time"), "independent")
        is_sampled = linear.sample_time > 0
        for name, s, value in zip(names.states, linear.states, point.x, strict=True):
            self._add(replace(s, name=name), "local", start=float(value), is_state=True, is_discrete=is_sampled)
        for i, name in enumerate(names.rates):
            self._add(Signal(name, rate_unit(linear.states[i].unit)), "local", derivative_of=1 + i)
        for name, s, value in zip(names.inputs, linear.inputs, point.u, strict=True):
            self._add(replace(s, name=name), "input", start=float(value))
        self._first = len(self.variables)

    def add(self, signal: Signal, name: str, causality: Causality) -> int:
        """Add a computed variable; return its reference."""
        self._add(replace(signal, name=name), causality, is_discrete=self.linear.sample_time > 0)
        return len(self.variables) - 1

    def mark_as_output(self, reference: int, output: Signal) -> None:
        """Make a state or derivative an output; attributes that only the output has are kept."""
        v = self.variables[reference]
        self.variables[reference] = replace(
            v,
            causality="output",
            unit=v.unit or output.unit,
            description=v.description or output.description,
            nominal=v.nominal if v.nominal is not None else variables.usable_nominal(output),
        )

    def dependencies(self, equations: AffineEquations) -> dict[int, Sequence[int]]:
        """Return the non-zero places of every row, as references."""
        n, m = self.linear.B.shape
        rates = 0 if self.linear.sample_time > 0 else n
        knowns = np.concatenate((np.arange(1, 1 + n), np.arange(1 + n + rates, 1 + n + rates + m)))
        upper = np.hstack((equations.A, equations.B))[:rates]
        rows = np.vstack((upper, np.hstack((equations.C, equations.D))))
        references = [*range(1 + n, 1 + n + rates), *range(self._first, self._first + len(equations.C))]
        known_indices: list[int] = knowns.tolist()
        depends: dict[int, Sequence[int]] = {}
        for reference, row in zip(references, rows, strict=True):
            columns = np.flatnonzero(row)
            depends[reference] = known_indices if len(columns) == len(known_indices) else knowns[columns].tolist()
        return depends

    def _add(self, signal: Signal, causality: Causality, **particular: Any) -> None:
        self.variables.append(build_variable(signal, len(self.variables), causality, **particular))


MATRICES_PATH = "resources/linear.bin"
MAX_EIGENVALUES = 200


@dataclass(frozen=True, slots=True)
class LinearFmu:
    """How a linear model becomes an FMU."""

    name: str = "plant"  # of the model in the FMU
    fmi_version: str = "2.0"
    deviation: bool = False  # signals in deviations from the operating point instead of absolute values
    embedded: bool = False  # the numbers stand in the library, which is compiled for them, and in no file next to it
    platforms: tuple[str, ...] = ()  # ``"linux64"``, ``"win64"``, ``"darwin64"`` and so on; this machine by default


def linear_fmu(linear: LinearModel, options: LinearFmu, extra: Mapping[str, bytes] | None = None) -> bytes:
    """Return an FMU that runs the linear model by itself; ``extra`` are further files by their names in the archive.

    States start at the operating point and can be set until initialization ends; dependent ones are local. Directional
    (in FMI 3.0 adjoint) derivatives are entries of A, B, C and D. Co-simulation is exact for inputs that are held or go
    on linearly. A sampled model is for it only: it takes over inputs, and changes, every ``sample_time``.
    """
    standard = get_standard(options.fmi_version)
    targets = machines(options.platforms)
    layout = lay_out_linear(linear, deviation=options.deviation)
    identifier = to_identifier(options.name)
    kind = f"sampled every {linear.sample_time!r} s, " if linear.sample_time > 0 else ""
    signals = "in deviations from" if options.deviation else "at"
    where = f"{signals} its operating point at time {linear.point.time!r} s"
    description = FmuDescription(
        name=options.name,
        identifier=identifier,
        description=f"Linear model of {linear.model.name or 'a model'}, {kind}{where}{_stability(linear)}",
        variables=layout.variables,
        outputs=layout.outputs,
        depends=layout.depends,
        start_time=linear.point.time if math.isfinite(linear.point.time) else 0.0,
        directional_derivatives=True,
        sample_time=linear.sample_time,
        output_slopes=not linear.sample_time > 0,
    )
    numbers = b"".join(_numbers(layout))
    token = compute_token([standard.model_description(description, ""), numbers])
    sources = runtime_sources(standard, "linear") | {"identity.h": b'#include "linear.h"\n'}
    matrices = _head(layout, linear.sample_time, token) + numbers
    content = {"modelDescription.xml": standard.model_description(description, token)}
    if options.embedded:
        sources |= {
            "identity.h": b'#include "linear.h"\n#include "embedded.h"\n',
            "embedded.h": _embed_matrices(matrices),
        }
        content |= compile_for_machines(
            targets, standard, identifier, lambda m: compile_unit(sources, standard.source, m)
        )
    else:
        content |= compile_for_machines(
            targets, standard, identifier, lambda m: linear_library(sources, standard.source, m)
        )
        content[MATRICES_PATH] = matrices
    content |= standard.source_files(description, sources)
    return archive_bytes(content | dict(extra or {}), packed={MATRICES_PATH, *(extra or {})})


def _embed_matrices(content: bytes) -> bytes:
    """Return the file with the matrices as C."""
    text = f"#define EMBEDDED_SIZE {len(content)}u\nstatic const unsigned char EMBEDDED[EMBEDDED_SIZE] = {{\n"
    return (text + wrap_items(map(str, content)) + "\n};\n").encode()


def _stability(linear: LinearModel) -> str:
    """Return a warning about growing motions, where it costs little to know them."""
    if not 0 < len(linear.A) <= MAX_EIGENVALUES:
        return ""
    return "; unstable" if linear.stability().stable is False else ""


def _numbers(layout: LinearLayout) -> Iterator[bytes]:
    """Yield what the runtime reads, in its order (linear.c, place_numbers), as little-endian doubles by rows."""
    e = layout.equations
    states = layout.variables[1 : 1 + len(e.x0)]
    nominal = np.array([1.0 if v.nominal is None else v.nominal for v in states], dtype=np.float64)
    for array in (e.A, e.B, e.C, e.D, e.f0, e.x0, e.x0, nominal, e.u0, e.u0, e.g0):
        yield np.ascontiguousarray(array, dtype="<f8").tobytes()


def _head(layout: LinearLayout, sample_time: float, token: str) -> bytes:
    """Return the beginning of the file: see ``Header`` in linear.c."""
    (nx, nu), nz = layout.equations.B.shape, len(layout.equations.g0)
    text = token.encode() + b"\0"
    text = text.ljust(-(-len(text) // 8) * 8, b"\0")
    sizes = (nx, nu, layout.n_outputs, nz - layout.n_outputs, len(text))
    return struct.pack("<16s6Qd", b"fmilin-linear-1\n", 0x0102030405060708, *sizes, sample_time) + text
