"""Where a model starts and what its actuators can do there: keyframes, limits, anchors, loops."""

from __future__ import annotations

import json
from pathlib import Path

import mujoco
import numpy as np
import pytest
from fmilin_mujoco.closing import start_of
from fmilin_mujoco.names import state_signals

import fmilin as fl
from fmilin.cli.main import main
from fmilin.errors import UnknownNameError, UsageError

ARM = """<mujoco><worldbody>
  <body name="upper"><joint name="j" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .4 0 0" size=".03"/>
  <body name="lower" pos=".4 0 0"><joint name="k" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
  <site name="hand" pos=".3 0 0"/></body></body><body name="target" mocap="true"><site name="t"/></body></worldbody>
  <actuator><position name="pj" joint="j" kp="100" kv="10" ctrlrange="-2 2" forcerange="-30 30"/>
  <position name="pk" joint="k" kp="100" kv="10" ctrlrange="0 1"/>
  <general name="f" joint="k" dyntype="filter" dynprm=".5" gainprm="3"/></actuator>
  <keyframe><key name="stand" qpos="-1 .5" ctrl="-1 .5 0"/>
  <key name="low" qpos="0.3 1" qvel="0.1 -0.2" act="0.4" ctrl=".3 1 .4" mpos="1 2 3"/></keyframe></mujoco>"""


def write(folder: Path, text: str) -> Path:
    (folder / "scene.xml").write_text(text)
    return folder / "scene.xml"


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    return write(tmp_path, ARM)


def test_a_keyframe_counts_whole(arm: Path) -> None:
    with fl.load(f"mujoco:{arm}", options={"keyframe": "low"}) as model:
        assert model.start.states.tolist() == [0.3, 1.0, 0.1, -0.2, 0.4]
        assert model.start.inputs.tolist() == [0.3, 1.0, 0.4]
        assert model.start_points == ("low", "stand")
    m = mujoco.MjModel.from_xml_path(str(arm))
    assert start_of(m, "low").mocap[0].tolist() == [[1, 2, 3]]
    assert state_signals(m, start_of(m)).starts.tolist() == [-1.0, 0.5, 0.0, 0.0, 0.0]


def test_of_several_keyframes_the_first_is_taken_and_said(arm: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with fl.load(arm) as model:
        assert model.start_points == ("stand", "low")
        assert "The model starts at the keyframe 'stand', one of 2 (stand, low)." in model.notes
    assert main(["info", str(arm), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["start_points"] == ["stand", "low"]
    assert main(["info", str(arm)]) == 0
    assert "Starts at    stand (taken), low" in capfd.readouterr().out


def test_home_goes_before_the_first(tmp_path: Path) -> None:
    with fl.load(write(tmp_path, ARM.replace('"low"', '"home"'))) as model:
        assert model.start_points == ("home", "stand")
        assert model.start.states[0] == 0.3


@pytest.mark.parametrize(
    ("keyframe", "error", "message"),
    [
        ("lo", UnknownNameError, r"'lo' is not a keyframe of the model\. Did you mean 'low'"),
        (3, UsageError, "'keyframe' must be the name of a keyframe, not 3"),
    ],
)
def test_wrong_keyframes_are_refused(arm: Path, keyframe: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fl.load(arm, options={"keyframe": keyframe})


def test_files_without_keyframes_have_none_to_ask_for(tmp_path: Path) -> None:
    text = "<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>"
    with pytest.raises(UsageError, match="There is no keyframe 'home': the model has no keyframes"):
        fl.load(write(tmp_path, text), options={"keyframe": "home"})
    (tmp_path / "a.toml").write_text("")
    with pytest.raises(UsageError, match=r"'.*a\.toml' is not an MJCF file: it has no keyframes"):
        fl.load(tmp_path / "a.toml", options={"keyframe": "home"})


def test_a_control_at_its_limit_has_the_slope_of_its_inner_side(arm: Path) -> None:
    with fl.load(f"mujoco:{arm}", options={"keyframe": "low"}) as model:
        at = fl.linearize(model)
        inside = fl.linearize(model, fl.operating_point(model, {"pk": 0.9}))
    assert pytest.approx(inside.B, rel=1e-8, abs=1e-8) == at.B
    assert "These controls are at a limit, and their columns are valid for inward changes: pk (1)." in map(
        str, at.warnings
    )
    assert not any("limit" in str(w) for w in inside.warnings)


def test_what_saturates_is_named_and_moves_nothing(arm: Path) -> None:
    with fl.load(f"mujoco:{arm}") as model:
        lin = fl.linearize(model, fl.operating_point(model, {"pj": 3.0, "pk": -0.5}))
    words = " ".join(map(str, lin.warnings))
    assert "pj (3 is outside -2 .. 2); pk (-0.5 is outside 0 .. 1)" in words
    assert "These actuators are saturated, so their controls have no effect: pj (force 30)" in words
    assert not lin.B[:, :2].any()
    assert lin.B[:, 2].any()


def test_a_muscle_at_rest_is_woken_at_its_own_pace(tmp_path: Path) -> None:
    muscle = '<muscle name="f" joint="k" lengthrange=".1 1" ctrllimited="true" ctrlrange="0 1"/>'
    text = ARM.replace('<general name="f" joint="k" dyntype="filter" dynprm=".5" gainprm="3"/>', muscle)
    with fl.load(f"mujoco:{write(tmp_path, text)}") as model:
        lin = fl.linearize(model)
    places = lin.states.index_of("f.act"), lin.inputs.index_of("f")
    assert lin.B[places] == pytest.approx(1 / (0.01 * 0.5), rel=1e-8)  # MuJoCo's time constants 0.01 and 0.04
    # one branch for both: the activation follows the control with the gain 1
    assert lin.A[places[0], places[0]] == pytest.approx(-1 / (0.01 * 0.5), rel=1e-8)
    assert any("branch of activation" in str(warning) and "0.08 s" in str(warning) for warning in lin.warnings)


def test_a_muscle_between_its_limits_has_one_branch_on_either_side(tmp_path: Path) -> None:
    muscle = '<muscle name="f" joint="k" lengthrange=".1 1" ctrllimited="true" ctrlrange="0 1"/>'
    text = ARM.replace('<general name="f" joint="k" dyntype="filter" dynprm=".5" gainprm="3"/>', muscle)
    with fl.load(f"mujoco:{write(tmp_path, text)}") as model:
        point = fl.operating_point(model, {"f.act": 0.2, "f": 0.2})
        for side in ("left", "right"):
            lin = fl.linearize(model, point, one_sided=side)
            places = lin.states.index_of("f.act"), lin.inputs.index_of("f")
            rate = lin.B[places]
            stretch = 0.5 + 1.5 * 0.2
            assert min(abs(rate - 1 / (0.01 * stretch)), abs(rate - stretch / 0.04)) < 1e-6
            assert lin.A[places[0], places[0]] == pytest.approx(-rate, rel=1e-8)


LOOPS = """<mujoco><worldbody><body name="a" quat="1 0 0 -1"><joint name="a" axis="1 0 0"/>
  <geom type="capsule" fromto="0 0 0 0 0.3 0" size=".01"/><body name="b" pos="0 0.3 0"><joint name="b" axis="1 0 0"/>
  <geom type="capsule" fromto="0 0 0 0 0 0.5" size=".01"/></body></body>
  <body name="c" pos="0.5 0 0" quat="1 0 0 -1"><joint name="c" axis="1 0 0"/>
  <geom type="capsule" fromto="0 0 0 0 0 0.4" size=".01"/></body></worldbody>
  <equality><connect name="pin" body1="b" body2="c" anchor="0 0.1 0.5"/></equality>
  <keyframe><key name="k" qpos="0.1 0.2 0.25" qvel="0 1 0"/></keyframe></mujoco>"""


@pytest.mark.parametrize("turn", ["1 0 0 -1", "1 0 0 0", "0.3 0.1 -0.7 0.2"])
def test_a_plane_loop_in_a_turned_frame_has_one_motion(tmp_path: Path, turn: str) -> None:
    """The row across the plane is nothing but rounding."""
    inside = LOOPS[LOOPS.index('<body name="a"') : LOOPS.index("</worldbody>")]
    turned = LOOPS.replace(inside, f'<body quat="{turn}">{inside}</body>').replace("<keyframe", "<!-- <keyframe")
    turned = turned.replace("</keyframe>", "</keyframe> -->").replace("<mujoco>", '<mujoco><option gravity="0 0 0"/>')
    with fl.load(f"mujoco:{write(tmp_path, turned)}") as model:
        point = fl.operating_point(model, {"a.v": 0.7}, project=True)
        assert len(fl.linearize(model).states) == len(fl.linearize(model, point).states) == 2


def test_a_keyframe_that_leaves_loops_open_is_closed(tmp_path: Path) -> None:
    with fl.load(f"mujoco:{write(tmp_path, LOOPS)}") as model:
        start = model.start
        assert np.abs(model.evaluate(0.0, start.states, start.inputs).residuals).max() < 1e-12
        assert np.abs(start.states[:3] - [0.1, 0.2, 0.25]).max() < 0.2
        assert any("positions were moved by up to" in note for note in model.notes)
        assert len(fl.linearize(model).states) == 2


FOOT = """<mujoco><worldbody><body name="leg" pos="0 0 1"><freejoint name="fly"/><geom size=".1" pos="0 0 -.2"/></body>
  </worldbody><equality>EQUALITY</equality>
  <keyframe><key name="stance" qpos="0.013 0 .98 1 .1 0 0"/></keyframe></mujoco>"""


@pytest.mark.parametrize(
    ("equality", "moved"),
    [
        ('<connect name="foot" body1="leg" anchor=".1 0 -1"/>', True),
        ('<connect name="foot" body1="world" body2="leg" anchor=".1 0 0"/>', True),
        ('<weld name="foot" body1="leg"/>', True),
        ('<weld name="foot" body1="world" body2="leg"/>', True),
        ('<weld name="foot" body1="leg" body2="world" relpose="0 0 -1 1 0 0 .5"/>', False),
    ],
)
def test_a_foot_is_held_where_the_keyframe_puts_it(tmp_path: Path, equality: str, moved: bool) -> None:
    with fl.load(f"mujoco:{write(tmp_path, FOOT.replace('EQUALITY', equality))}") as model:
        there = np.array([0.013, 0, 0.98, 1, 0.1, 0, 0])
        there[3:] /= np.linalg.norm(there[3:])
        start = model.start
        assert np.abs(model.evaluate(0.0, start.states, start.inputs).residuals).max() < 1e-12
        assert (np.abs(start.states[:7] - there).max() < 1e-12) == moved
        assert any("stay at their positions in the keyframe 'stance'" in note for note in model.notes) == moved


def test_keyframes_on_the_command_line(arm: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["linearize", f"mujoco:{arm}", "--keyframe", "low", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["point"]["states"]["k.q"] == 1.0
    assert main(["linearize", str(arm), "--keyframe", "lo"]) == 2
    assert "'lo' is not a keyframe of the model. Did you mean 'low'" in capfd.readouterr().err
