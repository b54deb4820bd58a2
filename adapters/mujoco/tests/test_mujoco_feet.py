"""Feet on MuJoCo's ground: a quadruped's stance against an independent null space, contacts, and a push."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from fmilin_mujoco.shapes import points_of

import fmilin as fl
from fmilin.adapters import EngineModel, NativeModel
from fmilin.models.mechanism import Mechanism
from fmilin.signals import FloatArray

EXAMPLE = Path(__file__).parents[3] / "examples" / "standing_robot"
ROBOT = EXAMPLE / "quadruped.xml"
LEGS = ("FL", "FR", "RL", "RR")
TRUNK = tuple(f"trunk.{name}" for name in ("x", "y", "z", "qx", "qy", "qz", "vx", "vy", "vz", "wx", "wy", "wz"))
FORCES = [f"{leg}.f{axis}" for leg in LEGS for axis in "xyz"]


@pytest.fixture(scope="module")
def standing() -> tuple[fl.Model, fl.TrimmedPoint, fl.LinearModel]:
    model = fl.load(ROBOT, options={"keyframe": "stance", "hold": list(LEGS)})
    stance = fl.trim(model, free=model.inputs.names)
    return model, stance, fl.linearize(model, stance, independent=TRUNK, outputs=FORCES)


class NullSpace:
    """The stance in the trunk's coordinates by MuJoCo's mass matrix, bias and Jacobians alone."""

    def __init__(self, stance: fl.TrimmedPoint) -> None:
        self.m = mujoco.MjModel.from_xml_path(str(ROBOT))
        self.m.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        self.d = mujoco.MjData(self.m)
        self.q, self.u = stance.states[:19].copy(), stance.inputs
        self.d.qpos[:] = self.q
        mujoco.mj_forward(self.m, self.d)
        self.shanks = [self.m.geom_bodyid[mujoco.mj_name2id(self.m, mujoco.mjtObj.mjOBJ_GEOM, leg)] for leg in LEGS]
        # A foot is a ball of 25 mm: it touches the floor below its middle.
        middles = [self.d.geom_xpos[mujoco.mj_name2id(self.m, mujoco.mjtObj.mjOBJ_GEOM, leg)] for leg in LEGS]
        self.ground = [middle - (0, 0, 0.025) for middle in middles]
        self.points = [self.frame(b).T @ (p - self.d.xpos[b]) for b, p in zip(self.shanks, self.ground, strict=True)]

    def frame(self, body: int) -> FloatArray:
        return np.asarray(self.d.xmat[body].reshape(3, 3))

    def feet(self) -> tuple[FloatArray, FloatArray]:
        """Return how far the feet are off their places (12,), and their Jacobian (12, 18)."""
        mujoco.mj_forward(self.m, self.d)
        gaps, rows = [], []
        for body, point, ground in zip(self.shanks, self.points, self.ground, strict=True):
            p = self.d.xpos[body] + self.frame(body) @ point
            J = np.zeros((3, 18))
            mujoco.mj_jac(self.m, self.d, J, None, p, body)
            gaps.append(p - ground)
            rows.append(J)
        return np.concatenate(gaps), np.vstack(rows)

    def accelerations(self, y: FloatArray, speeds: FloatArray) -> FloatArray:
        """Return the trunk's accelerations (6,); y is x, y, z, qx, qy, qz. Squares of speeds are left out."""
        d = self.d
        d.qpos[:], d.qvel[:], d.ctrl[:] = self.q, 0.0, self.u
        d.qpos[:3], d.qpos[4:7] = y[:3], y[3:]
        d.qpos[3] = np.sqrt(1.0 - y[3:] @ y[3:])
        for _ in range(8):
            gap, J = self.feet()
            d.qpos[7:] -= np.linalg.solve(J[:, 6:], gap)
        J = self.feet()[1]
        K = np.vstack((np.eye(6), -np.linalg.solve(J[:, 6:], J[:, :6])))
        d.qvel[:] = K @ speeds
        mujoco.mj_forward(self.m, d)
        M = np.zeros((18, 18))
        try:
            mujoco.mj_fullM(self.m, d, M)
        except TypeError:
            mujoco.mj_fullM(self.m, M, d.qM)
        force = d.qfrc_passive + d.qfrc_actuator - d.qfrc_bias
        return np.asarray(np.linalg.solve(K.T @ M @ K, K.T @ force))


def slope(function: Any, h: float) -> Any:
    one, two = (function(h) - function(-h)) / (2 * h), (function(2 * h) - function(-2 * h)) / (4 * h)
    return (4 * one - two) / 3


def test_the_stance_has_twelve_states_and_is_that_of_an_independent_null_space(
    standing: tuple[fl.Model, fl.TrimmedPoint, fl.LinearModel],
) -> None:
    _, stance, lin = standing
    assert lin.A.shape == (12, 12)
    by_hand = NullSpace(stance)
    y0, rest = stance.states[[0, 1, 2, 4, 5, 6]], np.zeros(6)
    assert np.abs(by_hand.accelerations(y0, rest)).max() < 1e-9
    of_q = np.stack([slope(lambda s, e=e: by_hand.accelerations(y0 + s * e, rest), 3e-4) for e in np.eye(6)], axis=1)
    of_v = np.stack([slope(lambda s, e=e: by_hand.accelerations(y0, s * e), 1e-2) for e in np.eye(6)], axis=1)
    rates = np.diag([1, 1, 1, 0.5, 0.5, 0.5])  # a quaternion near 1 turns at half the angular velocity
    A = np.block([[np.zeros((6, 6)), rates], [of_q, of_v]])
    assert np.abs(lin.A - A).max() <= 1e-9 * np.abs(A).max()


def test_contact_forces_of_the_stance_carry_the_weight_as_mujocos_contacts_do(
    standing: tuple[fl.Model, fl.TrimmedPoint, fl.LinearModel],
) -> None:
    """MuJoCo's soft contacts, settled under the same set points, share the load in the same way."""
    model, stance, lin = standing
    forces = np.array([lin.point.outputs[name] for name in FORCES]).reshape(4, 3)
    m = mujoco.MjModel.from_xml_path(str(ROBOT))
    assert forces.sum(axis=0) == pytest.approx([0, 0, m.body_mass.sum() * 9.81], rel=1e-9, abs=1e-9)
    said = {r.kind: r.message for r in stance.report.remarks}
    assert "6 of 12 free inputs are redundant" in said["least-squares"]
    assert "needs no friction" in said["standing"]
    d = mujoco.MjData(m)
    d.qpos[:], d.ctrl[:] = stance.states[:19], stance.inputs
    for _ in range(3000):
        mujoco.mj_step(m, d)
    wrench, carried = np.zeros(6), dict.fromkeys(LEGS, 0.0)
    for i in range(d.ncon):
        mujoco.mj_contactForce(m, d, i, wrench)
        foot = max(d.contact[i].geom)
        carried[mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_GEOM, foot)] += wrench[0]
    assert np.array(list(carried.values())) == pytest.approx(forces[:, 2], rel=0.03)
    assert not [note for note in model.notes if "Contacts are left out" in note]


def test_lqr_on_the_stance_halves_what_a_push_does(
    standing: tuple[fl.Model, fl.TrimmedPoint, fl.LinearModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLE)
    example = runpy.run_path(str(EXAMPLE / "run.py"))
    _, stance, lin = standing
    gain = example["regulator"](lin, np.repeat([10.0, 10.0, 0.1, 0.1], 3), 0.01)
    for force in ((60.0, 0.0, 0.0), (0.0, 60.0, 0.0)):
        without, with_lqr = example["quadruped_pushed"](lin, stance, gain, force)
        assert without.excursion.max() > 0.03
        assert with_lqr.excursion.max() <= 0.5 * without.excursion.max()
        assert with_lqr.tilt.max() <= 0.5 * without.tilt.max()


SCENE = """
<mujoco><worldbody>
  <geom name="floor" type="plane" size="2 2 0.1" friction="0.3"/>
  <body name="box" pos="0 0 {height}"><freejoint name="box"/>
    <geom name="sole" type="box" size="0.2 0.1 0.05" mass="2" friction="0.3"/><site name="corner" pos="0.2 0.1 -0.05"/>
    <body name="lid" pos="0 0 0.05"><joint name="lid" axis="0 1 0" damping="1"/><geom size="0.02" mass="0.1"/></body>
  </body>
  <body name="rock" pos="1 1 0"><geom name="rock" size="0.1"/></body>
</worldbody>
<actuator><motor name="side" site="corner" refsite="" gear="1 0 0 0 0 0"/></actuator></mujoco>
""".replace(' refsite=""', "")


@pytest.fixture(params=["", "mujoco:"], ids=["native", "engine"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., NativeModel]:
    """A box with a lid on the floor: as a native mechanism, and in MuJoCo's engine."""

    def opened(height: float = 0.05) -> NativeModel:
        path = tmp_path / "scene.xml"
        path.write_text(SCENE.format(height=height))
        model = fl.load(f"{request.param}{path}")
        assert isinstance(model, NativeModel)
        return model

    return opened


def test_a_site_a_geom_and_a_body_are_held(scene: Callable[..., NativeModel]) -> None:
    loose = scene()
    assert fl.linearize(loose).A.shape == (14, 14)
    assert fl.linearize(loose.with_held(["corner"])).A.shape == (8, 8)
    flat = loose.with_held(["sole:flat"])
    assert flat.outputs.names[-6:] == ("sole.fx", "sole.fy", "sole.fz", "sole.tx", "sole.ty", "sole.tz")
    (standing,) = (r.message for r in flat.list_point_remarks(flat.start) if r.kind == "standing")
    assert "sole carries 20.6 N and needs no friction" in standing
    assert fl.linearize(loose.with_held(["box", "corner"])).A.shape == (4, 4)  # it turns about the line between them


def test_what_a_held_foot_could_not_do_is_said(scene: Callable[..., NativeModel]) -> None:
    """The box weighs 20.6 N: 6.2 N are what its friction of 0.3 holds; a push at its edge tips it."""
    model = scene().with_held(["sole:flat"])

    def said(force: float) -> str:
        point = fl.operating_point(model, {"side": force})
        return " ".join(r.message for r in model.list_point_remarks(point) if r.kind == "contact")

    assert said(6.1) == ""
    assert "needs a friction of 0.305" in said(6.28)
    assert "and the contact has 0.3: it slides there" in said(6.28)


def test_a_foot_in_the_air_is_held_there_and_that_is_said(scene: Callable[..., NativeModel]) -> None:
    model = scene(height=0.5).with_held(["sole"])
    assert "The foot 'sole' touches nothing at the start: it is held in the air." in model.notes
    assert fl.linearize(model).A.shape == (8, 8)
    hovering = scene(height=0.056).with_held(["sole"])
    assert any("The foot 'sole' is 0.006 m above the ground at the start" in note for note in hovering.notes)


@pytest.mark.parametrize(
    ("feet", "error", "message"),
    [
        (["soul"], fl.UnknownNameError, r"'soul' is not a site, geom or body of the model .*'sole'"),
        (["rock"], fl.ModelError, r"The foot 'rock' is fixed to the world"),
        (["sole", "sole:flat"], fl.UsageError, r"'sole' is named twice"),
    ],
)
def test_what_cannot_be_held(
    scene: Callable[..., NativeModel], feet: list[str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        scene().with_held(feet)


def test_a_foot_that_moves_or_is_held_already_is_refused(scene: Callable[..., NativeModel]) -> None:
    model = scene()
    with pytest.raises(fl.ConstraintError, match=r"The foot 'corner' cannot be held at this point: it moves"):
        model.with_held(["corner"], fl.operating_point(model, {"box.vx": 0.1}))
    with pytest.raises(fl.ModelError, match=r"The foot 'corner' is held already"):
        model.with_held(["corner"]).with_held(["corner:flat"])


def test_more_feet_than_needed_leave_forces_undetermined(scene: Callable[..., NativeModel]) -> None:
    model = scene().with_held(["sole:flat", "corner"])
    assert not [name for name in model.outputs.names if name.startswith(("sole.f", "corner.f"))]
    assert fl.linearize(model).A.shape == (2, 2)
    (standing,) = (r.message for r in model.list_point_remarks(model.start) if r.kind == "standing")
    assert "how sole, corner share their load is not determined" in standing


def test_the_native_mechanism_and_the_engine_hold_the_same_feet(
    standing: tuple[fl.Model, fl.TrimmedPoint, fl.LinearModel],
) -> None:
    native, stance, lin = standing
    engine = fl.load(f"mujoco:{ROBOT}", options={"keyframe": "stance", "hold": list(LEGS)})
    assert isinstance(native, Mechanism)
    assert isinstance(engine, EngineModel)
    assert engine.outputs.names == native.outputs.names
    assert engine.notes == native.notes
    random = np.random.default_rng(1889)
    u = stance.inputs + 0.01 * random.uniform(-1, 1, 12)
    one, other = (model.evaluate(0.0, stance.states, u) for model in (native, engine))
    assert np.allclose(one.derivatives, other.derivatives, rtol=0, atol=1e-9 * np.abs(one.derivatives).max())
    assert np.allclose(one.outputs, other.outputs, rtol=0, atol=1e-9 * np.abs(one.outputs).max())
    (said,) = (r.message for r in engine.list_point_remarks(stance) if r.kind == "standing")
    assert said in {w.message for w in lin.warnings}


def test_a_servo_at_its_limit_takes_no_outputs_away(standing: tuple[fl.Model, fl.TrimmedPoint, fl.LinearModel]) -> None:
    """The knee of a leg asks for 500 N m and has 120: said, and the contact forces are outputs as before."""
    model, stance, _ = standing
    u = stance.inputs.copy()
    u[2] += 4.0
    lin = fl.linearize(model, fl.OperatingPoint(0.0, stance.states, u))
    assert any("FL_knee" in w.message for w in lin.warnings)
    assert lin.outputs.names == model.outputs.names


# ---------------------------------------------------------------------- which point of a foot is held


@pytest.fixture
def sunk(tmp_path: Path) -> Path:
    """The quadruped with its feet 18 mm inside the floor."""
    m = mujoco.MjModel.from_xml_path(str(ROBOT))
    stance = " ".join(repr(float(a)) for a in m.key_qpos[0])
    text = ROBOT.read_text(encoding="utf-8")
    height = float(m.key_qpos[0][2])
    assert text.count(f'"0 0 {height!r} ') == 1, stance
    path = tmp_path / "sunk.xml"
    path.write_text(text.replace(f'"0 0 {height!r} ', f'"0 0 {height - 0.018!r} '), encoding="utf-8")
    return path


@pytest.mark.parametrize("engine", ["", "mujoco:"], ids=["native", "engine"])
@pytest.mark.parametrize(("how", "below"), [("point", 0.016), ("center", 0.0), ("lowest", 0.025)])
def test_the_point_of_a_foot_that_is_held_is_a_choice(engine: str, how: str, below: float, sunk: Path) -> None:
    """A ball of 25 mm that is 18 mm in the floor touches it, as MuJoCo has it, halfway: 16 mm below its middle.

    Three rows of G say nothing of speeds that keep exactly that point at rest, by MuJoCo's own Jacobian.
    """
    model = fl.load(f"{engine}{sunk}", options={"keyframe": "stance", "hold": [f"{leg}:{how}" for leg in LEGS]})
    said = next(note for note in model.notes if "'FL' is 0.018 m inside the ground" in note)
    for other in {"center", "lowest"} - {how}:
        assert f"'FL:{other}'" in said
    m = mujoco.MjModel.from_xml_path(str(sunk))
    d = mujoco.MjData(m)
    d.qpos[:] = m.key_qpos[0]
    mujoco.mj_forward(m, d)
    x = model.start.states
    assert isinstance(model, NativeModel)
    g = model.constraint_gradient(0.0, x, model.start.inputs)
    assert g is not None
    for leg in LEGS:
        geom = mujoco.mj_name2id(m, mujoco.mjtObj.mjOBJ_GEOM, leg)
        J = np.zeros((3, m.nv))
        mujoco.mj_jac(m, d, J, None, d.geom_xpos[geom] - (0, 0, below), m.geom_bodyid[geom])
        speeds = np.linalg.svd(J)[2][3:]
        rows = g[1][:, m.nq : m.nq + m.nv]
        held = rows[np.abs(rows @ speeds.T).max(axis=1) < 1e-9]
        assert np.linalg.matrix_rank(held, tol=1e-9) == 3


def test_lowest_points_of_all_shapes(tmp_path: Path) -> None:
    """Each shape stands turned by 30 degrees about y, at the height of its middle: against what geometry says."""
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    shapes = {
        "sphere": ('type="sphere" size="0.2"', (0.0, -0.2)),
        "capsule": ('type="capsule" size="0.1 0.3"', (-0.3 * s, -0.3 * c - 0.1)),
        "cylinder": ('type="cylinder" size="0.1 0.3"', (0.1 * c - 0.3 * s, -0.1 * s - 0.3 * c)),
        "box": ('type="box" size="0.1 0.2 0.3"', (0.1 * c - 0.3 * s, -0.1 * s - 0.3 * c)),
        "ellipsoid": ('type="ellipsoid" size="0.1 0.2 0.3"', (None, -np.sqrt((0.1 * s) ** 2 + (0.3 * c) ** 2))),
        "mesh": ('type="mesh" mesh="tip"', (None, None)),
    }
    bodies = "".join(
        f'<body name="{name}" pos="{i} 0 1" euler="0 30 0"><freejoint/><geom name="g_{name}" {geom}/></body>'
        for i, (name, (geom, _)) in enumerate(shapes.items())
    )
    path = tmp_path / "shapes.xml"
    path.write_text(
        '<mujoco><asset><mesh name="tip" vertex="0 0 0  .1 0 0  0 .1 0  0 0 -.3"/></asset>'
        f"<worldbody>{bodies}</worldbody></mujoco>"
    )
    m = mujoco.MjModel.from_xml_path(str(path))
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    for i, (name, (_, expected)) in enumerate(shapes.items()):
        points = points_of(m, d, [i], np.array([0.0, 0.0, 1.0]))
        x, y, z = points["lowest"] - d.geom_xpos[i]
        if name == "mesh":
            corner = d.xpos[i + 1] + d.xmat[i + 1].reshape(3, 3) @ (0, 0, -0.3)
            assert points["lowest"] == pytest.approx(corner, abs=1e-6)  # its vertices are of single precision
            continue
        assert (y, z) == pytest.approx((0.0, expected[1]), abs=1e-12), name
        if expected[0] is not None:
            assert x == pytest.approx(expected[0], abs=1e-12), name


def test_a_site_has_no_shape_and_a_mechanism_none_at_all(scene: Callable[..., NativeModel]) -> None:
    assert fl.linearize(scene().with_held(["box:lowest"])).A.shape == (8, 8)
    with pytest.raises(fl.UsageError, match="'corner' has no shape of its own: leave ':lowest' out"):
        scene().with_held(["corner:lowest"])
    biped = fl.load(EXAMPLE / "biped.toml")
    assert isinstance(biped, NativeModel)
    with pytest.raises(fl.UsageError, match=r"has no shape of the foot 'left_sole', to which ':center' refers"):
        biped.with_held(["left_sole:center"])
