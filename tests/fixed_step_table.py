"""Co-simulation FMUs whose solver has a fixed step, with known plants: which method is inside, and what is returned."""

from __future__ import annotations

from tests.cosimulation_table import (
    CART,
    CHAIN,
    COMMUNICATES,
    EULER,
    HEUN,
    HOLDS,
    IGNORES,
    IMPLICIT,
    LAG,
    MOTOR,
    OSCILLATOR,
    PENDULUM,
    REFUSES,
    ROUNDS,
    RUNGE_KUTTA,
    RUNS_AHEAD,
    SEMI_IMPLICIT,
    TORSION,
    TRAPEZOID,
    Case,
)  # fmt: skip

BOTH = ("y", "y2")


def hidden(
    name: str, plant: int, values: tuple[float, ...], solver: tuple[int, float, int], outputs: tuple[str, ...] = ("y",)
) -> Case:
    """Return an FMU with hidden states that declares its step."""
    return Case(name, plant, values, solver, outputs, step=solver[1])


CASES = (
    hidden("Euler, oscillator, refuses", OSCILLATOR, (2.0, 0.4), (EULER, 0.01, REFUSES)),
    hidden("Euler, oscillator, communicates", OSCILLATOR, (2.0, 0.4), (EULER, 0.1, COMMUNICATES)),
    hidden("Euler, lag, communicates", LAG, (1.0, 1.0), (EULER, 0.1, COMMUNICATES)),
    hidden("Euler, pendulum, holds", PENDULUM, (3.0, 0.1), (EULER, 0.02, HOLDS)),
    hidden("Euler, cart, rounds", CART, (0.1, 2.0, 9.0, 0.3, 0.7), (EULER, 0.01, ROUNDS), BOTH),
    hidden("Euler, motor, ignores", MOTOR, (1.0, 0.1, 0.5, 0.1, 0.02), (EULER, 0.01, IGNORES), BOTH),
    hidden("Euler, six lags, ahead", CHAIN, (3.0,), (EULER, 0.01, RUNS_AHEAD)),
    hidden("Euler, oscillator, 1e-3", OSCILLATOR, (5.0, 0.2), (EULER, 1e-3, ROUNDS), BOTH),
    hidden("semi-implicit, oscillator, refuses", OSCILLATOR, (2.0, 0.4), (SEMI_IMPLICIT, 0.05, REFUSES)),
    hidden("semi-implicit, oscillator, communicates", OSCILLATOR, (2.0, 0.4), (SEMI_IMPLICIT, 0.1, COMMUNICATES)),
    hidden("semi-implicit, cart, rounds", CART, (0.1, 2.0, 9.0, 0.3, 0.7), (SEMI_IMPLICIT, 0.02, ROUNDS), BOTH),
    hidden("semi-implicit, torsion bar", TORSION, (90.0, 2.0, 3.0, 0.1), (SEMI_IMPLICIT, 0.01, HOLDS), BOTH),
    hidden("semi-implicit, pendulum, ignores", PENDULUM, (3.0, 0.1), (SEMI_IMPLICIT, 0.01, IGNORES)),
    hidden("Runge-Kutta, oscillator, refuses", OSCILLATOR, (2.0, 0.4), (RUNGE_KUTTA, 0.1, REFUSES)),
    hidden(
        "Runge-Kutta, motor, communicates", MOTOR, (1.0, 0.1, 0.5, 0.1, 0.02), (RUNGE_KUTTA, 0.1, COMMUNICATES), BOTH
    ),
    hidden("Runge-Kutta, cart, rounds", CART, (0.1, 2.0, 9.0, 0.3, 0.7), (RUNGE_KUTTA, 0.05, ROUNDS), BOTH),
    hidden("Runge-Kutta, lag, holds", LAG, (3.0, 2.0), (RUNGE_KUTTA, 0.01, HOLDS)),
    hidden("trapezoid, oscillator, refuses", OSCILLATOR, (2.0, 0.4), (TRAPEZOID, 0.1, REFUSES)),
    hidden("trapezoid, motor, rounds", MOTOR, (1.0, 0.1, 0.5, 0.1, 0.02), (TRAPEZOID, 0.05, ROUNDS), BOTH),
    hidden("trapezoid, lag, communicates", LAG, (2.0, 1.0), (TRAPEZOID, 0.1, COMMUNICATES)),
    hidden("trapezoid, pendulum, ignores", PENDULUM, (3.0, 0.1), (TRAPEZOID, 0.02, IGNORES)),
    hidden("trapezoid, torsion bar, holds", TORSION, (90.0, 2.0, 3.0, 0.1), (TRAPEZOID, 0.01, HOLDS), BOTH),
    hidden("implicit Euler, oscillator", OSCILLATOR, (2.0, 0.4), (IMPLICIT, 0.05, REFUSES)),
    hidden("implicit Euler, lag, communicates", LAG, (2.0, 1.0), (IMPLICIT, 0.1, COMMUNICATES)),
    hidden("Heun, oscillator, rounds", OSCILLATOR, (2.0, 0.4), (HEUN, 0.05, ROUNDS)),
)
