"""Linear models of equations: a network with algebraic variables, and systems that are connected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np

import fmilin as fl
from benchmarks.composition import chained
from benchmarks.dae_networks import Network, network
from benchmarks.peers.ways import TOOLS, Way
from fmilin.fmi.write import build_fmu
from fmilin.models import DaeModel
from tests.composition.plants import mass_chain

__all__ = ["WAYS_OF_CONNECTED", "WAYS_OF_CONNECTED_FMUS", "WAYS_OF_DAE"]


@contextmanager
def dae(nodes: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    model = DaeModel.from_graph(_build_network(nodes).graph)
    yield lambda: fl.linearize(model)


@contextmanager
def dae_by_casadi(nodes: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    """Solve for derivatives and algebraic variables with a rootfinder, and differentiate what it solves."""
    import casadi as ca

    graph = _build_network(nodes).graph
    unknowns, knowns = ca.vertcat(graph.dx, graph.z), ca.vertcat(graph.x, graph.u)
    solver = ca.rootfinder("solver", "newton", {"x": unknowns, "p": knowns, "g": graph.residuals})
    guess = np.zeros(unknowns.numel())
    known = ca.MX.sym("known", knowns.numel())
    solution = solver(guess, known)[: graph.dx.numel()]
    A = ca.Function("A", [known], [ca.jacobian(solution, known)])
    values = np.concatenate((graph.states.starts, graph.inputs.starts))
    yield lambda: A(values)


@contextmanager
def dae_by_scipy(nodes: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    """Newton's iteration and a Schur complement, written by hand for this network."""
    net = _build_network(nodes)
    yield net.solve_by_arrays


@contextmanager
def connected(members: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    system = chained({f"m{i}": mass_chain(1) for i in range(members)})
    yield lambda: fl.linearize(system)


@contextmanager
def connected_fmus(members: int, folder: Path) -> Iterator[Callable[[], Any]]:
    path = folder / "one_mass.fmu"
    if not path.exists():
        build_fmu(mass_chain(1), path)
    with chained({f"m{i}": fl.load(path) for i in range(members)}) as system:
        yield lambda: fl.linearize(system)


@contextmanager
def connected_by_control(members: int, _folder: Path) -> Iterator[Callable[[], Any]]:
    import control

    def rates(_t: float, x: Any, u: Any, _parameters: Any) -> Any:
        return [x[1], u[0] - 2 * x[0] + u[1]]

    def output(_t: float, x: Any, _u: Any, _parameters: Any) -> Any:
        return [x[0]]

    systems = [
        control.nlsys(rates, output, inputs=["left", "right"], outputs=["x"], states=["x", "v"], name=f"m{i}")
        for i in range(members)
    ]
    wires = [[f"m{i}.left", f"m{i - 1}.x"] for i in range(1, members)]
    wires += [[f"m{i}.right", f"m{i + 1}.x"] for i in range(members - 1)]
    system = control.interconnect(
        systems, wires, inplist=["m0.left"], outlist=[f"m{members - 1}.x"], check_unused=False
    )
    zero = np.zeros(2 * members)
    yield lambda: control.linearize(system, zero, [0.0])


def _build_network(nodes: int) -> Network:
    return network(isqrt(nodes))


WAYS_OF_DAE = [
    Way(TOOLS["fmilin"], dae, lambda linear: np.hstack((linear.A, linear.B))),
    Way(TOOLS["CasADi"], dae_by_casadi, lambda A: np.asarray(A.full()), "rootfinder and its jacobian"),
    Way(TOOLS["SciPy"], dae_by_scipy, np.hstack, "splu, written by hand"),
]
WAYS_OF_CONNECTED = [
    Way(TOOLS["fmilin"], connected, lambda linear: linear.A),
    Way(TOOLS["python-control"], connected_by_control, lambda linear: linear.A, "interconnect, linearize"),
]
WAYS_OF_CONNECTED_FMUS = [Way(TOOLS["fmilin"], connected_fmus, lambda linear: linear.A)]
