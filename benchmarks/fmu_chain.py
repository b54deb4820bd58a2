"""FMUs of n lags in a row, each pulled by its two neighbours: what declared dependencies save.

The peer is a script over FMPy that knows the same colors: one one-sided difference, or one directional derivative, for
each color, at one step, without checking anything else.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np

import fmilin as fl
from benchmarks.fmu_masses import Case, compiled
from benchmarks.tables import show
from fmilin.codegen.compiler import library_suffix
from fmilin.fmi.platforms import fmi2_folders
from fmilin.fmi.read import FmuModel
from tests.fmus.make import pack

SIZES = (200, 1000, 3000)
ROUNDS = 7
STEP = 1e-6

SOURCE = """
#define NX {n}
#define NV (2 * NX + 2)
#define STATES {{{states}}}
#define DERIVATIVES {{{rates}}}
#define START {{{start}}}
{directional}
#include "fmi2_zoo.h"
static void calculate(Model *m) {{ /* as tools do it: only what has changed since */
    static double before[NX + 1];
    double *x = m->r, *rate = x + NX, u = x[2 * NX];
    if (!memcmp(before, x, NX * sizeof *x) && before[NX] == u) return;
    memcpy(before, x, NX * sizeof *x);
    before[NX] = u;
    for (int i = 0; i < NX; i++) {{
        rate[i] = u - 3 * x[i] * x[i] * x[i] - x[i];
        if (i) rate[i] += sin(x[i - 1] - x[i]);
        if (i < NX - 1) rate[i] += sin(x[i + 1] - x[i]);
    }}
    x[2 * NX + 1] = x[NX / 2] * x[NX / 2];
}}
#ifdef DIRECTIONAL
static double partial(Model *m, fmi2ValueReference row, fmi2ValueReference column) {{
    double *x = m->r, d = 0;
    if (row == 2 * NX + 1) return column == NX / 2 ? 2 * x[NX / 2] : 0;
    int i = row - NX, j = column;
    if (j == 2 * NX) return 1;
    if (j == i - 1 || j == i + 1) return cos(x[j] - x[i]);
    if (j != i) return 0;
    if (i) d -= cos(x[i - 1] - x[i]);
    if (i < NX - 1) d -= cos(x[i + 1] - x[i]);
    return d - 1 - 9 * x[i] * x[i];
}}
#endif
"""


@dataclass(frozen=True)
class Kind:
    """Which of both an FMU says of itself."""

    declares: bool
    directional: bool


def make_chain(n: int, kind: Kind, folder: Path) -> Case:
    """Compile and pack the FMU."""
    name = f"chain{n}{'d' * kind.declares}{'p' * kind.directional}"
    start = [0.1 * (i % 7) for i in range(n)]
    rates, numbers = list(range(n, 2 * n)), ", ".join
    lines = [
        f'<ScalarVariable name="x[{i + 1}]" valueReference="{i}" initial="exact"><Real start="{value!r}"/>'
        "</ScalarVariable>"
        for i, value in enumerate(start)
    ]
    lines += [
        f'<ScalarVariable name="der(x[{i + 1}])" valueReference="{n + i}"><Real derivative="{i + 1}"/></ScalarVariable>'
        for i in range(n)
    ]
    lines += [
        f'<ScalarVariable name="u" valueReference="{2 * n}" causality="input"><Real start="0"/></ScalarVariable>',
        f'<ScalarVariable name="y" valueReference="{2 * n + 1}" causality="output" variability="continuous"><Real/>'
        "</ScalarVariable>",
    ]

    def declared(knowns: list[int]) -> str:
        return f' dependencies="{" ".join(map(str, knowns))}"' if kind.declares else ""

    unknowns = "".join(
        f'<Unknown index="{n + i + 1}"{declared([j + 1 for j in (i - 1, i, i + 1) if 0 <= j < n] + [2 * n + 1])}/>'
        for i in range(n)
    )
    output = f'<Unknown index="{2 * n + 2}"{declared([n // 2 + 1])}/>'
    provided = ' providesDirectionalDerivative="true"' if kind.directional else ""
    xml = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<fmiModelDescription fmiVersion="2.0" modelName="chain" '
        f'guid="{{{name}}}" numberOfEventIndicators="0">\n<ModelExchange modelIdentifier="{name}"{provided}/>\n'
        "<ModelVariables>\n" + "\n".join(lines) + f"\n</ModelVariables>\n<ModelStructure><Outputs>{output}</Outputs>"
        f"<Derivatives>{unknowns}</Derivatives></ModelStructure>\n</fmiModelDescription>"
    )
    source, library = folder / f"{name}.c", folder / f"{name}{library_suffix()}"
    text = SOURCE.format(
        n=n,
        states=numbers(map(str, range(n))),
        rates=numbers(map(str, rates)),
        start=numbers([*map(repr, start), *["0"] * (n + 2)]),
        directional="#define DIRECTIONAL" if kind.directional else "",
    )
    source.write_text(text)
    compiled([source], library, "-shared", "-fPIC", "-lm")
    members: dict[str, bytes | str] = {
        "modelDescription.xml": xml,
        f"binaries/{fmi2_folders()[0]}/{library.name}": library.read_bytes(),
    }
    path = pack(folder / f"{name}.fmu", members)
    return Case(path, library, list(range(n)), rates, [2 * n], [2 * n + 1], f"{{{name}}}")


def main() -> None:
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    with tempfile.TemporaryDirectory(prefix="fmilin-bench-") as name:
        folder = Path(name)
        rows = []
        for n in sizes:
            for directional in (False, True):
                case = make_chain(n, Kind(declares=True, directional=directional), folder)
                rows.append(compare(n, case, directional=directional))
    show(
        "FMUs with declared dependencies: one linear model, warm",
        ["states", "derivatives", "fmilin", "FMPy script", "ratio"],
        rows,
        "Processor time of this process, without the FMU's host; medians of interleaved rounds, each at its own point. "
        "The script calls the FMU in its own process, with a difference or a directional derivative for each color.",
    )


def compare(n: int, case: Case, *, directional: bool) -> list[str]:
    """Return a row of processor times."""
    with fl.load(case.path) as model, by_fmpy(case, directional=directional) as script:
        assert isinstance(model, FmuModel)
        point = fl.operating_point(model)
        linear = fl.linearize(model, point)
        A = script()[:n, :n]
        assert np.allclose(linear.A, A, atol=1e-4), np.abs(linear.A - A).max()
        rounds = ROUNDS if n <= 1000 else 3
        samples = []
        for i in range(1, rounds + 1):
            other = replace(point, states=point.states + 1e-9 * i)  # derivatives at the last point are remembered
            peer = min(spent(script) for _ in range(5))
            samples.append((spent(partial(fl.linearize, model, other)), peer))
        ours, theirs = (median(values) for values in zip(*samples, strict=True))
        ratio = median(mine / its for mine, its in samples)
        kind = "directional" if directional else "differences"
        return [str(n), kind, f"{ours * 1e3:.2f} ms", f"{theirs * 1e3:.3f} ms", f"{ratio:.1f}"]


def spent(call: Callable[[], Any]) -> float:
    begin = process_time()
    call()
    return process_time() - begin


@contextmanager
def by_fmpy(case: Case, *, directional: bool) -> Iterator[Callable[[], Any]]:
    """The script, in the same process."""
    import ctypes
    import shutil

    import fmpy
    from fmpy.fmi2 import FMU2Model

    folder = fmpy.extract(str(case.path))
    fmu = FMU2Model(guid=case.token, modelIdentifier=case.library.stem, unzipDirectory=folder, instanceName="m")
    fmu.instantiate()
    fmu.setupExperiment(startTime=0.0)
    fmu.enterInitializationMode()
    fmu.exitInitializationMode()
    fmu.enterContinuousTimeMode()
    n = len(case.states)
    x, rates = (ctypes.c_double * n)(), (ctypes.c_double * n)()
    fmu.getContinuousStates(x, n)
    point, u0 = np.array(x), fmu.getReal(case.inputs)
    columns, rows = chain_entries(n)
    colors = np.append(np.arange(n) % 3, 3)
    groups = [np.flatnonzero(colors == color) for color in range(4)]
    unknowns, knowns = [*case.rates, *case.outputs], np.array([*case.states, *case.inputs])

    def visit(values: np.ndarray) -> np.ndarray:
        ctypes.memmove(x, values[:n].ctypes.data, 8 * n)
        fmu.setContinuousStates(x, n)
        fmu.setReal(case.inputs, values[n:].tolist())
        fmu.getDerivatives(rates, n)
        return np.append(np.array(rates), fmu.getReal(case.outputs))

    def fill(answers: np.ndarray) -> np.ndarray:
        J = np.zeros((n + 1, n + 1))
        J[rows, columns] = answers[colors[columns], rows]
        return J

    def by_differences() -> np.ndarray:
        values = np.append(point, u0)
        base = visit(values)
        answers = []
        for group in groups:
            moved = values.copy()
            moved[group] += STEP
            answers.append((visit(moved) - base) / STEP)
        return fill(np.array(answers))

    def by_products() -> np.ndarray:
        visit(np.append(point, u0))
        answers = [
            fmu.getDirectionalDerivative(unknowns, knowns[group].tolist(), [1.0] * len(group)) for group in groups
        ]
        return fill(np.array(answers))

    try:
        yield by_products if directional else by_differences
    finally:
        fmu.terminate()
        fmu.freeInstance()
        shutil.rmtree(folder, ignore_errors=True)


def chain_entries(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return columns and rows of the entries that the chain declares."""
    i = np.arange(n)
    pairs = [(i, i), (i[:-1], i[1:]), (i[1:], i[:-1]), (np.full(n, n), i), (np.array([n // 2]), np.array([n]))]
    columns, rows = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return columns, rows


if __name__ == "__main__":
    main()
