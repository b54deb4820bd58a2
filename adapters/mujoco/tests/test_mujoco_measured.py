"""Which way linear models of trees come from, and that it changes nothing else."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from fmilin_mujoco.measured import WORTH, MeasuredEngine, MeasuredMechanism
from fmilin_mujoco.stated import MujocoModel

import fmilin as fl
from fmilin.errors import ModelError, UsageError
from fmilin.models.mechanism import Mechanism

MODELS = Path(__file__).parent / "models"
TREES = ("arm", "cart_pole", "quadrotor", "quadruped")
QUICKER = (WORTH, 1.0), (WORTH - 0.01, 1.0)
"""Seconds of mechanism and engine that lead to the engine, and that do not."""


def loaded(name: str, seconds: tuple[float, float]) -> MeasuredMechanism:
    model = fl.load(MODELS / f"{name}.xml")
    assert isinstance(model, MeasuredMechanism)
    model.engine.__dict__["seconds"] = seconds
    return model


@pytest.mark.parametrize("name", TREES)
def test_either_way_says_the_same_within_its_errors(name: str) -> None:
    engine, mechanism = (loaded(name, seconds) for seconds in QUICKER)
    values = {state: 0.1 for state in engine.states.names if state.endswith("lift.q")}
    one, other = (fl.linearize(m, fl.operating_point(m, values)) for m in (engine, mechanism))
    assert one.model.tool.endswith("derivatives by its engine, which were faster")
    assert other.model.tool.endswith("as a native mechanism")
    assert [str(w) for w in one.warnings] == [str(w) for w in other.warnings]
    for signals in ("states", "inputs", "outputs"):
        assert getattr(one, signals).names == getattr(other, signals).names
    for block in "ABCD":
        gap = np.abs(getattr(one, block) - getattr(other, block))
        allowed = getattr(one.errors, block) + getattr(other.errors, block)
        assert (gap <= allowed + 1e-14 * np.abs(getattr(other, block)).max(initial=1.0)).all(), block
    assert 1e-14 < one.accuracy.A < 1e-8


@pytest.mark.parametrize("name", ["finger", "gripper", "humanoid", "mobile", "quadrotor", "quadruped", "sprung_leg"])
@pytest.mark.parametrize("moving", [False, True])
def test_the_engine_states_what_its_differences_leave_out(name: str, moving: bool) -> None:
    """The mechanism's slopes are exact; the finger's tendon runs over levers of centimetres, which steps see bend."""
    engine = fl.load(f"mujoco:{MODELS / name}.xml")
    mechanism = fl.load(f"mujoco:{MODELS / name}.xml", options={"way": "mechanism"})
    kept = fl.linearize(engine)
    states = {k: v + moving * (0.3 if k.endswith(".v") else 0.02) for k, v in kept.point.states.items()}
    there = fl.operating_point(mechanism, {k: states[k] for k in kept.states.names if k in mechanism.states.names})
    values = dict(zip(mechanism.states.names, there.states, strict=True))
    point = fl.operating_point(engine, {k: values[k] for k in engine.states.names if k in values})
    one, other = (fl.linearize(m, p, independent=kept.states.names) for m, p in ((engine, point), (mechanism, there)))
    for block in "ABCD" if one.outputs.names == other.outputs.names else "AB":
        gap = np.abs(getattr(one, block) - getattr(other, block))
        allowed = getattr(one.errors, block) + getattr(other.errors, block)
        assert (gap <= allowed + 1e-14 * np.abs(getattr(other, block)).max(initial=1.0)).all(), block
    assert one.accuracy.A < 1e-7


def test_the_measure_is_taken_once_and_a_third_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by the engine's visits and, `slow` times as fast, by the mechanism's."""
    now, slow, asked = [0.0], [2.0], list[str]()
    for kind, name in ((Mechanism, "mechanism"), (MujocoModel, "engine")):

        def slopes(self: object, *at: object, own: object = kind.exact_slopes, name: str = name) -> object:
            asked.append(name)
            now[0] += slow[0] if name == "mechanism" else 1.0
            return own(self, *at)  # type: ignore[operator]

        monkeypatch.setattr(kind, "exact_slopes", slopes)
    monkeypatch.setattr(time, "process_time", lambda: now[0])
    for slow[0], way in ((2.0, "engine"), (1.2, "mechanism")):
        with fl.load(MODELS / "cart_pole.xml") as model:
            assert not asked  # a load measures nothing
            made_by = fl.linearize(model).model.tool
            assert ("by its engine" in made_by) == (way == "engine")
            assert asked[:6] == ["mechanism"] * 3 + ["engine"] * 3
            asked.clear()
            fl.linearize(model)
            assert set(asked) == {way} - {"engine"}  # not measured again
            asked.clear()


def test_what_the_engine_does_not_have_stays_with_the_mechanism() -> None:
    model = loaded("cart_pole", QUICKER[0])
    mass = next(name for name in model.parameters if name.endswith(".mass"))
    changed = model.with_parameters({mass: 2.0 * model.parameters[mass]})
    assert changed.engine.through is None
    assert fl.linearize(changed).model.tool.endswith("as a native mechanism")
    energy = model.with_interface(outputs=["kinetic_energy", "hinge.q"])
    lin = fl.linearize(energy)
    assert lin.outputs.names == ("kinetic_energy", "hinge.q")
    few = model.with_interface(inputs=[])
    assert fl.linearize(few).B.shape == (4, 0)
    at_limit = fl.linearize(model, fl.operating_point(model, {"slide": 1.0}))
    assert any("slide" in str(w) for w in at_limit.warnings)
    assert model.batches


@pytest.mark.parametrize("name", ["gripper", "sprung_leg"])
def test_loops_stay_with_the_mechanism(name: str) -> None:
    model = fl.load(MODELS / f"{name}.xml")
    assert isinstance(model, MeasuredMechanism)
    assert model.engine.through is None


CUTOFF = """<mujoco><worldbody><body><joint name='j' axis='0 1 0'/><geom size='.1' pos='0 0 .3'/></body></worldbody>
  <sensor><jointpos name='p' joint='j' cutoff='.2'/></sensor></mujoco>"""


def test_a_cutoff_keeps_the_native_way_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "scene.xml").write_text(CUTOFF)
    model = fl.load(tmp_path / "scene.xml")
    assert isinstance(model, MeasuredMechanism)
    assert model.engine.through is None  # the engine does not say what stands at the end of its range
    lin = fl.linearize(model, fl.operating_point(model, {"j.q": 0.3}))
    assert "These sensors are saturated at the end of their range: p." in [str(w) for w in lin.warnings]


def test_a_way_can_be_asked_for(tmp_path: Path) -> None:
    source = f"mujoco:{MODELS / 'cart_pole.xml'}"
    mechanism = fl.load(source, options={"way": "mechanism"})
    assert isinstance(mechanism.engine, MeasuredEngine)  # type: ignore[attr-defined]
    assert mechanism.engine.through is None  # type: ignore[attr-defined]
    assert isinstance(fl.load(source), MujocoModel)
    with pytest.raises(UsageError, match="'fast' is not a way to compute an MJCF model: use engine or mechanism"):
        fl.load(source, options={"way": "fast"})
    (tmp_path / "wet.xml").write_text(CUTOFF.replace("<mujoco>", "<mujoco><option density='1.2'/>"))
    with pytest.raises(
        ModelError, match=r"cannot be a native mechanism: it moves in a fluid .* Leave the option 'way'"
    ):
        fl.load(f"mujoco:{tmp_path / 'wet.xml'}", options={"way": "mechanism"})
