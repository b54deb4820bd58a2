"""Exudyn's own test models through fmilin: linear models against closed forms, or native models of the same motion.

Each test names the file of Exudyn's repository (``main/pythonDev``) with its masses, lengths and joints, which are
built here. Where no closed form exists, Lagrange's equations are derived from the energies by sympy in Exudyn's
coordinates, so that both linear models have the same states and A can be compared entry by entry.

The file is longer than others because it is one list of models, each with its dimensions beside its truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import sympy as sp

import fmilin as fl
from fmilin.models import LagrangeModel, SymbolicConstraint

exu = pytest.importorskip("exudyn", reason="Exudyn has no wheel for this platform and Python")
from exudyn.utilities import (  # noqa: E402 - only where Exudyn is
    AngularVelocity2RotXYZ_t,
    CartesianSpringDamper,
    CoordinateConstraint,
    CoordinateSpringDamper,
    CoordinateVectorConstraint,
    InertiaCuboid,
    InertiaCylinder,
    LoadForceVector,
    LoadMassProportional,
    MarkerBodyMass,
    MarkerBodyPosition,
    MarkerBodyRigid,
    MarkerNodeCoordinate,
    MarkerNodeCoordinates,
    MarkerNodePosition,
    Mass1D,
    MassPoint,
    MassPoint2D,
    Node1D,
    NodePoint,
    NodePoint2D,
    NodePointGround,
    NodeRigidBody2D,
    NodeRigidBodyEP,
    NodeRigidBodyRxyz,
    ObjectConnectorDistance,
    ObjectConnectorGravity,
    ObjectConnectorSpringDamper,
    ObjectGround,
    ObjectJointPrismatic2D,
    ObjectJointRevolute2D,
    ObjectRigidBody,
    ObjectRigidBody2D,
    RigidBodyInertia,
    RotationMatrixY,
)
from fmilin_exudyn import from_system  # noqa: E402

G = 9.81
CONTAINERS: list[Any] = []
Expr = sp.Expr


def new_system() -> Any:
    """Return an empty system; Exudyn's container of it must live as long."""
    CONTAINERS.append(exu.SystemContainer())
    return CONTAINERS[-1].AddSystem()


def find_modes(mbs: Any, **options: Any) -> np.ndarray:
    return np.sort_complex(fl.linearize(from_system(mbs), **options).eigenvalues())


# -- native models in Exudyn's coordinates ---------------------------------------------------------


def list_symbols(count: int) -> tuple[list[sp.Symbol], list[sp.Symbol]]:
    """Return symbols of total coordinates and of their velocities."""
    return [sp.Symbol(f"q{i}") for i in range(count)], [sp.Symbol(f"v{i}") for i in range(count)]


def derive_model(
    q: Sequence[sp.Symbol],
    v: Sequence[sp.Symbol],
    kinetic: Expr,
    potential: Expr,
    constraints: Sequence[Any] = (),
    damping: Sequence[Expr] = (),
) -> LagrangeModel:
    """Return the native model of energies, of which the coordinates are Exudyn's: reference and displacement."""
    momenta = sp.Matrix([sp.diff(kinetic, rate) for rate in v])
    mass = momenta.jacobian(list(v))
    forces = []
    for i, position in enumerate(q):
        turning = sum((sp.diff(momenta[i], other) * rate for other, rate in zip(q, v, strict=True)), sp.Integer(0))
        force = sp.diff(kinetic, position) - sp.diff(potential, position) - turning
        forces.append(force + (damping[i] if damping else 0))
    return LagrangeModel("energies", dict(zip(q, v, strict=True)), mass, forces, constraints=list(constraints))


def compare(mbs: Any, native: LagrangeModel, independent: Sequence[int]) -> float:
    """Return the largest difference of A at the start of Exudyn's system, relative to the largest entry.

    ``independent`` are places of states in Exudyn's order: all positions, then all velocities.
    """
    model = from_system(mbs)
    names = model.states.names
    reference = np.array(mbs.systemData.GetODE2Coordinates(exu.ConfigurationType.Reference))
    states = model.start.states.copy()
    states[: len(reference)] += reference
    start = fl.operating_point(native, dict(zip(native.states.names, states.tolist(), strict=True)))
    theirs = fl.linearize(model, independent=[names[i] for i in independent])
    ours = fl.linearize(native, start, independent=[native.states.names[i] for i in independent])
    assert [names.index(name) for name in theirs.states.names] == [
        native.states.names.index(name) for name in ours.states.names
    ]
    return float(np.abs(theirs.A - ours.A).max() / np.abs(ours.A).max())


def rotate_rxyz(a: Expr, b: Expr, c: Expr) -> sp.Matrix:
    """Return the rotation about x, y and z in this order, each about the axes that are already turned."""
    return sp.rot_ccw_axis1(a) * sp.rot_ccw_axis2(b) * sp.rot_ccw_axis3(c)


def turn_rate(R: sp.Matrix, q: Sequence[sp.Symbol], v: Sequence[sp.Symbol]) -> sp.Matrix:
    """Return the angular velocity in the axes of the body."""
    change = sp.zeros(3, 3)
    for position, rate in zip(q, v, strict=True):
        change += sp.diff(R, position) * rate
    skew = R.T * change
    return sp.Matrix([skew[2, 1], skew[0, 2], skew[1, 0]])


def add_rod(mbs: Any, first: int, second: int, length: float) -> int:
    return int(mbs.AddObject(ObjectConnectorDistance(markerNumbers=[first, second], distance=length)))


# -- planar systems in redundant coordinates -------------------------------------------------------


def two_bars(angles: tuple[float, float], rates: tuple[float, float] = (0.0, 0.0)) -> Any:
    """Examples/doublePendulum2D.py: bars of 1 m, 1 kg and 1 kg m^2 with hinges at their ends."""
    mbs = new_system()
    ground = mbs.AddObject(ObjectGround(referencePosition=[-0.5, 0, 0]))
    last = mbs.AddMarker(MarkerBodyRigid(bodyNumber=ground))
    tip, speed = np.array([-0.5, 0.0]), np.zeros(2)
    for angle, rate in zip(angles, rates, strict=True):
        along = np.array([np.cos(angle), np.sin(angle)])
        across = np.array([-along[1], along[0]])
        centre, velocity = tip + along / 2, speed + across * rate / 2
        node = mbs.AddNode(
            NodeRigidBody2D(
                referenceCoordinates=[*centre.tolist(), angle], initialVelocities=[*velocity.tolist(), rate]
            )
        )
        bar = mbs.AddObject(ObjectRigidBody2D(mass=1, inertia=1, nodeNumber=node))
        ends = [mbs.AddMarker(MarkerBodyRigid(bodyNumber=bar, localPosition=[side, 0, 0])) for side in (-0.5, 0.5)]
        mbs.AddObject(ObjectJointRevolute2D(markerNumbers=[last, ends[0]]))
        mbs.AddLoad(
            LoadForceVector(markerNumber=mbs.AddMarker(MarkerNodePosition(nodeNumber=node)), loadVector=[0, -G, 0])
        )
        last, tip, speed = ends[1], tip + along, speed + across * rate
    return mbs


def test_double_pendulum_2d_hangs_with_the_modes_of_the_textbook() -> None:
    """Examples/doublePendulum2D.py, hanging: M = [[9/4, 1/2], [1/2, 5/4]], K = g diag(3/2, 1/2)."""
    M = np.array([[1 + 0.25 + 1, 0.5], [0.5, 1.25]])
    rates = np.sqrt(np.linalg.eigvals(np.linalg.solve(M, G * np.diag([1.5, 0.5]))))
    found = find_modes(two_bars((-np.pi / 2, -np.pi / 2)))
    np.testing.assert_allclose(np.sort(found.imag[found.imag > 0]), np.sort(rates), rtol=1e-9)
    np.testing.assert_allclose(found.real, 0.0, atol=1e-9)


def test_double_pendulum_2d_moves_as_lagrange_has_it() -> None:
    """Examples/doublePendulum2D.py, at its start with rates of 1.5 and -2 rad/s."""
    q, v = list_symbols(6)
    kinetic = sum((rate**2 for rate in v), sp.Integer(0)) / 2
    hinges = [
        q[0] - sp.cos(q[2]) / 2 + sp.Rational(1, 2),
        q[1] - sp.sin(q[2]) / 2,
        q[0] + sp.cos(q[2]) / 2 - q[3] + sp.cos(q[5]) / 2,
        q[1] + sp.sin(q[2]) / 2 - q[4] + sp.sin(q[5]) / 2,
    ]
    native = derive_model(q, v, kinetic, G * (q[1] + q[4]), hinges)
    assert compare(two_bars((0.0, 0.0), (1.5, -2.0)), native, [2, 5, 8, 11]) < 1e-10


def test_four_bar_of_points_moves_as_lagrange_has_it() -> None:
    """TestModels/fourBarMechanismTest.py: 3 kg at (0, 2) and (4, 5), rods of 2, 5 and 5 m, the first at 2 rad/s.

    The file starts with another speed of the second mass, which its rods do not allow.
    """
    mbs = new_system()
    places = [[0, 2, 0], [4, 5, 0], [4, 0, 0]]
    nodes = [mbs.AddNode(NodePointGround())]
    rates = [[4, 0, 0], [4, 0, 0], [0, 0, 0]]
    for place, rate in zip(places, rates, strict=True):
        nodes.append(mbs.AddNode(NodePoint(referenceCoordinates=place, initialVelocities=rate)))
        mbs.AddObject(MassPoint(mass=3, nodeNumber=nodes[-1]))
    markers = [mbs.AddMarker(MarkerNodePosition(nodeNumber=node)) for node in nodes]
    for first, length in zip(range(3), (2.0, 5.0, 5.0), strict=True):
        add_rod(mbs, markers[first], markers[first + 1], length)
    still = mbs.AddMarker(MarkerNodeCoordinate(nodeNumber=nodes[0], coordinate=0))
    for node, coordinates in ((1, [2]), (2, [2]), (3, [0, 1, 2])):
        for coordinate in coordinates:
            fixed = mbs.AddMarker(MarkerNodeCoordinate(nodeNumber=nodes[node], coordinate=coordinate))
            mbs.AddObject(CoordinateConstraint(markerNumbers=[still, fixed]))
    for marker in markers[1:3]:
        mbs.AddLoad(LoadForceVector(markerNumber=marker, loadVector=[0, -3 * G, 0]))
    q, v = list_symbols(9)
    rods = [
        q[0] ** 2 + q[1] ** 2 - 4,
        (q[3] - q[0]) ** 2 + (q[4] - q[1]) ** 2 - 25,
        (q[3] - q[6]) ** 2 + (q[4] - q[7]) ** 2 - 25,
        *(q[i] for i in (2, 5, 7, 8)),
        q[6] - 4,
    ]
    native = derive_model(q, v, sp.Rational(3, 2) * sum((r**2 for r in v), sp.Integer(0)), 3 * G * (q[1] + q[4]), rods)
    assert compare(mbs, native, [0, 9]) < 1e-10


def test_iftomm_four_bars_hang_as_one_pendulum() -> None:
    """TestModels/fourBarMechanismIftomm.py: two four-bars of 1 m bars of 1 kg side by side, five bars, at rest below.

    Couplers translate: one pendulum with 3/3 + 2 kg m^2 and 9.81 (3/2 + 2) N m.
    """
    inertia = 3 * (1 / 3) + 2
    stiffness = G * (3 / 2 + 2)
    rate = np.sqrt(stiffness / inertia)
    np.testing.assert_allclose(find_modes(two_four_bars(-1.0)).imag, [-rate, rate], rtol=1e-9)


def two_four_bars(side: float, speed: float = 0.0) -> Any:
    """TestModels/fourBarMechanismIftomm.py: posts up (side 1) or down (-1), with redundant hinges of the start."""
    mbs = new_system()
    post, half = side * np.pi / 2, side / 2
    places = [[0, half, post], [0.5, side, 0], [1, half, post], [1.5, side, 0], [2, half, post]]
    speeds = [[0.5, 0, -side], [1, 0, 0], [0.5, 0, -side], [1, 0, 0], [0.5, 0, -side]]
    first, second = [], []
    for place, rates in zip(places, speeds, strict=True):
        node = mbs.AddNode(
            NodeRigidBody2D(referenceCoordinates=place, initialVelocities=[speed * rate for rate in rates])
        )
        bar = mbs.AddObject(ObjectRigidBody2D(nodeNumber=node, mass=1, inertia=1 / 12))
        weight = mbs.AddMarker(MarkerBodyMass(bodyNumber=bar))
        mbs.AddLoad(LoadMassProportional(markerNumber=weight, loadVector=[0, -G, 0]))
        for markers, along in ((first, -0.5), (second, 0.5)):
            markers.append(mbs.AddMarker(MarkerBodyPosition(bodyNumber=bar, localPosition=[along, 0, 0])))
    ground = mbs.AddObject(ObjectGround())
    pins = [mbs.AddMarker(MarkerBodyRigid(bodyNumber=ground, localPosition=[x, 0, 0])) for x in (0, 1, 2)]
    pairs = [
        (pins[0], first[0]), (pins[1], first[2]), (pins[2], first[4]), (second[0], first[1]), (second[1], first[3]),
        (second[2], first[3]), (second[3], second[4]),
    ]  # fmt: skip
    for pair in pairs:
        mbs.AddObject(ObjectJointRevolute2D(markerNumbers=list(pair)))
    return mbs


def test_iftomm_four_bars_move_as_one_pendulum() -> None:
    """TestModels/fourBarMechanismIftomm.py at its start: upright, 1 m/s. 3 phi'' = 7/2 g sin(phi)."""
    lin = fl.linearize(from_system(two_four_bars(1.0, 1.0)), independent=["object0.phi", "object0.vphi"])
    square = G * 3.5 / 3
    np.testing.assert_allclose(lin.A, [[0, 1], [square, 0]], atol=1e-8)


def test_distance_constraints_of_user_functions_make_a_double_pendulum() -> None:
    """TestModels/coordinateVectorConstraint.py: 2.5 kg at the ends of two arms of 0.8 m, constraints in Python.

    Hanging here, and with rates at velocity level. w^2 = g/L (2 -+ sqrt 2).
    """
    L, mass = 0.8, 2.5
    mbs = new_system()
    ground = mbs.AddMarker(MarkerNodeCoordinates(nodeNumber=mbs.AddNode(NodePointGround())))

    def measure_first(mbs: Any, t: float, item: int, q: Any, q_t: Any, is_rate: bool) -> list[float]:
        x, y = q[0], q[1]
        distance = np.sqrt(x**2 + y**2)
        return [(x * q_t[0] + y * q_t[1]) / distance if is_rate else distance - L]

    def turn_first(mbs: Any, t: float, item: int, q: Any, q_t: Any, is_rate: bool) -> Any:
        x, y = q[0], q[1]
        return np.array([[x, y]]) / np.sqrt(x**2 + y**2)

    def measure_second(mbs: Any, t: float, item: int, q: Any, q_t: Any, is_rate: bool) -> list[float]:
        x, y = q[2] - q[0], q[3] - q[1]
        distance = np.sqrt(x**2 + y**2)
        return [(x * (q_t[2] - q_t[0]) + y * (q_t[3] - q_t[1])) / distance if is_rate else distance - L]

    def turn_second(mbs: Any, t: float, item: int, q: Any, q_t: Any, is_rate: bool) -> Any:
        x, y = q[2] - q[0], q[3] - q[1]
        return np.array([[-x, -y, x, y]]) / np.sqrt(x**2 + y**2)

    last = ground
    for k, (measure, turn) in enumerate(((measure_first, turn_first), (measure_second, turn_second)), 1):
        node = mbs.AddNode(NodePoint2D(referenceCoordinates=[0, -k * L]))
        mbs.AddObject(MassPoint2D(mass=mass, nodeNumber=node))
        coordinates = mbs.AddMarker(MarkerNodeCoordinates(nodeNumber=node))
        mbs.AddObject(
            CoordinateVectorConstraint(
                markerNumbers=[last, coordinates],
                scalingMarker0=np.zeros((1, 2 * k)),
                constraintUserFunction=measure,
                jacobianUserFunction=turn,
            )
        )
        weight = mbs.AddMarker(MarkerNodePosition(nodeNumber=node))
        mbs.AddLoad(LoadForceVector(markerNumber=weight, loadVector=[0, -mass * G, 0]))
        last = coordinates
    found = find_modes(mbs)
    rates = np.sqrt(G / L * (2 + np.array([-1, 1]) * np.sqrt(2)))
    np.testing.assert_allclose(np.sort(found.imag[found.imag > 0]), rates, rtol=1e-8)


def test_a_user_function_without_rates_constrains_positions() -> None:
    """TestModels/coordinateVectorConstraint.py as it stands: its functions return the gap at both levels."""
    L, mass = 0.8, 2.5
    mbs = new_system()
    ground = mbs.AddMarker(MarkerNodeCoordinates(nodeNumber=mbs.AddNode(NodePointGround())))
    node = mbs.AddNode(NodePoint2D(referenceCoordinates=[0, -L]))
    mbs.AddObject(MassPoint2D(mass=mass, nodeNumber=node))
    mbs.AddObject(
        CoordinateVectorConstraint(
            markerNumbers=[ground, mbs.AddMarker(MarkerNodeCoordinates(nodeNumber=node))],
            scalingMarker0=np.zeros((1, 2)),
            constraintUserFunction=lambda mbs, t, item, q, q_t, is_rate: [np.hypot(q[0], q[1]) - L],
            jacobianUserFunction=lambda mbs, t, item, q, q_t, is_rate: np.array([[q[0], q[1]]]) / np.hypot(q[0], q[1]),
        )
    )
    weight = mbs.AddMarker(MarkerNodePosition(nodeNumber=node))
    mbs.AddLoad(LoadForceVector(markerNumber=weight, loadVector=[0, -mass * G, 0]))
    rate = np.sqrt(G / L)
    np.testing.assert_allclose(find_modes(mbs).imag, [-rate, rate], rtol=1e-9)


# -- chains, rotors and planets --------------------------------------------------------------------


def test_twelve_masses_have_the_modes_of_a_chain() -> None:
    """Examples/nMassOscillator.py: 12 masses of 1 kg, springs of 800 N/m and dampers of 2 N s/m, one end fixed."""
    count, k, d = 12, 800.0, 2.0
    mbs = new_system()
    last = mbs.AddMarker(MarkerNodeCoordinate(nodeNumber=mbs.AddNode(NodePointGround()), coordinate=0))
    for i in range(count):
        node = mbs.AddNode(Node1D(referenceCoordinates=[0.2 * (i + 1)]))
        mbs.AddObject(Mass1D(mass=1, nodeNumber=node))
        marker = mbs.AddMarker(MarkerNodeCoordinate(nodeNumber=node, coordinate=0))
        mbs.AddObject(CoordinateSpringDamper(markerNumbers=[last, marker], stiffness=k, damping=d))
        last = marker
    squares = 4 * np.sin((2 * np.arange(1, count + 1) - 1) * np.pi / (2 * (2 * count + 1))) ** 2
    roots = [np.roots([1, d * square, k * square]) for square in squares]
    np.testing.assert_allclose(find_modes(mbs), np.sort_complex(np.concatenate(roots)), rtol=1e-8)


def laval_rotor(rate: float) -> Any:
    """Examples/lavalRotor2Dtest.py: 1.6 kg, 0.01 m off the axis, 4000 N/m and 0.5 % of damping."""
    m, k, offset = 1.6, 4000.0, 0.01
    d = 2 * np.sqrt(k / m) * 0.005 * m
    mbs = new_system()
    node = mbs.AddNode(NodeRigidBody2D(referenceCoordinates=[0, offset, 0], initialVelocities=[0, 0, rate]))
    rotor = mbs.AddObject(ObjectRigidBody2D(mass=m, inertia=0.5 * m * 0.5**2, nodeNumber=node))
    axis = mbs.AddMarker(MarkerBodyPosition(bodyNumber=rotor, localPosition=[0, -offset, 0]))
    support = mbs.AddMarker(MarkerBodyPosition(bodyNumber=mbs.AddObject(ObjectGround())))
    mbs.AddObject(CartesianSpringDamper(markerNumbers=[support, axis], stiffness=[k, k, 0], damping=[d, d, 0]))
    return mbs


def test_a_laval_rotor_that_turns_moves_as_lagrange_has_it() -> None:
    """Examples/lavalRotor2Dtest.py at half of its resonance."""
    m, k, offset = 1.6, 4000.0, 0.01
    d = 2 * np.sqrt(k / m) * 0.005 * m
    q, v = list_symbols(3)
    axis = [q[0] + offset * sp.sin(q[2]), q[1] - offset * sp.cos(q[2])]
    speeds = [sum((sp.diff(place, a) * b for a, b in zip(q, v, strict=True)), sp.Integer(0)) for place in axis]
    kinetic = m * (v[0] ** 2 + v[1] ** 2) / 2 + 0.5 * m * 0.25 * v[2] ** 2 / 2
    damping = [-d * sum((s * sp.diff(s, rate) for s in speeds), sp.Integer(0)) for rate in v]
    native = derive_model(q, v, kinetic, k * (axis[0] ** 2 + axis[1] ** 2) / 2, (), damping)
    assert compare(laval_rotor(25.0), native, range(6)) < 1e-10


def test_satellites_have_the_gravity_gradient_of_kepler() -> None:
    """TestModels/connectorGravityTest.py: 1e3 kg about 1e20 kg at 4e5 m. d(a)/dr = mu/r^3 (3 r r' - I)."""
    constant, star, satellite, r = 6.6743e-11, 1e20, 1e3, 4e5
    mbs = new_system()
    markers = []
    for place, mass, speed in ((0.0, star, 0.0), (r, satellite, np.sqrt(constant * star / r))):
        node = mbs.AddNode(NodePoint(referenceCoordinates=[place, 0, 0], initialVelocities=[0, speed, 0]))
        mbs.AddObject(MassPoint(mass=mass, nodeNumber=node))
        markers.append(mbs.AddMarker(MarkerNodePosition(nodeNumber=node)))
    mbs.AddObject(ObjectConnectorGravity(markerNumbers=markers, mass0=star, mass1=satellite))
    lin = fl.linearize(from_system(mbs))
    gradient = constant * star / r**3 * np.diag([2.0, -1.0, -1.0])
    np.testing.assert_allclose(lin.A[9:12, 3:6] / gradient[0, 0], gradient / gradient[0, 0], atol=1e-9)
    np.testing.assert_allclose(lin.A[9:12, 0:3] / gradient[0, 0], -gradient / gradient[0, 0], atol=1e-9)


def test_a_point_on_a_rod_and_two_springs_leaves_two_degrees_of_freedom() -> None:
    """Examples/3SpringsDistance.py: 10 kg on a rod of 0.1 m to the ground, two springs of 4000 N/m, 20 N s/m."""
    L, mass, k, d, push = 0.1, 10.0, 4000.0, 20.0, 0.0
    mbs = new_system()
    point = mbs.AddNode(NodePoint(referenceCoordinates=[0, L, 0]))
    mbs.AddObject(MassPoint(mass=mass, nodeNumber=point))
    tip = mbs.AddMarker(MarkerNodePosition(nodeNumber=point))
    supports = [
        mbs.AddMarker(MarkerBodyPosition(bodyNumber=mbs.AddObject(ObjectGround(referencePosition=place))))
        for place in ([0, 0, 0], [L, L, 0], [0, L, L])
    ]
    add_rod(mbs, supports[0], tip, L)
    for support in supports[1:]:
        mbs.AddObject(
            ObjectConnectorSpringDamper(markerNumbers=[support, tip], stiffness=k, damping=d, referenceLength=L)
        )
    mbs.AddLoad(LoadForceVector(markerNumber=tip, loadVector=[push, 0, 0]))
    pair = np.roots([mass, d, k])
    np.testing.assert_allclose(find_modes(mbs), np.sort_complex(np.concatenate((pair, pair))), rtol=1e-8)


# -- bodies in space -------------------------------------------------------------------------------


def test_a_heavy_top_moves_as_lagrange_has_it() -> None:
    """TestModels/heavyTop.py: 15 kg 1 m from the fixed point, 150 rad/s, in Exudyn's angles about x, y and z."""
    m, inertia = 15.0, np.diag([15.234375, 0.46875, 15.234375])
    rates = AngularVelocity2RotXYZ_t([0, 150, -4.61538], [0, 0, 0])
    mbs = add_top(NodeRigidBodyRxyz(referenceCoordinates=[0] * 6, initialVelocities=[0, 0, 0, *rates]), inertia)
    q, v = list_symbols(6)
    R = rotate_rxyz(*q[3:])
    omega = turn_rate(R, q[3:], v[3:])
    spin = (omega.T * sp.Matrix(inertia) * omega)[0] / 2
    native = derive_model(q[3:], v[3:], spin, m * G * (R * sp.Matrix([0, 1, 0]))[2])
    model = from_system(mbs)
    kept = [model.states.names[i] for i in (3, 4, 5, 9, 10, 11)]
    theirs = fl.linearize(model, independent=kept)
    start = fl.operating_point(native, dict(zip(["v3", "v4", "v5"], rates, strict=True)))
    ours = fl.linearize(native, start)
    np.testing.assert_allclose(theirs.A, ours.A, rtol=0, atol=1e-9 * np.abs(ours.A).max())


def add_top(node: Any, inertia: np.ndarray) -> Any:
    """Return a top with its weight 1 m along y from the point that is fixed by its coordinates."""
    m = 15.0
    mbs = new_system()
    number = mbs.AddNode(node)
    moments = [inertia[0, 0], inertia[1, 1], inertia[2, 2], inertia[1, 2], inertia[0, 2], inertia[0, 1]]
    top = mbs.AddObject(ObjectRigidBody(mass=m, inertia=moments, nodeNumber=number))
    weight = mbs.AddMarker(MarkerBodyPosition(bodyNumber=top, localPosition=[0, 1, 0]))
    mbs.AddLoad(LoadForceVector(markerNumber=weight, loadVector=[0, 0, -m * G]))
    still = mbs.AddMarker(MarkerNodeCoordinate(nodeNumber=mbs.AddNode(NodePointGround()), coordinate=0))
    for coordinate in range(3):
        fixed = mbs.AddMarker(MarkerNodeCoordinate(nodeNumber=number, coordinate=coordinate))
        mbs.AddObject(CoordinateConstraint(markerNumbers=[still, fixed]))
    return mbs


def test_a_heavy_top_with_euler_parameters_hangs() -> None:
    """TestModels/heavyTop.py with its other node: hanging at rest it is a spherical pendulum. w^2 = m g l/J."""
    half = np.sqrt(0.5)
    down = [half, -half, 0, 0]  # y of the body is -z of the ground
    mbs = add_top(NodeRigidBodyEP(referenceCoordinates=[0, 0, 0, *down]), np.diag([15.234375, 0.46875, 15.234375]))
    rate = np.sqrt(15 * G / 15.234375)
    found = find_modes(mbs)
    np.testing.assert_allclose(np.sort(np.abs(found.imag)), [0, 0, rate, rate, rate, rate], atol=1e-6)


def roll_disc(inertia: Any, r: float, place: list[float], speed: list[float], omega: list[float], tilt: float) -> Any:
    """Return a disc that rolls on z = 0 about its x axis, with angles about x, y and z."""
    mbs = new_system()
    ground = mbs.CreateGround()
    disc = mbs.CreateRigidBody(
        inertia=inertia,
        nodeType=exu.NodeType.RotationRxyz,
        referencePosition=place,
        referenceRotationMatrix=RotationMatrixY(tilt),
        initialVelocity=speed,
        initialAngularVelocity=omega,
        gravity=[0, 0, -G],
    )
    mbs.CreateRollingDisc(
        bodyNumbers=[ground, disc], discRadius=r, axisPosition=[0, 0, 0], axisVector=[1, 0, 0],
        planePosition=[0, 0, 0], planeNormal=[0, 0, 1])  # fmt: skip
    return mbs


def rolling_coin() -> tuple[Any, list[float], float]:
    """TestModels/rollingCoinTest.py: 1 kg, a radius of 1 cm, 1 degree from upright, turning at 5 revolutions/s."""
    r, tilt = 0.01, np.pi / 180
    moments = [0.5 * r**2, 0.25 * r**2, 0.25 * r**2]
    omega = [0.0, 0.0, 10 * np.pi]
    speed = np.cross(omega, RotationMatrixY(tilt) @ [0, 0, r]).tolist()
    inertia = RigidBodyInertia(mass=1, inertiaTensor=np.diag(moments))
    return roll_disc(inertia, r, [r * np.sin(tilt), 0, r * np.cos(tilt)], speed, omega, tilt), [1.0, *moments], r


def rolling_disc() -> tuple[Any, list[float], float]:
    """TestModels/createRollingDiscTest.py: a disc of 0.2 m that rolls at 3 revolutions/s and falls at 10 rad/s."""
    r = 0.2
    inertia = InertiaCylinder(density=5000, length=0.02, outerRadius=r, axis=0)
    mass, moments = inertia.mass, np.diag(inertia.inertiaTensor).tolist()
    mbs = roll_disc(inertia, r, [1, 0, r], [10 * r, 6 * np.pi * r, 0], [-6 * np.pi, 10, 0], 0.0)
    return mbs, [mass, *moments], r


@pytest.mark.parametrize("make", [rolling_coin, rolling_disc])
def test_discs_roll_as_lagrange_has_it(make: Any) -> None:
    """Nonholonomic equations of d'Alembert and Lagrange: the point of contact does not move."""
    mbs, (mass, *moments), r = make()
    q, v = list_symbols(6)
    R = rotate_rxyz(*q[3:])
    omega = turn_rate(R, q[3:], v[3:])
    axis, normal = R[:, 0], sp.Matrix([0, 0, 1])
    upward = normal - axis[2] * axis
    contact = -r * upward / sp.sqrt(upward.dot(upward))
    slip = sp.Matrix(v[:3]) + (R * omega).cross(contact)
    rolling = [SymbolicConstraint(slip[i], name=f"slip{i}", level="velocity") for i in range(3)]
    spin = (omega.T * sp.diag(*moments) * omega)[0] / 2
    kinetic = mass * sum((rate**2 for rate in v[:3]), sp.Integer(0)) / 2 + spin
    native = derive_model(q, v, kinetic, mass * G * q[2], rolling)
    assert compare(mbs, native, [*range(6), 9, 10, 11]) < 1e-8


def test_a_gyro_with_euler_parameters_turns_as_lagrange_has_it() -> None:
    """Examples/gyroStability.py, about the middle axis: 5 rad/s and 2e-4 of it about the others."""
    length, r = 0.1, 0.015
    long = InertiaCylinder(density=1000, length=2 * length, outerRadius=r, axis=0, innerRadius=r / 2)
    short = InertiaCylinder(density=1000, length=length, outerRadius=r, axis=1, innerRadius=r / 2)
    inertia = short.Translated([0, length / 2, 0]) + long
    inertia = inertia.Translated(-inertia.COM())
    mbs = new_system()
    mbs.CreateRigidBody(
        nodeType=exu.NodeType.RotationEulerParameters, initialAngularVelocity=[5 * 2e-4, 5, 5 * 2e-4], inertia=inertia
    )
    q, v = list_symbols(7)
    e, rates = sp.Matrix(q[3:]), sp.Matrix(v[3:])
    local = sp.Matrix([[-e[1], e[0], e[3], -e[2]], [-e[2], -e[3], e[0], e[1]], [-e[3], e[2], -e[1], e[0]]])
    omega = 2 * local * rates
    spin = (omega.T * sp.Matrix(inertia.inertiaTensor) * omega)[0] / 2
    kinetic = inertia.mass * sum((rate**2 for rate in v[:3]), sp.Integer(0)) / 2 + spin
    native = derive_model(q, v, kinetic, sp.Integer(0), [e.dot(e) - 1])
    assert compare(mbs, native, [0, 1, 2, 4, 5, 6, 7, 8, 9, 11, 12, 13]) < 1e-9


def test_a_beam_on_a_hinge_and_a_spring_has_exudyns_analytic_rate() -> None:
    """TestModels/computeODE2AEeigenvaluesTest.py: 0.1 m, 5000 kg/m^3, a spring of 10 N/m at its end. w^2 = k l^2/J."""
    length, k, offset = 0.1, 10.0, 0.02
    inertia = InertiaCuboid(density=5000, sideLengths=[length, 0.001, 0.01])
    mbs = new_system()
    ground = mbs.CreateGround()
    beam = mbs.CreateRigidBody(inertia=inertia, referencePosition=[length / 2, 0, 0])
    mbs.CreateGenericJoint(itemNumbers=[ground, beam], position=[0, 0, 0], constrainedAxes=[1, 1, 1, 1, 1, 0])
    tip = mbs.AddMarker(MarkerBodyRigid(bodyNumber=beam, localPosition=[length / 2, 0, 0]))
    support = mbs.AddMarker(MarkerBodyRigid(bodyNumber=ground, localPosition=[length, -offset, 0]))
    mbs.AddObject(
        CartesianSpringDamper(
            markerNumbers=[support, tip], stiffness=[0, k, 0], damping=[0, 0, 0], offset=[0, offset, 0]
        )
    )
    rate = np.sqrt(k * length**2 / inertia.Translated([-length / 2, 0, 0]).Inertia()[2, 2])
    np.testing.assert_allclose(find_modes(mbs).imag, [-rate, rate], rtol=1e-8)


def test_a_slider_crank_on_a_frame_on_springs_moves_as_lagrange_has_it() -> None:
    """TestModels/sliderCrankFloatingTest.py, its second case at rest in the dead centre, loads left out."""
    crank, rod, k, d = 0.1, 0.3, 5000.0, 50.0
    masses = [1.0, 0.2, 0.2, 0.4]
    inertias = [1.0, 0.2 / 12 * crank**2, 0.2 / 12 * rod**2, 1e-3]
    mbs = new_system()
    nodes, bodies = [], []
    places = [0.0, crank / 2, crank + rod / 2, crank + rod]
    for place, mass, inertia in zip(places, masses, inertias, strict=True):
        nodes.append(mbs.AddNode(NodeRigidBody2D(referenceCoordinates=[place, 0, 0])))
        bodies.append(mbs.AddObject(ObjectRigidBody2D(mass=mass, inertia=inertia, nodeNumber=nodes[-1])))
    still = mbs.AddMarker(MarkerNodeCoordinate(nodeNumber=mbs.AddNode(NodePointGround()), coordinate=0))
    for i in range(3):
        moving = mbs.AddMarker(MarkerNodeCoordinate(nodeNumber=nodes[0], coordinate=i))
        mbs.AddObject(CoordinateSpringDamper(markerNumbers=[still, moving], stiffness=k, damping=d))

    def mark(body: int, along: float) -> int:
        return int(mbs.AddMarker(MarkerBodyRigid(bodyNumber=bodies[body], localPosition=[along, 0, 0])))

    pins = [(mark(0, 0), mark(1, -crank / 2)), (mark(1, crank / 2), mark(2, -rod / 2)), (mark(2, rod / 2), mark(3, 0))]
    for pair in pins:
        mbs.AddObject(ObjectJointRevolute2D(markerNumbers=list(pair)))
    mbs.AddObject(ObjectJointPrismatic2D(markerNumbers=[mark(0, crank + rod), mark(3, 0)], constrainRotation=True))
    q, v = list_symbols(12)

    def place_point(body: int, along: float) -> sp.Matrix:
        x, y, phi = q[3 * body : 3 * body + 3]
        return sp.Matrix([x + along * sp.cos(phi), y + along * sp.sin(phi)])

    ends = [(0, 0.0, 1, -crank / 2), (1, crank / 2, 2, -rod / 2), (2, rod / 2, 3, 0.0)]
    joints = [row for i, a, j, b in ends for row in place_point(i, a) - place_point(j, b)]
    off = place_point(3, 0) - place_point(0, 0)
    joints += [off[1] * sp.cos(q[2]) - off[0] * sp.sin(q[2]), q[11] - q[2]]
    kinetic = sum(
        (
            mass * (v[3 * i] ** 2 + v[3 * i + 1] ** 2) / 2 + inertia * v[3 * i + 2] ** 2 / 2
            for i, (mass, inertia) in enumerate(zip(masses, inertias, strict=True))
        ),
        sp.Integer(0),
    )
    potential = k * sum((q[i] ** 2 for i in range(3)), sp.Integer(0)) / 2
    damping = [-d * v[i] if i < 3 else sp.Integer(0) for i in range(12)]
    native = derive_model(q, v, kinetic, potential, joints, damping)
    assert compare(mbs, native, [0, 1, 2, 5, 12, 13, 14, 17]) < 1e-9
