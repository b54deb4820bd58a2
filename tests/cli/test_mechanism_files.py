"""Mechanisms from files on the command line: what works, and one sentence for each thing that is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.systems import loader
from tests.cli.conftest import Run
from tests.models.mechanism.sdf_text import joint, link, model
from tests.models.mechanism.test_urdf_in_the_wild import PENDULUM
from tests.models.mechanism.toml_text import toml_text
from tests.systems.linkages import four_bar_mechanism

TREE = """\
<robot name="arm">
<link name="base"/>
<link name="upper"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
<inertia ixx="0.2" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.01"/></inertial></link>
<joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<dynamics friction="0.1"/></joint>
</robot>
"""


def edited(folder: Path, *changes: tuple[str, str]) -> Path:
    """The loader as a file, with changes."""
    text = toml_text(loader().description)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "loader.toml"
    path.write_text(text)
    return path


def line_of(path: Path, text: str) -> int:
    return next(i for i, line in enumerate(path.read_text().splitlines(), start=1) if text in line)


def test_a_mechanism_file_is_linearized(run: Run, tmp_path: Path) -> None:
    done = run("linearize", edited(tmp_path), "--independent", "lift.q,tilt.q", "--json")
    linear = json.loads(done.out)
    assert (done.status, linear["states"]) == (0, ["lift.q", "tilt.q", "lift.v", "tilt.v"])
    assert linear["point"]["states"]["boom.q"] == loader().start.states[0]


def test_other_commands_take_it_too(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "four_bar.toml"
    path.write_text(toml_text(four_bar_mechanism(damping=1.0).description))
    assert "four_bar_mechanism" in run("info", path).out
    trimmed = run("trim", path, "--set", "phi=2.1")
    assert trimmed.status == 0
    assert "2.234331" in trimmed.out
    assert run("simulate", path, "--set", "phi=2.1", "--stop-time", 0.2, "-o", "run.csv").status == 0
    assert Path("run.csv").read_text().startswith("time,rod0.q,coupler1.q,phi,")


def test_a_rough_first_guess_is_put_together(run: Run, tmp_path: Path) -> None:
    lift = f"position = [{float(loader().start.states[2])!r}]"
    done = run("linearize", edited(tmp_path, (lift, "position = 0.9")), "--json")
    assert json.loads(done.out)["point"]["states"]["lift.q"] == pytest.approx(loader().start.states[2], rel=1e-12)


def test_a_robot_with_its_file_beside_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_text(TREE)
    plain = json.loads(run("linearize", tmp_path / "arm.urdf", "--json").out)
    assert (plain["states"], plain["inputs"]) == (["shoulder.q", "shoulder.v"], ["shoulder.torque"])
    assert plain["A"][1][0] == pytest.approx(-2 * 9.81 * 0.5 / (0.2 + 2 * 0.25), rel=1e-12)
    assert any("dry friction of shoulder is left out" in w["message"] for w in plain["warnings"])
    (tmp_path / "arm.fmilin.toml").write_text('[[joint_setting]]\njoint = "shoulder"\ndamping = 0.7')
    damped = json.loads(run("linearize", tmp_path / "arm.urdf", "--json").out)
    assert damped["A"][1][1] == pytest.approx(-1.0, rel=1e-12)


def test_sdformat_with_a_floating_base_that_can_be_fixed(run: Run, tmp_path: Path) -> None:
    parts = link("base"), link("arm", center="0 0 -1"), joint("j", "revolute", "base", "arm", "1 0 0")
    path = tmp_path / "robot.sdf"
    path.write_text(model("<pose>0 0 1 0.1 0.2 0.3</pose>", *parts))
    assert len(fl.load(path).states) == 15
    done = run("linearize", str(path), "--fix-joint", "floating_base", "--json")
    assert (done.status, json.loads(done.out)["states"]) == (0, ["j.q", "j.v"])
    failed = run("linearize", str(path), "--fix-joint", "elbow")
    assert (failed.status, "'elbow' is not a joint of the SDFormat file" in failed.err) == (2, True)


@pytest.mark.parametrize(
    ("changes", "status", "said", "line"),
    [
        ([("mass = 1250.0", "mass = 0")], 3, "The body 'boom' has a mass of 0 kg: a mass must be positive", 5),
        ([("mass = 1250.0", "mass = -2.0")], 3, "has a mass of -2 kg", 5),
        ([("mass = 1250.0", "mas = 2.0")], 3, "there is no key 'mas'; did you mean 'mass'?", 7),
        ([("[450.0, 450.0, 900.0]", "[450.0, 400.0, 900.0]")], 3, "cannot have this inertia", 5),
        ([('name = "tilt_tube"', 'name = "lift_tube"')], 3, "The name 'lift_tube' is used for 2 bodies", None),
        ([('name = "tilt_pin"', 'name = "lift"')], 3, "The name 'lift' is used for 2 joints", None),
        ([('child = "crank"', 'child = "link"')], 3, "The body 'crank' is disconnected", None),
        ([('parent = "ground"\nchild = "boom"', 'parent = "bucket"\nchild = "boom"')], 3, "form a cycle", None),
        ([('parent = "ground"\nchild = "boom"', 'parent = "ground"\nchild = "link"')], 3, "closes a cycle in", None),
        ([('[[loop]]\nname = "I"', '[[loops]]\nname = "I"')], 3, "there is no key 'loops'; did you mean 'loop'?", None),
        ([("gravity", "gravety")], 3, "Line 2: there is no key 'gravety'; did you mean 'gravity'?", None),
        ([('type = "point_on_line"', 'type = "weld"')], 3, "'type' should be 'revolute', 'prismatic'", None),
        ([('quantity = "position"', 'quantity = "place"')], 3, "'quantity' should be 'position'", None),
        ([("[[body]]", "[[body]")], 3, "is not TOML", None),
    ],
)
def test_what_is_wrong_is_one_sentence_with_its_place(
    changes: list[tuple[str, str]], status: int, said: str, line: int | None, run: Run, tmp_path: Path
) -> None:
    path = edited(tmp_path, *changes)
    done = run("linearize", path)
    assert (done.status, done.is_one_paragraph()) == (status, True)
    assert said in done.err
    assert str(path) in done.err
    if "used for 2" in said:
        assert re.search(r"lines \d+ and \d+", done.err)
    if line is not None:
        assert f"line {line}" in done.err.lower()


def test_a_loop_that_cannot_close_has_status_4(run: Run, tmp_path: Path) -> None:
    placement = next(loop for loop in loader().description.loops if loop.name == "I").first_placement.position
    path = edited(tmp_path, (repr(list(placement)), "[9.0, 0.0, 0.0]"))
    done = run("linearize", path)
    assert (done.status, done.is_one_paragraph()) == (4, True)
    assert "cannot be closed while 'boom.q', 'bucket.q' keep their values: 'I' has a gap of" in done.err
    heading = line_of(path, 'name = "I"') - 1
    assert f"'I': line {heading}" in done.err


def test_redundant_loops_are_reported_and_not_fatal(run: Run, tmp_path: Path) -> None:
    plain = json.loads(run("linearize", edited(tmp_path), "--json").out)
    pins = [('type = "point_on_line"', 'type = "revolute"')] * 3
    pinned = json.loads(run("linearize", edited(tmp_path, *pins), "--json").out)
    assert any("9 of the 15 constraints" in w["message"] for w in pinned["warnings"])
    np.testing.assert_allclose(pinned["A"], plain["A"], atol=1e-10)


def test_a_mechanism_that_cannot_move_at_all(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "block.toml"
    path.write_text(
        '[[body]]\nname = "a"\nmass = 1\n[[joint]]\nname = "j"\ntype = "fixed"\nparent = "ground"\nchild = "a"\n'
    )
    done = run("linearize", path)
    assert done.status == 0
    assert "All joints are fixed" in done.out + done.err


def test_an_over_constrained_mechanism_has_no_states(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "locked.toml"
    path.write_text(
        '[[body]]\nname = "a"\nmass = 1\ninertia = [1, 1, 1]\n'
        '[[joint]]\nname = "j"\ntype = "revolute"\nparent = "ground"\nchild = "a"\n'
        '[[loop]]\nname = "l"\ntype = "fixed"\nfirst = "ground"\nsecond = "a"\n'
    )
    linear = json.loads(run("linearize", path, "--json").out)
    assert (linear["states"], linear["A"]) == ([], [])
    assert any("of the 6 constraints" in w["message"] for w in linear["warnings"])


def test_the_wrong_kind_of_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[[constraint]]\nexpression = "x"\n')
    done = run("linearize", tmp_path / "c.toml")
    assert (done.status, "Line 1: there is no key 'constraint'" in done.err) == (3, True)
    (tmp_path / "scene.urdf").write_text("<sdf/>")
    done = run("linearize", tmp_path / "scene.urdf")
    assert (done.status, "is <robot>, not <sdf>" in done.err) == (3, True)
    assert run("linearize", tmp_path / "missing.urdf").status == 3


def test_a_misspelled_state_is_told_with_the_nearest_names(run: Run, tmp_path: Path) -> None:
    done = run("linearize", edited(tmp_path), "--set", "boom.qq=0.1")
    assert (done.status, done.is_one_paragraph()) == (2, True)
    assert "'boom.qq' is not a state, input or parameter of the model. Did you mean 'boom.q'" in done.err


def test_parameters_are_listed_and_can_be_changed(run: Run, tmp_path: Path) -> None:
    path = edited(tmp_path)
    assert "boom.mass" in run("info", path).out
    lighter = json.loads(run("linearize", path, "--set", "boom.mass=1000", "--json").out)
    plain = json.loads(run("linearize", path, "--json").out)
    assert lighter["point"]["states"] == plain["point"]["states"]
    assert np.abs(np.array(lighter["B"]) - plain["B"]).max() > 1e-6
    done = run("linearize", path, "--set", "boom.mass=-3")
    assert (done.status, "a mass must be positive" in done.err) == (3, True)


def test_the_base_of_a_robot_floats_on_request(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_text(PENDULUM)
    held, floating = (json.loads(run("linearize", path, *more, "--json").out) for more in ((), ("--floating-base",)))
    assert (len(held["A"]), len(floating["A"])) == (2, 14)
    assert "floating_base.vx" in run("info", path, "--floating-base").out
    assert run("trim", path, "--floating-base").status != 0  # in free fall there is no rest


def test_a_robot_is_built_with_a_floating_base_on_request(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    path.write_text(PENDULUM)
    assert run("build", path, "--floating-base", "-o", tmp_path / "robot.fmu").status == 0
    assert len(json.loads(run("linearize", tmp_path / "robot.fmu", "--json").out)["A"]) == 14
    done = run("build", "fmilin.systems:four_bar", "--floating-base", "-o", tmp_path / "other.fmu")
    assert (done.status, (tmp_path / "other.fmu").exists()) == (2, False)
