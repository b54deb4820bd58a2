"""How exact A is, how honest its error estimate, and what it costs; against other ways to difference one function.

Three tables: reference and random systems without noise; the same with noise in their rates; and scipy,
numdifftools and python-control on the same y -> R f(Psi(y)).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import fmilin as fl
from benchmarks.derivatives_noise import Noisy
from benchmarks.derivatives_peers import compare
from benchmarks.derivatives_truth import true_jacobian
from benchmarks.tables import show
from fmilin.models import SymbolicModel
from fmilin.systems import bicycle, cartesian_pendulum, five_bar, four_bar, rolling_disk
from tests.random_systems import Recipe, hidden_system
from tests.systems.skate_model import skate
from tests.systems.torus import rolling_torus

SYSTEMS: dict[str, Callable[[], SymbolicModel]] = {
    "pendulum, hanging": cartesian_pendulum,
    "pendulum, swinging": lambda: cartesian_pendulum(angle=0.7, rate=1.5),
    "four-bar, 1 loop": four_bar,
    "four-bar, 2 loops, damped": lambda: four_bar(loops=2, damping=1.0),
    "four-bar, hanging": lambda: four_bar(branch="hanging"),
    "five-bar": five_bar,
    "rolling disk, upright": rolling_disk,
    "rolling disk, leaning turn": lambda: rolling_disk(2.0, lean=0.3),
    "rolling torus": rolling_torus,
    "skate, turning": lambda: skate(yaw_rate=0.5),
    "bicycle, 4.6 m/s": bicycle,
}

RECIPES = [
    Recipe(family, p, m, geometry=7 * i + m, seed=i, decades=decades, at_rest=i % 2 == 0, repeated=int(i % 3 == 1))
    for i, (p, m, decades) in enumerate([(1, 1, 0.0), (2, 2, 3.0), (4, 1, 6.0), (3, 2, 0.0), (6, 2, 3.0), (2, 1, 6.0)])
    for family in ("first order", "second order", "speeds")
]

ROUNDING = 1e-15
"""Of the known answer itself, relative to the largest entry."""


@dataclass(frozen=True)
class Case:
    """A model with its known A, rows and columns in sizes of the coordinates."""

    name: str
    model: fl.Model
    independent: Sequence[str]
    A: NDArray[np.float64]
    per_unit: NDArray[np.float64]
    """Column size over row size, shape (P, P)."""
    condition: float = 1.0


@dataclass(frozen=True)
class Score:
    """One linear model against the known A."""

    error: float
    """Largest error over largest entry, scaled."""
    said: float
    """Largest estimate over largest entry, scaled."""
    inside: NDArray[np.bool_]
    """Whether each entry is within ten times its estimate."""
    visits: int


def main() -> None:
    references = [reference_case(name, make()) for name, make in SYSTEMS.items()]
    randoms = [random_case(recipe) for recipe in RECIPES]
    show_accuracy(references, randoms)
    show_noise(references)
    show_peers([*references[1:4], references[7], *randoms[4:6]], [references[2], references[7]])


def reference_case(name: str, model: SymbolicModel) -> Case:
    independent = fl.linearize(model, derivatives="exact").states.names
    sizes = model.states.select(model.states.index_of(n) for n in independent).scales()
    return Case(name, model, independent, true_jacobian(model, independent), sizes / sizes[:, None])


def random_case(recipe: Recipe) -> Case:
    system, model = hidden_system(recipe)
    independent = fl.linearize(model, derivatives="exact").states.names
    known = system.reference(np.eye(recipe.size)[[model.states.index_of(n) for n in independent]])
    name = f"random, {recipe.family}, {recipe.p} + {recipe.m}, 1e+-{recipe.decades:.0f}"
    return Case(name, model, independent, known.A, known.sizes / known.sizes[:, None], known.condition)


def score(case: Case, derivatives: str | fl.Differences, model: fl.Model | None = None) -> Score:
    lin = fl.linearize(model or case.model, independent=case.independent, derivatives=derivatives)
    assert lin.errors is not None
    error, estimate = np.abs(lin.A - case.A) * case.per_unit, lin.errors.A * case.per_unit
    largest = float(np.max(np.abs(case.A) * case.per_unit))
    inside = error <= 10 * estimate + ROUNDING * case.condition * largest
    return Score(float(np.max(error)) / largest, float(np.max(estimate)) / largest, inside, lin.method.evaluations)


def show_accuracy(references: list[Case], randoms: list[Case]) -> None:
    rows, exact, plain = [], [], []
    for case in (*references, *randoms):
        exact.append(score(case, "exact"))
        plain.append(score(case, "differences"))
        quick = score(case, fl.Differences(order=2))
        n, p, k = len(case.model.states), len(case.independent), len(case.model.inputs)
        rows.append(
            [case.name, f"{p}/{n}"]
            + [f"{value:.0e}" for s in (exact[-1], plain[-1]) for value in (s.error, s.said)]
            + [f"{100 * np.mean(plain[-1].inside):.0f}%", f"{quick.error:.0e}"]
            + [f"{s.visits / (2 * (n + k)):.1f}" for s in (plain[-1], quick)]
        )
    errors = np.array([s.error for s in plain])
    count = len(references)
    inside = float(np.mean(np.concatenate([s.inside.ravel() for s in plain])))
    verdicts = [
        verdict("exact, worst of the reference systems", max(s.error for s in exact[:count]), 1e-12),
        verdict("differences, median", float(np.median(errors)), 1e-10),
        verdict("differences, worst", float(np.max(errors)), 1e-8),
        f"entries within ten times their estimate: {100 * inside:.1f}% (99%)",
    ]
    show(
        "Derivatives: A without noise",
        ["system", "order", "exact", "said", "diff.", "said", "within", "plain", "visits", "plain"],
        rows,
        "exact, diff., plain: error of A, largest over largest entry, by exact products, by differences, by plain "
        "central differences (order 2). said: the estimate. within: entries of diff. within ten times their estimate. "
        "visits: of diff. and of plain, as a ratio to the naive 2 (N + inputs); they include assembling and verifying "
        "the manifold.\n" + "; ".join(verdicts) + ".",
    )


def show_noise(references: list[Case]) -> None:
    rows = []
    for noise in (0.0, 1e-10, 1e-8):
        computed = [replace(r, measured=True) for r in RECIPES if r.m == 1]
        groups: dict[str, list[tuple[Case, fl.Model]]] = {
            "reference systems": [(case, Noisy(case.model, noise)) for case in references],
            "random, constraints as expressions": [noisy_random(r, noise) for r in RECIPES],
            "random, constraints computed inside": [noisy_random(r, noise) for r in computed],
        }
        for name, group in groups.items():
            scores = [score(case, "differences", model) for case, model in group]
            inside = np.concatenate([s.inside.ravel() for s in scores])
            errors, said = [s.error for s in scores], [s.said for s in scores]
            row = [name, f"{noise:.0e}" if noise else "none", str(len(scores)), str(inside.size)]
            row.append(f"{100 * np.mean(inside):.1f}%")
            row += [f"{value:.0e}" for value in (np.median(errors), np.max(errors), np.median(said))]
            rows.append(row)
    show(
        "Derivatives: differences of noisy models",
        ["systems", "noise", "count", "entries", "within", "median", "worst", "said"],
        rows,
        "noise: in all rates but those of positions, relative to their size, the same at the same point, as an "
        "iteration inside a model leaves it. within: entries of A within ten times their estimate (target: 99%). "
        "median, worst: error of A. said: median of the estimates.",
    )


def show_peers(clean: list[Case], noisy: list[Case]) -> None:
    noise = 1e-8
    cases = clean + [replace(c, name=f"{c.name}, noise {noise:.0e}", model=Noisy(c.model, noise)) for c in noisy]
    show(
        "Derivatives: peers on the same function y -> R f(Psi(y))",
        ["system", "way", "error of A", "evaluations", "time"],
        [row for case in cases for row in compare(case)],
        "error: largest over largest entry, coordinates in their sizes; fails: a step went where Psi has no value. "
        "time: ratio to fmilin's differences of that function, medians of interleaved rounds. All with their defaults; "
        "only fmilin knows the sizes of the variables, measures the noise, and says how close it is.",
    )


def noisy_random(recipe: Recipe, noise: float) -> tuple[Case, fl.Model]:
    case = random_case(recipe)
    return case, hidden_system(replace(recipe, noise=noise, exact=False))[1]


def verdict(what: str, value: float, target: float) -> str:
    return f"{what}: {value:.1e} ({'kept' if value <= target else 'MISSED'}: {target:.0e})"
