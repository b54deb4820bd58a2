"""The Whipple bicycle against the benchmark of Meijaard et al. (2007)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

import fmilin as fl
from fmilin import OperatingPoint, UnknownNameError
from fmilin.fmi.write import build_fmu
from fmilin.models import KaneModel
from fmilin.signals import FloatArray
from fmilin.systems import bicycle

M = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
C1 = np.array([[0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])
K0 = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
K2 = np.array([[0, 76.59734589573222], [0, 2.65431523794604]])
G = 9.81
LEAN_AND_STEER = ["lean", "steer", "lean_rate", "steer_rate"]


def canonical(speed: float) -> FloatArray:
    """A of M q'' + v C1 q' + (g K0 + v^2 K2) q = 0, q = (lean, steer), with the published matrices."""
    stiffness = np.linalg.solve(M, G * K0 + speed**2 * K2)
    return np.block([[np.zeros((2, 2)), np.eye(2)], [-stiffness, -np.linalg.solve(M, speed * C1)]])


def at_speeds(speeds: FloatArray) -> tuple[KaneModel, list[OperatingPoint]]:
    return bicycle(), [OperatingPoint(0.0, bicycle(v).start.states, np.zeros(3)) for v in speeds]


def block(model: KaneModel, point: OperatingPoint) -> FloatArray:
    """The rows and columns of A that belong to lean and steer."""
    found = model.matrices(point)
    names = [model.states.names[i] for i in found.partition.states]
    rows = [names.index(n) for n in LEAN_AND_STEER]
    return found.A[np.ix_(rows, rows)]


def test_it_rolls_steadily_and_consistently() -> None:
    model = bicycle(5.0)
    at = model.evaluate(0.0, model.start.states, model.start.inputs)
    np.testing.assert_allclose(at.residuals, 0.0, atol=1e-15)
    moving = dict(zip(model.states.names, at.derivatives, strict=True))
    assert moving.pop("x") == pytest.approx(5.0, rel=1e-15)
    assert moving.pop("rear_wheel") == pytest.approx(-5.0 / 0.3)
    assert moving.pop("front_wheel") == pytest.approx(-5.0 / 0.35)
    np.testing.assert_allclose(list(moving.values()), 0.0, atol=1e-13)
    assert len(model.states) == 14
    assert len(model.independent) == 10
    assert at.outputs.tolist() == [0.0, 0.0, pytest.approx(5.0)]


def test_canonical_matrices() -> None:
    """M = B^-1 in the accelerations of lean and steer; damping and stiffness from three speeds."""
    rows = [*LEAN_AND_STEER, "x", "y", "yaw", "rear_wheel", "front_wheel", "rear_rate"]
    for speed in (1.0, 4.6, 8.0):
        lin = fl.linearize(bicycle(speed), independent=rows)
        mass = np.linalg.inv(lin.B[2:4, :2])
        np.testing.assert_allclose(mass, M, rtol=1e-12)
        np.testing.assert_allclose(-mass @ lin.A[2:4, 2:4], speed * C1, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(-mass @ lin.A[2:4, :2], G * K0 + speed**2 * K2, rtol=1e-12, atol=1e-11)
        np.testing.assert_allclose(lin.A[2:4, 4:], 0.0, atol=1e-13)


def test_eigenvalues_at_5_metres_per_second() -> None:
    found = fl.linearize(bicycle(5.0)).eigenvalues()

    def error(published: complex) -> float:
        return float(np.min(np.abs(found - published)) / abs(published))

    assert error(-0.32286642900409) < 1e-12
    assert error(-14.07838969279822) < 1e-12
    assert error(-0.7753418821959 + 4.4648677134j) < 1e-10  # published with 13 and 11 digits
    assert error(-0.77534188219585 + 4.46486771378823j) < 1e-12
    np.testing.assert_allclose(np.sort(np.abs(found))[:6], 0.0, atol=1e-12)


def test_eigenvalues_over_all_speeds() -> None:
    speeds = np.linspace(0.0, 10.0, 21)
    model, points = at_speeds(speeds)
    for speed, found in zip(speeds, model.matrices_along(points), strict=True):
        names = [model.states.names[i] for i in found.partition.states]
        rows = [names.index(n) for n in LEAN_AND_STEER]
        np.testing.assert_allclose(found.A[np.ix_(rows, rows)], canonical(speed), rtol=1e-11, atol=1e-11)


def critical(speeds: tuple[float, float], growth: Callable[[np.ndarray], float]) -> float:
    model = bicycle()

    def crossing(speed: float) -> float:
        [point] = at_speeds(np.array([speed]))[1]
        return growth(np.linalg.eigvals(block(model, point)))

    return float(brentq(crossing, *speeds, xtol=1e-12))


def test_weave_and_capsize_speeds() -> None:
    weave = critical((4.0, 5.0), lambda s: float(s[np.argmax(np.abs(s.imag))].real))
    capsize = critical((5.5, 6.5), lambda s: float(np.max(s[np.abs(s.imag) < 1e-9].real)))
    assert weave == pytest.approx(4.29238253634111, rel=1e-12)  # 4.292382 and 6.024262 m/s, with all published digits
    assert capsize == pytest.approx(6.02426201538837, rel=1e-12)


def test_the_general_linearizer_and_the_fmu_agree(tmp_path: Path) -> None:
    model = bicycle(4.6)
    own = fl.linearize(model)
    general = fl.linearize(model)
    assert general.states.names == own.states.names
    with fl.load(build_fmu(model, tmp_path / "bicycle.fmu")) as fmu:
        black_box = fl.linearize(fmu)
    for letter in "ABCDT":
        np.testing.assert_allclose(getattr(general, letter), getattr(own, letter), atol=1e-11, err_msg=letter)
        np.testing.assert_allclose(getattr(black_box, letter), getattr(own, letter), atol=1e-9, err_msg=letter)


def test_energy_is_conserved_and_power_is_what_the_torques_do() -> None:
    """A leaning, steering point in motion: d/dt (T + V) from kinematics alone against torque times rate."""
    from sympy import Symbol, lambdify
    from sympy.core.function import AppliedUndef
    from sympy.physics.mechanics import kinetic_energy

    from fmilin.systems import bicycle_model

    b = bicycle_model.describe_frames()
    bodies = bicycle_model._bodies(b)
    energy = kinetic_energy(b.frames["N"], *bodies)
    energy -= sum(
        b.p[f"m_{k}"] * b.p["g"] * b.points[k].pos_from(b.points["R"]).dot(b.frames["N"].z)
        - b.p[f"m_{k}"] * b.p["g"] * b.p["r_R"] * b.frames["L"].z.dot(b.frames["N"].z)
        for k in ("R", "B", "H", "F")
    )
    plain = energy.xreplace({f: Symbol(f.func.__name__, real=True) for f in energy.atoms(AppliedUndef)})
    model = bicycle()
    values = {"yaw": 0.4, "lean": 0.2, "steer": -0.3, "lean_rate": 0.5, "steer_rate": -0.7, "rear_rate": -12.0}
    torques = {"lean_torque": 3.0, "steer_torque": -0.4, "rear_torque": -5.0}
    point = fl.operating_point(model, values | torques)
    f = model.evaluate(0.0, point.states, point.inputs).derivatives
    symbols = [Symbol(n, real=True) for n in model.states.names]
    constants = {Symbol(n, real=True): value for n, value in model.parameters.items()}
    E = lambdify(symbols, plain.xreplace(constants), cse=True)
    h = 1e-5
    rate = (E(*(point.states + h * f)) - E(*(point.states - h * f))) / (2 * h)
    at = dict(zip(model.states.names, point.states, strict=True))
    power = sum(
        torques[t] * at[u] for t, u in (("lean_torque", "lean_rate"), ("steer_torque", "steer_rate"),
                                        ("rear_torque", "rear_rate"))
    )  # fmt: skip
    assert rate == pytest.approx(power, rel=1e-7)


def test_other_parameters() -> None:
    """With twice the masses and inertias the motion is the same."""
    heavy = {name: 2 * value for name, value in bicycle().parameters.items() if name[:2] in ("m_", "I_")}
    np.testing.assert_allclose(
        fl.linearize(bicycle(3.0, parameters=heavy)).A, fl.linearize(bicycle(3.0)).A, rtol=1e-10, atol=1e-11
    )
    with pytest.raises(UnknownNameError, match="'wheelbase' is not a parameter of the bicycle"):
        bicycle(parameters={"wheelbase": 1.0})
