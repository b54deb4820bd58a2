"""Unknowns at their bounds are left out of Newton's steps in the direction that leads out, and only in this one."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from fmilin.signals import FloatArray
from fmilin.trimming.equations import Equations
from fmilin.trimming.newton import newton_correct

Function = Callable[[FloatArray], FloatArray]


def make_equations(value: Function, slope: Function, low: list[float], high: list[float]) -> Equations:
    """Return what Newton's method asks of equations, for inputs between bounds."""
    unknowns = SimpleNamespace(low=np.array(low), high=np.array(high), state_columns=np.array([], dtype=int))

    def jacobian(z: FloatArray, *, exact: bool, quick: bool) -> tuple[FloatArray, bool]:
        return slope(z), exact or quick

    return cast(Equations, SimpleNamespace(unknowns=unknowns, values=value, jacobian=jacobian, targets=()))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("total", [14.0, 40.0])
def test_what_saturated_thrusters_cannot_give_comes_from_the_one_that_can(sign: float, total: float) -> None:
    """Steps that share the force among ten would leave 1.5 % of it after 40 iterations."""
    limits = np.array([*[1.0] * 9, 100.0])
    equations = make_equations(
        lambda z: np.array([z.sum() - sign * total]), lambda z: np.ones((1, len(z))), [*-limits], [*limits]
    )
    start = sign * np.array([*[1.0] * 9, 0.0])
    np.testing.assert_allclose(
        newton_correct(equations, start).z, sign * np.array([*[1.0] * 9, total - 9.0]), rtol=1e-14
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_unknown_that_starts_at_its_bound_comes_back_from_it(sign: float) -> None:
    equations = make_equations(
        lambda z: z**3 + z - 0.2 * sign, lambda z: np.array([[3 * z[0] ** 2 + 1.0]]), [-1.0], [1.0]
    )
    roots = np.roots([1.0, 0.0, 1.0, -0.2])
    root = float(roots[np.abs(roots.imag) < 1e-12][0].real)
    assert newton_correct(equations, np.array([sign])).z[0] == pytest.approx(sign * root, rel=1e-14)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("at_bound", [1.0, -1.0])
def test_one_at_its_bound_does_not_hold_those_between_theirs(sign: float, at_bound: float) -> None:
    equations = make_equations(
        lambda z: np.array([z[0] - at_bound, z[1] + z[1] ** 3 - 10.0 * sign]),
        lambda z: np.array([[1.0, 0.0], [0.0, 1.0 + 3.0 * z[1] ** 2]]),
        [-1.0, -100.0],
        [1.0, 100.0],
    )
    np.testing.assert_allclose(
        newton_correct(equations, np.array([at_bound, 0.0])).z, [at_bound, 2.0 * sign], rtol=1e-14
    )
