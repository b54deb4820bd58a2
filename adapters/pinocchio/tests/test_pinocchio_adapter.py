"""Pinocchio's models against fmilin's own mechanisms from the same files, and against closed forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from fmilin_pinocchio import PinocchioEngine

import fmilin as fl
from fmilin.adapters import EngineModel
from fmilin.errors import FmilinError, ModelError
from fmilin.models.mechanism import Mechanism
from fmilin.testing import check_model

FOUR_BAR = Path(__file__).parents[1] / "example" / "four_bar.urdf"

LINK = """<link name="{name}"><inertial><origin xyz="{x} 0.1 0.05" rpy="0.3 0.2 0.1"/><mass value="{m}"/>
  <inertia ixx="0.08" iyy="0.09" izz="0.1" ixy="0.01" ixz="-0.01" iyz="0.005"/></inertial></link>"""
JOINT = """<joint name="{name}" type="{type}"><parent link="{parent}"/><child link="{child}"/>
  <origin xyz="{x} 0.2 0.1" rpy="0.2 {pitch} -0.3"/><axis xyz="{axis}"/><dynamics damping="{d}"/>
  <limit lower="-6" upper="6" effort="1" velocity="1"/></joint>"""


def robot(folder: Path, loops: str, types: tuple[str, ...] = ("revolute",) * 6) -> Path:
    """Two spatial arms of three links each; the loops join their ends."""
    parts = ['<robot name="arms"><link name="base"/>']
    axes = ("0 0 1", "0 1 0", "1 0 0")
    for k in range(6):
        side, i = divmod(k, 3)
        parent = "base" if i == 0 else f"l{k - 1}"
        parts += [
            LINK.format(name=f"l{k}", x=0.2 + 0.03 * k, m=1.0 + 0.2 * k),
            JOINT.format(name=f"j{k}", type=types[k], parent=parent, child=f"l{k}", x=0.5 - side * (i == 0),
                         pitch=0.1 * k, axis=axes[(k + side) % 3], d=0 if types[k] == "floating" else 0.1),
        ]  # fmt: skip
    (folder / "arms.urdf").write_text("\n".join([*parts, "</robot>"]))
    (folder / "arms.fmilin.toml").write_text(loops)
    return folder / "arms.urdf"


def loop(kind: str, first: str = "l2", second: str = "l5", name: str = "loop") -> str:
    return f"""[[loop]]
name = "{name}"
type = "{kind}"
first = "{first}"
second = "{second}"
first_placement = {{position = [0.4, 0.1, 0], rpy = [0.1, 0.2, 0.3]}}
second_placement = {{position = [0.3, 0.2, 0.1]}}
axis = [0, 0.6, 0.8]
"""


def both(path: Path) -> tuple[fl.Model, fl.Model]:
    return fl.load(f"pinocchio:{path}"), Mechanism.from_urdf(path)


@pytest.mark.parametrize(
    ("kind", "keep"), [("spherical", ("j0", "j1", "j3")), ("prismatic", ("j0",)), ("revolute", ("j0",))]
)
def test_loops_in_space_in_motion_as_our_own_mechanism(tmp_path: Path, kind: str, keep: tuple[str, ...]) -> None:
    theirs, ours = both(
        robot(tmp_path, loop(kind), ("revolute", "revolute", "revolute", "revolute", "prismatic", "revolute"))
    )
    start = dict(zip(theirs.states.names, theirs.start.states, strict=True))
    kept = [*(f"{n}.q" for n in keep), *(f"{n}.v" for n in keep)]
    held = {n: start[n] for n in kept[: len(keep)]} | dict.fromkeys(kept[len(keep) :], 0.4)
    point = fl.operating_point(theirs, held)
    check_model(theirs, point)
    a = fl.linearize(theirs, point, independent=kept)
    values = dict(zip(theirs.states.names, point.states, strict=True))
    same = fl.operating_point(ours, {n: values[n] for n in ours.states.names if n in values})
    b = fl.linearize(ours, same, independent=kept)
    assert a.method.derivatives == b.method.derivatives == "exact"
    assert {w.kind for w in a.warnings} <= {"off-equilibrium", "periodic"}
    columns = [b.inputs.index_of(n) for n in a.inputs.names]
    assert np.abs(a.A - b.A).max() < 1e-10 * np.abs(b.A).max()
    assert np.abs(a.B - b.B[:, columns]).max() < 1e-10 * np.abs(b.B).max()


def test_the_plane_four_bar_as_our_own_mechanism() -> None:
    theirs, ours = both(FOUR_BAR)
    point = fl.operating_point(theirs, {"phi.q": 1.9, "phi.v": 0.7})
    values = dict(zip(theirs.states.names, point.states, strict=True))
    a = fl.linearize(theirs, point)
    b = fl.linearize(ours, fl.operating_point(ours, {n: values[n] for n in ("phi.q", "elbow.q", "rock.q", "phi.v")}))
    assert a.states.names == b.states.names == ("phi.q", "phi.v")
    assert np.abs(a.A - b.A).max() < 1e-10 * np.abs(b.A).max()
    assert np.abs(a.B - b.B).max() < 1e-10 * np.abs(b.B).max()
    check_model(theirs, point)


def test_the_parallelogram_at_rest_is_a_closed_form() -> None:
    with fl.load(f"pinocchio:{FOUR_BAR}") as model:
        point = fl.operating_point(model, {"phi.q": -np.pi / 2})
        s = fl.linearize(model, point).eigenvalues()
    # Two rods about their ends and one that is carried: (2/3 + 1) phi'' = -(1/2 + 1/2 + 1) g phi.
    assert s == pytest.approx(np.array([-1j, 1j]) * np.sqrt(2 * 9.81 / (5 / 3)), rel=1e-12)


def test_pinocchios_own_derivatives_agree_for_a_weld() -> None:
    """The tree of two arms, welded: computeConstraintDynamicsDerivatives is right for 6D constraints."""
    robot_model = pin.buildSampleModelManipulator()
    free = pin.Model(robot_model)
    engine = PinocchioEngine(free)
    rng = np.random.default_rng(1)
    q, v = pin.randomConfiguration(free), rng.standard_normal(free.nv)
    x = np.concatenate((q, v))
    u = rng.standard_normal(len(engine.inputs))
    rates, _ = engine.visit(0.0, x, u)
    tau = np.zeros(free.nv)
    tau[engine._driven] = u
    data = free.createData()
    assert rates[free.nq :] == pytest.approx(pin.aba(free, data, q, v, tau - free.damping * v), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("joint", [pin.JointModelFreeFlyer(), pin.JointModelSpherical(), pin.JointModelPlanar(),
                                   pin.JointModelRUBX(), pin.JointModelRX(), pin.JointModelPZ()])  # fmt: skip
def test_joints_that_live_on_lie_groups(joint: object) -> None:
    model = pin.Model()
    j = model.addJoint(0, joint, pin.SE3.Random(), "first")
    model.appendBodyToJoint(j, pin.Inertia.Random(), pin.SE3.Identity())
    k = model.addJoint(j, pin.JointModelRY(), pin.SE3.Random(), "second")
    model.appendBodyToJoint(k, pin.Inertia.Random(), pin.SE3.Identity())
    engine = PinocchioEngine(
        model, guess=pin.randomConfiguration(model, np.full(model.nq, -1.0), np.full(model.nq, 1.0))
    )
    view = EngineModel(engine)
    speeds = {name: 0.3 + 0.1 * i for i, name in enumerate(view.states.names[model.nq :])}
    point = fl.operating_point(view, dict(zip(view.states.names[: model.nq], view.start.states, strict=False)) | speeds)
    assert len(fl.linearize(view, point).states) == 2 * model.nv
    assert "products" in check_model(view, point)


def test_several_loops_on_one_body_share_it(tmp_path: Path) -> None:
    table = loop("spherical") + loop("fixed", "l5", "l5", "nothing")
    theirs, _ = both(robot(tmp_path, loop("spherical"), ("revolute",) * 6))
    assert len(fl.linearize(theirs).states) == 6  # six joints, three rows
    again = fl.load(f"pinocchio:{robot(tmp_path, table.split('[[loop]]')[1].join(['[[loop]]', '']))}")
    assert again.states.names == theirs.states.names


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (loop("cylindrical"), ModelError, r"The loop 'loop' has the type 'cylindrical', which this"),
        (loop("revolute", "l9"), FmilinError, r"'l9' is not a link of 'arms'"),
        (loop("revolute", "base", "base"), ModelError, r"'loop' connects two bodies that do not move"),
        ('[[joint_setting]]\njoint = "j9"\n', FmilinError, r"'j9' is not a joint of 'arms'"),
        ('[[joint_setting]]\njoint = "j1"\nstiffness = 3\n', ModelError, r"the joint 'j1' has a spring"),
        (loop("fixed").replace("0.4, 0.1, 0", "0, 0, 90"), ModelError, r"'loop' cannot be closed: .* remains open by"),
    ],
)  # fmt: skip
def test_bad_tables(tmp_path: Path, table: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fl.load(f"pinocchio:{robot(tmp_path, table)}")


def test_a_file_that_pinocchio_rejects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.urdf").write_text("<robot name='r'><link")
    with pytest.raises(ModelError, match=r"Pinocchio cannot read '.*broken\.urdf': "):
        fl.load(f"pinocchio:{tmp_path / 'broken.urdf'}")
    monkeypatch.setattr("importlib.metadata.version", lambda _: "2.7.1")
    with pytest.raises(ModelError, match=r"'pin' 2\.7\.1 is too old: version 3\.0 or later is required"):
        fl.load(f"pinocchio:{FOUR_BAR}")


def two_arms() -> tuple[pin.Model, list[int]]:
    """Return two chains of four joints each in space, and the last joint of each."""
    model, ends = pin.Model(), []
    for side in (0, 1):
        parent = 0
        for k, joint in enumerate((pin.JointModelRZ(), pin.JointModelRY(), pin.JointModelRX(), pin.JointModelRY())):
            placement = pin.SE3(
                pin.utils.rotate("x", 0.3 * k + 0.1), np.array([0.5 * (k > 0), 0.7 * side * (k == 0), 0.1])
            )
            parent = model.addJoint(parent, joint, placement, f"arm{side}.{k}")
            inertia = pin.Inertia(1.0 + k, np.array([0.2, 0.1, 0.0]), np.diag([0.05, 0.06, 0.07]))
            model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
        ends.append(parent)
    return model, ends


@pytest.mark.parametrize(("kind", "right"), [(pin.ContactType.CONTACT_6D, True), (pin.ContactType.CONTACT_3D, False)])
def test_derivatives_of_pinocchios_own_constraints(kind: object, right: bool) -> None:
    """Those of 6D constraints are right, those of 3D ones between two moving joints are not: why loops are welded."""
    if not right and not pin.__version__.startswith("4.1"):
        pytest.skip("whether other versions than 4.1 are wrong is not known")
    model, (j1, j2) = two_arms()
    q, v, tau = pin.neutral(model) + 0.2, np.full(model.nv, 0.0), np.linspace(-1, 1, model.nv)
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    middle = pin.SE3(np.eye(3), (data.oMi[j1].translation + data.oMi[j2].translation) / 2)
    contact = pin.RigidConstraintModel(
        kind, model, j1, data.oMi[j1].inverse() * middle, j2, data.oMi[j2].inverse() * middle, pin.LOCAL
    )
    contacts, settings = pin.StdVec_RigidConstraintModel(), pin.ProximalSettings(1e-14, 0.0, 1)
    contacts.append(contact)

    def accelerations(at: np.ndarray) -> np.ndarray:
        own = model.createData()
        found = pin.StdVec_RigidConstraintData()
        found.append(contact.createData())
        pin.initConstraintDynamics(model, own, contacts, found)
        return pin.constraintDynamics(model, own, at, v, tau, contacts, found, settings).copy()

    found = pin.StdVec_RigidConstraintData()
    found.append(contact.createData())
    pin.initConstraintDynamics(model, data, contacts, found)
    pin.constraintDynamics(model, data, q, v, tau, contacts, found, settings)
    pin.computeConstraintDynamicsDerivatives(model, data, contacts, found, settings)
    jacobian = pin.getConstraintJacobian(model, data, contact, found[0])
    kept = np.linalg.svd(jacobian)[2][np.linalg.matrix_rank(jacobian) :].T  # directions that keep the loop closed
    assert kept.shape[1] == model.nv - len(jacobian)
    h = 1e-5
    measured = np.array([(accelerations(q + h * d) - accelerations(q - h * d)) / (2 * h) for d in kept.T]).T
    off = np.abs(data.ddq_dq @ kept - measured).max() / max(np.abs(measured).max(), 1.0)
    assert (off < 1e-6) == right
