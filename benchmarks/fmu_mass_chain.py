"""FMUs of chains of masses: many states, few dependencies that are declared, directional derivatives, a closed form.

Mass i of m hangs between its neighbours, the ends are fixed; springs harden unless ``hardening`` is zero. A force u
acts on the first mass, y is the position of the last one, and ``squares`` is a sum over all positions.

The peer is a script over FMPy that knows the same colors: one directional derivative for each, into a sparse matrix,
without checking anything else.
"""

from __future__ import annotations

import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fmilin as fl
from benchmarks.fmu_chain import spent
from benchmarks.fmu_masses import compiled
from benchmarks.tables import show
from fmilin.codegen.compiler import library_suffix
from fmilin.fmi.platforms import fmi2_folders
from tests.fmus.make import pack

DAMPING = 0.1
SIZES = (500, 1000, 2000, 3000, 5000)
ROUNDS = 11

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


def main() -> None:
    rows, times = [], []
    with tempfile.TemporaryDirectory(prefix="fmilin-bench-") as name:
        for n in SIZES:
            ours, theirs, ratio, megabytes = compare(n, build_chain(n, Path(name), hardening=0.3, start=0.2))
            times.append(ours)
            rows.append(
                [str(n), f"{ours * 1e3:.1f} ms", f"{theirs * 1e3:.2f} ms", f"{ratio:.1f}", f"{megabytes:.1f} MB"]
            )
    exponent = float(np.polyfit(np.log(SIZES), np.log(times), 1)[0])
    show(
        "Large FMUs with declared dependencies: one linear model, warm",
        ["states", "fmilin", "FMPy script", "ratio", "memory"],
        rows,
        "Processor time of this process, without the FMU's host; medians of interleaved rounds, each at its own point. "
        f"Memory is the peak of what Python allocates. Exponent of time over states: {exponent:.2f}.",
    )


def compare(n: int, path: Path) -> tuple[float, float, float, float]:
    """Return seconds of fmilin and of the script, the median of their ratio, and the megabytes that fmilin takes."""
    with fl.load(path) as model, by_fmpy(n, path) as script:
        start = model.start
        linear = fl.linearize(model, outputs=["y"])
        assert abs(script()[:n, :n] - linear.sparse.A).max() < 1e-12
        samples = []
        for i in range(1, ROUNDS + 1):
            point = replace(start, states=start.states * (1 + 1e-9 * i))
            samples.append((spent(partial(fl.linearize, model, point, outputs=["y"])), spent(script)))
        tracemalloc.start()
        fl.linearize(model, replace(start, states=start.states * 1.001), outputs=["y"])
        megabytes = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
    ours, theirs = (median(values) for values in zip(*samples, strict=True))
    return ours, theirs, median(mine / its for mine, its in samples), megabytes


@contextmanager
def by_fmpy(n: int, path: Path) -> Iterator[Callable[[], Any]]:
    """The script, which calls the FMU in this process."""
    import ctypes
    import shutil

    import fmpy
    from fmpy.fmi2 import FMU2Model
    from scipy import sparse

    folder = fmpy.extract(str(path))
    fmu = FMU2Model(guid=f"{{chain{n}}}", modelIdentifier=f"chain{n}", unzipDirectory=folder, instanceName="m")
    fmu.instantiate()
    fmu.setupExperiment(startTime=0.0)
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()
    fmu.enterContinuousTimeMode()
    x = (ctypes.c_double * n)()
    fmu.getContinuousStates(x, n)
    m, i = n // 2, np.arange(n // 2)
    entries = [
        (i, m + i),
        (m + i, i),
        (m + i[1:], i[:-1]),
        (m + i[:-1], i[1:]),
        (m + i, m + i),
        ([m], [n]),
        ([n], [m - 1]),
    ]
    rows, columns = (np.concatenate(part) for part in zip(*entries, strict=True))
    colors = np.concatenate((i % 3, np.full(m, 3), [4]))
    knowns = np.array([*range(n), 2 * n])
    groups = [knowns[colors == color].tolist() for color in range(5)]
    unknowns = [*range(n, 2 * n), 2 * n + 1]

    def linearize() -> Any:
        fmu.setContinuousStates(x, n)
        fmu.setReal([2 * n], [0.0])
        answers = [fmu.getDirectionalDerivative(unknowns, group, [1.0] * len(group)) for group in groups]
        return sparse.csr_array((np.array(answers)[colors[columns], rows], (rows, columns)), shape=(n + 1, n + 1))

    try:
        yield linearize
    finally:
        fmu.terminate()
        fmu.freeInstance()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
