"""Mechanisms against Pinocchio: the same chains with 6D loops, accuracy and time per point in one run.

Pinocchio: ``constraintDynamics`` and ``computeConstraintDynamicsDerivatives``, compiled C++ through its Python binding,
one point per call as it offers. What the binding itself costs is measured with a model of a single joint and shown, so
that the ratios can be read either way. fmilin: A, B by NumPy at one point and in batches, and the C code of
:func:`fmilin.fmi.write.build_fmu`, compiled for this machine and called in process, which gives the derivatives of all
accelerations by all states and inputs as Pinocchio does. All in processor time, in turns, the quickest of each.
"""

from __future__ import annotations

import ctypes
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from benchmarks.mechanism import BLOCK, kept, moving, quickest
from benchmarks.tables import show
from fmilin.codegen.c_source_export import generate
from fmilin.codegen.compiler import Compiler, compile_library, library_suffix
from fmilin.models.mechanism import Body, Joint, JointForce, Loop, Mechanism, MechanismDescription, Placement
from fmilin.models.mechanism.local_form import LocalFormMatrices
from fmilin.signals import FloatArray

POINTS = 10_000
CHAINS = ((8, (("ground", "link7"),)), (15, (("ground", "link7"), ("link7", "link14"))))
"""Links, and the pairs of bodies that are welded together."""

FOR_THIS_MACHINE = ("-march=native", "-ffp-contract=fast")
"""Beyond the flags of ``build_fmu``: its binaries run on every machine of a platform."""

TARGET_BATCH, TARGET_C = 3.0, 1.0


def main() -> None:
    try:
        import pinocchio  # noqa: F401
    except ImportError:
        print("mechanism_peers: Pinocchio is not installed (pip install 'fmilin[bench]').")
        return
    accuracy, times = [], []
    for links, pairs in CHAINS:
        first, second = compared(chain(links, pairs))
        accuracy.append(first)
        times += second
    show(
        "A against Pinocchio, closed chains in space, in motion",
        ["chain", "n", "loop rows", "P", "Pinocchio", "generated C"],
        accuracy,
        "Largest difference of the rates in A to fmilin's exact procedure, relative.",
    )
    show(
        "Accelerations and all their derivatives, per point",
        ["chain", "way", "per point", "to Pinocchio", "to its compiled part", "target"],
        times,
        f"{POINTS} points. Pinocchio through its binding; its compiled part is estimated by taking off what the same "
        "calls cost for a single joint. Targets are measured against the compiled part.",
    )


def chain(links: int, pairs: tuple[tuple[str, str], ...]) -> Mechanism:
    """Return pins in space with axes at random, and pairs of links welded together where they start."""
    random = np.random.default_rng(3)
    bodies = [Body(f"link{i}", 1.0, (0.5, 0.1, 0), (0.1, 0.2, 0.2)) for i in range(links)]
    joints, at = [], {"ground": np.eye(4)}
    for i in range(links):
        placement = Placement.from_rpy((1.0 if i else 0.0, 0, 0), random.normal(size=3))
        parent = f"link{i - 1}" if i else "ground"
        joint = Joint(
            f"pin{i}", "revolute", parent, f"link{i}", placement, axis=(0, 0, 1), position=float(random.uniform(-1, 1))
        )
        joints.append(joint)
        turn = Placement.from_axis(axis=joint.axis, angle=joint.position[0]).matrix
        at[f"link{i}"] = at[parent] @ placement.matrix @ turn
    welds = []
    for a, b in pairs:
        X = np.linalg.inv(at[a]) @ at[b]
        welds.append(Loop(f"{a}_{b}", "fixed", a, b, Placement(tuple(X[:3, 3]), X[:3, :3])))
    inputs = [JointForce(f"drive{i}", f"pin{i}") for i in range(links)]
    return Mechanism(
        MechanismDescription(f"chain_{links}", bodies, joints, welds, inputs=inputs, gravity=(0, 0, -9.81))
    )


class Pinocchio:
    """The same mechanism in Pinocchio."""

    def __init__(self, description: MechanismDescription) -> None:
        import pinocchio as pin

        self.pin, self.model = pin, pin.Model()
        self.model.gravity = pin.Motion(np.array([*description.gravity, 0, 0, 0]))
        places = {"ground": 0}
        for joint, body in zip(description.joints, description.bodies, strict=True):
            places[body.name] = self.model.addJoint(
                places[joint.parent], pin.JointModelRZ(), pin.SE3(joint.placement.matrix), joint.name
            )
            inertia = pin.Inertia(body.mass, np.array(body.center), np.array(body.J))
            self.model.appendBodyToJoint(places[body.name], inertia, pin.SE3.Identity())
        self.data = self.model.createData()
        self.constraints = pin.StdVec_RigidConstraintModel()
        for loop in description.loops:
            frames = [pin.SE3(p.matrix) for p in (loop.first_placement, loop.second_placement)]
            ends = places[loop.first], frames[0], places[loop.second], frames[1]
            self.constraints.append(
                pin.RigidConstraintModel(pin.ContactType.CONTACT_6D, self.model, *ends, pin.ReferenceFrame.LOCAL)
            )
        self.work = pin.StdVec_RigidConstraintData()
        self.work.extend([c.createData() for c in self.constraints])
        self.settings = pin.ProximalSettings(1e-12, 0.0, 1)
        pin.initConstraintDynamics(self.model, self.data, self.constraints, self.work)

    def visit(self, q: FloatArray, v: FloatArray, tau: FloatArray) -> Any:
        """Return ddq/dq, ddq/dv, ddq/dtau, ..."""
        pin = self.pin
        pin.constraintDynamics(self.model, self.data, q, v, tau, self.constraints, self.work, self.settings)
        return pin.computeConstraintDynamicsDerivatives(
            self.model, self.data, self.constraints, self.work, self.settings
        )


def compiled(model: Mechanism, folder: Path) -> tuple[Callable[..., FloatArray], str]:
    """Return the generated code as a function of many points, and what it took to make it."""
    begin = time.perf_counter()
    equations = model.in_graph()
    assert equations is not None
    system = replace(equations, outputs=ca.SX(0, 1))
    sources = {name: text.encode() for name, text in generate(system).sources.items()}
    sources["peers.c"] = Path(__file__).with_suffix(".c").read_bytes()
    made = time.perf_counter() - begin
    path = folder / f"{model.info.name}{library_suffix()}"
    path.write_bytes(compile_library(sources, "peers.c", Compiler(flags=FOR_THIS_MACHINE, use_cache=False)))
    build = f"{made:.0f} s Python + {time.perf_counter() - begin - made:.0f} s compiler"
    function = ctypes.CDLL(str(path)).visit
    function.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    N, nu = len(model.states), len(model.inputs)

    def visit(X: FloatArray, U: FloatArray) -> FloatArray:
        slopes = np.empty((N + nu, N))
        if function(len(X), X.ctypes.data, U.ctypes.data, slopes.ctypes.data):
            raise ArithmeticError
        return slopes.T

    return visit, build


def compared(model: Mechanism) -> tuple[list[str], list[list[str]]]:
    n, (x, u) = model.system.tree.n, moving(model)
    peer, choice = Pinocchio(model.description), kept(model)
    exact = LocalFormMatrices(model.equations, model.solution(x, u), choice).matrices()
    rows, scale = list(choice.v), np.abs(exact.A).max()
    by_q, by_v, *_ = peer.visit(x[:n], x[n:], u)
    p = len(rows)
    theirs = (by_q @ exact.T[:n] + by_v @ exact.T[n:])[rows]
    X, U = np.tile(x, (POINTS, 1)), np.tile(u, (POINTS, 1))
    with tempfile.TemporaryDirectory() as folder:
        code, build = compiled(model, Path(folder))
        ours = (code(X[:1], U[:1])[n:, : 2 * n] @ exact.T)[rows]
        errors = [f"{np.abs(one - exact.A[-p:]).max() / scale:.0e}" for one in (theirs, ours)]
        measured = _times(model, peer, code, (X, U))
    accuracy = [model.info.name, f"{n}", f"{6 * len(model.description.loops)}", f"{exact.A.shape[0]}", *errors]
    return accuracy, _rows(model.info.name, measured, build)


def _times(model: Mechanism, peer: Pinocchio, code: Any, points: tuple[FloatArray, FloatArray]) -> dict[str, float]:
    """Return seconds per point."""
    (X, U), n, some = points, model.system.tree.n, 500
    choice, free = kept(model), Pinocchio(chain(1, ()).description)
    q, v, tau = X[0, :n].copy(), X[0, n:].copy(), U[0].copy()
    none = np.zeros(1)

    def batch() -> None:
        for i in range(0, POINTS, BLOCK):
            LocalFormMatrices(model.equations, model.solution(X[i : i + BLOCK], U[i : i + BLOCK]), choice).matrices()

    calls: dict[str, tuple[Callable[[], Any], int]] = {
        "Pinocchio": (lambda: [peer.visit(q, v, tau) for _ in range(some)], some),
        "binding": (lambda: [free.visit(none, none, none) for _ in range(some)], some),
        "NumPy, one point": (
            lambda: [
                LocalFormMatrices(model.equations, model.solution(X[0], U[0]), choice).matrices() for _ in range(20)
            ],
            20,
        ),
        "NumPy, batch": (batch, POINTS),
        "generated C": (lambda: code(X, U), POINTS),
    }
    best = quickest(*(call for call, _ in calls.values()), rounds=3)
    return {name: t / count for (name, (_, count)), t in zip(calls.items(), best, strict=True)}


def _rows(name: str, seconds: dict[str, float], build: str) -> list[list[str]]:
    whole = seconds["Pinocchio"]
    inside = whole - seconds["binding"]
    targets = {"NumPy, batch": TARGET_BATCH, "generated C": TARGET_C}
    rows = []
    for way, t in seconds.items():
        if way == "binding":
            rows.append(
                [name, "  its compiled part, estimated", f"{1e6 * inside:.1f} us", f"{inside / whole:.2f}", "1", ""]
            )
            continue
        target = targets.get(way)
        said = f"<= {target:g}: {'kept' if t <= target * inside else 'MISSED'}" if target else ""
        label = f"{way} ({build})" if way == "generated C" else way
        rows.append([name, label, f"{1e6 * t:.1f} us", f"{t / whole:.2f}", f"{t / inside:.2f}", said])
    return rows
