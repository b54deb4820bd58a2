"""FMUs of chains of masses: many states, few dependencies that are declared, directional derivatives, a closed form.

Mass i of m hangs between its neighbours, the ends are fixed; springs harden unless ``hardening`` is zero. A force u
acts on the first mass, y is the position of the last one, and ``squares`` is a sum over all positions.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.fmu_masses import compiled
from fmilin.codegen.compiler import library_suffix
from fmilin.fmi.platforms import fmi2_folders
from tests.fmus.make import pack

DAMPING = 0.1

SOURCE = """
#define NX {n}
#define NV (2 * NX + 3)
#define STATES {{{states}}}
#define DERIVATIVES {{{rates}}}
#define START {{{start}}}
#include <stddef.h>
#define ON_DIRECTIONAL return differentiate(m, unknown, nUnknown, known, nKnown, seed, sensitivity);
static int differentiate(void *m, const unsigned *unknown, size_t nu, const unsigned *known, size_t nk,
                         const double *seed, double *sensitivity);
#include "fmi2_zoo.h"
#define M (NX / 2)
#define HARD {hardening}
static double length(double *x, int i) {{ return (i < M ? x[i] : 0) - (i > 0 ? x[i - 1] : 0); }}
static void calculate(Model *m) {{ /* as tools do it: only what has changed since */
    static double before[NX + 1];
    double *r = m->r, *x = r, *v = r + M, u = r[2 * NX];
    if (!memcmp(before, r, NX * sizeof *r) && before[NX] == u) return;
    memcpy(before, r, NX * sizeof *r);
    before[NX] = u;
    for (int i = 0; i < M; i++) {{
        double a = length(x, i), b = length(x, i + 1);
        r[NX + i] = v[i];
        r[NX + M + i] = b + HARD * b * b * b - a - HARD * a * a * a - {damping} * v[i] + (i == 0 ? u : 0);
    }}
    r[2 * NX + 1] = x[M - 1];
    r[2 * NX + 2] = 0;
    for (int i = 0; i < M; i++) r[2 * NX + 2] += x[i] * x[i];
}}
static double stiffness(double *x, int i) {{ double a = length(x, i); return 1 + 3 * HARD * a * a; }}
static int differentiate(void *model, const unsigned *unknown, size_t nu, const unsigned *known, size_t nk,
                         const double *seed, double *sensitivity) {{
    static double d[2 * NX + 2];
    double *x = ((Model *)model)->r, *dx = d, *dv = d + M;
    memset(d, 0, sizeof d);
    for (size_t j = 0; j < nk; j++) d[known[j]] = seed[j];
    for (size_t k = 0; k < nu; k++) {{
        int i = (int)unknown[k] - NX - M;
        if (i < 0) sensitivity[k] = dv[i + M];
        else if (unknown[k] == 2 * NX + 1) sensitivity[k] = dx[M - 1];
        else if (unknown[k] == 2 * NX + 2) {{
            sensitivity[k] = 0;
            for (int j = 0; j < M; j++) sensitivity[k] += 2 * x[j] * dx[j];
        }}
        else sensitivity[k] = stiffness(x, i + 1) * length(dx, i + 1) - stiffness(x, i) * length(dx, i)
                              - {damping} * dv[i] + (i == 0 ? d[2 * NX] : 0);
    }}
    return 0;
}}
"""


def build_chain(n: int, folder: Path, *, hardening: float = 0.0, start: float = 0.0, declared: bool = True) -> Path:
    """Build the FMU of n / 2 masses; ``start`` is the size of the positions at which it starts."""
    half = n // 2
    names = [f"x[{i + 1}]" for i in range(half)] + [f"v[{i + 1}]" for i in range(half)]
    values = [start * ((i * 7919) % 13 - 6) / 6 if i < half else 0.0 for i in range(n)]
    lines = [
        f'<ScalarVariable name="{name}" valueReference="{i}" initial="exact"><Real start="{value}"/></ScalarVariable>'
        for i, (name, value) in enumerate(zip(names, values, strict=True))
    ]
    lines += [
        f'<ScalarVariable name="der({name})" valueReference="{n + i}"><Real derivative="{i + 1}"/></ScalarVariable>'
        for i, name in enumerate(names)
    ]
    lines += [
        f'<ScalarVariable name="u" valueReference="{2 * n}" causality="input"><Real start="0"/></ScalarVariable>',
        f'<ScalarVariable name="y" valueReference="{2 * n + 1}" causality="output"><Real/></ScalarVariable>',
        f'<ScalarVariable name="squares" valueReference="{2 * n + 2}" causality="output"><Real/></ScalarVariable>',
    ]

    def depends(i: int) -> str:
        if not declared:
            return ""
        if i < half:
            members = [half + i + 1]
        else:
            k = i - half
            members = [j + 1 for j in (k - 1, k, k + 1) if 0 <= j < half] + [half + k + 1]
            members += [2 * n + 1] if k == 0 else []
        return f' dependencies="{" ".join(map(str, members))}"'

    unknowns = "".join(f'<Unknown index="{n + i + 1}"{depends(i)}/>' for i in range(n))
    output = f' dependencies="{half}"' if declared else ""
    positions = f' dependencies="{" ".join(map(str, range(1, half + 1)))}"' if declared else ""
    xml = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<fmiModelDescription fmiVersion="2.0" modelName="chain" '
        f'guid="{{chain{n}}}" numberOfEventIndicators="0">\n<ModelExchange modelIdentifier="chain{n}" '
        'providesDirectionalDerivative="true"/>\n<ModelVariables>\n' + "\n".join(lines) + "\n</ModelVariables>\n"
        f'<ModelStructure><Outputs><Unknown index="{2 * n + 2}"{output}/>'
        f'<Unknown index="{2 * n + 3}"{positions}/></Outputs>'
        f"<Derivatives>{unknowns}"
        "</Derivatives></ModelStructure>\n</fmiModelDescription>"
    )
    numbers = ", ".join
    source = folder / f"chain{n}.c"
    source.write_text(
        SOURCE.format(
            n=n,
            states=numbers(map(str, range(n))),
            rates=numbers(str(n + i) for i in range(n)),
            start=numbers(map(str, values)),
            hardening=hardening,
            damping=DAMPING,
        )
    )
    library = folder / f"chain{n}{library_suffix()}"
    compiled([source], library, "-shared", "-fPIC", "-lm")
    return pack(
        folder / f"chain{n}.fmu",
        {"modelDescription.xml": xml, f"binaries/{fmi2_folders()[0]}/{library.name}": library.read_bytes()},
    )


def chain_eigenvalues(n: int) -> NDArray[np.complex128]:
    """Return the closed form for springs that do not harden: s^2 + c s + 4 sin^2(pi j / (2 m + 2)) = 0."""
    m = n // 2
    squares = 4 * np.sin(np.pi * np.arange(1, m + 1) / (2 * m + 2)) ** 2
    roots = np.sqrt(DAMPING**2 / 4 - squares + 0j)
    return np.sort_complex(np.concatenate((-DAMPING / 2 + roots, -DAMPING / 2 - roots)))
