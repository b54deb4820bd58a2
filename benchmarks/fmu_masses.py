"""FMUs of n/2 masses that all pull at each other, compiled here, and the driver in C that calls them in a loop."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fmilin.codegen.compiler import library_suffix
from fmilin.fmi.platforms import fmi2_folders
from fmilin.fmi.read import read_description
from tests.fmus.make import pack

HERE = Path(__file__).parent


SOURCE = """
#define NX {n}
#define NV (2 * NX + 2)
#define STATES {{{states}}}
#define DERIVATIVES {{{rates}}}
#define START {{{start}}}
#define DIRECTIONAL
#include "fmi2_zoo.h"
#define M (NX / 2)
static void calculate(Model *m) {{ /* as tools do it: only what has changed since */
    static double before[NX + 1];
    double *r = m->r, *x = r, *v = r + M, u = r[2 * NX], sum = 0;
    if (!memcmp(before, r, NX * sizeof *r) && before[NX] == u) return;
    memcpy(before, r, NX * sizeof *r);
    before[NX] = u;
    for (int i = 0; i < M; i++) {{
        double a = -x[i] - 0.1 * v[i] + u;
        for (int j = 0; j < M; j++) a -= sin(x[i] - x[j]);
        r[NX + i] = v[i];
        r[NX + M + i] = a;
        sum += x[i];
    }}
    r[2 * NX + 1] = sum;
}}
static double partial(Model *m, fmi2ValueReference row, fmi2ValueReference column) {{
    double *x = m->r;
    if (row == 2 * NX + 1) return column < M;
    int i = row - NX, j = column;
    if (i < M) return j == M + i;
    i -= M;
    if (j == 2 * NX) return 1;
    if (j >= M) return -0.1 * (j - M == i);
    if (j != i) return cos(x[i] - x[j]);
    double d = -1;
    for (int k = 0; k < M; k++) d -= (k != i) * cos(x[i] - x[k]);
    return d;
}}
"""


@dataclass(frozen=True)
class Case:
    """One FMU."""

    path: Path
    library: Path
    states: list[int]
    rates: list[int]
    inputs: list[int]
    outputs: list[int]
    token: str


def made(n: int, folder: Path) -> Case:
    half = n // 2
    names = [f"x[{i + 1}]" for i in range(half)] + [f"v[{i + 1}]" for i in range(half)]
    lines = [
        f'<ScalarVariable name="{name}" valueReference="{i}" initial="exact"><Real start="{0.1 * (i % 7)}"/>'
        "</ScalarVariable>"
        for i, name in enumerate(names)
    ]
    lines += [
        f'<ScalarVariable name="der({name})" valueReference="{n + i}"><Real derivative="{i + 1}"/></ScalarVariable>'
        for i, name in enumerate(names)
    ]
    lines += [
        f'<ScalarVariable name="u" valueReference="{2 * n}" causality="input"><Real start="0"/></ScalarVariable>',
        f'<ScalarVariable name="y" valueReference="{2 * n + 1}" causality="output" variability="continuous"><Real/>'
        "</ScalarVariable>",
    ]
    unknowns = "".join(f'<Unknown index="{n + i + 1}"/>' for i in range(n))
    xml = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<fmiModelDescription fmiVersion="2.0" modelName="masses" '
        f'guid="{{masses{n}}}" numberOfEventIndicators="0">\n<ModelExchange modelIdentifier="masses{n}" '
        'providesDirectionalDerivative="true"/>\n<ModelVariables>\n' + "\n".join(lines) + "\n</ModelVariables>\n"
        f'<ModelStructure><Outputs><Unknown index="{2 * n + 2}"/></Outputs><Derivatives>{unknowns}</Derivatives>'
        "</ModelStructure>\n</fmiModelDescription>"
    )
    numbers = ", ".join
    source = folder / f"masses{n}.c"
    start = numbers(str(0.1 * (i % 7)) for i in range(n))
    text = SOURCE.format(
        n=n, states=numbers(map(str, range(n))), rates=numbers(str(n + i) for i in range(n)), start=start
    )
    source.write_text(text)
    library = folder / f"masses{n}{library_suffix()}"
    compiled([source], library, "-shared", "-fPIC", "-lm")
    members: dict[str, bytes | str] = {
        "modelDescription.xml": xml,
        f"binaries/{fmi2_folders()[0]}/{library.name}": library.read_bytes(),
    }
    path = pack(folder / f"masses{n}.fmu", members)
    return Case(path, library, list(range(n)), list(range(n, 2 * n)), [2 * n], [2 * n + 1], f"{{masses{n}}}")


def case_of(path: Path, unpacked: Path) -> Case:
    d = read_description(path)
    library = next(unpacked.glob(f"binaries/{fmi2_folders()[0]}/*{library_suffix()}"))
    inputs = [v.reference for v in d.variables.with_causality("input")]
    outputs = [u.variable.reference for u in d.outputs]
    return Case(
        path,
        library,
        [s.reference for s in d.states],
        [u.variable.reference for u in d.derivatives],
        inputs,
        outputs,
        d.token,
    )


def compiled(sources: list[Path], target: Path, *options: str) -> None:
    package = find_spec("fmpy")
    assert package is not None
    assert package.submodule_search_locations
    headers = Path(package.submodule_search_locations[0]) / "c-code"
    zoo = HERE.parent / "tests" / "fmus"
    command = ["cc", "-O2", "-w", f"-I{headers}", f"-I{zoo}", *map(str, sources), "-o", str(target), *options]
    subprocess.run(command, check=True)


def floor(driver: Path, case: Case) -> tuple[float, float]:
    """Return nanoseconds per evaluation and per directional derivative from C."""
    n, k, m = len(case.states), len(case.inputs), len(case.outputs)
    rounds = max(100, 200_000 // max(n, 1) ** 2)
    references = [*case.inputs, *case.outputs, *case.states, *case.inputs, *case.rates, *case.outputs]
    command = [driver, case.library, case.token, f"file://{driver.parent}", n, k, m, rounds, *references]
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    visit, product = done.stdout.split()
    return float(visit), float(product)
