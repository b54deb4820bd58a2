"""Systems of Exudyn through fmilin: eigenvalues against closed forms, and against Exudyn where it has them right."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.cli.main import main
from fmilin.testing import check_model

exu = pytest.importorskip("exudyn", reason="Exudyn has no wheel for this platform and Python")
from exudyn.utilities import (  # noqa: E402 - only where Exudyn is
    InertiaCuboid,
    InertiaCylinder,
    LoadCoordinate,
    LoadForceVector,
    MarkerBodyPosition,
    MarkerNodeCoordinate,
    MassPoint2D,
    NodeGenericODE1,
    NodeGenericODE2,
    NodePoint2D,
    NodePointGround,
    NodeRigidBody2D,
    ObjectConnectorCoordinate,
    ObjectConnectorCoordinateSpringDamper,
    ObjectConnectorDistance,
    ObjectGenericODE1,
    ObjectGenericODE2,
    ObjectGround,
    ObjectJointRevolute2D,
    ObjectRigidBody2D,
    SensorObject,
)
from fmilin_exudyn import from_system  # noqa: E402

G = 9.81
CONTAINERS: list[Any] = []


def new_system() -> Any:
    """Return an empty system; Exudyn's container of it must live as long."""
    CONTAINERS.append(exu.SystemContainer())
    return CONTAINERS[-1].AddSystem()


def find_modes(mbs: Any) -> np.ndarray:
    """Return the eigenvalues at the start, which is an equilibrium."""
    linear = fl.linearize(from_system(mbs))
    assert linear.is_equilibrium
    return linear.eigenvalues()


def pair_of(rate: float) -> np.ndarray:
    return np.array([-1j * rate, 1j * rate])


def add_rod(mbs: Any, first: int, second: int, length: float) -> int:
    ends = [mbs.AddMarker(MarkerBodyPosition(bodyNumber=body)) for body in (first, second)]
    return int(mbs.AddObject(ObjectConnectorDistance(markerNumbers=ends, distance=length)))


def hanging_point(length: float = 2.0, mass: float = 3.0) -> tuple[Any, int]:
    mbs = new_system()
    ground = mbs.AddObject(ObjectGround())
    point = mbs.CreateMassPoint(
        name="bob", referencePosition=[0, -length, 0], mass=mass, gravity=[0, -G, 0], create2D=True
    )
    return mbs, add_rod(mbs, ground, point, length)


def test_a_point_on_a_rod_is_a_pendulum() -> None:
    mbs, _ = hanging_point(length=2.0)
    np.testing.assert_allclose(find_modes(mbs), pair_of(np.sqrt(G / 2)), atol=1e-9)
    model = from_system(mbs)
    assert model.states.names == ("bob.x", "bob.y", "bob.vx", "bob.vy")
    check_model(model)


def test_two_points_on_two_rods_have_the_modes_of_the_textbook() -> None:
    """Kibble and Berkshire, equation 11.21: w^4 - (M + m)/M (g/L + g/l) w^2 + (M + m)/M g^2/(L l) = 0."""
    M, m, L, below = 3.0, 0.5, 2.0, 0.8
    mbs = new_system()
    ground = mbs.AddObject(ObjectGround())
    upper = mbs.CreateMassPoint(referencePosition=[0, -L, 0], mass=M, gravity=[0, -G, 0], create2D=True)
    lower = mbs.CreateMassPoint(referencePosition=[0, -L - below, 0], mass=m, gravity=[0, -G, 0], create2D=True)
    add_rod(mbs, ground, upper, L)
    add_rod(mbs, upper, lower, below)
    ratio = (M + m) / M
    squares = np.roots([1.0, -ratio * (G / L + G / below), ratio * G**2 / (L * below)])
    rates = np.sqrt(np.sort(squares))
    found = find_modes(mbs)
    np.testing.assert_allclose(np.sort(found.imag[found.imag > 0]), rates, rtol=1e-9)
    np.testing.assert_allclose(found.real, 0.0, atol=1e-9)


def beam_on_hinges(*positions: float, gravity: float = G) -> tuple[Any, float]:
    """Return a beam that hangs from hinges at positions along one axis, and its rate by the parallel axis theorem."""
    length, side, density = 1.2, 0.1, 500.0
    inertia = InertiaCuboid(density=density, sideLengths=[side, length, side])
    mbs = new_system()
    ground = mbs.CreateGround()
    beam = mbs.CreateRigidBody(
        name="beam", inertia=inertia, referencePosition=[0, -length / 2, 0], gravity=[0, -gravity, 0]
    )
    for position in positions:
        mbs.CreateRevoluteJoint(itemNumbers=[ground, beam], position=[0, 0, position], axis=[0, 0, 1])
    square = G * (length / 2) / ((length**2 + side**2) / 12 + length**2 / 4)
    return mbs, float(np.sqrt(square))


def test_a_beam_with_euler_parameters_hangs_from_a_hinge() -> None:
    """Exudyn's own eigenvalues with constraints are 0 here: it projects the stiffness without the multipliers."""
    mbs, rate = beam_on_hinges(0.0)
    np.testing.assert_allclose(find_modes(mbs), pair_of(rate), atol=1e-8)


def test_a_second_hinge_on_the_same_axis_is_redundant_and_changes_nothing() -> None:
    mbs, rate = beam_on_hinges(0.0, 0.5)
    np.testing.assert_allclose(find_modes(mbs), pair_of(rate), atol=1e-8)


def test_a_beam_that_turns_and_a_spring_agree_with_exudyn(tmp_path: Path) -> None:
    """A coordinate of Tait and Bryan's angles on a torsional spring, without gravity: Exudyn's projection is right."""
    mbs, _ = beam_on_hinges(0.0, gravity=0.0)
    mbs.CreateTorsionalSpringDamper(itemNumbers=[0, 1], position=[0, 0, 0], axis=[0, 0, 1], stiffness=30.0, damping=0.0)
    mbs.Assemble()
    with chdir(tmp_path):  # Exudyn leaves a folder "solution" where it is
        squares, _ = mbs.ComputeODE2Eigenvalues()
    inertia = 6.0 * ((1.2**2 + 0.1**2) / 12 + 0.36)
    np.testing.assert_allclose(np.sqrt(np.abs(squares)).max(), np.sqrt(30 / inertia), rtol=1e-8)
    np.testing.assert_allclose(find_modes(mbs), pair_of(np.sqrt(30 / inertia)), atol=1e-8)


def test_a_platform_on_two_parallel_rods_is_a_pendulum_of_their_length() -> None:
    """A four-bar linkage with equal rods: the platform does not turn, so its inertia has no part."""
    length, half = 1.5, 0.4
    mbs = new_system()
    node = mbs.AddNode(NodeRigidBody2D(referenceCoordinates=[0, -length, 0]))
    platform = mbs.AddObject(ObjectRigidBody2D(name="platform", mass=4.0, inertia=0.7, nodeNumber=node))
    ground = mbs.AddObject(ObjectGround())
    weight = mbs.AddMarker(MarkerBodyPosition(bodyNumber=platform))
    mbs.AddLoad(LoadForceVector(markerNumber=weight, loadVector=[0, -4.0 * G, 0]))
    for side in (-half, half):
        ends = [mbs.AddMarker(MarkerBodyPosition(bodyNumber=b, localPosition=[side, 0, 0])) for b in (ground, platform)]
        mbs.AddObject(ObjectConnectorDistance(markerNumbers=ends, distance=length))
    np.testing.assert_allclose(find_modes(mbs), pair_of(np.sqrt(G / length)), atol=1e-9)


def test_a_slider_crank_on_a_spring_has_the_mass_that_the_crank_feels() -> None:
    """x(phi) = r cos phi + sqrt(l^2 - r^2 sin^2 phi): w^2 = k x'^2/(J + m x'^2) where the spring is relaxed."""
    r, rod, J, m, k, phi = 0.3, 0.9, 0.05, 1.2, 400.0, 0.8
    x = r * np.cos(phi) + np.sqrt(rod**2 - (r * np.sin(phi)) ** 2)
    mbs = new_system()
    node = mbs.AddNode(NodeRigidBody2D(referenceCoordinates=[0, 0, phi]))
    crank = mbs.AddObject(ObjectRigidBody2D(name="crank", mass=1.0, inertia=J, nodeNumber=node))
    slide = mbs.AddNode(NodePoint2D(referenceCoordinates=[x, 0]))
    slider = mbs.AddObject(MassPoint2D(name="slider", mass=m, nodeNumber=slide))
    ground = mbs.AddObject(ObjectGround())
    pins = [mbs.AddMarker(MarkerBodyPosition(bodyNumber=body)) for body in (ground, crank)]
    mbs.AddObject(ObjectJointRevolute2D(markerNumbers=pins))
    tip = mbs.AddMarker(MarkerBodyPosition(bodyNumber=crank, localPosition=[r, 0, 0]))
    end = mbs.AddMarker(MarkerBodyPosition(bodyNumber=slider))
    mbs.AddObject(ObjectConnectorDistance(markerNumbers=[tip, end], distance=rod))
    still = mbs.AddMarker(MarkerNodeCoordinate(nodeNumber=mbs.AddNode(NodePointGround()), coordinate=0))
    along, across = (mbs.AddMarker(MarkerNodeCoordinate(nodeNumber=slide, coordinate=i)) for i in (0, 1))
    mbs.AddObject(ObjectConnectorCoordinate(markerNumbers=[still, across]))
    mbs.AddObject(ObjectConnectorCoordinateSpringDamper(markerNumbers=[still, along], stiffness=k))
    slope = -r * np.sin(phi) - r**2 * np.sin(phi) * np.cos(phi) / np.sqrt(rod**2 - (r * np.sin(phi)) ** 2)
    rate = np.sqrt(k * slope**2 / (J + m * slope**2))
    model = from_system(mbs)
    linear = fl.linearize(model, independent=["crank.phi", "crank.vphi"])
    np.testing.assert_allclose(linear.eigenvalues(), pair_of(rate), atol=1e-7)


def geared_masses() -> Any:
    """Two masses of which the second moves by half of the first, with a spring, a damper and a force."""
    mbs = new_system()
    node = mbs.AddNode(NodeGenericODE2(
        name="masses", numberOfODE2Coordinates=2, referenceCoordinates=[0, 0], initialCoordinates=[0, 0],
        initialCoordinates_t=[0, 0]))  # fmt: skip
    mbs.AddObject(ObjectGenericODE2(
        nodeNumbers=[node], massMatrix=np.diag([1.0, 2.0]), stiffnessMatrix=np.diag([3.0, 4.0]),
        dampingMatrix=np.diag([0.2, 0.0])))  # fmt: skip
    first, second = (mbs.AddMarker(MarkerNodeCoordinate(nodeNumber=node, coordinate=i)) for i in (0, 1))
    mbs.AddObject(ObjectConnectorCoordinate(markerNumbers=[first, second], factor1=2.0))
    mbs.AddLoad(LoadCoordinate(name="push", markerNumber=first, load=0.0))
    return mbs


def test_a_force_on_geared_masses_has_the_transfer_function_of_one_mass() -> None:
    model = from_system(geared_masses())
    linear = fl.linearize(model, inputs=["push"], outputs=["masses.q0"])
    w = np.array([0.1, 1.0, 3.0])
    m, c, k = 1.0 + 2.0 / 4, 0.2, 3.0 + 4.0 / 4
    expected = 1 / (-m * w**2 + 1j * c * w + k)
    np.testing.assert_allclose(linear.frequency_response(w)[0, 0], expected, rtol=1e-9)


def test_a_disc_at_rest_on_its_edge_falls_as_an_inverted_pendulum() -> None:
    """s^2 = m g r/(A + m r^2): no slip. All else is free; Exudyn constrains the height by its rate alone."""
    r, width, density = 0.5, 0.1, 1000.0
    mbs = new_system()
    ground = mbs.CreateGround()
    inertia = InertiaCylinder(density=density, length=width, outerRadius=r, axis=0)
    disc = mbs.CreateRigidBody(name="disc", inertia=inertia, referencePosition=[0, 0, r], gravity=[0, 0, -G])
    mbs.CreateRollingDisc(
        bodyNumbers=[ground, disc], discRadius=r, axisPosition=[0, 0, 0], axisVector=[1, 0, 0],
        planePosition=[0, 0, 0], planeNormal=[0, 0, 1])  # fmt: skip
    found = fl.linearize(from_system(mbs)).eigenvalues()
    square = G * r / ((3 * r**2 + width**2) / 12 + r**2)
    np.testing.assert_allclose([found.real.min(), found.real.max()], [-np.sqrt(square), np.sqrt(square)], rtol=1e-7)
    assert len(found) == 9  # six positions and three velocities
    assert np.count_nonzero(np.abs(found) < 1e-6) == 7


def test_coordinates_of_first_order_are_states() -> None:
    mbs = new_system()
    node = mbs.AddNode(NodeGenericODE1(
        name="tank", referenceCoordinates=[0, 0], initialCoordinates=[0, 0], numberOfODE1Coordinates=2))  # fmt: skip
    mbs.AddObject(ObjectGenericODE1(nodeNumbers=[node], systemMatrix=[[-1.0, 0.5], [0.0, -3.0]], rhsVector=[0, 0]))
    np.testing.assert_allclose(fl.linearize(from_system(mbs)).eigenvalues(), [-3.0, -1.0], rtol=1e-9)


def test_a_sensor_of_a_rod_measures_the_weight_that_hangs_on_it() -> None:
    mbs, rod = hanging_point(length=2.0, mass=3.0)
    mbs.AddSensor(
        SensorObject(name="pull", objectNumber=rod, outputVariableType=exu.OutputVariableType.Force, writeToFile=False)
    )
    model = from_system(mbs)
    point = fl.operating_point(model)
    values = model.evaluate(point.time, point.states, point.inputs).outputs
    np.testing.assert_allclose(np.linalg.norm(values), 3.0 * G, rtol=1e-10)


def test_a_fast_double_pendulum_moves_as_in_exudyn(tmp_path: Path) -> None:
    """Bodies with Euler parameters, from a common speed of 3 rad/s, by Exudyn's solver of second order."""
    mbs = new_system()
    inertia = InertiaCuboid(density=500.0, sideLengths=[1.0, 0.1, 0.2])
    bodies = [mbs.CreateGround()]
    w = np.array([0.0, 0.0, 3.0])
    for k in range(2):
        body = mbs.CreateRigidBody(
            inertia=inertia,
            referencePosition=[k + 0.5, 0, 0],
            gravity=[0, -G, 0],
            initialVelocity=np.cross(w, [k + 0.5, 0, 0]).tolist(),
            initialAngularVelocity=w.tolist(),
        )
        mbs.CreateRevoluteJoint(itemNumbers=[bodies[-1], body], position=[k, 0, 0], axis=[0, 0, 1])
        bodies.append(body)
    motion = fl.simulate(from_system(mbs), stop_time=0.04, step=0.04)
    settings = exu.SimulationSettings()
    settings.solution.file.write = False
    settings.timeIntegration.numberOfSteps, settings.timeIntegration.endTime = 800, 0.04
    settings.timeIntegration.generalizedAlpha.spectralRadius = 1.0
    with chdir(tmp_path):
        mbs.SolveDynamic(settings)
    np.testing.assert_allclose(motion.states[-1, :14], mbs.systemData.GetODE2Coordinates(), atol=2e-6)


FILE = """
import exudyn as exu
from exudyn.utilities import *

SC = exu.SystemContainer()
mbs = SC.AddSystem()
ground = mbs.CreateGround()
bob = mbs.CreateMassPoint(name="bob", referencePosition=[0, -2, 0], mass=3, gravity=[0, -9.81, 0], create2D=True)
mbs.CreateDistanceConstraint(itemNumbers=[ground, bob], distance=2)


def make(length=2.0):
    container = exu.SystemContainer()
    system = container.AddSystem()
    ground = system.CreateGround()
    bob = system.CreateMassPoint(referencePosition=[0, -length, 0], mass=3, gravity=[0, -9.81, 0], create2D=True)
    system.CreateDistanceConstraint(itemNumbers=[ground, bob], distance=length)
    return system
"""


def test_a_file_that_builds_a_system_is_a_model(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pendulum.py"
    file.write_text(FILE, encoding="utf-8")
    assert main(["linearize", f"{file}:mbs", "--json"]) == 0
    values = json.loads(capfd.readouterr().out)["eigenvalues"]
    np.testing.assert_allclose(values, [[0, -np.sqrt(G / 2)], [0, np.sqrt(G / 2)]], atol=1e-9)
    long = fl.linearize(fl.load(f"{file}:make(length=5.0)"))
    np.testing.assert_allclose(long.eigenvalues(), pair_of(np.sqrt(G / 5)), atol=1e-9)
    model = fl.load(file)
    assert model.info.name == "pendulum"
    swing = fl.linearize(model, fl.trim(model, guess={"bob.x": 0.5}))
    np.testing.assert_allclose(swing.eigenvalues(), pair_of(np.sqrt(G / 2)), atol=1e-8)


def test_a_node_of_a_lie_group_is_rejected_with_another_type() -> None:
    mbs = new_system()
    mbs.CreateRigidBody(
        inertia=InertiaCuboid(density=500.0, sideLengths=[1, 1, 1]), nodeType=exu.NodeType.RotationRotationVector
    )
    with pytest.raises(fl.ModelError, match="Use Euler parameters"):
        from_system(mbs)


def test_a_body_without_mass_is_named() -> None:
    mbs = new_system()
    mbs.AddObject(MassPoint2D(name="nothing", mass=0.0, nodeNumber=mbs.AddNode(NodePoint2D())))
    model = from_system(mbs)
    with pytest.raises(fl.NumericalError, match=r"leaves nothing\.v[xy] undetermined"):
        fl.linearize(model)
