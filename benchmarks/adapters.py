"""Adapters compared with the engines' own linearizations: Pinocchio's analytic derivatives, MuJoCo's mjd_transitionFD.

Both sides are timed in turns, in processor time, and the quickest of each counts. "Derivatives" is an evaluation and
one call of the engine for the directions that are needed; "whole" is ``fl.linearize`` with its checks: constraints
verified, exact derivatives compared with differences, errors estimated.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

import fmilin as fl
from benchmarks.mechanism import quickest
from benchmarks.tables import show
from fmilin.adapters import Engine, EngineModel
from fmilin.model.capabilities import read_products
from fmilin.model.interface import OperatingPoint

EXAMPLES = Path(__file__).parents[1] / "examples" / "one_mechanism"
FILES = ("four_bar", "spatial")
INDEPENDENT = {"four_bar": ["phi.q", "phi.v"], "spatial": ["a.q", "a.v"]}
PINOCCHIO_TARGET, MUJOCO_TARGET = 3.0, 2.0


def main() -> None:
    for name, table in (("pinocchio", pinocchio), ("mujoco", mujoco)):
        if importlib.util.find_spec(f"fmilin_{name}") is None:
            print(f"fmilin-{name} is not installed: pip install ./adapters/{name}")
        else:
            table()


def loaded(source: str, name: str) -> tuple[Any, OperatingPoint, Engine]:
    """Return a model, its equilibrium, and the engine in it."""
    model = fl.load(source)
    if not isinstance(model, EngineModel):
        raise TypeError(f"{name} is no model of an engine")
    return model, fl.trim(model), model.engine


def pinocchio() -> None:
    import pinocchio as pin

    rows = []
    for name in FILES:
        model, point, engine = loaded(f"pinocchio:{EXAMPLES / name}.urdf", name)
        bare = bare_pinocchio(pin, engine, point)
        rows.append(row(name, model, point, bare, PINOCCHIO_TARGET))
    show("Pinocchio: against constraintDynamics and computeConstraintDynamicsDerivatives", COLUMNS, rows, REMARK)


def bare_pinocchio(pin: Any, engine: Any, point: OperatingPoint) -> Callable[[], Any]:
    """Return the bare calls for the same welds, all objects made before."""
    robot, kind = engine.robot, pin.ContactType.CONTACT_6D
    models, found = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for weld in engine.welds:
        models.append(
            pin.RigidConstraintModel(
                kind, robot, weld.joints[0], weld.placements[0], weld.joints[1], weld.placements[1], pin.LOCAL
            )
        )
        found.append(models[-1].createData())
    data, settings = robot.createData(), pin.ProximalSettings(1e-13, 1e-10, 30)
    q, v, tau = point.states[: robot.nq], point.states[robot.nq :], np.zeros(robot.nv)
    pin.initConstraintDynamics(robot, data, models, found)

    def call() -> Any:
        pin.constraintDynamics(robot, data, q, v, tau, models, found, settings)
        return pin.computeConstraintDynamicsDerivatives(robot, data, models, found, settings)

    return call


def mujoco() -> None:
    import mujoco as mj

    rows = []
    for name in FILES:
        file = EXAMPLES / f"{name}.xml"
        model, point, _ = loaded(f"mujoco:{file}", name)
        own = mj.MjModel.from_xml_path(str(file))
        data = mj.MjData(own)
        data.qpos[:] = point.states[: own.nq]
        mj.mj_forward(own, data)
        A = np.zeros((2 * own.nv + own.na,) * 2)

        def bare(own: Any = own, data: Any = data, A: Any = A) -> None:
            mj.mjd_transitionFD(own, data, 1e-6, True, A, None, None, None)  # noqa: FBT003 - flg_centered

        rows.append(row(name, model, point, bare, MUJOCO_TARGET))
    show("MuJoCo: against mjd_transitionFD, central differences of the soft model", COLUMNS, rows, REMARK)


COLUMNS = ("model", "N", "own", "one visit", "slopes", "ratio", "whole", "ratio", "target", "error of A")
REMARK = (
    "own: the engine's bare call. derivatives: an evaluation, and the adapter's exact derivatives along both "
    "directions of motion "
    "(MuJoCo: of the constraints; there are none of accelerations). whole: fl.linearize with its checks, about 100 "
    "visits. target: for the whole. error of A: as fmilin estimates it, relative."
)


def row(name: str, model: Any, point: OperatingPoint, bare: Callable[[], Any], target: float) -> list[str]:
    keep = INDEPENDENT[name]
    lin = fl.linearize(model, point, independent=keep)
    x, u, T = point.states, point.inputs, lin.T
    du = np.zeros((len(u), T.shape[1]))

    places = cycle([x + k * 1e-9 * T[:, 0] for k in (1, 2, 3)])  # an adapter may know a point again

    def visit() -> Any:
        return model.evaluate(0.0, next(places), u)

    def slopes() -> Any:
        here = next(places)
        model.evaluate(0.0, here, u)
        return read_products(model, 0.0, here, u, T, du)

    def whole() -> Any:
        return fl.linearize(model, point, independent=keep)

    own, one, exact, all_of_it = quickest(bare, visit, slopes, whole, rounds=40)
    ratio = all_of_it / own
    return [
        name,
        f"{len(x)}",
        f"{1e6 * own:.0f} us",
        f"{1e6 * one:.0f} us",
        f"{1e6 * exact:.0f} us",
        f"{exact / own:.1f}",
        f"{1e6 * all_of_it:.0f} us",
        f"{ratio:.0f}",
        f"<= {target:g}: {'kept' if ratio <= target else 'MISSED'}",
        f"{lin.accuracy.A:.0e}",
    ]
