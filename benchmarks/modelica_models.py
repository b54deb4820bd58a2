"""Models of the Modelica Standard Library, with the A that each must have where a closed form is short.

Numbers stand as in the library's own files (4.x); positions before velocities only where the model has them so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

G = 9.80665  # Modelica.Constants.g_n


@dataclass(frozen=True)
class Case:
    """A model: where it is linearized, in which coordinates, and what comes out."""

    name: str  # of the model, without "Modelica."
    at: Mapping[str, float] = field(default_factory=dict)
    coordinates: tuple[str, ...] = ()
    A: Matrix | None = None  # shape (order, order), in the coordinates
    minutes: bool = False
    """Whether the front end alone takes minutes: measured where the environment variable LONG is set."""

    @property
    def source(self) -> str:
        """What fl.load takes."""
        return f"modelica:Modelica.{self.name}"


def drive_train() -> Matrix:
    """Two inertias behind a gear of 10, one behind a spring of 1e4, a damper of 10 to ground: phi2, w2, phi3, w3."""
    J2, J3, c, d = 2 + 10**2 * 0.1, 2.0, 1e4, 10.0
    return np.array([[0, 1, 0, 0], [-c / J2, -d / J2, c / J2, 0], [0, 0, 0, 1], [c / J3, 0, -c / J3, 0]])


def masses_with_dampers() -> Matrix:
    """Three masses of 1: a damper of 25, a damper parallel to a spring of 1, both in one part; s, v of each."""
    A = np.zeros((6, 6))
    for k, c in enumerate((0.0, 1.0, 1.0)):
        A[2 * k, 2 * k + 1], A[2 * k + 1, 2 * k], A[2 * k + 1, 2 * k + 1] = 1, -c, -25
    return A


def chua() -> Matrix:
    """L.i, C1.v, C2.v where the resistor is in its outer range."""
    L, Ro, g, C1, C2, Gb = 18.0, 12.5e-3, 0.565, 10.0, 100.0, -0.409091
    return np.array([[-Ro / L, 0, 1 / L], [0, -(g + Gb) / C1, g / C1], [-1 / C2, g / C2, -g / C2]])


def low_pass() -> Matrix:
    """C1.v, C3.v, C5.v, L1.i, L2.i: C' v' = ..., the bridging capacitors C2 and C4 in the matrix."""
    l1, l2, c1, c3, c5 = 1.304, 0.8586, 1.072, 1.682, 0.7262
    c2, c4 = 1 / (1.704992**2 * l1), 1 / (1.179945**2 * l2)
    C = np.array([[c1 + c2, -c2, 0], [-c2, c2 + c3 + c4, -c4], [0, -c4, c4 + c5]])
    currents = np.array([[-1, 0, 0, -1, 0], [0, 0, 0, 1, -1], [0, 0, -1, 0, 1.0]])
    coils = np.array([[1 / l1, -1 / l1, 0, 0, 0], [0, 1 / l2, -1 / l2, 0, 0]])
    return np.vstack((np.linalg.solve(C, currents), coils))


def dc_machine() -> Matrix:
    """Current, angle and speed: 100 V, 100 A, 1425 rpm nominal; 0.05 Ohm, 1.5 mH, 2 x 0.15 kg m2."""
    R, L, J = 0.05, 0.0015, 0.15 + 0.15
    k = (100 - R * 100) / (1425 * 2 * np.pi / 60)
    return np.array([[-R / L, 0, -k / L], [0, 0, 1], [k / J, 0, 0]])


def heated_motor() -> Matrix:
    """Winding and core: 100 W of losses with alpha = 3.03 per mille at the start, 10 W/K between, 25 W/K outwards."""
    return np.array([[(100 * 3.03e-3 - 10) / 2500, 10 / 2500], [10 / 25000, -35 / 25000]])


def controlled_drive() -> Matrix:
    """PI.I.y, inertia1.phi, inertia1.w, spring.phi_rel, spring.w_rel, integrator.y."""
    k, Ti, c, d, J1, J2 = 100.0, 0.1, 1e4, 100.0, 1.0, 2.0
    A = np.zeros((6, 6))
    A[0, 2], A[1, 2], A[3, 4] = -1 / Ti, 1, 1
    A[0, 5] = 1 / Ti  # the integrator is the wanted speed
    w1 = np.array([k, 0, -k, c, d, k]) / J1
    A[2], A[4] = w1, np.array([0, 0, 0, -c, -d, 0]) / J2 - w1
    return A


def pendulum() -> Matrix:
    """Hanging: 1 kg at 0.5 m with 0.001 kg m2 about its center, a damper of 0.1."""
    J = 0.001 + 0.5**2
    return np.array([[0, 1], [-G * 0.5 / J, -0.1 / J]])


def double_pendulum() -> Matrix:
    """Hanging: two steel boxes (7700 kg/m3) of 0.5 m x 0.06 m x 0.06 m, a damper of 0.1: phi1, w1, phi2, w2."""
    L, W, d = 0.5, 0.06, 0.1
    m = 7700 * L * W * W
    J = m * (L**2 + W**2) / 12
    M = np.array([[J + m * L**2 / 4 + m * L**2, m * L**2 / 2], [m * L**2 / 2, J + m * L**2 / 4]])
    K = m * G * L * np.diag([1.5, 0.5])
    S = np.array([[1, 0], [1, 1.0]])  # absolute angles of relative ones
    stiffness, damping = np.linalg.solve(S.T @ M @ S, S.T @ K @ S), np.linalg.solve(S.T @ M @ S, np.diag([d, 0.0]))
    A = np.zeros((4, 4))
    A[0, 1] = A[2, 3] = 1
    A[1::2, 0::2], A[1::2, 1::2] = -stiffness, -damping
    return A


def open_tanks() -> Matrix:
    """Return A of two open tanks: k (m1 - m2) flows through the pipe, with the enthalpy H1/m1 of the upper tank."""
    k, m, H = 2.0, (0.9, 0.1), 0.9 * 313.15
    flow, h = k * (m[0] - m[1]), H / m[0]
    mass = [-k, 0, k, 0]
    enthalpy = [-k * h + flow * H / m[0] ** 2, -flow / m[0], k * h, 0]
    return np.array([mass, enthalpy, [-value for value in mass], [-value for value in enthalpy]])


ROTATIONAL, BODIES = "Mechanics.Rotational.Examples.", "Mechanics.MultiBody.Examples."
DRIVE = ("inertia2.phi", "inertia2.w", "inertia3.phi", "inertia3.w")
DOWN = -np.pi / 2

CASES = (
    Case(f"{ROTATIONAL}First", {}, DRIVE, drive_train()),
    Case(f"{ROTATIONAL}FirstGrounded", {}, DRIVE, drive_train()),
    Case(f"{ROTATIONAL}Friction"),
    Case(
        "Mechanics.Translational.Examples.SignConvention", {},
        ("mass1.s", "mass1.v", "mass2.s", "mass2.v", "mass3.s", "mass3.v"),
        np.kron(np.eye(3), np.array([[0, 1], [0, 0.0]])),
    ),
    Case(
        "Mechanics.Translational.Examples.Damper", {},
        ("mass1.s", "mass1.v", "mass2.s", "mass2.v", "mass3.s", "mass3.v"), masses_with_dampers(),
    ),
    Case("Electrical.Analog.Examples.ChuaCircuit", {}, ("L.i", "C1.v", "C2.v"), chua()),
    Case(
        "Electrical.Analog.Examples.CauerLowPassAnalog", {}, ("C1.v", "C3.v", "C5.v", "L1.i", "L2.i"), low_pass()
    ),
    Case(
        "Electrical.Machines.Examples.DCMachines.DCPM_Start", {},
        ("dcpm.la.i", "dcpm.phiMechanical", "loadInertia.w"), dc_machine(),
    ),
    Case("Thermal.HeatTransfer.Examples.Motor", {}, ("winding.T", "core.T"), heated_motor()),
    Case(
        "Thermal.FluidHeatFlow.Examples.TwoTanks", {},
        ("openTank1.m", "openTank1.H", "openTank2.m", "openTank2.H"), open_tanks(),
    ),
    Case("Fluid.Examples.Tanks.ThreeTanks"),
    Case(
        "Blocks.Examples.PID_Controller", {},
        ("PI.I.y", "inertia1.phi", "inertia1.w", "spring.phi_rel", "spring.w_rel", "integrator.y"), controlled_drive(),
    ),
    Case(f"{BODIES}Elementary.Pendulum", {"rev.phi": DOWN}, ("rev.phi", "rev.w"), pendulum()),
    Case(
        f"{BODIES}Elementary.DoublePendulum", {"revolute1.phi": DOWN, "revolute2.phi": 0.0, "revolute2.w": 0.0},
        ("revolute1.phi", "revolute1.w", "revolute2.phi", "revolute2.w"), double_pendulum(),
    ),
    Case(f"{BODIES}Elementary.FreeBody"),
    Case(f"{BODIES}Elementary.RollingWheel"),
    Case(f"{BODIES}Loops.Fourbar1"),
    Case(f"{BODIES}Loops.PlanarLoops_analytic"),
    Case(f"{BODIES}Loops.EngineV6", minutes=True),
    Case(f"{BODIES}Systems.RobotR3.OneAxis", {"axis.motor.Jmotor.w": 10.0, "axis.gear.spring.w_rel": 0.0}),
    Case(f"{BODIES}Systems.RobotR3.FullRobot", minutes=True),
)  # fmt: skip
