"""Connected systems: how exact the whole is, what it costs, and where a co-simulation of it becomes unstable."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import control
import numpy as np

import fmilin as fl
from fmilin.composition.system import ConnectedModel
from fmilin.fmi.write import build_fmu
from fmilin.model.capabilities import read_products
from fmilin.model.interface import Model
from tests.composition.fmpy_master import Stepped, seen_limit
from tests.composition.plants import gemseo_fmu, mass_chain, oscillator
from tests.composition.test_cosimulation import by_force, double_oscillator

MANY = 200


def main() -> None:
    print("\nConnected systems\n")
    with TemporaryDirectory() as name:
        folder = Path(name)
        exactness(folder)
        products(folder)
        chain(folder)
        limits(folder)


def line(what: str, found: str, wanted: str) -> None:
    print(f"  {what:<66} {found:>14}   {wanted}")


def gap(one: fl.LinearModel, other: fl.LinearModel, order: list[int] | None = None) -> float:
    A = one.A if order is None else one.A[np.ix_(order, order)]
    return float(np.max(np.abs(A - other.A)) / np.max(np.abs(other.A)))


def chained(members: dict[str, Model]) -> ConnectedModel:
    names = list(members)
    wires = [(f"{a}.last", f"{b}.left") for a, b in pairwise(names)]
    wires += [(f"{b}.first", f"{a}.right") for a, b in pairwise(names)]
    return fl.connect(members, wires)


def exactness(folder: Path) -> None:
    system = chained({f"m{i}": mass_chain(5) for i in range(10)})
    places = [system.states.positions[f"m{i // 5}.{kind}{i % 5 + 1}"] for kind in "xv" for i in range(50)]
    whole = fl.linearize(mass_chain(50))
    line(
        "whole against monolith, exact members (50 masses in 10)",
        f"{gap(fl.linearize(system), whole, places):.1e}",
        "1e-12",
    )
    names = ("MassSpringSubSystem1", "MassSpringSubSystem2", "MassSpringSystem")
    one, two, both = (fl.load(gemseo_fmu(n)) for n in names)
    with both, fl.connect({"one": one, "two": two}, [("one.x1", "two.x1"), ("two.x2", "one.x2")]) as parts:
        found = gap(fl.linearize(parts), fl.linearize(both), [0, 2, 1, 3])
    line("the same by differences (gemseo-fmu, OpenModelica)", f"{found:.1e}", "1e-8")
    regulator = control.ss([[-3.0]], [[-1.0]], [[2.0]], [[-0.7]], inputs=["y"], outputs=["F"])
    wires = [("plant.px", "reg.y"), ("reg.F", "plant.F")]
    expected = fl.linearize(fl.connect({"plant": oscillator(), "reg": regulator}, wires))
    fmu = build_fmu(oscillator(), folder / "oscillator.fmu")
    true = np.sort_complex(expected.eigenvalues())
    for way in ("step", "response"):
        with fl.load(fmu, interface="cs") as plant:
            identified = fl.linearize(plant, stepping=fl.Stepping(method=way))
        closed = fl.linearize(fl.connect({"plant": identified, "reg": regulator}, wires))
        error = float(np.max(np.abs(np.sort_complex(closed.eigenvalues()) - true)) / np.max(np.abs(true)))
        line(f"eigenvalues with a member identified by {way}", f"{error:.1e}", "1e-6")


def best(job: Callable[[], object], before: Callable[[], None] = lambda: None, repeats: int = 50) -> float:
    times = []
    for _ in range(repeats):
        before()
        begin = time.perf_counter()
        job()
        times.append(time.perf_counter() - begin)
    return min(times)


def products(folder: Path) -> None:
    fmu = build_fmu(mass_chain(20), folder / "twenty.fmu")
    members: dict[str, Model] = {f"m{i}": fl.load(fmu) for i in range(10)}
    with chained(members) as system:
        t, x, u = system.start.time, system.start.states, system.start.inputs
        n, k = len(x), len(u)
        dx, du = np.eye(n, n + k), np.eye(n + k)[n:]
        here = [x]
        moved = iter(np.linspace(0.1, 0.2, 1000))

        def together() -> object:
            return system.products(t, here[0], u, dx, du)

        def evaluated() -> None:  # as linearize does, before it asks for products
            here[0] = x + next(moved)
            system.evaluate(t, here[0], u)

        def alone() -> None:
            shift = next(moved)
            for model in members.values():
                m = model.start
                size, inputs = len(m.states), len(m.inputs)
                seeds = np.eye(size + inputs)
                read_products(model, t, m.states + shift, m.inputs, seeds[:size], seeds[size:])

        def along_all() -> None:
            shift = next(moved)
            for i, model in enumerate(members.values()):
                own = dx[system.coupling.states[i]]
                inputs = np.zeros((len(model.inputs), n + k))
                read_products(model, t, model.start.states + shift, model.start.inputs, own, inputs)

        whole, own, same = best(together, evaluated), best(alone), best(along_all)
    line("products of 10 FMUs of 40 states against theirs, own directions", f"{whole / own:.2f}", "1.5")
    line("the same, all along the directions of the whole", f"{whole / same:.2f}", "1.5")


def chain(folder: Path) -> None:
    fmu = build_fmu(mass_chain(1), folder / "one.fmu")
    begin = time.perf_counter()
    system = chained({f"m{i}": fl.load(fmu) for i in range(MANY)})
    opened = time.perf_counter()
    with system:
        linear = fl.linearize(system)
        done = time.perf_counter()
    expected = 2 * np.sin(np.arange(1, MANY + 1) * np.pi / (2 * (MANY + 1)))
    found = np.sort(np.abs(linear.eigenvalues().imag))[::2]
    line(f"a chain of {MANY} FMUs: open", f"{opened - begin:.1f} s", "20 s")
    line(f"a chain of {MANY} FMUs: linearize", f"{done - opened:.1f} s", "5 s")
    line("its frequencies against 2 sin(k pi/(2 n + 2))", f"{np.max(np.abs(found / expected - 1)):.1e}", "1e-12")


def limits(folder: Path) -> None:
    for kind, (members, wires), orders in (
        ("double oscillator", double_oscillator(3.0, 0.4), [()]),
        ("by force, feedthrough", by_force(), [(), ("a", "b"), ("b", "a")]),
    ):
        fmus = {n: build_fmu(m, folder / f"{n}.fmu") for n, m in members.items()}
        system = fl.connect(members, wires)
        starts = {f"{n}.x": 1.0 - 0.7 * i for i, n in enumerate(members)}
        with Stepped(fmus, wires, starts) as real:
            for order in orders:
                master = "gauss-seidel" if order else "jacobi"
                limit = fl.cosimulated(system, step=0.1, master=master, order=order).largest_step
                assert limit is not None
                seen = seen_limit(real, 0.8 * limit, 1.2 * limit, order=order)
                told = f"{kind}, {master} {','.join(order)}: limit {limit:.5f} s, FMPy {seen:.5f} s"
                line(told, f"{100 * abs(limit / seen - 1):.2f} %", "1 %")
