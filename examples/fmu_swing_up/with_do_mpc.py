"""The swing-up of ``run.py`` by do-mpc (``pip install do-mpc``): a controller on the FMU that ``run.py`` has written.

``python with_do_mpc.py`` reads linkage.fmu of the current folder, or of ``--folder FOLDER``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import casadi as ca
import do_mpc  # type: ignore[import-not-found]
import numpy as np

import fmilin as fl
from fmilin.simulation import InputTable

STEP, HORIZON, LIMIT = 0.05, 50, 2.0
OPTIONS = {
    "ipopt.print_level": 0,
    "ipopt.sb": "yes",
    "print_time": 0,
    "ipopt.hessian_approximation": "limited-memory",
    "ipopt.max_iter": 500,
    "ipopt.tol": 1e-6,
}


def advance(rates: Any, y: Any, u: Any) -> Any:
    """Return all columns of y after a step of the classical Runge-Kutta method."""
    k1 = rates(y, u)
    k2 = rates(y + STEP / 2 * k1, u)
    k3 = rates(y + STEP / 2 * k2, u)
    k4 = rates(y + STEP * k3, u)
    return y + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def make_controller(rates: Any, guess: Any) -> Any:
    """Return a controller from ``guess[0]`` to ``guess[-1]`` with the least effort.

    do-mpc calls the model once for each step of the horizon, and an FMU takes a message for each call. So its model
    only says that the next point is ``ahead``, a further input, and one constraint on all steps says what ``ahead``
    is: ``rates`` takes all columns in one message.

    Parameters
    ----------
    rates : callable
        y' (2, HORIZON) of y and u: ``fl.to_casadi(model).batch(HORIZON).f``.
    guess : array, shape (HORIZON + 1, 2)
        Where the search begins.
    """
    model = do_mpc.model.Model("discrete", symvar_type="MX")  # functions that call an FMU have no SX
    model.set_variable("_x", "y", (2, 1))
    torque, ahead = model.set_variable("_u", "torque"), model.set_variable("_u", "ahead", (2, 1))
    model.set_rhs("y", ahead)
    model.setup()
    mpc = do_mpc.controller.MPC(model)
    mpc.set_param(n_horizon=HORIZON, t_step=STEP, store_full_solution=False, nlpsol_opts=OPTIONS)
    mpc.set_objective(lterm=STEP * torque**2, mterm=ca.MX(0))
    mpc.set_rterm(torque=0.0, ahead=0.0)
    for side, sign in (("lower", -1), ("upper", 1)):
        mpc.bounds[side, "_u", "torque"] = sign * LIMIT
        mpc.terminal_bounds[side, "y"] = guess[-1]
    mpc.prepare_nlp()
    y = ca.horzcat(*(mpc.opt_x["_x", k, 0, -1] for k in range(HORIZON)))
    inputs = [mpc.opt_x["_u", k, 0] for k in range(HORIZON)]
    gaps = ca.horzcat(*(u[1:] for u in inputs)) - advance(rates, y, ca.horzcat(*(u[0] for u in inputs)))
    mpc.nlp_cons.append(ca.vec(gaps))
    mpc.nlp_cons_lb.append(np.zeros(gaps.numel()))
    mpc.nlp_cons_ub.append(np.zeros(gaps.numel()))
    mpc.create_nlp()
    mpc.x0 = guess[0]
    mpc.set_initial_guess()
    for k, point in enumerate(guess):
        mpc.opt_x_num["_x", k, 0, -1] = point
    for k, point in enumerate(guess[1:]):
        mpc.opt_x_num["_u", k, 0] = np.array([0.0, *point])
    return mpc


def plan(mpc: Any, first: Any) -> tuple[Any, float]:
    """Return the torques (HORIZON,) from a point on, and the seconds for each iteration of IPOPT."""
    begin = time.perf_counter()
    mpc.make_step(np.asarray(first).reshape(-1, 1))
    seconds = time.perf_counter() - begin
    if not mpc.solver_stats["success"]:
        raise SystemExit(f"IPOPT: {mpc.solver_stats['return_status']}")
    torque = np.array([float(mpc.opt_x_num["_u", k, 0][0]) for k in range(HORIZON)])
    return torque, seconds / mpc.solver_stats["iter_count"]


def main() -> None:
    """Plan the swing-up, and let the plant follow the plan."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(), metavar="FOLDER", help="of linkage.fmu; here by default")
    with fl.load(parser.parse_args().folder / "linkage.fmu") as plant:
        start = {"phi": -1.5, "x": 0.62, "y": -0.73}
        hanging = fl.trim(plant, guess=start, fixed={"torque": 0.0})
        upright = fl.trim(plant, guess={"phi": 1.5, "x": 1.4, "y": 1.0}, fixed={"torque": 0.0})
        nonlinear = fl.to_casadi(plant, hanging, independent=["phi", "w"])
        together = nonlinear.batch(HORIZON)
        first, last = nonlinear.y0, np.array([upright["phi"], 0.0])
        swings = np.linspace(0, 3 * np.pi, HORIZON + 1)
        angles = np.linspace(first[0], last[0], HORIZON + 1) + 0.5 * np.sin(swings)
        guess = np.column_stack((angles, 1.5 * np.cos(swings)))
        guess[[0, -1]] = first, last
        torque, seconds = plan(make_controller(together.f, guess), first)
        print(f"{1e3 * seconds:.1f} ms for each iteration of IPOPT")
        times = STEP * np.arange(HORIZON + 1)
        table = InputTable(np.repeat(times, 2)[1:-1], ["torque"], np.repeat(torque, 2)[:, None])
        motion = fl.simulate(plant, hanging, stop_time=float(times[-1]), step=STEP / 5, inputs=table)
        away = abs(np.degrees(motion["phi"][-1] - upright["phi"]))
        print(f"after {times[-1]:g} s the crank is {away:.2f} degrees away from upright")
        if away > 1.0:
            raise SystemExit("not reached: upright")


if __name__ == "__main__":
    main()
