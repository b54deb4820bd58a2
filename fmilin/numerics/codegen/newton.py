"""Unknowns that enter the equations nonlinearly: Newton's iteration, from a point where they are known if need be.

A step dw for R(t, x, u, p, w) = 0 solves W dw = r, W = dR/dw, r = -R. Steps have to shrink by half each time, so that
the solution belongs to the guess; where they do not, the way from the point of the guess to the one that is wanted is
gone in parts (Deuflhard, Newton Methods for Nonlinear Problems, 2011, sections 2.1 and 5.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fmilin.ground.errors import NumericalError
from fmilin.ground.signals import FloatArray
from fmilin.numerics.saddle_point.factors import Factors

Point = tuple[float, FloatArray, FloatArray, FloatArray]  # (t, x, u, p)
Linearized = Callable[[Point, FloatArray], tuple[Factors, FloatArray]]  # (point, w) -> factors of W, and r

ITERATIONS = 30
CONVERGED = 1e-13  # the last step, in sizes of the unknowns: W is then right to as much
STALLED = 1e-8  # a step that no longer shrinks below this is rounding
CONTRACTION = 0.5
SHORTEST = 2.0**-12  # of the way from the guess to the point


@dataclass(frozen=True)
class Guess:
    """Where Newton's iteration begins."""

    unknowns: FloatArray  # (nw,), which solve the equations at the point below
    sizes: FloatArray  # (nw,), typical ones
    time: float
    states: FloatArray  # shape (N,)
    inputs: FloatArray  # shape (nu,)
    parameters: FloatArray  # shape (np,)
    equations: tuple[str, ...] = ()  # names of the rows of W, for messages

    @property
    def point(self) -> Point:
        """(t, x, u, p)."""
        return self.time, self.states, self.inputs, self.parameters

    def with_inputs(self, chosen: list[int], held: list[int]) -> Guess:
        """Return the guess of a system of which some inputs have become parameters."""
        parameters = np.concatenate((self.parameters, self.inputs[held]))
        return replace(self, inputs=self.inputs[chosen], parameters=parameters)


def solved(linearized: Linearized, guess: Guess, point: Point, name: str) -> tuple[Factors, FloatArray]:
    """Return the factors of W and w at a point.

    Raises
    ------
    NumericalError
        When no solution is found; the message names the equation with the largest residual.
    """
    direct = _corrected(linearized, guess, point, guess.unknowns)
    if direct is not None:
        return direct
    w, gone, step = guess.unknowns, 0.0, 0.5
    while step >= SHORTEST:
        to = min(1.0, gone + step)
        nearer = _corrected(linearized, guess, _between(guess.point, point, to), w)
        if nearer is None:
            step /= 2
            continue
        w, gone, step = nearer[1], to, 2 * step
        if gone == 1.0:
            return nearer
    raise _refusal(linearized, guess, point, w, name)


def _between(a: Point, b: Point, part: float) -> Point:
    if part == 1.0:
        return b
    t, x, u, p = ((1 - part) * np.asarray(p) + part * np.asarray(q) for p, q in zip(a, b, strict=True))
    return float(t), x, u, p


def _corrected(linearized: Linearized, guess: Guess, point: Point, w: FloatArray) -> tuple[Any, FloatArray] | None:
    previous = np.inf
    for _ in range(ITERATIONS):
        try:
            factors, r = linearized(point, w)
        except NumericalError:  # singular here: no step
            return None
        dw = factors.solve(r)
        if not np.isfinite(dw).all():
            return None
        w = w + dw
        step = float(np.max(np.abs(dw) / np.maximum(np.abs(w), guess.sizes), initial=0.0))
        if step <= CONVERGED or (step <= STALLED and step > CONTRACTION * previous):
            return factors, w
        if step > CONTRACTION * previous:
            return None
        previous = step
    return None


def _refusal(linearized: Linearized, guess: Guess, point: Point, w: FloatArray, name: str) -> NumericalError:
    try:
        _, r = linearized(point, w)
    except NumericalError as singular:
        return singular
    where = f" '{guess.equations[int(np.argmax(np.abs(r)))]}' is left" if guess.equations else " they are left"
    return NumericalError(
        f"The algebraic equations of '{name}' were not solved at time {point[0]:g}:{where} with a "
        f"residual of {np.max(np.abs(r), initial=0.0):.3g} by Newton's iteration. Choose a point nearer to the start "
        "values, give start values of the algebraic variables near their solution, or check that there is one."
    )
