"""Exact derivatives of the equations against complex steps, for every kind of joint, loop, wheel, spring and input."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from fmilin.models.mechanism import Loop
from fmilin.models.mechanism.multibody_system import ForwardDynamics, System
from fmilin.models.mechanism.parts import LoopType
from fmilin.models.mechanism.recursions import compute_displacements, coordinate_columns, coordinate_rates
from tests.models.mechanism.builders import Floats, Random, everything

STEP = 1e-30


def system_with_all_loops() -> System:
    """Return everything, with loops of all types at random places; nothing need be closed for derivatives."""
    r = Random(4)
    d = everything()
    loops = [
        Loop(f"{kind}_to_{b}", kind, a, b, r.placement(), r.placement(), axis=r.vector(), pitch=0.3, length=1.0)
        for kind in get_args(LoopType)
        for a, b in (("b3", "b5"), ("ground", "b8"))
    ]
    return System(replace(d, loops=loops, sensors=()))


def random_point(system: System, shape: tuple[int, ...] = ()) -> tuple[Floats, Floats, Floats]:
    r = np.random.default_rng(11)
    tree = system.tree
    return (
        r.normal(size=(*shape, tree.n_q)),
        r.normal(size=(*shape, tree.n)),
        r.normal(size=(*shape, len(system.description.inputs))),
    )


def any_solution(system: System, q: Floats, v: Floats, u: Floats) -> tuple[ForwardDynamics, Floats, Floats]:
    """Return a "solution" with any accelerations and multipliers: derivatives hold at all of them."""
    r = np.random.default_rng(12)
    state = system.state(q, v, u)
    a, multipliers = r.normal(size=state.F.shape), r.normal(size=state.c.shape)
    A = state.A + system.tree.above @ (state.at.S * a[..., None])
    return ForwardDynamics(state, None, a, multipliers, A), a, multipliers


def residuals(system: System, point: tuple[Floats, Floats, Floats], held: tuple[Floats, Floats]) -> list[Floats]:
    """Return M vdot - F + G' lambda, G vdot + c, G v and g."""
    state = system.state(*point)
    a, multipliers = held
    rho = state.M @ a - state.F + state.G.T @ multipliers
    return [rho, state.G @ a + state.c, system.rates(state), system.gaps(state)]


def by_complex_steps(
    system: System, point: tuple[Floats, Floats, Floats], held: tuple[Floats, Floats], which: int
) -> list[Floats]:
    q, v, u = point
    directions = coordinate_columns(system.tree, q, v)[0] if which == 0 else np.eye(len(point[which]))
    columns = []
    for j in range(directions.shape[1]):
        moved = [p + 1j * STEP * directions[:, j] if k == which else p for k, p in enumerate((q, v, u))]
        columns.append([x.imag / STEP for x in residuals(system, (moved[0], moved[1], moved[2]), held)])
    return [np.array(part).T for part in zip(*columns, strict=True)]


def close(a: Floats, b: Floats) -> bool:
    return bool(np.abs(a - b).max() <= 1e-12 * np.abs(b).max())


def test_all_derivatives_are_those_of_complex_steps() -> None:
    system = system_with_all_loops()
    point = random_point(system)
    solution, *held = any_solution(system, *point)
    columns = system.columns(solution)
    rho, c, rate, gap = by_complex_steps(system, point, (held[0], held[1]), 0)
    assert close(columns.rho_q, rho)
    assert close(columns.c_q, c)
    assert close(columns.rate_q, rate)
    assert close(solution.state.G[: system.m_q], gap)
    rho, c, rate, _ = by_complex_steps(system, point, (held[0], held[1]), 1)
    assert close(columns.rho_v, rho)
    assert close(columns.c_v, c)
    assert close(solution.state.G, rate)
    rho, *_ = by_complex_steps(system, point, (held[0], held[1]), 2)
    assert close(columns.rho_u, rho)


def test_a_batch_of_derivatives_is_that_of_its_points() -> None:
    system = system_with_all_loops()
    q, v, u = random_point(system, (3,))
    solution, *_ = any_solution(system, q, v, u)
    whole = system.columns(solution)
    for i in range(3):
        state = system.state(q[i], v[i], u[i])
        one = system.columns(ForwardDynamics(state, None, solution.v_dot[i], solution.multipliers[i], solution.A[i]))
        for part in ("rho_q", "rho_v", "rho_u", "c_q", "c_v", "rate_q"):
            assert close(getattr(whole, part)[i], getattr(one, part))


def test_rates_of_constraints_along_the_motion() -> None:
    system = system_with_all_loops()
    q, v, u = random_point(system)
    solution, a, _ = any_solution(system, q, v, u)
    ahead = system.state(q + 1j * STEP * coordinate_rates(system.tree, q, v), v + 1j * STEP * a, u)
    state = solution.state
    rate, acceleration = system.rates(state), state.G @ a + state.c
    assert close(system.gaps(ahead).imag / STEP, rate[: system.m_q])
    assert close(system.rates(ahead).imag / STEP, acceleration)


def test_displacements_of_quaternions_that_leave_the_unit_sphere() -> None:
    system = system_with_all_loops()
    q, v, u = random_point(system)
    dq = np.random.default_rng(2).normal(size=(system.tree.n_q, 4))
    theta = compute_displacements(system.tree, q, dq)
    state = system.state(q, v, u)
    for k in range(4):
        moved = system.gaps(system.state(q + 1j * STEP * dq[:, k], v, u)).imag / STEP
        assert close(state.G[: system.m_q] @ theta[:, k], moved)


@pytest.mark.parametrize("level", ["position", "velocity"])
def test_constraints_on_positions_come_first(level: str) -> None:
    system = system_with_all_loops()
    levels = [loop.level for loop in system.loop_constraints]
    assert levels == sorted(levels)
    assert levels.count("position") == system.m_q
    assert level in levels
