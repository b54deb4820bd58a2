"""MJCF files as native mechanisms: beside the engine, and beside differences of the engine on the manifold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from fmilin_mujoco import MujocoEngine
from fmilin_mujoco.choice import native_mechanism
from fmilin_mujoco.left_out import NotUnderstoodError
from fmilin_mujoco.names import quaternion_places

import fmilin as fl
from fmilin.adapters import EngineModel
from fmilin.cli.main import main
from fmilin.models.mechanism import Body, Mechanism

MODELS = Path(__file__).parent / "models"
FILES = sorted(path.stem for path in MODELS.glob("*.xml"))
STEP = 2e-5


def engine_of(name: str) -> MujocoEngine:
    return MujocoEngine(mujoco.MjModel.from_xml_path(str(MODELS / f"{name}.xml")), name)


def places_of(engine: MujocoEngine, lin: fl.LinearModel) -> list[int]:
    """Return where the outputs of a linear model stand in (rates, quantities, states) of the engine."""
    n, nz = len(engine.states), len(engine.quantities)
    known = {name: n + i for i, name in enumerate(engine.quantities.names)}
    known |= {name: n + nz + i for i, name in enumerate(engine.states.names)}
    return [known[name] for name in lin.outputs.names]


class Differences:
    """Central differences of the engine's own rates and sensors between points that satisfy its constraints.

    The other states follow from the kept ones by Newton's method with the Jacobian of the start, itself a difference.
    """

    def __init__(self, engine: MujocoEngine, kept: list[int]) -> None:
        self.engine, self.kept = engine, kept
        self.x0, self.u0 = engine.states.starts, engine.inputs.starts
        self.quaternions = [q for _, q, _ in quaternion_places(engine.compiled)]
        self.gaps = [i for i, name in enumerate(engine.quantities.names) if ".gap[" in name or ".rate[" in name]
        steps = 1e-6 * np.eye(len(self.x0))
        J = np.array([(self.residuals(self.x0 + h) - self.residuals(self.x0 - h)) / 2e-6 for h in steps]).T
        self.pseudo_inverse = np.linalg.pinv(J, rcond=1e-7)
        self.start = self.residuals(self.x0)

    def residuals(self, x: np.ndarray) -> np.ndarray:
        quantities = self.engine.visit(0.0, x, self.u0)[1]
        lengths = [np.sum(x[q : q + 4] ** 2) - 1 for q in self.quaternions]
        return np.concatenate((quantities[self.gaps], lengths, x[self.kept] - self.x0[self.kept]))

    def at(self, j: int, h: float) -> np.ndarray:
        """Return rates, quantities and states with the kept state number j moved by h; beyond them inputs."""
        x, u = self.x0.copy(), self.u0.copy()
        if j >= len(self.kept):
            u[j - len(self.kept)] += h
        else:
            wanted = np.zeros(len(self.start))
            wanted[len(wanted) - len(self.kept) + j] = h
            for _ in range(5):
                x = x - self.pseudo_inverse @ (self.residuals(x) - wanted)
        return np.concatenate((*self.engine.visit(0.0, x, u), x))

    def slopes(self) -> np.ndarray:
        count = len(self.kept) + len(self.u0)
        return np.array([(self.at(j, STEP) - self.at(j, -STEP)) / (2 * STEP) for j in range(count)]).T


def gap_between(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.abs(ours - theirs).max(initial=0.0) / max(1.0, np.abs(theirs).max(initial=0.0)))


@pytest.mark.parametrize("name", FILES)
def test_native_engine_and_differences_of_the_engine_agree(name: str) -> None:
    engine = engine_of(name)
    mechanism = native_mechanism(engine)
    native = fl.linearize(mechanism)
    assert mechanism.states.names == engine.states.names
    assert mechanism.start.states == pytest.approx(engine.states.starts, abs=1e-12)
    through = fl.linearize(EngineModel(engine), independent=native.states.names)
    for block in "ABCD":
        assert gap_between(getattr(native, block), getattr(through, block)) < 1e-8, block
    kept = [engine.states.index_of(state) for state in native.states.names]
    J, p = Differences(engine, kept).slopes(), len(kept)
    outputs = J[places_of(engine, native)]
    theirs = J[kept][:, :p], J[kept][:, p:], outputs[:, :p], outputs[:, p:]
    for lin in (native, through):
        for block, difference in zip("ABCD", theirs, strict=True):
            assert gap_between(getattr(lin, block), difference) < 1e-6, block


def test_a_file_goes_to_the_mechanism_and_by_name_to_the_engine(capfd: pytest.CaptureFixture[str]) -> None:
    path = MODELS / "cart_pole.xml"
    with fl.load(path) as native, fl.load(f"mujoco:{path}") as engine:
        assert isinstance(native, Mechanism)
        assert isinstance(engine, EngineModel)
        assert native.info.tool == f"MuJoCo {mujoco.__version__}, as a native mechanism"
        assert native.outputs.names == engine.outputs.names == ("slider.q", "hinge.q")
    assert main(["info", str(path), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["tool"].endswith("as a native mechanism")


def test_controls_at_their_limits_are_open_inwards_in_the_mechanism_too() -> None:
    path = MODELS / "cart_pole.xml"
    with fl.load(path) as native, fl.load(f"mujoco:{path}") as engine:
        for value in (1.0, 1.5):
            ours, theirs = (fl.linearize(m, fl.operating_point(m, {"slide": value})) for m in (native, engine))
            assert gap_between(ours.B, theirs.B) < 1e-9
            assert any("slide" in str(w) for w in ours.warnings)
            assert any("slide" in str(w) for w in theirs.warnings)
            assert ours.B.any() == (value == 1.0)


def test_sites_can_be_held_in_the_mechanism(tmp_path: Path) -> None:
    text = (MODELS / "quadruped.xml").read_text().replace(' qvel=".1 0 .2 .3 .1 -.2 1 0 1 .5 0 .3"', "")
    (tmp_path / "scene.xml").write_text(text)
    with fl.load(tmp_path / "scene.xml", options={"hold": ["FL", "RR"]}) as model:
        assert isinstance(model, Mechanism)
        assert len(fl.linearize(model).states) == 12  # of 24


def scene(inside: str = "", after: str = "", option: str = "") -> str:
    body = f"<joint name='j' axis='0 1 0'/><geom name='g' size='.1' pos='0 0 .3'/><site name='s' pos='0 0 .3'/>{inside}"
    site = "<site name='o' pos='0 0 1'/>"
    return f"<mujoco>{option}<worldbody>{site}<body name='b'>{body}</body></worldbody>{after}</mujoco>"


SPHERE = "<spatial name='t'><site site='o'/><geom geom='g'/><site site='s'/></spatial>"
BALL = "<body name='c'><joint name='ball' type='ball' stiffness='1'/><geom size='.1' pos='0 0 .3'/></body>"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (scene(after="<actuator><muscle name='m' joint='j' lengthrange='.1 1'/></actuator>"), "'m' has the gain 'mus"),
        (scene(after=f"<tendon>{SPHERE}</tendon>"), "the tendon 't' wraps around a geom"),
        (scene(BALL), "the ball of the joint 'ball' has a spring"),
        (scene(option="<option density='1.2'/>"), r"it moves in a fluid \(density, viscosity\)"),
        (scene(option="<option><flag actuation='disable'/></option>"), "the option flag 'actuation' is off"),
        (scene(after="<actuator><adhesion name='a' body='b' ctrlrange='0 1'/></actuator>"), "'a' drives body"),
        (scene(after="<sensor><subtreecom name='com' body='b'/></sensor>"), "'com' is of the kind 'subtreecom'"),
        (scene(after="<sensor><framepos name='p' objtype='site' objname='s' reftype='site' refname='o'/></sensor>"),
         "'p' is measured in another frame"),
        (scene(after="<actuator><general name='a' joint='j' dyntype='filter' dynprm='1' actearly='true'/></actuator>"),
         "'a' acts one step early"),
    ],
)  # fmt: skip
def test_what_is_not_understood_goes_to_the_engine_with_the_reason(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "scene.xml").write_text(text)
    with fl.load(tmp_path / "scene.xml") as model:
        assert isinstance(model, EngineModel)
        (said,) = [note for note in model.notes if "not as a native mechanism: " in note]
    with pytest.raises(NotUnderstoodError, match=reason):
        native_mechanism(MujocoEngine(mujoco.MjModel.from_xml_string(text), "scene"))
    assert said.startswith("This model runs in MuJoCo's engine")


def test_a_cutoff_is_the_range_of_a_sensor() -> None:
    """Beyond the cutoff the engine shows the cutoff, too, and its derivative is zero."""
    sensors = "<jointpos name='p' joint='j' cutoff='.2'/><velocimeter name='v' site='s' cutoff='.3'/>"
    engine = MujocoEngine(mujoco.MjModel.from_xml_string(scene(after=f"<sensor>{sensors}</sensor>")), "scene")
    native, same = native_mechanism(engine), EngineModel(engine)
    for position, speed in ((0.1, 0.5), (0.4, 2.0), (-0.4, -2.0)):
        values = {"j.q": position, "j.v": speed}
        one, other = (fl.linearize(model, fl.operating_point(model, values)) for model in (native, same))
        places = [other.outputs.names.index(name) for name in one.outputs.names]
        shown, there = one.point.outputs, other.point.outputs
        assert list(shown.values()) == pytest.approx([there[name] for name in shown], abs=1e-12)
        np.testing.assert_allclose(one.C, other.C[places], rtol=0, atol=1e-7)
        assert (one.C[0] == 0).all() == (abs(position) > 0.2)


def test_a_mechanism_that_says_something_else_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    from fmilin_mujoco import native

    def heavier(self: Any, i: int) -> Any:
        body = original(self, i)
        return Body(body.name, body.mass * 1.001, body.center, body.J, any_inertia=True)

    original = native._Tree._body
    monkeypatch.setattr(native._Tree, "_body", heavier)
    with pytest.raises(NotUnderstoodError, match="the rates of the mechanism are not those of the engine"):
        native_mechanism(engine_of("cart_pole"))
