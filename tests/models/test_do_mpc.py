"""FMUs in do-mpc: the optimal control problem of multiple shooting, in its own words, has the same solution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.models import LagrangeModel
from fmilin.signals import FloatArray

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # CasADi 3.8 about NumPy functions in do-mpc

do_mpc = pytest.importorskip("do_mpc", reason="do-mpc is no dependency of fmilin: pip install do-mpc")

STEP, HORIZON, LIMIT = 0.1, 12, 3.0
QUIET: dict[str, Any] = {
    "ipopt.print_level": 0,
    "ipopt.sb": "yes",
    "print_time": 0,
    "ipopt.hessian_approximation": "limited-memory",
    "ipopt.tol": 1e-8,
}


def build_pendulum(folder: Path) -> Path:
    """Write a pendulum in Cartesian coordinates as an FMU: four states, two degrees of freedom."""
    pendulum = LagrangeModel(
        "pendulum",
        {"x": "vx", "y": "vy"},
        [[1, 0], [0, 1]],
        ["F", "-9.81"],
        constraints=["x^2 + y^2 - 1"],
        inputs=["F"],
        outputs={"place": "x"},
        start={"x": 0.0, "y": -1.0},
    )
    return build_fmu(pendulum, folder / "pendulum.fmu")


def advance(rates: Any, y: Any, u: Any) -> Any:
    """Return y after a step of the classical Runge-Kutta method."""
    k1 = rates(y, u)
    k2 = rates(y + STEP / 2 * k1, u)
    k3 = rates(y + STEP / 2 * k2, u)
    k4 = rates(y + STEP * k3, u)
    return y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def solve_by_shooting(rates: Any, first: FloatArray, last: FloatArray) -> FloatArray:
    """Return the forces (HORIZON,) of least squares between two points."""
    Y, U = ca.MX.sym("Y", 2, HORIZON + 1), ca.MX.sym("U", 1, HORIZON)
    gaps = ca.horzcat(Y[:, 0] - first, Y[:, 1:] - advance(rates, Y[:, :-1], U), Y[:, -1] - last)
    problem: dict[str, Any] = {"x": ca.veccat(Y, U), "f": STEP * ca.sumsqr(U), "g": ca.vec(gaps)}
    solver = ca.nlpsol("solver", "ipopt", problem, QUIET)
    guess = np.linspace(first, last, HORIZON + 1)
    highest = np.concatenate((np.full(guess.size, np.inf), np.full(HORIZON, LIMIT)))
    start = np.concatenate((guess.ravel(), np.zeros(HORIZON)))
    solution = solver(x0=start, lbx=-highest, ubx=highest, lbg=0, ubg=0)
    assert solver.stats()["success"]
    forces: FloatArray = solution["x"].full().ravel()[guess.size :]
    return forces


def solve_by_do_mpc(rates: Any, first: FloatArray, last: FloatArray) -> FloatArray:
    """Return the same of do-mpc's controller, with the end as terminal bounds."""
    model = do_mpc.model.Model("discrete", symvar_type="MX")
    y, u = model.set_variable("_x", "y", (2, 1)), model.set_variable("_u", "F")
    model.set_rhs("y", advance(rates, y, u))
    model.setup()
    mpc = do_mpc.controller.MPC(model)
    mpc.set_param(n_horizon=HORIZON, t_step=STEP, store_full_solution=False, nlpsol_opts=QUIET)
    mpc.set_objective(lterm=STEP * u**2, mterm=ca.MX(0))
    mpc.set_rterm(F=0.0)
    for side, sign in (("lower", -1), ("upper", 1)):
        mpc.bounds[side, "_u", "F"] = sign * LIMIT
        mpc.terminal_bounds[side, "y"] = last
    mpc.setup()
    mpc.x0 = first
    mpc.set_initial_guess()
    for k, point in enumerate(np.linspace(first, last, HORIZON + 1)):
        mpc.opt_x_num["_x", k, 0, -1] = point
    mpc.make_step(first.reshape(2, 1))
    assert mpc.solver_stats["success"]
    return np.array([float(mpc.opt_x_num["_u", k, 0]) for k in range(HORIZON)])


def test_do_mpc_finds_what_multiple_shooting_finds(tmp_path: Path) -> None:
    with fl.load(build_pendulum(tmp_path)) as plant:
        hanging = fl.trim(plant, guess={"x": 0.0, "y": -1.0}, fixed={"F": 0.0})
        nonlinear = fl.to_casadi(plant, hanging, independent=["x", "vx"])
        first, last = nonlinear.y0, np.array([0.5, 0.0])
        together = nonlinear.batch(HORIZON)
        shooting = solve_by_shooting(together.f, first, last)
        np.testing.assert_allclose(solve_by_do_mpc(nonlinear.f, first, last), shooting, atol=1e-5)
        assert np.ptp(shooting) > 1.0
