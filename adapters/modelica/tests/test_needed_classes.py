"""Which files of a library are read for a model, and that the model is the same as with all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("rumoca", reason="the Modelica compiler rumoca has no wheel for this platform")

from fmilin_modelica import front_end
from fmilin_modelica.needed_classes import find_needed_files
from fmilin_modelica.sources import source_of

import fmilin as fl
from fmilin.errors import ModelError

FILES = {
    "Plant/package.mo": "package Plant\n  import Laws = Plant.Equations;\nend Plant;\n",
    "Plant/Equations/package.mo": "within Plant;\npackage Equations\nend Equations;\n",
    "Plant/Equations/decay.mo": (
        "within Plant.Equations;\nfunction decay\n  input Real x;\n  output Real y;\n"
        "algorithm\n  y := -3*x;\nend decay;\n"
    ),
    "Plant/Equations/growth.mo": "within Plant.Equations;\nfunction growth\nend growth;\n",
    "Plant/Bases/package.mo": "within Plant;\npackage Bases\nend Bases;\n",
    "Plant/Bases/Speeds/package.mo": "within Plant.Bases;\npackage Speeds\nend Speeds;\n",
    "Plant/Bases/Speeds/Rate.mo": "within Plant.Bases.Speeds;\ntype Rate = Real(unit = \"m/s\");\n",
    "Plant/Fast/package.mo": "within Plant;\npackage Fast\n  extends .Plant.Bases.Speeds;\nend Fast;\n",
    "Plant/Fast/Tank.mo": (
        "within Plant.Fast;\nmodel Tank\n  Real x(start = 1);\n  Rate v;\n"
        "equation\n  der(x) = v;\n  v = Laws.decay(x);\nend Tank;\n"
    ),
    "Plant/Unused.mo": "within Plant;\nmodel Unused\n  Real x;\nequation\n  this is no Modelica;\nend Unused;\n",
}  # fmt: skip


@pytest.fixture
def plant(tmp_path: Path, fresh_environment) -> Path:
    for place, text in FILES.items():
        file = tmp_path / "libraries" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "libraries"


def test_names_lead_through_imports_packages_around_and_packages_that_are_inherited(plant):
    files = find_needed_files([str(plant / "Plant")], "", "Plant.Fast.Tank")
    assert set(files) == set(FILES) - {"Plant/Equations/growth.mo", "Plant/Unused.mo"}
    assert files["Plant/Fast/Tank.mo"] == plant / "Plant" / "Fast" / "Tank.mo"


def test_a_class_that_is_not_needed_is_not_read(plant):
    linear = fl.linearize(fl.load("modelica:Plant.Fast.Tank", options={"library": [plant]}))
    assert linear.A.tolist() == [[-3.0]]


def test_what_is_missing_is_said_of_the_whole_library(plant):
    """Neither a file with a syntax error is in the way, nor a folder that is not a package."""
    (plant / "Plant" / "Drafts").mkdir()
    (plant / "Plant" / "Drafts" / "Draft.mo").write_text("model Draft end Draft;")
    with pytest.raises(ModelError, match=r"`Plant\.Fast\.Tub` does not exist. Available libraries: Plant"):
        fl.load("modelica:Plant.Fast.Tub", options={"library": [plant]})


def test_a_package_is_not_a_model(plant):
    with pytest.raises(ModelError, match=r"'Plant\.Fast' is a package, not a model"):
        fl.load("modelica:Plant.Fast", options={"library": [plant]})


def test_files_with_syntax_errors_are_left_out_with_a_note(plant, monkeypatch):
    monkeypatch.setattr(
        front_end, "find_needed_files", lambda roots, *_: {"Plant/package.mo": Path(roots[0]) / "package.mo"}
    )
    model = fl.load("modelica:Plant.Fast.Tank", options={"library": [plant]})
    assert fl.linearize(model).A.tolist() == [[-3.0]]
    assert any("left out: Plant/Unused.mo." in note for note in model.notes)


def test_a_library_that_changes_is_flattened_again(plant):
    source = "modelica:Plant.Fast.Tank"
    fl.load(source, options={"library": [plant]})
    decay = plant / "Plant" / "Equations" / "decay.mo"
    decay.write_text(decay.read_text().replace("-3", "-5"))
    assert fl.linearize(fl.load(source, options={"library": [plant]})).A.tolist() == [[-5.0]]


def test_a_model_of_the_standard_library_is_that_of_the_whole_library(standard_library, monkeypatch):
    name = "Modelica.Mechanics.MultiBody.Examples.Elementary.DoublePendulum"
    source = source_of(None, name, {"library": [standard_library]})
    few = front_end.fresh(source)
    assert len(find_needed_files(source.roots, "", source.model)) < 500  # of 2,556
    monkeypatch.setattr(front_end, "find_needed_files", lambda *_: {})
    assert without_numbers(few) == without_numbers(front_end.fresh(source))


def without_numbers(content):
    """Return a flattened model without the numbers by which the front end calls files and classes."""
    if isinstance(content, dict):
        return {key: without_numbers(value) for key, value in content.items() if key not in ("source", "def_id")}
    return [without_numbers(value) for value in content] if isinstance(content, list) else content
