"""Feet on the ground: order, contact forces, their conditions, torques that stand, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin.adapters import Contact, Foot
from fmilin.errors import ConstraintError, ModelError, UnknownNameError, UsageError
from fmilin.models.contacts import contact_remarks, inside
from fmilin.models.mechanism import Body, Force, Joint, Marker, Mechanism, MechanismDescription, Placement
from fmilin.signals import FloatArray
from tests.command_line import main

BIPED = Path(__file__).parents[3] / "examples" / "standing_robot" / "biped.toml"
SOLES = ("left_sole:flat", "right_sole:flat")
G = 9.81


def table(friction: float | None = None, **changes: Any) -> Mechanism:
    """A plate of 2 kg, 1 m by 0.6 m, floating 0.5 m above the origin; a, b, c, d are its corners."""
    corners = {"a": (0.5, 0.3), "b": (0.5, -0.3), "c": (-0.5, 0.3), "d": (-0.5, -0.3)}
    description = MechanismDescription(
        "table",
        [Body("plate", 2.0, inertia=(0.06, 0.17, 0.23))],
        [Joint("free", "free", "ground", "plate", Placement((0.0, 0.0, 0.5)))],
        inputs=[Force("side", "plate"), Force("lift", "plate", (0.5, 0, 0), (0, 0, 1))],
        markers=[Marker(name, "plate", (x, y, 0.0), friction) for name, (x, y) in corners.items()],
    )
    return Mechanism(replace(description, **changes))


def kinds(model: Mechanism, point: fl.OperatingPoint | None = None) -> dict[str, str]:
    return {r.kind: r.message for r in model.list_point_remarks(model.start if point is None else point)}


def outputs(model: fl.Model, *inputs: float) -> dict[str, float]:
    u = np.array(inputs) if inputs else model.start.inputs
    y = model.evaluate(0.0, model.start.states, u).outputs
    return dict(zip(model.outputs.names, y.tolist(), strict=True))


def test_a_point_contact_takes_three_freedoms_and_a_flat_one_six() -> None:
    assert fl.linearize(table()).A.shape == (12, 12)
    swinging = table().with_held(["a"])
    assert swinging.outputs.names == ("a.fx", "a.fy", "a.fz")
    assert fl.linearize(swinging).A.shape == (6, 6)
    flat = table().with_held(["a:flat"])
    assert flat.outputs.names == ("a.fx", "a.fy", "a.fz", "a.tx", "a.ty", "a.tz")
    assert fl.linearize(flat).A.shape == (0, 0)


def test_forces_and_torques_of_a_flat_foot_balance_the_load_in_the_worlds_axes() -> None:
    """Force and torque about the corner: minus those of the weight and of both inputs."""
    turned = np.array([0.2, -0.1, 0.5, 0.8, 0.3, -0.2, 0.4, *[0.0] * 6])
    turned[3:7] /= np.linalg.norm(turned[3:7])
    model = table()
    point = fl.OperatingPoint(0.0, turned, np.array([3.0, 7.0]))
    y = outputs(model.with_held(["a:flat"], point))
    R = Placement.from_quaternion((0, 0, 0), turned[3:7]).R
    weight, side, lift = np.array([0, 0, -2.0 * G]), np.array([3.0, 0, 0]), np.array([0, 0, 7.0])
    to_middle = R @ (-0.5, -0.3, 0)
    torque = np.cross(to_middle, weight + side) + np.cross(R @ (0.0, -0.3, 0.0), lift)
    assert np.allclose([y["a.fx"], y["a.fy"], y["a.fz"]], -(weight + side + lift), rtol=1e-12, atol=1e-12)
    assert np.allclose([y["a.tx"], y["a.ty"], y["a.tz"]], -torque, rtol=1e-12, atol=1e-12)


def test_the_contact_forces_have_exact_slopes() -> None:
    model = table().with_held(["a", "b"])  # it swings about the edge from a to b
    lin = fl.linearize(model)
    assert lin.A.shape == (2, 2)
    assert lin.D[:, 1] == pytest.approx([0, -0.5, 0, -0.5], abs=1e-10)  # x and z of both; lift on the edge
    measured = fl.linearize(model, derivatives="differences")
    assert np.allclose(lin.C, measured.C, atol=1e-6 * np.abs(lin.C).max())
    assert np.allclose(lin.D, measured.D, atol=1e-6)


def test_more_feet_than_needed_are_redundant_rows() -> None:
    """Three corners: nine rows, six freedoms. What a rigid plate does not tell is no output."""
    model = table().with_held(["a", "b", "c"])
    lin = fl.linearize(model)
    assert lin.A.shape == (0, 0)
    assert any("The feet are held redundantly" in w.message for w in lin.warnings)
    assert "a.fz" in model.outputs.names  # only one share of three vertical forces balances two moments
    assert "a.fx" not in model.outputs.names
    four = table().with_held(["a", "b", "c", "d"])
    assert four.outputs.names == ()
    assert "how a, b, c, d share their load is not determined" in kinds(four)["standing"]


def test_a_foot_that_is_pulled_is_named() -> None:
    """Lifted with 7 N at one end of the plate, it stands; with 30 N its corner is pulled."""
    model = table().with_held(["a:flat"])
    stands = fl.operating_point(model, {"lift": 7.0})
    assert "contact" not in kinds(model, stands)
    assert "a carries 12.62 N and needs no friction" in kinds(model, stands)["standing"]
    lifted = fl.operating_point(model, {"lift": 30.0})
    message = kinds(model, lifted)["contact"]
    assert "pull the foot 'a' down with 10.38 N" in message
    lin = fl.linearize(model, lifted)
    assert [w.message for w in lin.warnings if w.kind == "contact"] == [message]
    assert not any(w.is_information for w in lin.warnings if w.kind == "contact")


@pytest.mark.parametrize(
    ("friction", "side", "slides"),
    [(0.4, 7.8, False), (0.4, 7.9, True), (None, 19.6, False), (None, 19.7, True), (0.0, 0.1, True)],
)
def test_a_foot_that_slides_is_named(friction: float | None, side: float, slides: bool) -> None:
    model = table(friction).with_held(["a:flat"])
    found = kinds(model, fl.operating_point(model, {"side": side})).get("contact", "")
    assert ("it slides there" in found) == slides
    if slides:
        assert ("few surfaces have that" if friction is None else f"the contact has {friction:.3g}") in found


@pytest.mark.parametrize(("torque", "tips"), [(-1.9, False), (-2.1, True), (1.9, False), (2.1, True)])
def test_a_flat_foot_that_tips_over_its_edge_is_named(torque: float, tips: bool) -> None:
    """10 N on a sole of 0.4 m, 0.1 m below its anchor: the torque about y moves the centre of pressure along x."""
    sole = np.array([[x, y, -0.1] for x in (-0.2, 0.2) for y in (-0.1, 0.1)])
    contact = Contact(Foot("sole", flat=True), np.array([0.0, 0.0, 1.0]), 0.8, sole)
    wrench = np.array([1.0, 0.0, 10.0, 0.0, torque - 0.1, 0.0])  # 1 N along x, 0.1 m below
    remarks = contact_remarks([contact], {"sole": wrench})
    assert any("tips over" in r.message and "0.21" in r.message.replace("-", "") for r in remarks) == tips


def test_the_hull_of_a_sole() -> None:
    n = np.array([0.0, 0.0, 1.0])
    sole = np.array([[0.1, 0.05, 0], [0.1, -0.05, 0], [-0.1, 0.05, 0], [-0.1, -0.05, 0], [0.0, 0.0, 0]])
    assert inside(np.array([0.099, -0.049, 0]), sole, n)
    assert not inside(np.array([0.101, 0.0, 0]), sole, n)
    assert not inside(np.array([0.0, 0.051, 0]), sole, n)


def test_feet_are_held_where_they_are_at_the_point() -> None:
    model = table()
    point = fl.operating_point(model, {"free.x": 1.0, "free.z": 0.25})
    found = model.with_held(["a"], point)
    assert found.start.states[:3] == pytest.approx([1.0, 0.0, 0.25])
    assert np.abs(found.evaluate(0.0, point.states, point.inputs).residuals).max() < 1e-15
    assert any("held where it is at the start: this mechanism has no ground" in note for note in found.notes)


@pytest.mark.parametrize(
    ("feet", "error", "message"),
    [
        (["plat"], UnknownNameError, r"'plat' .*a body or marker of 'table' that could be held.*plate"),
        (["a:round"], UsageError, r"'a:round' is not a way to hold a foot: write 'a:point', 'a:flat'"),
        (["q:round"], UnknownNameError, r"'q:round' is not a body or marker"),
        (["a", "a:flat"], UsageError, r"The foot 'a' is named twice"),
        ([3], UsageError, r"An entry of 'feet' is of the type 'int'"),
        ([":flat"], UsageError, r"has no name: write FOOT"),
        ("a", UsageError, r"should be a list: write \['a'\]"),
    ],
)
def test_what_cannot_be_held(feet: list[Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        table().with_held(feet)


def test_a_foot_that_moves_is_fixed_or_is_held_already_is_refused() -> None:
    model = table()
    with pytest.raises(ConstraintError, match=r"The foot 'a' cannot be held at this point: it moves there, at 0\.3"):
        model.with_held(["a"], fl.operating_point(model, {"free.wz": 0.6}))
    with pytest.raises(ModelError, match=r"The foot 'a' is held already"):
        model.with_held(["a"]).with_held(["a"])
    fixed = table(joints=[Joint("weld", "fixed", "ground", "plate")])
    with pytest.raises(ModelError, match=r"The foot 'a' is fixed to the ground by its joints"):
        fixed.with_held(["a"])
    with pytest.raises(UsageError, match=r"has no .* could be held|cannot be held"):
        fl.load("fmilin.systems:cartesian_pendulum", options={"hold": ["x"]})


# ---------------------------------------------------------------------- a biped


def kinematics(q: FloatArray) -> FloatArray:
    """Place and angle of both ankles of the biped, (6,), from its nine positions, by hand."""
    x, z, pitch = q[:3]
    found = []
    for hip, knee, ankle in (q[3:6], q[6:9]):
        thigh, shank = pitch + hip, pitch + hip + knee
        found += [x + 0.4 * (np.sin(thigh) + np.sin(shank)), z - 0.4 * (np.cos(thigh) + np.cos(shank)), shank + ankle]
    return np.array(found)


def jacobian(q: FloatArray) -> FloatArray:
    return np.stack([kinematics(q + 1e-30j * e).imag / 1e-30 for e in np.eye(9)], axis=1)


def posture(y: FloatArray, q: FloatArray, feet: FloatArray) -> FloatArray:
    """The nine positions with the trunk at y and both feet where they are: Newton's method."""
    q = np.concatenate((y, q[3:]))
    for _ in range(8):
        q[3:] -= np.linalg.solve(jacobian(q)[:, 3:], kinematics(q) - feet)
    return q


def test_a_biped_in_minimal_coordinates_is_that_of_an_independent_null_space() -> None:
    """Order 6; A from the open tree's M and forces, feet by hand, differences of fourth order along the manifold."""
    loose = fl.load(BIPED)
    model = fl.load(BIPED, options={"hold": list(SOLES)})
    assert isinstance(loose, Mechanism)
    point = fl.trim(model, free=[n for n in model.inputs.names if n != "push"])
    lin = fl.linearize(model, point)
    assert lin.states.names == ("x", "z", "pitch", "vx", "vz", "w")
    q0 = point.states[:9]
    feet = kinematics(q0)

    def accelerations(y: Any, y_dot: Any) -> Any:
        """Without squares of speeds, which central differences do not see."""
        q = posture(y, q0, feet)
        J = jacobian(q)
        v = np.concatenate((y_dot, -np.linalg.solve(J[:, 3:], J[:, :3] @ y_dot)))
        state = loose.state(np.concatenate((q, v)), point.inputs)
        K = np.vstack((np.eye(3), -np.linalg.solve(J[:, 3:], J[:, :3])))
        return np.linalg.solve(K.T @ state.M @ K, K.T @ state.F)

    def slope(function: Any, h: float) -> Any:
        one, two = (function(h) - function(-h)) / (2 * h), (function(2 * h) - function(-2 * h)) / (4 * h)
        return (4 * one - two) / 3

    rest = np.zeros(3)
    of_q = np.stack([slope(lambda s, e=e: accelerations(q0[:3] + s * e, rest), 1e-4) for e in np.eye(3)], axis=1)
    of_v = np.stack([slope(lambda s, e=e: accelerations(q0[:3], s * e), 1e-3) for e in np.eye(3)], axis=1)
    A = np.block([[np.zeros((3, 3)), np.eye(3)], [of_q, of_v]])
    assert np.abs(lin.A - A).max() <= 1e-9 * np.abs(A).max()


def test_trim_of_a_standing_biped_presses_its_feet_least() -> None:
    model = fl.load(BIPED, options={"hold": list(SOLES)})
    free = [n for n in model.inputs.names if n != "push"]
    point = fl.trim(model, free=free)
    y = dict(zip(model.outputs.names, model.evaluate(0.0, point.states, point.inputs).outputs, strict=True))
    weight = G * (35 + 2 * (5 + 3 + 1))
    assert y["left_sole.fz"] == pytest.approx(weight / 2)  # equal shares: the smallest sum of squares
    assert y["right_sole.fx"] == pytest.approx(0.0, abs=1e-9)
    assert y["left_sole.ty"] == pytest.approx(y["right_sole.ty"])  # then the torques on the soles
    said = {r.kind: r.message for r in point.report.remarks}
    assert "3 of 6 free inputs are redundant" in said["least-squares"]
    assert "left_sole carries 260 N and needs no friction" in said["standing"]
    low = fl.trim(model, free=free, fixed={"z": 0.7})  # a posture
    assert low.states[1] == 0.7
    assert low.states[4] < -1.2  # the left knee bends more
    bounded = fl.trim(model, free=free, bounds={"left_hip_torque": (-15.0, 15.0)})
    assert "a bound or limit prevents" in {r.kind: r.message for r in bounded.report.remarks}["least-squares"]
    assert abs(bounded.inputs[0]) <= 15.0


def test_the_command_line_holds_feet(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    held = [arg for sole in SOLES for arg in ("--hold", sole)]
    free = "left_hip_torque,left_knee_torque,left_ankle_torque,right_hip_torque,right_knee_torque,right_ankle_torque"
    assert main(["trim", str(BIPED), *held, "--free", free, "-o", str(tmp_path / "stance.toml")]) == 0
    assert main(["linearize", str(BIPED), *held, "--point", str(tmp_path / "stance.toml")]) == 0
    out = capfd.readouterr().out
    assert "6 independent states out of 18" in out
    assert "needs no friction" in out
    assert main(["trim", str(BIPED), *held, "--set", "z=0.7", "--free", free, "-o", str(tmp_path / "low.toml")]) == 0
    assert main(["linearize", str(BIPED), *held, "--point", str(tmp_path / "low.toml")]) == 0
    assert main(["linearize", str(BIPED), "--hold", "left_soul:flat"]) == 2
    assert "left_sole" in capfd.readouterr().err
    assert main(["linearize", "fmilin.systems:cartesian_pendulum", "--hold", "x"]) == 2
