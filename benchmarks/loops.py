"""Loops cut at wires against systems that were cut by hand, at 100 frequencies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import control
import numpy as np

import fmilin as fl
from benchmarks.tables import show
from fmilin.systems import four_bar

DT = 0.1
POINTS = 100
Response = Callable[[np.ndarray], np.ndarray]


def plant(feedthrough: float) -> control.StateSpace:
    return control.ss([[0, 1], [-1, -0.3]], [[0], [1]], [[1, 0]], [[feedthrough]], inputs="u", outputs="y")


def law(feedthrough: float, dt: float = 0.0) -> control.StateSpace:
    continuous = control.ss([[-5.0]], [[1.0]], [[2.0]], [[feedthrough]], inputs="u", outputs="y")
    return control.c2d(continuous, dt) if dt else continuous


def at_frequencies(dt: float) -> np.ndarray:
    return np.exp(1j * np.linspace(1e-3, 0.99, POINTS) * np.pi) if dt else 1j * np.logspace(-2, 3, POINTS)


def around(P: control.StateSpace, K: control.StateSpace, at: np.ndarray) -> np.ndarray:
    return np.asarray(-P(at) * K(at))


def case(
    title: str, members: dict[str, object], wires: Sequence[Sequence[str | float]], wire: str, by_hand: Response
) -> list[str]:
    system = fl.connect(members, wires)
    L, S, T = (f(system, wire) for f in (fl.loop_transfer, fl.sensitivity, fl.complementary_sensitivity))
    at = at_frequencies(L.sample_time)
    expected = by_hand(at)
    loop, s, t = (linear.to_control()(at) for linear in (L, S, T))
    off = float(np.max(np.abs(loop - expected) / np.abs(expected)))
    closed = float(np.max(np.abs(s - 1 / (1 - expected)) / np.abs(s)))
    return [title, wire, f"{off:.1e}", f"{closed:.1e}", f"{float(np.max(np.abs(s + t - 1))):.1e}"]


def main() -> None:
    wires = [("plant.y", "law.u", -1.0), ("law.y", "plant.u")]
    rows = []
    for wire in ("plant.u", "law.u"):
        both = {"plant": plant(0.2), "law": law(1.5)}
        rows.append(
            case("continuous, feedthrough on both sides", both, wires, wire, partial(around, plant(0.2), law(1.5)))
        )
        sampled, held = law(1.5, DT), control.c2d(plant(0.0), DT)
        both = {"plant": plant(0.0), "law": sampled}
        rows.append(case("sampled regulator", both, wires, wire, partial(around, held, sampled)))
    regulator = control.ss([], [], [], [[4.0, 1.0]], inputs=["angle", "rate"], outputs=["torque"])
    wires = [("bar.phi", "law.angle", -1.0), ("bar.w", "law.rate", -1.0), ("law.torque", "bar.torque")]
    alone = fl.linearize(four_bar(), inputs=["torque"], outputs=["phi", "w"]).to_control()

    def by_hand(s: np.ndarray) -> np.ndarray:
        return np.asarray(-np.array([4.0, 1.0]) @ alone(s)[:, 0, :])

    bar = {"bar": four_bar(), "law": regulator}
    rows.append(case("four-bar, 10 states of which 2 are free", bar, wires, "bar.torque", by_hand))
    show(
        "Loops against systems cut by hand (targets: 1e-10, S + T = 1 to 1e-12)",
        ("system", "wire", "L", "S", "|S + T - 1|"),
        rows,
        f"Largest relative difference at {POINTS} frequencies.",
    )
