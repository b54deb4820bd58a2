"""Mechanisms: what exact A, B, C, D cost, in evaluations of the forward dynamics, and how costs grow.

An evaluation is one of the nonlinear model: accelerations, outputs, residuals. A, B, C, D come from one pass of
the exact procedure, against 2 (P + nu) evaluations on the manifold for central differences in independent coordinates
and 2 N for all states. Both are timed in turns, in processor time, and the quickest of each counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.tables import show
from fmilin.manifold.frame import kept_states
from fmilin.models.mechanism import Body, Joint, JointForce, Loop, Mechanism, MechanismDescription, Placement
from fmilin.models.mechanism.local_form import Choice, LocalFormMatrices
from fmilin.models.mechanism.recursions import coordinate_rates
from fmilin.signals import FloatArray
from tests.models.mechanism.recursion import articulated_body
from tests.systems.linkages import five_bar_mechanism, parallel_robot

SYSTEMS = (
    "slider_crank",
    "furuta_pendulum",
    "loader",
    "double_wishbone",
    "stewart_platform",
)
TARGET = 4.0
BLOCK = 256
"""Points that are computed together: what fits into the processor's cache."""

POINTS = 2048
CHAIN = (5, 10, 20, 40, 80, 160, 320)
LOOPS = (1, 2, 4, 8, 16)


def main() -> None:
    single_points()
    batches()
    open_chains()
    loops()


def quickest(*calls: Callable[[], Any], rounds: int = 12) -> list[float]:
    """Return the shortest time of each call, timed in turns."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            begin = time.process_time()
            call()
            best[i] = min(best[i], time.process_time() - begin)
    return best


def models() -> list[Mechanism]:
    from fmilin import systems

    found = [getattr(systems, name)() for name in SYSTEMS]
    return [five_bar_mechanism(), *found, parallel_robot(), chain_with_loops()]


def chain_with_loops() -> Mechanism:
    """Return a chain of 15 links in space, its axes at random, with two loops that let it move in 5 ways."""
    random = np.random.default_rng(3)
    bodies = [Body(f"link{i}", 1.0, (0.5, 0.1, 0), (0.1, 0.2, 0.2)) for i in range(15)]
    joints = [
        Joint(
            f"pin{i}",
            "revolute",
            f"link{i - 1}" if i else "ground",
            f"link{i}",
            Placement.from_rpy((1.0 if i else 0.0, 0, 0), random.normal(size=3)),
            position=float(random.uniform(-1, 1)),
        )
        for i in range(15)
    ]
    at = {"ground": np.eye(4)}
    for joint in joints:
        turn = Placement.from_axis(axis=joint.axis, angle=joint.position[0]).matrix
        at[joint.child] = at[joint.parent] @ joint.placement.matrix @ turn
    cuts = []
    for a, b in (("ground", "link7"), ("link7", "link14")):
        X = np.linalg.inv(at[a]) @ at[b]
        cuts.append(Loop(f"{a}_{b}", "revolute", a, b, Placement(tuple(X[:3, 3]), X[:3, :3])))
    inputs = [JointForce("drive", "pin0"), JointForce("bend", "pin8")]
    return Mechanism(MechanismDescription("chain_15", bodies, joints, cuts, inputs=inputs))


def moving(model: Mechanism) -> tuple[FloatArray, FloatArray]:
    """Return the start with random velocities that obey the constraints."""
    n_q = model.system.tree.n_q
    x, u = model.start.states.copy(), model.start.inputs
    G = model.solution(x, u).state.G[model.independence.all]
    v = np.random.default_rng(0).normal(size=model.system.tree.n)
    x[n_q:] = v - np.linalg.pinv(G) @ (G @ v)
    return x, u


def kept(model: Mechanism) -> Choice:
    """Return the states that fl.linearize keeps where the mechanism starts."""
    return Choice.of(kept_states(model, model.start, model.independent), model.system)


def single_points() -> None:
    rows = []
    for model in models():
        x, u = moving(model)
        choice = kept(model)
        P = len(choice.q) + len(choice.v)

        def visit(model: Mechanism = model, x: FloatArray = x, u: FloatArray = u) -> Any:
            return model.evaluate(0.0, x, u)

        def exact(model: Mechanism = model, x: FloatArray = x, u: FloatArray = u, choice: Any = choice) -> Any:
            return LocalFormMatrices(model.equations, model.solution(x, u), choice).matrices()

        one, all_four = quickest(visit, exact, rounds=60)
        ratio = all_four / one
        rows.append(
            [
                model.info.name,
                f"{len(x)}",
                f"{P}",
                f"{1e6 * one:.0f} us",
                f"{1e6 * all_four:.0f} us",
                f"{ratio:.2f}",
                f"<= {TARGET:g}: {'kept' if ratio <= TARGET else 'MISSED'}",
                f"{2 * (P + len(u))}",
                f"{2 * len(x)}",
                f"{error_of_A(model, x, u, choice):.0e}",
            ]
        )
    show(
        "Exact A, B, C, D at one moving point",
        ["mechanism", "N", "P", "evaluation", "A B C D", "ratio", "target", "differences", "all states", "error of A"],
        rows,
        "ratio: exact matrices over one evaluation. differences, all states: how many evaluations these would take. "
        "error of A: against complex steps of the saddle point system, relative.",
    )


def error_of_A(model: Mechanism, x: FloatArray, u: FloatArray, choice: Any) -> float:
    """Return the relative difference to complex steps of M vdot + G' lambda = F, G vdot = -c."""
    n_q, used, h = model.system.tree.n_q, model.independence.all, 1e-30
    found = LocalFormMatrices(model.equations, model.solution(x, u), choice).matrices()

    def rates(z: Any) -> Any:
        state = model.system.state(z[:n_q], z[n_q:], u)
        G = state.G[used]
        whole = np.block([[state.M, G.T], [G, np.zeros((len(used), len(used)))]])
        solved = np.linalg.solve(whole, np.concatenate((state.F, -state.c[used])))
        return np.concatenate((coordinate_rates(model.system.tree, z[:n_q], z[n_q:]), solved[: model.system.tree.n]))

    along = np.array([rates(x + 1j * h * t).imag / h for t in found.T.T]).T
    rows = [*choice.q, *(n_q + i for i in choice.v)]
    return float(np.abs(found.A - along[rows]).max() / np.abs(along[rows]).max())


def batches() -> None:
    rows = []
    for model in models():
        x, u = moving(model)
        choice = kept(model)
        X, U = np.tile(x, (BLOCK, 1)), np.tile(u, (BLOCK, 1))
        blocks = POINTS // BLOCK

        def together(model: Mechanism = model, X: Any = X, U: Any = U, choice: Any = choice, n: int = blocks) -> None:
            for _ in range(n):
                LocalFormMatrices(model.equations, model.solution(X, U), choice).matrices()

        def alone(model: Mechanism = model, x: Any = x, u: Any = u, choice: Any = choice) -> Any:
            return LocalFormMatrices(model.equations, model.solution(x, u), choice).matrices()

        batch, one = quickest(together, alone, rounds=4)
        per_point = batch / POINTS
        rows.append(
            [
                model.info.name,
                f"{model.system.tree.n}",
                f"{1e6 * one:.0f} us",
                f"{1e6 * per_point:.1f} us",
                f"{one / per_point:.0f}",
            ]
        )
    show(
        "Exact A, B, C, D at many points",
        ["mechanism", "n", "one point", "of a batch", "times quicker"],
        rows,
        f"{POINTS} points in blocks of {BLOCK} on one core; n: degrees of freedom of the open tree.",
    )


def chain_of(n: int) -> MechanismDescription:
    bodies = [Body(f"link{i}", 1.0, (0.5, 0, 0), (0.01, 0.1, 0.1)) for i in range(n)]
    joints = [
        Joint(
            f"pin{i}",
            "revolute",
            f"link{i - 1}" if i else "ground",
            f"link{i}",
            Placement.from_rpy((1.0 if i else 0.0, 0, 0), (np.pi / 2 * (i % 2), 0, 0)),
            position=0.1,
        )
        for i in range(n)
    ]
    return MechanismDescription(f"chain_{n}", bodies, joints)


def open_chains() -> None:
    rows = []
    for n in CHAIN:
        model = Mechanism(chain_of(n))
        x, u = model.start.states, model.start.inputs
        q, v, zero = x[:n], x[n:], np.zeros(n)
        choice = kept(model)

        def recursion(model: Mechanism = model, q: Any = q, v: Any = v, zero: Any = zero) -> Any:
            return articulated_body(model.system.tree, q, v, zero, model.system.gravity)

        def visit(model: Mechanism = model, x: Any = x, u: Any = u) -> Any:
            return model.evaluate(0.0, x, u)

        def exact(model: Mechanism = model, x: Any = x, u: Any = u, choice: Any = choice) -> Any:
            return LocalFormMatrices(model.equations, model.solution(x, u), choice).matrices()

        tree, one, all_four = quickest(recursion, visit, exact, rounds=5)
        rows.append(
            [
                f"{n}",
                f"{1e3 * tree:.2f} ms",
                f"{1e6 * tree / n:.0f} us",
                f"{1e3 * one:.2f} ms",
                f"{1e3 * all_four:.2f} ms",
                f"{all_four / one:.1f}",
                f"{4 * n}",
            ]
        )
    show(
        "Open chains",
        ["links", "articulated bodies", "per link", "evaluation", "A", "ratio", "differences"],
        rows,
        "The articulated-body algorithm is linear in the number of links; an evaluation solves with the mass matrix.",
    )


def four_bars(count: int) -> MechanismDescription:
    """Return a row of four-bars that share their rockers: 2 count + 1 links, count loops, one degree of freedom."""
    rod = (0.0, 1 / 12, 1 / 12)
    bodies = [Body(f"rocker{i}", 1.0, (0.5, 0, 0), rod) for i in range(count + 1)]
    joints = [
        Joint(f"pin{i}", "revolute", "ground", f"rocker{i}", Placement((float(i), 0, 0)), position=1.0)
        for i in range(count + 1)
    ]
    cuts = []
    for i in range(count):
        bodies.append(Body(f"coupler{i}", 1.0, (0.5, 0, 0), rod))
        end = Placement((1.0, 0, 0))
        joints.append(Joint(f"top{i}", "revolute", f"rocker{i}", f"coupler{i}", end, position=-1.0))
        cuts.append(Loop(f"cut{i}", "revolute", f"coupler{i}", f"rocker{i + 1}", end, end))
    return MechanismDescription(f"four_bars_{count}", bodies, joints, cuts, gravity=(0, -9.81, 0))


def loops() -> None:
    rows = []
    for count in LOOPS:
        model = Mechanism(four_bars(count))
        x, u = moving(model)
        choice = kept(model)

        def visit(model: Mechanism = model, x: Any = x, u: Any = u) -> Any:
            return model.evaluate(0.0, x, u)

        def exact(model: Mechanism = model, x: Any = x, u: Any = u, choice: Any = choice) -> Any:
            return LocalFormMatrices(model.equations, model.solution(x, u), choice).matrices()

        one, all_four = quickest(visit, exact, rounds=8)
        rows.append(
            [
                f"{count}",
                f"{len(x)}",
                f"{1e3 * one:.2f} ms",
                f"{1e3 * all_four:.2f} ms",
                f"{all_four / one:.1f}",
                f"{2 * len(x)}",
                f"{error_of_A(model, x, u, choice):.0e}",
            ]
        )
    show(
        "Rows of four-bars",
        ["loops", "N", "evaluation", "A", "ratio", "all states", "error of A"],
        rows,
        "One freedom whatever the number of loops.",
    )
