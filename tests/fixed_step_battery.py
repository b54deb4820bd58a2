"""Fixed-step FMUs of plants and integrators that nothing was tuned for, against their own transfer functions.

``python -m tests.fixed_step_battery`` prints a table: right, told (with a warning and a stated error), refused, or
silently wrong.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import sympy

import fmilin as fl
from fmilin.codegen.compiler import library_suffix
from fmilin.fmi.platforms import fmi2_folders
from fmilin.signals import FloatArray
from tests.fmus.make import pack

FOLDER = Path(__file__).parent / "fmus" / "stepped"
INTEGRATORS = (
    "Euler", "velocities first", "positions first", "midpoint", "Heun", "RK4", "trapezoid", "implicit Euler",
    "BDF2", "AB2",
)  # fmt: skip
HOLDS, COMMUNICATES, REFUSES, ROUNDS = 1, 3, 4, 5
RIGHT, SMALL = 1e-5, 1e-3  # errors that are right, and that need no warning where they are stated
SILENT = 10.0  # a stated error times this does not hold the error
x = sympy.symbols("x0:6")
u = sympy.Symbol("u0")


@dataclass(frozen=True)
class Plant:
    """Rates and outputs in x0, x1, ... and u0, which states are positions, and the point."""

    name: str
    rates: tuple[sympy.Expr, ...]
    outputs: tuple[sympy.Expr, ...]
    positions: tuple[int, ...] = ()
    start: tuple[float, ...] = ()
    held: float = 0.0

    @property
    def states(self) -> tuple[float, ...]:
        """Return the start values of the states."""
        return self.start or (0.0,) * len(self.rates)

    def matrices(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return A, B, C, D at the point."""
        at = dict(zip(x, self.states, strict=False)) | {u: self.held}
        variables = sympy.Matrix([*x[: len(self.rates)], u])
        n = len(self.rates)
        f, y = (
            np.array(sympy.Matrix(rows).jacobian(variables).subs(at).tolist(), dtype=float)
            for rows in (self.rates, self.outputs)
        )
        return f[:, :n], f[:, n:], y[:, :n], y[:, n:]


@dataclass(frozen=True)
class Case:
    """A plant, its integrator, the step, and what is done between steps."""

    plant: Plant
    integrator: str
    step: float
    mode: int = REFUSES

    @property
    def name(self) -> str:
        """Return a name for a table."""
        return f"{self.plant.name}, {self.integrator}, {self.step:g} s"


def _double_mass(name: str, outputs: tuple[sympy.Expr, ...]) -> Plant:
    force = 12.5 * (x[0] - x[2]) + 0.21 * (x[1] - x[3])
    return Plant(name, (x[1], (u - force - 4.0 * x[0]) / 1.3, x[3], force / 0.7), outputs, (0, 2))


def _pendulum(name: str, angle: float, speed: float, held: float, outputs: tuple[sympy.Expr, ...]) -> Plant:
    return Plant(name, (x[1], u - 7.29 * sympy.sin(x[0]) - 0.19 * x[1]), outputs, (0,), (angle, speed), held)


def _oscillator(name: str, output: sympy.Expr) -> Plant:
    return Plant(name, (x[1], u - 5.499 * x[0] - 0.317 * x[1]), (output,), (0,))


MASSES = _double_mass("double mass", (x[0], x[2]))
ONE_MASS = _double_mass("double mass, one output", (x[2],))
MOTOR = Plant(
    "motor with current",
    ((u - 1.17 * x[0] - 0.31 * x[1]) / 0.113, (0.31 * x[0] - 0.0017 * x[1]) / 0.0213, x[1]),
    (x[2],),
    (2,),
)
THREE = Plant(
    "three oscillators",
    (x[1], u - 1.2132 * x[0] - 0.1119 * x[1], x[3], 2 * u - 13.693 * x[2] - 0.21931 * x[3], x[5],
     3 * u - 62.417 * x[4] - 0.40713 * x[5]),
    (x[0] + x[2] + x[4], x[0] - x[4]),
    (0, 2, 4),
)  # fmt: skip
LOOP = Plant("PI loop", (1.7 * (3.1 * (u - x[0]) + 4.7 * x[1]) - 2.3 * x[0], u - x[0]), (x[0],))
HIDDEN = Plant("a state that no input moves", (x[1], u - 5.4756 * x[0] - 0.3 * x[1], 1.5 - 1.23 * x[2]),
               (x[0] + x[2], x[1]), (0,), (0.0, 0.0, 1.5 / 1.23))  # fmt: skip
FEEDTHROUGH = _oscillator("feedthrough", x[0] + 0.61 * u)
ACCELERATION = _oscillator("acceleration", u - 5.499 * x[0] - 0.317 * x[1])
FREE = Plant("free mass", (x[1], u / 1.37), (x[0],), (0,))
STIFF = Plant("stiff and slow", (1.9 * x[1] - 0.137 * x[0], u - 213.0 * x[1]), (x[0], x[1]))
STATIC_PENDULUM = _pendulum("pendulum held", 0.7, 0.0, float(7.29 * np.sin(0.7)), (x[0],))
MOVING = _pendulum("pendulum that moves", 0.7, 0.9, 0.0, (x[0], x[1]))

CASES = tuple(
    Case(plant, integrator, step, mode)
    for plant, cases in (
        (MASSES, (("Euler", 0.01, ROUNDS), ("velocities first", 0.01, REFUSES), ("positions first", 0.01, HOLDS),
                  ("RK4", 0.05, COMMUNICATES), ("implicit Euler", 0.01, REFUSES))),
        (ONE_MASS, (("Heun", 0.01, REFUSES), ("trapezoid", 0.02, REFUSES), ("implicit Euler", 1e-3, REFUSES),
                    ("velocities first", 1e-3, REFUSES), ("AB2", 5e-3, REFUSES))),
        (MOTOR, (("Euler", 1e-3, REFUSES), ("velocities first", 0.01, REFUSES), ("trapezoid", 0.01, REFUSES),
                 ("RK4", 0.01, ROUNDS), ("midpoint", 0.01, HOLDS), ("BDF2", 0.01, REFUSES))),
        (THREE, (("Euler", 0.01, REFUSES), ("velocities first", 0.01, REFUSES), ("RK4", 0.05, REFUSES),
                 ("trapezoid", 0.02, HOLDS))),
        (LOOP, (("Euler", 0.01, REFUSES), ("RK4", 0.05, COMMUNICATES), ("trapezoid", 0.05, REFUSES))),
        (HIDDEN, (("Euler", 0.01, REFUSES), ("velocities first", 0.02, REFUSES), ("RK4", 0.05, HOLDS))),
        (FEEDTHROUGH, (("Euler", 0.02, REFUSES), ("velocities first", 0.02, REFUSES), ("RK4", 0.1, COMMUNICATES))),
        (ACCELERATION, (("Euler", 0.01, HOLDS), ("trapezoid", 0.05, REFUSES))),
        (FREE, (("Euler", 0.01, REFUSES), ("velocities first", 0.01, REFUSES), ("RK4", 0.1, COMMUNICATES),
                ("trapezoid", 0.01, HOLDS))),
        (STIFF, (("Euler", 1e-3, REFUSES), ("implicit Euler", 0.05, REFUSES), ("RK4", 5e-3, REFUSES),
                 ("trapezoid", 0.01, REFUSES))),
        (STATIC_PENDULUM, (("Euler", 0.01, REFUSES), ("RK4", 0.05, HOLDS), ("Heun", 0.01, REFUSES))),
        (MOVING, (("Euler", 0.01, REFUSES), ("velocities first", 0.01, HOLDS), ("trapezoid", 0.02, COMMUNICATES),
                  ("RK4", 0.02, REFUSES), ("implicit Euler", 0.01, ROUNDS))),
    )
    for integrator, step, mode in cases
)  # fmt: skip


def build(case: Case, folder: Path) -> Path:
    """Write the FMU."""
    plant = case.plant
    n, outputs = len(plant.rates), len(plant.outputs)
    symbols = {x[i]: sympy.Symbol(f"x[{i}]") for i in range(n)} | {u: sympy.Symbol("u[0]")}
    jacobian = list(sympy.Matrix(plant.rates).jacobian(sympy.Matrix(x[:n])))
    lines = [f"static const int GROUP[] = {{{','.join(str(int(i not in plant.positions)) for i in range(n))}, 1}};"]
    for name, rows in (("rates", plant.rates), ("outs", plant.outputs), ("jac", jacobian)):
        body = " ".join(f"d[{i}] = {sympy.ccode(sympy.sympify(row).subs(symbols))};" for i, row in enumerate(rows))
        lines.append(f"static void {name}(const double *x, const double *u, double *d) {{ {body} }}")
    lines.append(f"#define X0 {{{','.join(repr(float(value)) for value in plant.states)}, 0}}")
    lines.append(f"#define U0 {{{plant.held!r}, 0}}")
    (folder / "gen.h").write_text("\n".join(lines) + "\n")
    values = {"NX": n, "NU": 1, "NY": outputs, "H": case.step, "MODE": case.mode}
    values["SOLVER"] = INTEGRATORS.index(case.integrator)
    package = find_spec("fmpy")
    assert package is not None
    assert package.submodule_search_locations
    headers = Path(package.submodule_search_locations[0]) / "c-code"
    library = folder / f"plant{library_suffix()}"
    defined = [f"-D{name}={value!r}" for name, value in values.items()]
    includes = [f"-I{headers}", f"-I{FOLDER}", f"-I{folder}"]
    command = ["cc", "-shared", "-fPIC", "-O1", "-w", *includes, *defined, str(FOLDER / "fixed_step.c")]
    subprocess.run([*command, "-o", str(library), "-lm"], check=True)
    rows = [f'<ScalarVariable name="u" valueReference="{n}" causality="input"><Real start="{plant.held!r}"/>']
    rows += [
        f'<ScalarVariable name="y{i}" valueReference="{n + 1 + i}" causality="output"><Real/>' for i in range(outputs)
    ]
    listed = "".join(f'<Unknown index="{i + 2}"/>' for i in range(outputs))
    xml = (
        '<?xml version="1.0" encoding="UTF-8"?><fmiModelDescription fmiVersion="2.0" modelName="plant" guid="{plant}">'
        '<CoSimulation modelIdentifier="plant" canGetAndSetFMUstate="true" '
        'canHandleVariableCommunicationStepSize="true"/>'
        f'<DefaultExperiment startTime="0" stepSize="{case.step!r}"/>'
        f"<ModelVariables>{''.join(f'{row}</ScalarVariable>' for row in rows)}</ModelVariables>"
        f"<ModelStructure><Outputs>{listed}</Outputs></ModelStructure></fmiModelDescription>"
    )
    name = f"binaries/{fmi2_folders()[0]}/{library.name}"
    return pack(folder / "plant.fmu", {"modelDescription.xml": xml, name: library.read_bytes()})


def evaluate(A: FloatArray, B: FloatArray, C: FloatArray, D: FloatArray, s: complex) -> np.ndarray:
    """Return the transfer function at s."""
    return np.asarray(C @ np.linalg.solve(s * np.eye(len(A)) - A, B.astype(complex)) + D)


def measure_error(linear: fl.LinearModel, plant: Plant) -> float:
    """Return the largest error of the transfer function, relative."""
    A, B, C, D = plant.matrices()
    fastest = float(np.max(np.abs(np.linalg.eigvals(A)))) or 1.0
    worst = 0.0
    for s in fastest * np.array([0.05 + 0.1j, 0.3 + 0.1j, 0.3 + 1j, 0.3 + 3j]):
        true = evaluate(A, B, C, D, s)
        stated = evaluate(linear.A, linear.B, linear.C, linear.D, s)
        worst = max(worst, float(np.max(np.abs(stated - true)) / np.max(np.abs(true))))
    return worst


def judge(case: Case, folder: Path) -> tuple[str, str]:
    """Return "right", "told", "refused" or "silent", and why."""
    try:
        with warnings.catch_warnings(), fl.load(build(case, folder)) as model:
            warnings.simplefilter("ignore")
            linear = fl.linearize(model)
    except fl.NumericalError as refusal:
        return "refused", str(refusal)
    error = measure_error(linear, case.plant)
    stated = max(linear.accuracy.A, linear.accuracy.B, linear.accuracy.C, linear.accuracy.D)
    words = f"error {error:.1e}, stated {stated:.1e}"
    if error <= RIGHT:
        return "right", words
    needs_no_word = error <= SMALL or any(remark.kind == "accuracy" for remark in linear.warnings)
    return ("told" if error <= SILENT * stated and needs_no_word else "silent"), words


if __name__ == "__main__":
    for each in CASES:
        with tempfile.TemporaryDirectory() as directory:
            verdict, why = judge(each, Path(directory))
        sys.stdout.write(f"{each.name:55s} {verdict:8s} {why}\n")
        sys.stdout.flush()
