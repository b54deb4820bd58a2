"""``linear_fmu``: from a linear model to an FMU for model exchange and co-simulation."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from fmilin.fmi.platforms import machines
from fmilin.fmi.write.archive import archive_bytes, identifier_like, token_of
from fmilin.fmi.write.binaries import compiled_for, linear_library, runtime_sources
from fmilin.fmi.write.description import FmuDescription
from fmilin.fmi.write.linear_layout import LinearLayout, lay_out_linear
from fmilin.fmi.write.standards import standard_of
from fmilin.linear_model.model import LinearModel

MATRICES_PATH = "resources/linear.bin"

MOST_EIGENVALUES = 200


@dataclass(frozen=True, slots=True)
class LinearFmu:
    """How a linear model becomes an FMU."""

    name: str = "plant"  # of the model in the FMU
    fmi_version: str = "2.0"
    deviation: bool = False  # signals in deviations from the operating point instead of absolute values
    platforms: tuple[str, ...] = ()  # ``"linux64"``, ``"win64"``, ``"darwin64"`` and so on; this machine by default


def linear_fmu(linear: LinearModel, options: LinearFmu, extra: Mapping[str, bytes] | None = None) -> bytes:
    """Return an FMU that runs the linear model by itself; ``extra`` are further files by their names in the archive.

    States start at the operating point and can be set until initialization ends; dependent ones are local variables.
    Directional (in FMI 3.0 adjoint) derivatives are the entries of A, B, C and D. Co-simulation is exact, by the matrix
    exponential, for inputs that are held or go on linearly. A sampled model is for co-simulation only: every
    ``sample_time`` after the start it takes over its inputs, and changes its states and outputs.
    """
    standard = standard_of(options.fmi_version)
    targets = machines(options.platforms)
    layout = lay_out_linear(linear, deviation=options.deviation)
    identifier = identifier_like(options.name)
    description = FmuDescription(
        name=options.name,
        identifier=identifier,
        description=_about(linear, options),
        variables=layout.variables,
        outputs=layout.outputs,
        depends=layout.depends,
        start_time=linear.point.time if math.isfinite(linear.point.time) else 0.0,
        directional_derivatives=True,
        sample_time=linear.sample_time,
        output_slopes=not linear.sample_time > 0,
    )
    numbers = b"".join(_numbers(layout))
    token = token_of([standard.model_description(description, ""), numbers])
    sources = runtime_sources(standard, "linear") | {"identity.h": b'#include "linear.h"\n'}
    content = {"modelDescription.xml": standard.model_description(description, token)}
    content |= compiled_for(targets, standard, identifier, lambda m: linear_library(sources, standard.source, m))
    content[MATRICES_PATH] = _head(layout, linear.sample_time, token) + numbers
    content |= standard.source_files(description, sources)
    return archive_bytes(content | dict(extra or {}), packed={MATRICES_PATH, *(extra or {})})


def _about(linear: LinearModel, options: LinearFmu) -> str:
    kind = f"sampled every {linear.sample_time!r} s, " if linear.sample_time > 0 else ""
    signals = "in deviations from" if options.deviation else "at"
    where = f"{signals} its operating point at time {linear.point.time!r} s"
    return f"Linear model of {linear.model.name or 'a model'}, {kind}{where}{_stability(linear)}"


def _stability(linear: LinearModel) -> str:
    """Return a warning about growing motions, where it costs little to know them; rounding is no growth."""
    if not 0 < len(linear.A) <= MOST_EIGENVALUES:
        return ""
    values, size = linear.eigenvalues(), float(np.abs(linear.A).max())
    growth = float(np.max(np.abs(values)) - 1) if linear.sample_time > 0 else float(np.max(values.real))
    return "; unstable" if growth > 1e-6 * max(size, 1e-300) else ""


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
