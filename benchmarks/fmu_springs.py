"""FMUs of masses in a row on springs that harden, compiled here: every row of A has four entries whatever the size.

An evaluation and a directional derivative along any number of knowns take time in proportion to the number of states,
as in code that tools generate. The FMU declares its dependencies and provides directional derivatives, or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.fmu_masses import Case, compiled
from fmilin.codegen.compiler import library_suffix
from fmilin.fmi.platforms import fmi2_folders
from fmilin.signals import FloatArray
from tests.fmus.make import pack

__all__ = ["exact_A", "springs_fmu"]

STIFFNESS, HARDENING, DAMPING = 4.0, 0.5, 0.1

SOURCE = """
#define NX {n}
#define M ({n} / 2)
#define NV (3 * NX + 4)
#define STATES {{{states}}}
#define DERIVATIVES {{{rates}}}
#define START {{0}}
#define ON_INSTANTIATE for (int i = 0; i < M; i++) m->r[i] = 0.1 * (i % 3);
#define DIRECTIONAL
#define ON_DIRECTIONAL return product(m, unknown, nUnknown, known, nKnown, seed, sensitivity);
#include "fmi2Functions.h"
struct model;
static fmi2Status product(void *, const fmi2ValueReference[], size_t, const fmi2ValueReference[], size_t,
                          const fmi2Real[], fmi2Real[]);
#include "fmi2_zoo.h"
static double partial(Model *m, fmi2ValueReference row, fmi2ValueReference column) {{ return 0; }}
static double gap(const double *x, int i) {{ return (i < M ? x[i] : 0) - (i > 0 ? x[i - 1] : 0); }}
static double force(double d) {{ return {stiffness} * d + {hardening} * d * d * d; }}
static double slope(double d) {{ return {stiffness} + 3 * {hardening} * d * d; }}
static void calculate(Model *m) {{ /* as tools do it: only what has changed since */
    double *r = m->r, *x = r, *v = r + M, u = r[2 * NX], *before = r + 2 * NX + 2, *is_known = r + 3 * NX + 3;
    if (*is_known && !memcmp(before, r, NX * sizeof *r) && before[NX] == u) return;
    *is_known = 1;
    memcpy(before, r, NX * sizeof *r);
    before[NX] = u;
    for (int i = 0; i < M; i++) {{
        r[NX + i] = v[i];
        r[NX + M + i] = force(gap(x, i + 1)) - force(gap(x, i)) - {damping} * v[i] + (i == 0) * u;
    }}
    r[2 * NX + 1] = x[M - 1];
}}
static fmi2Status product(void *c, const fmi2ValueReference unknown[], size_t nUnknown,
                          const fmi2ValueReference known[], size_t nKnown, const fmi2Real seed[],
                          fmi2Real sensitivity[]) {{
    static double d[NV], e[NX];
    Model *m = c;
    double *x = m->r;
    memset(d, 0, sizeof d);
    for (size_t j = 0; j < nKnown; j++) d[known[j]] += seed[j];
    for (int i = 0; i < M; i++) {{
        e[i] = d[M + i];
        e[M + i] = slope(gap(x, i + 1)) * gap(d, i + 1) - slope(gap(x, i)) * gap(d, i) - {damping} * d[M + i];
    }}
    e[M] += d[2 * NX];
    for (size_t i = 0; i < nUnknown; i++) {{
        fmi2ValueReference row = unknown[i];
        if (row >= NX && row < 2 * NX) sensitivity[i] = e[row - NX];
        else if (row == 2 * NX + 1) sensitivity[i] = d[M - 1];
        else return fmi2Error;
    }}
    return fmi2OK;
}}
"""


def springs_fmu(n: int, folder: Path, *, directional: bool, declared: bool) -> Case:
    """Compile the FMU with ``n`` states, an even number, and return where it is and what is in it."""
    name = f"springs{n}"
    library = folder / f"{name}{library_suffix()}"
    if not library.exists():
        _compile(n, library)
    path = folder / f"{name}_{directional:d}{declared:d}.fmu"
    token = f"{{{path.stem}}}"
    if not path.exists():
        members: dict[str, bytes | str] = {
            "modelDescription.xml": _description(n, name, token, directional=directional, declared=declared),
            f"binaries/{fmi2_folders()[0]}/{library.name}": library.read_bytes(),
        }
        pack(path, members)
    return Case(path, library, list(range(n)), list(range(n, 2 * n)), [2 * n], [2 * n + 1], token)


def exact_A(n: int) -> FloatArray:
    """Return A at the start, by the derivatives of the springs' forces, states in the order of the FMU."""
    m = n // 2
    gaps = np.diff(0.1 * (np.arange(m) % 3), prepend=0.0, append=0.0)
    slopes = STIFFNESS + 3 * HARDENING * gaps**2
    A = np.zeros((n, n))
    A[:m, m:] = np.eye(m)
    A[m:, :m] = np.diag(-slopes[:-1] - slopes[1:]) + np.diag(slopes[1:-1], 1) + np.diag(slopes[1:-1], -1)
    A[m:, m:] = -DAMPING * np.eye(m)
    return A


def _compile(n: int, library: Path) -> None:
    numbers = {"states": ", ".join(map(str, range(n))), "rates": ", ".join(map(str, range(n, 2 * n)))}
    constants = {"stiffness": STIFFNESS, "hardening": HARDENING, "damping": DAMPING}
    source = library.with_suffix(".c")
    source.write_text(SOURCE.format(n=n, **numbers, **constants))
    compiled([source], library, "-shared", "-fPIC", "-lm")


def _description(n: int, identifier: str, token: str, *, directional: bool, declared: bool) -> str:
    m = n // 2
    names = [f"{kind}[{i + 1}]" for kind in "xv" for i in range(m)]
    starts = [0.1 * (i % 3) if i < m else 0.0 for i in range(n)]
    lines = [
        f'<ScalarVariable name="{name}" valueReference="{i}" initial="exact"><Real start="{start!r}"/></ScalarVariable>'
        for i, (name, start) in enumerate(zip(names, starts, strict=True))
    ]
    lines += [
        f'<ScalarVariable name="der({name})" valueReference="{n + i}"><Real derivative="{i + 1}"/></ScalarVariable>'
        for i, name in enumerate(names)
    ]
    lines.append(
        f'<ScalarVariable name="u" valueReference="{2 * n}" causality="input"><Real start="0"/></ScalarVariable>'
    )
    lines.append(f'<ScalarVariable name="y" valueReference="{2 * n + 1}" causality="output"><Real/></ScalarVariable>')
    rates = "\n".join(
        f'<Unknown index="{n + row + 1}"{_declare(columns) if declared else ""}/>'
        for row, columns in enumerate(_columns(n))
    )
    output = f'<Unknown index="{2 * n + 2}"{_declare([m]) if declared else ""}/>'
    provides = ' providesDirectionalDerivative="true"' if directional else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<fmiModelDescription fmiVersion="2.0" modelName="springs" '
        f'guid="{token}" numberOfEventIndicators="0">\n<ModelExchange modelIdentifier="{identifier}"{provides}/>\n'
        "<ModelVariables>\n" + "\n".join(lines) + "\n</ModelVariables>\n<ModelStructure>\n"
        f"<Outputs>{output}</Outputs>\n<Derivatives>\n{rates}\n</Derivatives>\n</ModelStructure>\n"
        "</fmiModelDescription>"
    )


def _columns(n: int) -> Iterator[list[int]]:
    """Yield the indices, from 1, of the variables on which each derivative depends."""
    m = n // 2
    for i in range(m):
        yield [m + i + 1]
    for i in range(m):
        columns = [j + 1 for j in (i - 1, i, i + 1) if 0 <= j < m]
        columns.append(m + i + 1)
        if i == 0:
            columns.append(2 * n + 1)
        yield columns


def _declare(columns: list[int]) -> str:
    return f' dependencies="{" ".join(map(str, columns))}"'
