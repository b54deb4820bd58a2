"""What derivatives of linear models by parameters cost, and how far they are from extrapolated differences."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import fmilin as fl
from benchmarks.tables import show
from fmilin.fmi.write import build_fmu
from fmilin.model.interface import Model
from fmilin.models.mechanism import Mechanism
from fmilin.systems import bicycle, four_bar
from tests.composition.plants import oscillator
from tests.discovery.planted_zeros import PLANTED

ROUNDS = 7
BODIES = 50
SAMPLES = 1000


def main() -> None:
    rows = [of_the_bicycle(), *of_a_chain()]
    with tempfile.TemporaryDirectory() as folder:
        rows.append(of_an_fmu(Path(folder)))
    show(
        "Derivatives by parameters",
        ("what", "parameters", "error", "target", "time", "one linearization", "ratio"),
        rows,
        "Errors of all eigenvalues (the bicycle: of those that are alone) against differences of whole linearizations, "
        "extrapolated twice, relative to the largest derivative by that parameter; of the FMU's A against the native "
        "model. Times are the shortest of some calls after the first: of the FMU, which runs elsewhere, by the clock, "
        "else of the processor.",
    )
    uncertainty()
    explanations()


def uncertainty() -> None:
    """Show how much of the stated remainder the true models use."""
    rows = []
    for title, model, box in (
        ("oscillator, affine", oscillator(2.0, 3.0, 0.5), {"c": (2.0, 4.0), "d": (0.4, 0.6)}),
        ("oscillator, mass", oscillator(2.0, 3.0, 0.5), {"m": (1.8, 2.2), "c": (2.0, 4.0)}),
        ("four-bar, not trimmed", four_bar(), {"m": (0.9, 1.1), "k": (24.0, 26.0), "l0": (1.35, 1.45)}),
    ):
        u = fl.uncertain(model, None, box)
        random, inside, used, off = np.random.default_rng(1), 0, 0.0, 0.0
        for _ in range(SAMPLES):
            values = {name: float(random.uniform(*limits)) for name, limits in box.items()}
            changed = model.with_parameters(values)
            names = u.nominal.states.names if len(model.constraints) else None
            true, guess = fl.linearize(changed, independent=names), u.at(values)
            gaps = {n: np.abs(getattr(true, n) - getattr(guess, n)) for n in "ABCD"}
            off = max(off, *(float(gap.max(initial=0.0)) for gap in gaps.values()))
            inside += all(
                (gap <= u.remainder[n] + 1e-12 * (1 + np.abs(getattr(true, n)))).all() for n, gap in gaps.items()
            )
            used = max(
                used, *(float(np.max(gap / np.maximum(u.remainder[n], 1e-9))) for n, gap in gaps.items() if gap.size)
            )
        rows.append(
            [title, ", ".join(f"{n} x {k}" for n, k in u.blocks), f"{inside} of {SAMPLES}", f"{off:.1e}", f"{used:.0%}"]
        )
    show(
        "Fractional transformations: true linear models inside the stated remainder",
        ("model", "blocks", "inside", "largest gap", "of the remainder"),
        rows,
        "Targets: affine ones exact, others inside at 1,000 samples.",
    )


def explanations() -> None:
    """Show how many planted zeros are explained."""
    planted = [case for case in PLANTED.values() if case.kind != "not zero"]
    reasons = [fl.explain(case.make(), None, case.input, case.output) for case in planted]
    named = sum(r.kind == c.kind and c.culprit in r.culprits for r, c in zip(reasons, planted, strict=True))
    confirmed = sum(r.confirmed for r in reasons)
    row = [str(len(planted)), str(named), str(confirmed)]
    show("Channels that are zero (target: all of 30)", ("planted", "culprit named", "confirmed"), [row])


def shortest(job: Callable[[], object], rounds: int, clock: Callable[[], float]) -> float:
    job()
    times = []
    for _ in range(rounds):
        start = clock()
        job()
        times.append(clock() - start)
    return min(times)


def extrapolated(at: Callable[[float], np.ndarray], value: float) -> np.ndarray:
    """Return the derivative of sixth order."""
    h = 4e-3 * (abs(value) or 1.0)
    rough = [(at(value + k * h) - at(value - k * h)) / (2 * k * h) for k in (1, 2, 3)]
    return np.asarray(1.5 * rough[0] - 0.6 * rough[1] + 0.1 * rough[2])


def of_the_bicycle() -> list[str]:
    model = bicycle()
    names = [name for name in model.parameters if name != "I_Rxx"]
    linear = fl.linearize(model, parameters=names)
    states, alone = linear.states.names, np.abs(linear.eigenvalues()) > 0.1
    kept = dict(zip(states, model.start.states[[model.states.index_of(n) for n in states]], strict=True))
    worst = 0.0
    for j, name in enumerate(names):

        def at(p: float, name: str = name) -> np.ndarray:
            changed = model.with_parameters({name: p})
            lin = fl.linearize(changed, fl.operating_point(changed, kept), independent=states)
            return np.asarray(lin.eigenvalues()[alone])

        own = linear.eigenvalue_derivatives()[alone, j]
        error = np.max(np.abs(own - extrapolated(at, model.parameters[name])))
        worst = max(worst, float(error / max(np.max(np.abs(own)), 1e-300)))
    return line("bicycle, eigenvalues", model, names, worst, "1e-8, 5 times")


def line(title: str, model: Model, names: Sequence[str], error: float, target: str, rounds: int = ROUNDS) -> list[str]:
    clock = time.perf_counter if model.moves_parameters else time.process_time
    both = shortest(lambda: fl.linearize(model, parameters=names), rounds, clock)
    once = shortest(lambda: fl.linearize(model), rounds, clock)
    return [title, str(len(names)), f"{error:.1e}", target, f"{both:.3g} s", f"{once:.3g} s", f"{both / once:.3g}"]


def chain() -> Mechanism:
    """Return a chain of bodies on revolute joints with springs and dampers."""
    parts = [
        f'[[body]]\nname = "b{i}"\nmass = {1 + 0.01 * i}\ncenter = [0, -0.4, 0]\ninertia = [0.1, 0.05, 0.1]\n'
        f'[[joint]]\nname = "j{i}"\ntype = "revolute"\nparent = "{f"b{i - 1}" if i else "ground"}"\nchild = "b{i}"\n'
        f"placement = {{ position = [0, {-0.8 if i else 0}, 0] }}\nstiffness = 30.0\ndamping = 0.4\n"
        for i in range(BODIES)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.toml"
        path.write_text('name = "chain"\ngravity = [0, -9.81, 0]\n' + "\n".join(parts), encoding="utf-8")
        return Mechanism.from_toml(path)


def of_a_chain() -> list[list[str]]:
    model = chain()
    names = [f"b{i}.mass" for i in range(BODIES)] + [f"j{i}.damping" for i in range(BODIES)]
    tried = [names[3], names[-3]]
    linear = fl.linearize(model, parameters=tried)
    worst = 0.0
    for name in tried:
        own = linear.derivatives[name].A

        def at(p: float, name: str = name) -> np.ndarray:
            return fl.linearize(model.with_parameters({name: p}), independent=linear.states.names).A

        error = np.max(np.abs(own - extrapolated(at, model.parameters[name])))
        worst = max(worst, float(error / np.max(np.abs(own))))
    return [line(f"mechanism of {BODIES} bodies, A", model, names, worst, "under 2 s", 1)]


def of_an_fmu(folder: Path) -> list[str]:
    names, native = ["m", "k", "l0", "c"], four_bar()
    with fl.load(build_fmu(native, folder / "bar.fmu")) as model:
        linear = fl.linearize(model, parameters=names)
        exact = fl.linearize(native, independent=linear.states.names, parameters=names)
        worst = max(
            float(
                np.max(np.abs(linear.derivatives[n].A - exact.derivatives[n].A))
                / np.max(np.abs(exact.derivatives[n].A))
            )
            for n in names
        )
        return line("four-bar FMU, A", model, names, worst, "1e-6", 3)
