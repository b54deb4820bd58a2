"""Small symbolic systems, each with something of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import sympy

from fmilin import Constraint
from fmilin.model.equation_forms import SymbolicSystem
from fmilin.signals import Signal, Signals

time = sympy.Symbol("time", real=True)

Sample = Callable[[], SymbolicSystem]


def pendulum() -> SymbolicSystem:
    """Cartesian coordinates, W = [[M, G'], [G, 0]] (Spencer, thesis, eq. 2.3), swinging."""
    x, y, vx, vy, F, m, g, L = sympy.symbols("x y vx vy F m g L", real=True)
    ax, ay, multiplier = sympy.symbols("ax ay lambda", real=True)
    rod = Constraint.from_text("x^2 + y^2 - L^2", name='rod "length"', rate="2*(x*vx + y*vy)")
    return SymbolicSystem(
        name="pendulum",
        description="Point mass on a rod",
        time=time,
        states=(x, y, vx, vy),
        inputs=(F,),
        parameters={m: 2.0, g: 9.81, L: 1.0},
        unknowns=(ax, ay, multiplier),
        matrix={(0, 0): m, (1, 1): m, (0, 2): 2 * x, (1, 2): 2 * y, (2, 0): 2 * x, (2, 1): 2 * y},
        right_hand_side=(F, -m * g, -2 * (vx**2 + vy**2)),
        derivatives=(vx, vy, ax, ay),
        outputs=(sympy.atan2(x, -y), ax, x, ay + g, ay),
        state_signals=Signals(
            [
                Signal("x", "m", 1.0, 0.6),
                Signal("y", "m", 1.0, -0.8),
                Signal("vx", "m/s", 2.0, 0.4),
                Signal("vy", "m/s", None, 0.3),
            ]
        ),
        input_signals=Signals([Signal("F", "N", 10.0, 0.5, "horizontal force")]),
        output_signals=Signals(
            [
                Signal("angle", "rad"),
                Signal("accelerometer.x", "m/s2", 9.81),
                Signal("x"),
                Signal("accelerometer.y", "m/s2"),
                Signal("der(vy)", "m/s2"),
            ]
        ),
        parameter_signals=Signals([Signal("m", "kg"), Signal("g", "m/s2"), Signal("L", "m")]),
        constraints=(rod,),
        extra_names={"rod.force": multiplier * 2 * sympy.sqrt(x**2 + y**2)},
        independent=("x", "vx"),
    )


def oscillator() -> SymbolicSystem:
    """An explicit equation with time in it: x'' = -k x + u cos(time)."""
    x, v, u, k = sympy.symbols("x v u k", real=True)
    return SymbolicSystem(
        name="driven oscillator",
        time=time,
        states=(x, v),
        inputs=(u,),
        parameters={k: 4.0},
        derivatives=(v, -k * x + u * sympy.cos(time)),
        outputs=(k * x**2 / 2 + v**2 / 2, sympy.Integer(7)),
        state_signals=Signals([Signal("x", start=1.0), "v"]),
        input_signals=Signals([Signal("u", start=0.5)]),
        output_signals=Signals(["energy", "seven"]),
        parameter_signals=Signals(["k"]),
    )


def gain() -> SymbolicSystem:
    """No states: y = k u."""
    u, k = sympy.symbols("u k", real=True)
    return SymbolicSystem(
        name="gain",
        time=time,
        states=(),
        inputs=(u,),
        parameters={k: 3.0},
        derivatives=(),
        outputs=(k * u,),
        state_signals=Signals(),
        input_signals=Signals([Signal("u", start=2.0)]),
        output_signals=Signals(["y"]),
        parameter_signals=Signals(["k"]),
    )


def decay() -> SymbolicSystem:
    """No inputs, no outputs, no parameters: x' = -x."""
    x = sympy.Symbol("x")
    return replace(
        nothing(), name="decay", states=(x,), derivatives=(-x,), state_signals=Signals([Signal("x", start=1.0)])
    )


def nothing() -> SymbolicSystem:
    """Nothing but time."""
    none = Signals()
    return SymbolicSystem(
        name="nothing",
        time=time,
        states=(),
        inputs=(),
        parameters={},
        derivatives=(),
        outputs=(),
        state_signals=none,
        input_signals=none,
        output_signals=none,
        parameter_signals=none,
    )


ALL = (pendulum, oscillator, gain, decay, nothing)
