"""Mechanisms as TOML files: everything is read, and what is wrong is told with its line."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import ModelError
from fmilin.models.mechanism import Body, Joint, MechanismDescription, Placement, schema
from fmilin.models.mechanism.mechanism_description import INPUTS, PARTS
from fmilin.models.mechanism.mechanism_model import read_mechanism_file
from tests.models.mechanism.described import EVERYTHING, PENDULUM, refused, written
from tests.models.mechanism.toml_text import toml_text

ROOT = Path(__file__).parents[3]


def test_a_pendulum(tmp_path: Path) -> None:
    read = read_mechanism_file(written(tmp_path / "pendulum.toml", PENDULUM))[0]
    assert read == MechanismDescription(
        "pendulum",
        [Body("rod", 2.0, (0.5, 0, 0), (0, 0.2, 0.2))],
        [Joint("swing", "revolute", "ground", "rod", position=0.3)],
        gravity=(0, -9.81, 0),
    )


def test_a_mechanism_without_a_name_has_that_of_its_file(tmp_path: Path) -> None:
    path = written(tmp_path / "swing.toml", PENDULUM.removeprefix('name = "pendulum"\n'))
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
    read = read_mechanism_file(written(tmp_path / "mechanism.toml", toml_text(EVERYTHING)))[0]
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
        placement = read_mechanism_file(written(tmp_path / "mechanism.toml", text))[0].joints[0].placement
        np.testing.assert_allclose(placement.R, expected, atol=1e-15)
        assert placement.position == (1.0, 2.0, 3.0)


def test_several_problems_are_told_at_once(tmp_path: Path) -> None:
    text = PENDULUM.replace("center", "centre").replace("type", "kind")
    message = refused(tmp_path / "mechanism.toml", text)
    assert "Line 7: in the body 'rod', there is no key 'centre'" in message
    assert "Line 10: in the joint 'swing', the key 'type' is missing." in message
    assert "Line 12: in the joint 'swing', there is no key 'kind'" in message


def test_files_that_describe_nothing(tmp_path: Path) -> None:
    assert "there is no [[body]] in it" in refused(tmp_path / "mechanism.toml", "")
    assert "is not TOML" in refused(tmp_path / "mechanism.toml", "<robot/>")
    assert "is wrong. Line 1: 'body' should be" in refused(tmp_path / "mechanism.toml", "body = 1")


KINDS = {part.kind: part for part in PARTS.values()} | dict(INPUTS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_knows_every_field_and_its_default(kind: str) -> None:
    table = schema.INPUT_TABLES.get(kind) or schema.TABLES[kind]
    known = {f.name: f.default for f in dataclasses.fields(KINDS[kind])}
    assert set(table.model_fields) - {"massless", "kind"} == set(known)
    for name, f in table.model_fields.items():
        if name in ("massless", "mass", "kind") or isinstance(f.default, schema.PlacementTable):
            continue
        default = tuple(f.default) if isinstance(f.default, list) else f.default
        expected = known[name]
        assert f.is_required() if expected is dataclasses.MISSING else default == expected, name


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
    with pytest.raises(ModelError, match=r"line 10: .*nominal value of the joint force 'force' must be positive"):
        fl.load(path)
