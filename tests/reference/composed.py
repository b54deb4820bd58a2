"""Connected systems, co-simulations and sampled loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import control

import fmilin as fl
from fmilin.systems import cartesian_pendulum, four_bar
from tests.composition.plants import coupling_spring, first_order, motor, oscillator

__all__ = ["CASES"]

Results = Mapping[str, fl.LinearModel]
DRIVE = [("motor.torque", "bar.torque"), ("bar.w", "motor.w")]


def _regulator(period: float) -> control.StateSpace:
    return control.ss([[0.9]], [[0.1]], [[2.0]], [[0.7]], period, inputs=["e"], outputs=["F"])


def _drive() -> fl.Model:
    members = {"bar": four_bar(damping=0.1), "motor": motor()}
    return fl.connect(members, DRIVE, inputs=["motor.U"], outputs=["bar.phi", "motor.i"])


def _moving_drive() -> fl.LinearModel:
    model = _drive()
    return fl.linearize(model, fl.operating_point(model, {"bar.phi": 0.7, "bar.w": 1.3, "motor.i": 0.2}))


def _algebraic_loop() -> fl.LinearModel:
    """Both members pass their input through: the wires have a gain and close a loop of equations."""
    members = {"a": first_order("a", -1.0, 0.5), "b": first_order("b", -3.0, 0.4)}
    return fl.linearize(fl.connect(members, [("a.y", "b.u", 0.7), ("b.y", "a.u", -1.1)], inputs=["a.r", "b.r"]))


def _coupled_by_force() -> fl.Model:
    wires = [("one.px", "spring.x1"), ("one.pv", "spring.v1"), ("two.px", "spring.x2"), ("two.pv", "spring.v2")]
    wires += [("spring.on1", "one.F"), ("spring.on2", "two.F")]
    return fl.connect({"one": oscillator(), "two": oscillator(2.0), "spring": coupling_spring(3.0, 0.2)}, wires)


def _sampled(plant: fl.Model, wires: list[tuple[str, str, float] | tuple[str, str]], period: float) -> fl.LinearModel:
    return fl.sampled_loop(fl.connect({"plant": plant, "reg": _regulator(period)}, wires))


def _cosimulations() -> Results:
    model = fl.connect(
        {"a": first_order("a", -1.5, 0.0), "b": first_order("b", -3.0, 0.0)},
        [("a.y", "b.u", -2.0), ("b.y", "a.u", 3.0)],
    )
    return {master: fl.cosimulated(model, step=0.1, master=master).linear for master in ("jacobi", "gauss-seidel")}


def _with_a_linear_member() -> fl.LinearModel:
    members = {"bar": fl.linearize(four_bar(damping=0.1)), "motor": motor()}
    return fl.linearize(fl.connect(members, DRIVE, inputs=["motor.U"], outputs=["bar.phi"]))


CASES: Mapping[str, Callable[[], fl.LinearModel | Results]] = {
    "drive": lambda: fl.linearize(_drive()),
    "drive, by differences": lambda: fl.linearize(_drive(), derivatives="differences"),
    "drive in motion": _moving_drive,
    "drive with a linear member": _with_a_linear_member,
    "algebraic loop": _algebraic_loop,
    "coupled by force": lambda: fl.linearize(_coupled_by_force()),
    "sampled loop": lambda: _sampled(oscillator(damper=0.3), [("plant.px", "reg.e", -1.0), ("reg.F", "plant.F")], 0.1),
    "sampled loop of a constrained plant": lambda: _sampled(
        cartesian_pendulum(), [("plant.angle", "reg.e", -1.0), ("reg.F", "plant.F")], 0.02
    ),
    "co-simulations": _cosimulations,
}
