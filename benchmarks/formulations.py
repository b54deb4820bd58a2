"""Minimal, redundant and unconstrained coordinates: accuracy and time against the size, dense and sparse in one run.

Two families: the N-loop four-bar linkage, n - m = 1 << n, and the flexible double pendulum, n - m close to n. Times
are from the matrices M, C, K, Phi_q at the equilibrium to the eigenvalues: the whole spectrum where the matrices are
dense, the slowest pairs (one of the linkage, four of the pendulum) where they are sparse. Each way of computing runs
alone in a process of its own when its memory is measured.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.tables import show
from fmilin.formulations import ConstrainedForm, Spectrum
from fmilin.formulations.formulation import MCS, RCS, UCS, Formulation
from fmilin.formulations.formulation_procedure import spectrum_of_form
from fmilin.formulations.sparse import Around, eigenvalues_near, sparse_form_of
from fmilin.systems import flexible_double_pendulum, four_bar_form

WAYS: dict[str, Formulation] = {"MCS": MCS(), "RCS": RCS(), "UCS": UCS(alpha=1e6, xi=1.0, omega=10.0)}
STIFFER: dict[str, Formulation] = WAYS | {"UCS": UCS(alpha=1e7, xi=1.0, omega=10.0)}
"""The penalties of both systems are the paper's."""

LOOPS = (10, 100, 1000, 5000, 20_000)
ELEMENTS = (10, 100, 500, 1000, 5000)
DENSE_LOOPS, DENSE_ELEMENTS = 100, 20
"""Beyond these the dense ways take minutes."""

LIMITS = (1.338727312976, 3.554338414641, 15.3525880538, 25.39771147261)
"""What the stiffened pendulum converges to, in rad/s."""

ONE_ELEMENT = (1.33593155834248, 3.531082271144686, 9.705195842688476, 25.30224732821966)
BUDGET = 0.5
"""Seconds that repetitions of one measurement may take."""


@dataclass(frozen=True)
class Family:
    """A system that grows."""

    name: str
    form: Callable[[int], ConstrainedForm]
    pairs: int
    ways: dict[str, Formulation]
    independent: tuple[str, ...] = ()


def linkage_form(loops: int) -> ConstrainedForm:
    return four_bar_form(loops)


def pendulum_form(elements: int) -> ConstrainedForm:
    return sparse_form_of(flexible_double_pendulum(elements))


LINKAGE = Family("four-bar linkage", linkage_form, 1, WAYS, ("phi",))
PENDULUM = Family("flexible double pendulum", pendulum_form, 4, STIFFER)
FAMILIES = {"linkage": LINKAGE, "pendulum": PENDULUM}


def main() -> None:
    accuracy_of_linkage()
    convergence_of_pendulum()
    growth(LINKAGE, LOOPS, DENSE_LOOPS)
    growth(PENDULUM, ELEMENTS, DENSE_ELEMENTS)
    who_wins()


def sparse(family: Family, form: ConstrainedForm, way: str) -> Spectrum:
    around = Around(count=family.pairs)
    return eigenvalues_near(form, family.ways[way], around=around, independent=family.independent or None)


def dense(family: Family, form: ConstrainedForm, way: str) -> Spectrum:
    return spectrum_of_form(form.dense(), family.ways[way], independent=family.independent)


def slowest(found: Spectrum, count: int) -> np.ndarray[tuple[int], np.dtype[np.complex128]]:
    upper = found.true[found.true.imag > 0]
    return upper[np.argsort(upper.imag, kind="stable")][:count]


def seconds(work: Callable[[], object]) -> float:
    """The shortest of several runs: others use this machine, too."""
    best, begin = np.inf, time.perf_counter()
    while time.perf_counter() - begin < BUDGET or best == np.inf:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


# ---------------------------------------------------------------------- accuracy


def exact(loops: int) -> float:
    """The linkage's frequency from its equation in phi alone, in rad/s."""
    form = four_bar_form(loops)
    along = form.Phi_q[[0]].toarray().ravel()[:2]  # rod A_0 B_0
    R = np.append(np.tile([-along[1], along[0]], loops + 1), 1.0)
    return float(np.sqrt(R @ (form.K @ R) / ((4 * loops + 1) / 3)))


def accuracy_of_linkage() -> None:
    sizes = range(1, 41)
    rows = []
    for words, solve in (("dense", dense), ("sparse", sparse)):
        for way in WAYS:
            off = [abs(slowest(solve(LINKAGE, four_bar_form(N), way), 1)[0] - 1j * exact(N)) for N in sizes]
            relative = max(d / exact(N) for d, N in zip(off, sizes, strict=True))
            target = ("3e-06 rad/s", max(off) < 3e-6) if way == "UCS" else ("1e-12 relative", relative < 1e-12)
            rows.append(
                [f"{way}, {words}", f"{relative:.1e}", f"{max(off):.1e} rad/s", f"< {target[0]}: {kept(target[1])}"]
            )
    show(
        "Four-bar linkage, N = 1..40: the pair against the equation of motion in phi alone",
        ["formulation", "relative", "absolute", "target"],
        rows,
    )


def convergence_of_pendulum() -> None:
    rows = []
    published, closest = np.array(ONE_ELEMENT), np.inf
    for elements in (1, 5, 20, 100, 200, 500, 2000, 5000):
        form = pendulum_form(elements)
        stiff = sparse_form_of(flexible_double_pendulum(elements, geometric_stiffening=True))
        found = {way: sparse(PENDULUM, form, way) for way in ("MCS", "RCS")}
        MCS_values = slowest(found["MCS"], 4)
        row = [f"{elements}", *(f"{s.imag:.9f}" for s in MCS_values)]
        row.append(f"{np.max(np.abs(slowest(found['RCS'], 4) - MCS_values)):.0e}")
        row.append(qz_loss(form, MCS_values) if elements <= DENSE_ELEMENTS else "")
        to_limit = np.abs(slowest(sparse(PENDULUM, stiff, "MCS"), 4).imag / LIMITS - 1)
        row += [f"{np.max(to_limit):.0e}", f"{np.max(found['MCS'].errors):.0e}"]
        rows.append(row)
        if elements == 1:
            first = float(np.max(np.abs(MCS_values.imag - published)))
        closest = min(closest, float(np.max(to_limit)))
    show(
        "Flexible double pendulum: the four slowest frequencies in rad/s by MCS, more and more elements",
        ["n_p", "1", "2", "3", "4", "RCS", "RCS by QZ", "stiffened", "rounding"],
        rows,
        f"n_p = 1 differs from the published values by {first:.0e} rad/s, target 1e-9: {kept(first < 1e-9)}. RCS: "
        "difference from MCS in rad/s, sparse; by QZ: the same with dense matrices, what double precision leaves of "
        "the published way. stiffened: with geometric stiffening, relative distance from the limit, "
        f"{closest:.0e} where it is closest, target 1e-9: {kept(closest < 1e-9)}. rounding: what "
        "the solver estimates that rounding may do, in rad/s: elements beyond a few hundred lose more than they gain, "
        "since the stiffness of an element grows with the third power of n_p.",
    )


def qz_loss(form: ConstrainedForm, reference: np.ndarray[tuple[int], np.dtype[np.complex128]]) -> str:
    found = dense(PENDULUM, form, "RCS").nearest(reference)
    return f"{np.max(np.abs(found - reference)):.0e}"


# ---------------------------------------------------------------------- growth


def growth(family: Family, sizes: Sequence[int], densest: int) -> None:
    rows: list[list[str]] = []
    last: dict[str, tuple[int, float]] = {}
    for size in sizes:
        form = family.form(size)
        row = [f"{size:,}", f"{form.n:,}", f"{form.n - form.m:,}"]
        for way in family.ways:
            took = seconds(partial(sparse, family, form, way))
            n, before = last.get(way, (0, 0.0))
            power = f"n^{np.log(took / before) / np.log(form.n / n):.1f}" if n else ""
            row += [duration(took), power]
            last[way] = form.n, took
        for way in family.ways:
            row.append(duration(seconds(partial(dense, family, form, way))) if size <= densest else "")
        rows.append(row)
    memory = {way: peak_memory(family, sizes[-1], way) for way in family.ways} if sys.platform == "linux" else {}
    said = ", ".join(f"{way} {mega} MB" for way, mega in memory.items()) or "measured on Linux only"
    heads = [head for way in family.ways for head in (way, "")]
    show(
        f"{family.name}: time from the matrices to the {'slowest pair' if family.pairs == 1 else 'four slowest pairs'}",
        ["N" if family is LINKAGE else "n_p", "n", "n - m", *heads, *(f"{way}, dense" for way in family.ways)],
        rows,
        "n^p: growth since the row above. dense: all eigenvalues. Memory of the whole process at the largest size: "
        f"{said}; target 2,000 MB: {kept(max(memory.values(), default=0) < 2000)}.",
    )


def peak_memory(family: Family, size: int, way: str) -> int:
    """The largest memory of a process that does nothing else, in MB."""
    name = next(key for key, known in FAMILIES.items() if known is family)
    command = [sys.executable, "-c", f"from benchmarks.formulations import alone; alone({name!r}, {size}, {way!r})"]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def alone(name: str, size: int, way: str) -> None:
    family = FAMILIES[name]
    sparse(family, family.form(size), way)
    # not resource.getrusage: that remembers the parent's memory
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(int(status["VmHWM"].split()[0]) // 1024)


# ---------------------------------------------------------------------- who wins


def who_wins() -> None:
    rows = []
    for family, sizes in ((LINKAGE, (5, 20, 80)), (PENDULUM, (2, 8, 20))):
        for size in sizes:
            form = family.form(size)
            times = {way: seconds(partial(dense, family, form, way)) for way in family.ways}
            rows.append([f"{family.name}, {size}", *freedoms(form), *ratios(times), "all, dense"])
    for family, size in ((LINKAGE, 5000), (PENDULUM, 1000)):
        form = family.form(size)
        times = {way: seconds(partial(sparse, family, form, way)) for way in family.ways}
        rows.append([f"{family.name}, {size}", *freedoms(form), *ratios(times), "few, sparse"])
    show(
        "Who wins: times over that of MCS",
        ["system", "n", "(n - m)/n", "MCS", "RCS", "UCS", "eigenvalues"],
        rows,
        "The paper finds MCS the quickest where n - m << n, and RCS and UCS where n - m is close to n.",
    )


def freedoms(form: ConstrainedForm) -> list[str]:
    return [f"{form.n:,}", f"{(form.n - form.m) / form.n:.3f}"]


def ratios(times: dict[str, float]) -> list[str]:
    return [f"{duration(times['MCS'])}", *(f"{times[way] / times['MCS']:.2f}" for way in ("RCS", "UCS"))]


def duration(value: float) -> str:
    return f"{1e3 * value:.1f} ms" if value < 1 else f"{value:.2f} s"


def kept(holds: object) -> str:
    return "kept" if holds else "MISSED"
