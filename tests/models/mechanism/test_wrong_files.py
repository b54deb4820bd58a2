"""Files that describe a mechanism wrongly, TOML or URDF: what is wrong is one sentence with the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from fmilin.errors import ModelError
from fmilin.models.mechanism.mechanism_model import read_mechanism_file
from tests.models.mechanism.described import ADDITIONS, ARM, EVERYTHING, PENDULUM, refusal, refused, written
from tests.models.mechanism.toml_text import toml_text

IN_TOML = [
    ("mass = 2", "mas = 2", "Line 6: in the body 'rod', there is no key 'mas'; did you mean 'mass'?"),
    ("gravity", "gravty", "Line 2: there is no key 'gravty'; did you mean 'gravity'?"),
    ("[[body]]", "[[bodies]]", "there is no key 'bodies'; did you mean 'body'?"),
    ("mass = 2", "mass = 0", "line 4: The body 'rod' has a mass of 0 kg: a mass must be positive; write"),
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
    ("position = 0.3", "axis = [0, 0, 0]", "line 10: The axis of the joint 'swing' must not be zero"),
    ("position = 0.3", "placement = {rpy = [1,2,3], angle = 2}", "turned twice, by 'rpy' and 'angle'"),
    ("position = 0.3", "placement = {axis = [1,2,3]}", "has an 'axis' but no 'angle'"),
    ("position = 0.3", "placement = {positon = [1,2,3]}",
     "Line 15: in the joint 'swing', there is no key 'positon'"),
    ('child = "rod"', 'child = "rode"', "('swing': line 10, 'rod': line 4): The mechanism 'pendulum' cannot be b"),
    ('child = "rod"', 'child = "rode"', "'rode' is not a body. Did you mean 'rod'"),
    ('parent = "ground"', 'parent = "rod"', "form a cycle"),
    ("position = 0.3", '[[body]]\nname = "box"\nmass = 1', "The body 'box' is disconnected"),
    ("position = 0.3", '[[body]]\nname = "rod"\nmass = 1', "('rod': lines 4 and 15)"),
    ("position = 0.3", '[[joint]]\nname = "swing"\ntype = "fixed"\nparent = "rod"\nchild = "ground"',
     "'swing' is used"),
    ("position = 0.3", '[[joint]]\nname = "b"\ntype = "fixed"\nparent = "ground"\nchild = "rod"',
     "closes a cycle"),
    ("position = 0.3", '[[input]]\nkind = "joint_force"\nname = "t"',
     "Line 15: in the input 't', the key 'joint' is missing."),
    ("position = 0.3", '[[input]]\nkind = "torque"\nname = "t"\njoint = "swing"',
     "Line 18: in the input 't', there is no key 'joint'"),
    ("position = 0.3", '[[input]]\nkind = "push"\nname = "t"',
     "Line 16: in the input 't', 'kind' should be 'joint_f"),
    ("position = 0.3", '[[sensor]]\nname = "t"\nquantity = "color"', "Line 17: in the sensor 't', 'quantity'"),
    ("position = 0.3", '[[sensor]]\nname = "t"\nquantity = "position"\nof = "rob"', "Did you mean 'rod'"),
    ("position = 0.3", '[[joint_setting]]\njoint = "swing"', "[[joint_setting]] is for joints of a URDF"),
    ("position = 0.3", "[[spring]]\n", "Line 15: in [[spring]] number 1, the key 'name' is missing."),
    ("[0.0, 0.2, 0.2]", f"[0.0, 1{'0' * 400}, 0.2]", "line 4"),
    ("gravity = [0,", "gravity = [0 ,,", "is not TOML: "),
    ("gravity = [0,", "gravity = [nan,", "Line 2: 'gravity' should be a finite number, not nan."),
    ("[[joint]]", "[joint]", "Line 10: 'joint' should be a list of tables: write [[joint]], with two brackets."),
    ("mass = 2", "mass = true", "'mass' should be a valid number, not true."),
    ("mass = 2", f"mass = 1{'0' * 400}", "'mass' should be a valid number."),
    ("gravity", 'independent = ["swing.w"]\ngravity', "'swing.w': line 2"),
    ('name = "rod"', 'name = ""', "line 4: '' is not a name for a body"),
]  # fmt: skip
"""What of the pendulum is written wrongly, as what, and what is said of it."""

IN_URDF = [
    ('<mass value="2"/>', '<mass value="-3"/>',
     "line 7: the link 'upper' has a mass of -3 kg: a mass must not be negative"),
    ('<mass value="2"/>', '<mass value="two"/>',
     "line 10, in <link> 'upper': 'value' of <mass> is not a number: 'two'"),
    ('<mass value="2"/>', '<mass value="nan"/>', "is not a number: 'nan'"),
    ('<mass value="2"/>', '<mass valu="2"/>', "<mass> needs the attribute 'value'"),
    ('<mass value="2"/>', "",
     "line 8, in <link> 'upper': <inertial> needs <mass> and <inertia>; <mass> is missing."),
    ('izz="0.4"', 'izz="-0.1"',
     "line 7: the link 'upper' has an inertia with the negative principal moment -0.1 kg"),
    ('izz="0.4"', "", "<inertia> needs the attribute 'izz'"),
    ('type="revolute"', 'type="hinge"', "line 21: the joint 'shoulder' is of the unknown type 'hinge'"),
    ('<axis xyz="0 2 0"/>', '<axis xyz="0 0 0"/>', "line 21: The axis of the joint 'shoulder' must not be zero"),
    ('<axis xyz="0 2 0"/>', '<axis xyz="0 1"/>', "'xyz' of <axis> holds three numbers, not '0 1'"),
    ('<child link="upper"/>', '<child link="upper"/><child link="lower"/>', "has <child> twice"),
    ('<axis xyz="0 2 0"/>', '<mimic joint="shoulder"/>',
     "The coupling 'shoulder.mimic' couples the joint 'shoulder' with itself"),
    ('<child link="upper"/>', '<child link="uper"/>',
     "line 21: 'uper' is not a link, in the joint 'shoulder'. Did"),
    ('<child link="upper"/>', "", "line 21: the joint 'shoulder' has no <child link='...'/>."),
    ('<parent link="base"/>', '<parent link="lower"/>', "('shoulder': line 21, 'weld': line 29, 'slide': line 34)"),
    ('<link name="flange"/>', '<link name="flange"/><link name="lost"/>', "'base' (line 4), 'lost' (line 14)"),
    ('<link name="flange"/>', '<link name="flange"/><link name="upper"/>', "('upper': lines 7 and 14)"),
    ('name="weld"', 'name="slide"', "('slide': lines 29 and 34): The mechanism 'arm' cannot be built: The name"),
    ('<joint name="slide" type="prismatic">', '<joint name="slide" type="planar"><dynamics damping="1"/>',
     "line 34: the joint 'slide' of type 'planar' has a damping"),
    ("<robot ", "<model ", "is not well-formed XML: "),
]  # fmt: skip
"""The same of the arm."""

IN_ADDITIONS = [
    (
        'joint = "slide"\nposition',
        'joint = "slid"\nposition',
        "line 4: 'slid' is not a joint of the URDF file. Did",
    ),
    ("position = 0.2", "position = [1, 2]", "line 4: The position of the joint 'slide' must be 1"),
    ('second = "lower"', 'second = "low"', "'arm.fmilin.toml' ('stay': line 11): The mechanism 'arm'"),
    ("length = 2.0", "lenght = 2.0", "in the loop 'stay', there is no key 'lenght'; did you mean 'length'?"),
    ("gravity", 'ground = "world"\ngravity', "line 1: the ground of 'arm.urdf' is its root link 'base'."),
    ("gravity", 'urdf = "x.urdf"\ngravity', "names a robot itself: remove 'urdf'"),
]
"""The same of the TOML file beside the arm."""


@pytest.mark.parametrize(
    ("file", "text", "wrong", "right", "said"),
    [("pendulum.toml", PENDULUM, *case) for case in IN_TOML] + [("arm.urdf", ARM, *case) for case in IN_URDF],
)
def test_what_is_wrong_is_told_with_its_line(
    file: str, text: str, wrong: str, right: str, said: str, tmp_path: Path
) -> None:
    assert wrong in text
    assert said in refused(tmp_path / file, text.replace(wrong, right))


@pytest.mark.parametrize(("wrong", "right", "said"), IN_ADDITIONS)
def test_what_is_wrong_in_the_file_beside(wrong: str, right: str, said: str, tmp_path: Path) -> None:
    assert wrong in ADDITIONS
    written(tmp_path / "arm.fmilin.toml", ADDITIONS.replace(wrong, right))
    message = refusal(written(tmp_path / "arm.urdf", ARM))
    assert said in message.replace(f"{tmp_path}/", "")
    assert "arm.fmilin.toml" in message


@pytest.mark.parametrize(
    ("file", "text", "needed"),
    [("everything.toml", toml_text(EVERYTHING), 1 / 3), ("arm.urdf", ARM, 1 / 2)],
    ids=["toml", "urdf"],
)
def test_a_missing_line_is_one_sentence_or_no_error_at_all(file: str, text: str, needed: float, tmp_path: Path) -> None:
    """At least this part of the lines is needed."""
    lines = text.splitlines()
    refusals = []
    for i in range(len(lines)):
        try:
            read_mechanism_file(written(tmp_path / file, "\n".join(lines[:i] + lines[i + 1 :])))
        except ModelError as error:
            refusals.append(str(error))
    assert len(refusals) > needed * len(lines)
    assert not any("\n" in refusal for refusal in refusals)


@pytest.mark.parametrize("suffix", ["toml", "urdf"])
def test_a_file_that_is_missing(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"missing.{suffix}"
    with pytest.raises(ModelError, match=rf"missing\.{suffix}' cannot be read: No such file"):
        read_mechanism_file(path)
