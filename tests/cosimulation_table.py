"""Forty co-simulation FMUs with known answers: fixed steps, holds, limiters, limit cycles, gains, delays, resonances.

One library serves all: the plant, its solver and what the solver does between its steps are parameters, whose values
each model description states. What is true is the linear model of the plant itself, at its start values.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import linalg

import fmilin as fl
from fmilin import LinearModel, Stepping
from fmilin.codegen.compiler import library_suffix
from fmilin.fmi.platforms import fmi2_folders
from fmilin.signals import FloatArray
from tests.fmus.make import pack
from tests.fmus.stepped.make import compiled
from tests.identification.toys import transfer

__all__ = ["CASES", "Case", "Verdict", "build", "judged"]

LAG, OSCILLATOR, VAN_DER_POL, HOPF, GAIN, DRIVE, PENDULUM, TORSION, CHAIN, RATE, LATE, CART, MOTOR = range(13)
RUNGE_KUTTA, EULER, HEUN, SEMI_IMPLICIT, TRAPEZOID, IMPLICIT = range(6)
DIVIDES, HOLDS, RUNS_AHEAD, COMMUNICATES, REFUSES, ROUNDS, IGNORES = range(7)
REFERENCES = {**{f"x{i}": 10 + i for i in range(6)}, "u": 22, "y": 24, "y2": 25}
TENFOLD = 10.0  # times its estimate, that an entry may be wrong by
WORTHLESS = 0.5  # errors that no word excuses
SAME = 1e-5  # errors that need no word


@dataclass(frozen=True)
class Case:
    """One FMU and what is true of it."""

    name: str
    plant: int
    values: tuple[float, ...]  # parameters of the plant
    solver: tuple[int, float, int] = (RUNGE_KUTTA, 1e-3, DIVIDES)  # which, its step, between its steps
    outputs: tuple[str, ...] = ("y",)
    states: int = 0  # how many are declared
    starts: tuple[float, ...] = ()  # of the states
    inputs: tuple[str, ...] = ("u",)
    step: float | None = None  # that the description suggests
    u0: float = 0.0
    truth: bool = True  # whether there is a linear model that co-simulation can tell
    stepping: Stepping | None = None

    @property
    def family(self) -> str:
        """The first word of the name."""
        return self.name.split(":")[0]


@dataclass(frozen=True)
class Verdict:
    """What was said of one FMU, against what is true."""

    case: Case
    refusal: str
    remarks: tuple[str, ...]
    error: float  # of eigenvalues and transfer functions, relative
    said: float  # largest estimate, relative

    @property
    def silent(self) -> bool:
        """Whether a wrong model was let through without a word."""
        word = bool({"accuracy", "poor-fit"} & set(self.remarks)) and self.error < WORTHLESS
        return not self.refusal and not word and self.error > max(TENFOLD * self.said, SAME)

    @property
    def refused_in_vain(self) -> bool:
        """Whether there was something to be returned."""
        return bool(self.refusal) and self.case.truth


def plant_at_start(case: Case) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return A, B, C, D of the plant, inputs and outputs as declared."""
    p, x = (*case.values, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)[:6], (*case.starts, 0.0, 0.0)[:2]
    B, C, D = np.array([[0.0], [1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros((2, 1))
    D[0, 0] = p[5]
    if case.plant in (LAG, DRIVE):
        A, B, C = np.array([[-p[0]]]), np.array([[p[1]]]), np.array([[1.0], [0.0]])
        if case.plant == DRIVE:
            A, B = np.array([[-p[2]]]), np.array([[p[0]]])
    elif case.plant == OSCILLATOR:
        A = np.array([[0.0, 1.0], [-(p[0] ** 2) - 3 * p[2] * x[0] ** 2, -p[1]]])
    elif case.plant == VAN_DER_POL:
        A = np.array([[0.0, 1.0], [-1 - 2 * p[0] * x[0] * x[1], p[0] * (1 - x[0] ** 2)]])
    elif case.plant == PENDULUM:
        A = np.array([[0.0, 1.0], [-(p[0] ** 2) * np.cos(x[0]), -p[1]]])
    elif case.plant == GAIN:
        A, B, C, D = np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((2, 0)), np.array([[p[0]], [0.0]])
    elif case.plant == TORSION:
        k, J, L, d = p[:4]
        A = np.array([[0, 1, 0, 0], [-k / J, -d / J, k / J, d / J], [0, 0, 0, 1], [k / L, d / L, -k / L, -d / L]])
        B, C = np.array([[0], [1 / J], [0], [0]]), np.array([[1.0, 0, 0, 0], [0, 0, 1, 0]])
    elif case.plant == CHAIN:
        A = p[0] * (np.eye(6, k=-1) - np.eye(6))
        B, C = p[0] * np.eye(6)[:, :1], np.vstack((np.eye(6)[5], np.zeros(6)))
    elif case.plant == CART:
        A = np.zeros((4, 4))
        A[0, 1] = A[2, 3] = 1.0
        A[3] = [0.0, 0.0, p[2], -p[3]]
        B, C = np.array([[0.0], [1 / p[1]], [0.0], [-p[4] / p[1]]]), np.array([[1.0, 0, 0, 0], [0, 0, 1, 0]])
    elif case.plant == MOTOR:
        A = np.array([[-p[0] / p[2], -p[1] / p[2], 0], [p[1] / p[4], -p[3] / p[4], 0], [0, 1, 0]])
        B, C = np.array([[1 / p[2]], [0.0], [0.0]]), np.array([[0.0, 1, 0], [0, 0, 1]])
    elif case.plant == RATE:
        A, B, C = np.array([[-1 / p[0], 0.0], [1.0, 0.0]]), np.array([[1 / p[0]], [0.0]]), np.eye(2)
    else:  # Hopf's circle has no answer that co-simulation could tell, a late input none of finite order
        A, B, C, D = np.zeros((0, 0)), np.zeros((0, 1)), np.zeros((2, 0)), np.zeros((2, 1))
    shown = [{"y": 0, "x0": 0, "y2": 1, "x1": 1}[name] for name in case.outputs]
    return np.asarray(A, float), B[:, : len(case.inputs)], C[shown], D[shown, : len(case.inputs)]


def parameters(case: Case) -> dict[str, float]:
    """Return the values of the FMU's parameters and of its states."""
    p = (case.plant, *case.solver, *case.values)
    return {f"p{i}": float(value) for i, value in enumerate(p)}


def build(case: Case, folder: Path) -> Path:
    """Write the FMU."""
    rows = [_row(name, i, "parameter", "fixed", value) for i, (name, value) in enumerate(parameters(case).items())]
    x = (*case.starts, 0.0, 0.0, 0.0, 0.0)
    hidden = [name for name in ("x0", "x1")[: len(case.starts)] if name not in case.outputs]
    declared, first = [f"x{i}" for i in range(case.states)], len(rows) + 1
    for name in dict.fromkeys((*declared, *hidden, *case.outputs)):
        start = x[int(name[1])] if name[0] == "x" else None
        rows.append(_row(name, REFERENCES[name], "output" if name in case.outputs else "local", "continuous", start))
    rows += [_row(name, REFERENCES[name], "input", "continuous", case.u0) for name in case.inputs]
    derivatives = range(len(rows) + 1, len(rows) + 1 + case.states)
    rows += [_row(f"der(x{i})", 16 + i, "local", "continuous", None, first + i) for i in range(case.states)]
    names = [row.split('"')[1] for row in rows]
    listed = "".join(f'<Unknown index="{names.index(name) + 1}"/>' for name in case.outputs)
    rates = "".join(f'<Unknown index="{i}"/>' for i in derivatives)
    experiment = f'<DefaultExperiment startTime="0" stepSize="{case.step!r}"/>' if case.step else ""
    xml = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<fmiModelDescription fmiVersion="2.0" modelName="table" '
        'guid="{table}" numberOfEventIndicators="0">\n'
        '<CoSimulation modelIdentifier="table" canGetAndSetFMUstate="true" '
        f'canHandleVariableCommunicationStepSize="true"/>\n{experiment}<ModelVariables>{"".join(rows)}'
        f"</ModelVariables>\n<ModelStructure><Outputs>{listed}</Outputs>"
        f"{f'<Derivatives>{rates}</Derivatives>' if rates else ''}</ModelStructure>\n</fmiModelDescription>"
    )
    library = f"binaries/{fmi2_folders()[0]}/table{library_suffix()}"
    return pack(folder / "table.fmu", {"modelDescription.xml": xml, library: compiled("table").read_bytes()})


def _row(name: str, reference: int, causality: str, variability: str, start: float | None, of: int = 0) -> str:
    initial = ' initial="exact"' if start is not None and causality != "input" else ""
    value = f' start="{start!r}"' if start is not None else ""
    derivative = f' derivative="{of}"' if of else ""
    return (
        f'<ScalarVariable name="{name}" valueReference="{reference}" causality="{causality}" '
        f'variability="{variability}"{initial}><Real{value}{derivative}/></ScalarVariable>'
    )


def linearized(case: Case, folder: Path) -> LinearModel:
    """Linearize one, as a user would."""
    given = parameters(case) | {f"x{i}": value for i, value in enumerate(case.starts)}
    with warnings.catch_warnings(), fl.load(build(case, folder), parameters=given) as model:
        warnings.simplefilter("ignore")
        return fl.linearize(model, stepping=case.stepping)


def judged(case: Case, folder: Path) -> Verdict:
    """Linearize one FMU and compare."""
    try:
        linear = linearized(case, folder)
    except fl.NumericalError as error:
        return Verdict(case, str(error), (), np.nan, np.nan)
    said = max(linear.accuracy.A, linear.accuracy.B, linear.accuracy.C, linear.accuracy.D)
    return Verdict(case, "", tuple(w.kind for w in linear.warnings), _error(case, linear), said)


def _error(case: Case, linear: LinearModel) -> float:
    if not case.truth:
        return np.inf
    A, B, C, D = plant_at_start(case)
    if linear.sample_time:
        E = linalg.expm(linear.sample_time * np.block([[A, B], [np.zeros((B.shape[1], len(A) + B.shape[1]))]]))
        A, B = E[: len(A), : len(A)], E[: len(A), len(A) :]
    if linear.A.shape != A.shape:
        return np.inf
    ours, theirs = (np.sort_complex(np.linalg.eigvals(M)) if len(M) else np.zeros(0) for M in (linear.A, A))
    fastest = float(np.max(np.abs(theirs), initial=0.0)) or 1.0
    error = float(np.max(np.abs(ours - theirs), initial=0.0)) / fastest
    if case.plant == CHAIN:  # six equal eigenvalues move with the sixth root of an error: compare their polynomial
        error = float(np.max(np.abs(np.poly(linear.A) / np.poly(A) - 1)))
    for s in fastest * np.array([0.3 + 0.1j, 0.3 + 1j, 0.3 + 3j]) if case.inputs else ():
        H, G = transfer(linear.A, linear.B, linear.C, linear.D, s), transfer(A, B, C, D, s)
        error = max(error, float(np.max(np.abs(H - G)) / np.max(np.abs(G))))
    return error


FREE: tuple[str, ...] = ()


def cycle(
    name: str, plant: int, value: float, solver: tuple[int, float, int], outputs: tuple[str, ...], start: float
) -> Case:
    """Return one that moves by itself, as no linear model does."""
    return Case(f"cycle: {name}", plant, (value,), solver, outputs, 0, (start,), FREE, truth=False)


LIFTED = Stepping(lifted=True, step=0.1)
CASES = (
    # an own step, at which nothing but multiples is answered
    Case("fixed: Euler, 0.9 a step", LAG, (1.0, 1.0), (EULER, 0.1, HOLDS)),
    Case("fixed: Dahlquist's test", LAG, (1.0,), (EULER, 0.1, HOLDS), ("x0",), starts=(1.0,), inputs=FREE, step=0.1),
    Case("fixed: Dahlquist, step not declared", LAG, (1.0,), (EULER, 0.1, HOLDS), ("x0",), starts=(1.0,), inputs=FREE),
    Case("fixed: oscillator, declared", OSCILLATOR, (2.0, 0.4), (EULER, 0.01, HOLDS), ("y", "y2"), step=0.01),
    Case("fixed: oscillator, ten times declared", OSCILLATOR, (2.0, 0.4), (EULER, 0.01, HOLDS), step=0.1),
    Case("fixed: oscillator, ahead", OSCILLATOR, (2.0, 0.4), (RUNGE_KUTTA, 0.02, RUNS_AHEAD)),
    Case("fixed: oscillator, Heun", OSCILLATOR, (2.0, 0.4), (HEUN, 0.05, HOLDS), ("y", "y2")),
    Case("fixed: oscillator, an odd step", OSCILLATOR, (2.0, 0.4), (EULER, 0.013, HOLDS), step=0.02),
    Case("fixed: torsion bar", TORSION, (90.0, 0.2, 0.3, 0.1), (RUNGE_KUTTA, 1e-5, HOLDS), ("y", "y2"), step=1e-5),
    Case("fixed: torsion bar, divided", TORSION, (90.0, 0.2, 0.3, 0.1), (SEMI_IMPLICIT, 1e-4, DIVIDES), step=0.01),
    Case("fixed: six lags", CHAIN, (3.0,), (EULER, 0.01, HOLDS), step=0.01),
    Case("fixed: refuses others", LAG, (2.0, 1.0), (HEUN, 0.01, REFUSES), step=0.01),
    Case("fixed: oscillator, refuses others", OSCILLATOR, (2.0, 0.4), (EULER, 0.01, REFUSES), step=0.01),
    # derivatives beside a coarse solver
    Case("direct: linear", OSCILLATOR, (3.0, 0.4), (EULER, 0.02, DIVIDES), states=2, step=0.1),
    Case("direct: nonlinear", OSCILLATOR, (3.0, 0.4, 2.0), (EULER, 0.02, DIVIDES), states=2, starts=(0.5,), step=0.1),
    Case("direct: holds", OSCILLATOR, (2.0, 0.4), (EULER, 0.01, HOLDS), states=2),
    Case("direct: semi-implicit", OSCILLATOR, (2.0, 0.4), (SEMI_IMPLICIT, 0.05, HOLDS), states=2, step=0.05),
    Case("direct: pendulum", PENDULUM, (3.0, 0.1), (EULER, 0.02, COMMUNICATES), states=2, starts=(0.4,), step=0.02),
    Case("direct: van der Pol", VAN_DER_POL, (1.0,), (EULER, 0.01, HOLDS), states=2, starts=(2.0,), step=0.01),
    Case("direct: van der Pol, free", VAN_DER_POL, (1.0,), (EULER, 0.01, HOLDS), ("x0",), 2, (2.0,), FREE, 0.01),
    # saturated far below the size of the input
    Case("limiter: drive, a ten-millionth", DRIVE, (3.0, 1e-7, 1.0)),
    Case("limiter: drive, narrow", DRIVE, (3.0, 1e-3, 1.0)),
    Case("limiter: drive, fixed step", DRIVE, (3.0, 0.1, 1.0), (EULER, 0.01, HOLDS), step=0.01),
    Case("limiter: rate", RATE, (0.5, 0.05), outputs=("y", "y2")),
    Case("limiter: rate, beside a louder output", RATE, (0.5, 1e-5), outputs=("x0", "x1")),
    # motions that are not those of a linear model
    cycle("van der Pol", VAN_DER_POL, 1.0, (EULER, 0.01, HOLDS), ("x0", "x1"), 2.0),
    cycle("van der Pol, weak", VAN_DER_POL, 0.1, (RUNGE_KUTTA, 0.01, DIVIDES), ("x0",), 2.0),
    cycle("van der Pol, strong", VAN_DER_POL, 4.0, (RUNGE_KUTTA, 0.01, DIVIDES), ("x0",), 2.0),
    cycle("a circle", HOPF, 1.0, (RUNGE_KUTTA, 0.01, DIVIDES), ("x0", "x1"), 1.0),
    cycle("a circle, fixed step", HOPF, 2.0, (EULER, 0.01, HOLDS), ("x0",), 1.0),
    cycle("pendulum far out", PENDULUM, 1.0, (RUNGE_KUTTA, 0.01, DIVIDES), ("x0",), 2.5),
    Case("cycle: driven", VAN_DER_POL, (1.0,), (EULER, 0.01, HOLDS), starts=(2.0,), step=0.01, truth=False),
    # gains
    Case("gain: plain", GAIN, (2.0,)),
    Case("gain: beside an offset", GAIN, (2.0, 1e6), (EULER, 0.1, HOLDS), u0=3.0),
    Case("gain: tiny, far from zero", GAIN, (1e-6, 5.0), u0=1e5),
    # delays and resonances
    Case("delay: five steps", LATE, (2.0, 1.0, 5.0), (EULER, 0.01, HOLDS), step=0.01, truth=False),
    Case("resonance: above the suggested step", OSCILLATOR, (50.0, 0.05), step=0.1),
    Case("resonance: free, decays", OSCILLATOR, (2.0, 0.3), outputs=("x0",), starts=(1.0,), inputs=FREE),
    Case("resonance: free, undamped", OSCILLATOR, (2.0, 0.0), outputs=("x0", "x1"), starts=(1.0,), inputs=FREE),
    Case("resonance: lifted", OSCILLATOR, (2.0, 0.3), (RUNGE_KUTTA, 0.01, HOLDS), stepping=LIFTED),
)
