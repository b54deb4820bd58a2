"""Mechanisms as TOML files: everything is read, and what is wrong is told with its line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.ground.errors import ModelError
from fmilin.native.mechanism import (
    Actuator,
    Body,
    Force,
    Joint,
    JointForce,
    LineForce,
    Loop,
    MechanismDescription,
    Placement,
    PointSpring,
    Sensor,
    Skate,
    Torque,
    Wheel,
    schema,
)
from fmilin.native.mechanism.files import read_mechanism_file
from tests.native.mechanism.toml_text import toml_text

ROOT = Path(__file__).parents[3]

PENDULUM = """\
name = "pendulum"
gravity = [0, -9.81, 0]

[[body]]
name = "rod"
mass = 2
center = [0.5, 0, 0]
inertia = [0.0, 0.2, 0.2]

[[joint]]
name = "swing"
type = "revolute"
parent = "ground"
child = "rod"
position = 0.3
"""

EVERYTHING = MechanismDescription(
    'all "sorts"',
    [
        Body("cart", 3.0, (0.1, 0, 0.2), [[1.0, 0.1, 0.0], [0.1, 1.2, 0.0], [0.0, 0.0, 0.9]]),
        Body("frame", None),
        Body("rod", 1.5, inertia=(0.1, 0.1, 0.0)),
        Body("ball", 0.5, inertia=(0.1, 0.1, 0.1)),
        Body("screw", 0.5, inertia=(0.1, 0.1, 0.1)),
    ],
    [
        Joint("slide", "planar", "floor", "cart", second_axis=(0, 1, 0), position=(0.1, 0.2, 0.3), damping=(1, 2, 3)),
        Joint("neck", "fixed", "cart", "frame", Placement.from_rpy((0, 0, 1), (0.1, 0.2, 0.3))),
        Joint("hip", "universal", "frame", "rod", child_placement=Placement((0, 0, -0.5)), stiffness=(5, 6)),
        Joint("eye", "spherical", "rod", "ball", position=(1, 0.1, 0, 0), velocity=(0.1, 0.2, 0.3)),
        Joint("nut", "helical", "rod", "screw", axis=(1, 2, 2), pitch=0.01, rest=0.2, stiffness=3,
              names=("turn", "rate")),
    ],
    [Loop("strut", "rod", "floor", "ball", Placement((1, 0, 0)), length=1.5),
     Loop("pin", "universal", "cart", "screw", second_axis=(1, 0, 0), axis=(0, 0, 2))],
    wheels=[Wheel("tyre", "cart", (0, 0, 0.1), radius=0.3, tube=0.05)],
    skates=[Skate("blade", "cart", (0.1, 0, 0))],
    springs=[PointSpring("coil", "cart", "ball", (0, 0, 0.1), (0.1, 0, 0), 100.0, 0.5, 2.0)],
    inputs=[JointForce("drive", "slide", 2, 1.5), Force("push", "rod", (0, 0, 1), (0, 1, 0), "body"),
            Torque("twist", "ball"), LineForce("cylinder", "cart", "ball", (0, 0, 0.1), start=-2.0)],
    sensors=[*Sensor.three("tip", "accelerometer", "rod", (0, 0, 1)), Sensor("energy", "energy"),
             Sensor("lambda", "reaction", "strut"), Sensor("turned", "direction", "ball", pointer=(0, 1, 0))],
    gravity=(0, 0, -1.62),
    ground="floor",
    independent=("turn", "slide.x"),
)  # fmt: skip


def written(folder: Path, text: str, name: str = "mechanism.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(folder: Path, text: str) -> str:
    with pytest.raises(ModelError) as caught:
        read_mechanism_file(written(folder, text))
    message = str(caught.value)
    assert str(folder / "mechanism.toml") in message
    assert "\n" not in message
    return message


def test_a_pendulum(tmp_path: Path) -> None:
    read = read_mechanism_file(written(tmp_path, PENDULUM))[0]
    assert read == MechanismDescription(
        "pendulum",
        [Body("rod", 2.0, (0.5, 0, 0), (0, 0.2, 0.2))],
        [Joint("swing", "revolute", "ground", "rod", position=0.3)],
        gravity=(0, -9.81, 0),
    )


def test_a_mechanism_without_a_name_has_that_of_its_file(tmp_path: Path) -> None:
    path = written(tmp_path, PENDULUM.removeprefix('name = "pendulum"\n'), "swing.toml")
    assert read_mechanism_file(path)[0].name == "swing"


def assert_same(a: object, b: object) -> None:
    """The same to rounding: axes are normalized again when they are read."""
    assert type(a) is type(b)
    if dataclasses.is_dataclass(a):
        for f in dataclasses.fields(a):
            assert_same(getattr(a, f.name), getattr(b, f.name))
    elif isinstance(a, tuple) and isinstance(b, tuple):
        assert len(a) == len(b)
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    elif isinstance(a, float) and isinstance(b, float):
        assert a == pytest.approx(b, rel=1e-15, abs=1e-16)
    else:
        assert a == b


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    read = read_mechanism_file(written(tmp_path, toml_text(EVERYTHING)))[0]
    assert_same(read, EVERYTHING)


def test_ways_to_turn_a_frame(tmp_path: Path) -> None:
    half = np.sqrt(0.5)
    expected = Placement((1, 2, 3), ((0, -1, 0), (1, 0, 0), (0, 0, 1))).R
    for turned in (
        "rpy = [0, 0, 1.5707963267948966]",
        "angle = 1.5707963267948966",
        "axis = [0, 0, 2], angle = 1.5707963267948966",
        f"quaternion = [{half}, 0, 0, {half}]",
        "rotation = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]",
    ):
        text = PENDULUM + f"placement = {{position = [1, 2, 3], {turned}}}\n"
        placement = read_mechanism_file(written(tmp_path, text))[0].joints[0].placement
        np.testing.assert_allclose(placement.R, expected, atol=1e-15)
        assert placement.position == (1.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        ("mass = 2", "mas = 2", "Line 6: in the body 'rod', there is no key 'mas'; did you mean 'mass'?"),
        ("gravity", "gravty", "Line 2: there is no key 'gravty'; did you mean 'gravity'?"),
        ("[[body]]", "[[bodies]]", "there is no key 'bodies'; did you mean 'body'?"),
        ("mass = 2", "mass = 0", "line 4: The body 'rod' has a mass of 0 kg: a mass must be positive; a mere frame"),
        ("mass = 2", "mass = -1.5", "The body 'rod' has a mass of -1.5 kg"),
        ("mass = 2", 'mass = "2"', "Line 6: in the body 'rod', 'mass' should be a valid number, not '2'."),
        ("mass = 2", "mass = nan", "Line 6: in the body 'rod', 'mass' should be a finite number"),
        ("mass = 2\n", "", "line 4: The body 'rod' has no 'mass'"),
        ("mass = 2", "mass = 2\nmassless = true", "has a mass and is massless"),
        ("center = [0.5, 0, 0]", "center = [0.5, 0]", "Line 7: in the body 'rod', 'center' needs 3 numbers, not 2."),
        ("[0.0, 0.2, 0.2]", "[0.0, 0.2, 0.5]", "line 4: The body 'rod' cannot have this inertia"),
        ("[0.0, 0.2, 0.2]", "[0.0, 0.2]", "'inertia' must be 3 or 6 numbers, or 3 rows of 3"),
        ("[0.0, 0.2, 0.2]", "[[1, 2, 0], [0, 1, 0], [0, 0, 1]]", "not symmetric"),
        ('type = "revolute"', 'type = "hinge"', "Line 12: in the joint 'swing', 'type' should be 'revolute', 'pris"),
        ('type = "revolute"\n', "", "Line 10: in the joint 'swing', the key 'type' is missing."),
        ("position = 0.3", "position = [1, 2]", "line 10: The position of the joint 'swing' must be 1 finite"),
        ("position = 0.3", "axis = [0, 0, 0]", "line 10: The axis of the joint 'swing' must not be zero."),
        ("position = 0.3", "placement = {rpy = [1,2,3], angle = 2}", "turned twice, by 'rpy' and 'angle'"),
        ("position = 0.3", "placement = {axis = [1,2,3]}", "has an 'axis' but no 'angle'"),
        ("position = 0.3", "placement = {positon = [1,2,3]}",
         "Line 15: in the joint 'swing', there is no key 'positon'"),
        ('child = "rod"', 'child = "rode"', "('swing': line 10, 'rod': line 4): The mechanism 'pendulum' cannot be b"),
        ('child = "rod"', 'child = "rode"', "'rode' is not a body. Did you mean 'rod'"),
        ('parent = "ground"', 'parent = "rod"', "form a circle"),
        ("position = 0.3", '[[body]]\nname = "box"\nmass = 1', "The body 'box' is disconnected"),
        ("position = 0.3", '[[body]]\nname = "rod"\nmass = 1', "('rod': lines 4 and 15)"),
        ("position = 0.3", '[[joint]]\nname = "swing"\ntype = "fixed"\nparent = "rod"\nchild = "ground"',
         "'swing' is used"),
        ("position = 0.3", '[[joint]]\nname = "b"\ntype = "fixed"\nparent = "ground"\nchild = "rod"',
         "closes a circle"),
        ("position = 0.3", '[[input]]\nkind = "joint_force"\nname = "t"',
         "line 15: The joint_force 't' needs the key 'joint'"),
        ("position = 0.3", '[[input]]\nkind = "torque"\nname = "t"\njoint = "swing"',
         "The torque 't' has no key 'joint'"),
        ("position = 0.3", '[[input]]\nkind = "push"\nname = "t"',
         "Line 16: in the input 't', 'kind' should be 'joint_f"),
        ("position = 0.3", '[[sensor]]\nname = "t"\nquantity = "color"', "Line 17: in the sensor 't', 'quantity'"),
        ("position = 0.3", '[[sensor]]\nname = "t"\nquantity = "position"\nof = "rob"', "Did you mean 'rod'"),
        ("position = 0.3", '[[joint_setting]]\njoint = "swing"', "[[joint_setting]] is for joints of a URDF file"),
        ("position = 0.3", "[[spring]]\n", "Line 15: in [[spring]] number 1, the key 'name' is missing."),
        ("[0.0, 0.2, 0.2]", f"[0.0, 1{'0' * 400}, 0.2]", "line 4"),
        ("gravity = [0,", "gravity = [0 ,,", "is no TOML: "),
        ("gravity = [0,", "gravity = [nan,", "Line 2: 'gravity' should be a finite number, not nan."),
        ("[[joint]]", "[joint]", "Line 10: 'joint' should be a list of tables: write [[joint]], with two brackets."),
        ("mass = 2", "mass = true", "'mass' should be a valid number, not true."),
        ("mass = 2", f"mass = 1{'0' * 400}", "'mass' should be a valid number."),
        ("gravity", 'independent = ["swing.w"]\ngravity', "'swing.w': line 2"),
        ('name = "rod"', 'name = ""', "line 4: '' is no name for a body"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(wrong: str, right: str, said: str, tmp_path: Path) -> None:
    assert wrong in PENDULUM
    assert said in refused(tmp_path, PENDULUM.replace(wrong, right))


def test_several_problems_are_told_at_once(tmp_path: Path) -> None:
    text = PENDULUM.replace("center", "centre").replace("type", "kind")
    message = refused(tmp_path, text)
    assert "Line 7: in the body 'rod', there is no key 'centre'" in message
    assert "Line 10: in the joint 'swing', the key 'type' is missing." in message
    assert "Line 12: in the joint 'swing', there is no key 'kind'" in message


def test_a_missing_line_is_one_sentence_or_no_error_at_all(tmp_path: Path) -> None:
    lines = toml_text(EVERYTHING).splitlines()
    refusals = []
    for i in range(len(lines)):
        try:
            read_mechanism_file(written(tmp_path, "\n".join(lines[:i] + lines[i + 1 :])))
        except ModelError as error:
            refusals.append(str(error))
    assert len(refusals) > len(lines) / 3
    assert not any("\n" in refusal for refusal in refusals)


def test_files_that_describe_nothing(tmp_path: Path) -> None:
    assert "there is no [[body]] in it" in refused(tmp_path, "")
    assert "is no TOML" in refused(tmp_path, "<robot/>")
    assert "is wrong. Line 1: 'body' should be" in refused(tmp_path, "body = 1")
    with pytest.raises(ModelError, match=r"missing\.toml' cannot be read: No such file"):
        read_mechanism_file(tmp_path / "missing.toml")


@pytest.mark.parametrize(
    ("table", "part"),
    [
        (schema.BodyTable, Body),
        (schema.JointTable, Joint),
        (schema.LoopTable, Loop),
        (schema.WheelTable, Wheel),
        (schema.SkateTable, Skate),
        (schema.SpringTable, PointSpring),
        (schema.SensorTable, Sensor),
    ],
)
def test_the_schema_knows_every_field_and_its_default(table: type[schema.Table], part: type) -> None:
    known = {f.name: f.default for f in dataclasses.fields(part)}
    assert set(table.model_fields) - {"massless"} == set(known)
    for name, f in table.model_fields.items():
        if name in ("massless", "mass", "inertia", "names") or isinstance(f.default, schema.PlacementTable):
            continue
        default = tuple(f.default) if isinstance(f.default, list) else f.default
        expected = known[name]
        assert f.is_required() if expected is dataclasses.MISSING else default == expected, name


def test_inputs_in_the_schema_have_the_fields_of_all_kinds() -> None:
    fields = {f.name for kind in (JointForce, Force, Torque, LineForce, Actuator) for f in dataclasses.fields(kind)}
    assert set(schema.InputTable.model_fields) == fields | {"kind"}


IN_RADIANS = """
[[body]]
name = "crank"
mass = 1.0
center = [0.5, 0, 0]
inertia = [0, 0.1, 0.1]
[[joint]]
name = "a"
type = "revolute"
parent = "ground"
child = "crank"
placement = {{ rpy = [{right}, 0, 0] }}
position = {thirty}
velocity = {ten}
rest = {thirty}
stiffness = 3.0
[[body]]
name = "slide"
mass = 1.0
inertia = [0.1, 0.1, 0.1]
[[joint]]
name = "b"
type = "cylindrical"
parent = "crank"
child = "slide"
child_placement = {{ angle = {thirty}, axis = [1, 0, 0] }}
position = [{thirty}, 0.5]
velocity = [{ten}, 0.25]
[[body]]
name = "float"
mass = 1.0
inertia = [0.1, 0.1, 0.1]
[[joint]]
name = "c"
type = "free"
parent = "ground"
child = "float"
position = [1, 2, 3, 1, 0, 0, 0]
velocity = [1, 2, 3, {ten}, 0, {ten}]
[[body]]
name = "follower"
mass = 1.0
inertia = [0.1, 0.1, 0.1]
[[joint]]
name = "d"
type = "revolute"
parent = "ground"
child = "follower"
position = {sixty}
velocity = {ten}
[[coupling]]
name = "gear"
joint = "d"
leader = "a"
offset = {thirty}
"""


def test_angles_may_be_in_degrees(tmp_path: Path) -> None:
    """Angles and angular velocities change; lengths, quaternions and what is measured per angle do not."""
    degrees = {"thirty": 30.0, "sixty": 60.0, "right": 90.0, "ten": 10.0}
    radians = {name: float(np.deg2rad(value)) for name, value in degrees.items()}
    models = []
    for name, values, head in (("rad", radians, ""), ("deg", degrees, 'angle_unit = "deg"\n')):
        path = tmp_path / f"{name}.toml"
        path.write_text('name = "same"\n' + head + IN_RADIANS.format(**values))
        models.append(fl.load(path))
    one, other = (fl.linearize(model) for model in models)
    np.testing.assert_allclose(models[0].start.states, models[1].start.states, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(one.A, other.A, rtol=1e-12, atol=1e-12)
    (tmp_path / "bad.toml").write_text('angle_unit = "grad"\n' + IN_RADIANS.format(**degrees))
    with pytest.raises(ModelError, match=r"'angle_unit' should be 'rad' or 'deg', not 'grad'"):
        fl.load(tmp_path / "bad.toml")


def test_angles_beside_a_urdf_file_may_be_in_degrees(tmp_path: Path) -> None:
    links = "".join(
        f'<link name="{n}"><inertial><mass value="1"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for n in ("base", "one", "two")
    )
    joints = "".join(
        f'<joint name="{n}" type="{kind}"><parent link="{p}"/><child link="{c}"/><axis xyz="0 1 0"/></joint>'
        for n, kind, p, c in (("turn", "continuous", "base", "one"), ("push", "prismatic", "one", "two"))
    )
    (tmp_path / "arm.urdf").write_text(f'<robot name="arm">{links}{joints}</robot>')
    (tmp_path / "arm.fmilin.toml").write_text(
        'angle_unit = "deg"\n[[joint_setting]]\njoint = "turn"\nposition = 90\nvelocity = 180\n'
        '[[joint_setting]]\njoint = "push"\nposition = 0.5\nvelocity = 0.25\n'
    )
    assert fl.load(tmp_path / "arm.urdf").start.states == pytest.approx([np.pi / 2, 0.5, np.pi, 0.25])


def test_inputs_have_nominal_values(tmp_path: Path) -> None:
    text = """
[[body]]
name = "rod"
mass = 1.0
[[joint]]
name = "push"
type = "prismatic"
parent = "ground"
child = "rod"
[[input]]
kind = "joint_force"
name = "force"
joint = "push"
nominal = 5000
[[input]]
kind = "force"
name = "other"
body = "rod"
"""
    path = tmp_path / "rod.toml"
    path.write_text(text)
    model = fl.load(path)
    assert [signal.nominal for signal in model.inputs] == [5000.0, None]
    assert model.inputs.scales(model.start.inputs)[0] == 5000.0
    path.write_text(text.replace("5000", "-1"))
    with pytest.raises(ModelError, match=r"line 10: .*nominal value of the force 'force' must be positive, and is -1"):
        fl.load(path)
