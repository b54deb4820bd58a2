"""Texts for an older version of a library: names as its script says, lines where they stand, a note, the same model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fmilin_modelica.conversions import find_conversions

import fmilin as fl

PACKAGE = """package Springs
  package Units
    type Stiffness = Real(unit = "N/m");
    package NonSI
      type Stiffness_cm = Real(unit = "N/cm");
    end NonSI;
  end Units;
  model Spring
    parameter Units.Stiffness stiffness = 1;
    Real s(start = 1, fixed = true), v(start = 0, fixed = true);
  equation
    der(s) = v;
    der(v) = -stiffness*s;
  end Spring;
  annotation (version = "2.1", conversion(noneFromVersion = "2.0",
    from(version = {"1.0", "1.1"}, script = "modelica://Springs/Scripts/from_1.mos")));
end Springs;
"""
SCRIPT = """// names
convertClass("Springs.SIunits", "Springs.Units");
convertClass("Springs.SIunits.Conversions.NonSIunits",
             "Springs.Units.NonSI")
convertClass({"Springs.Coil", "Springs.Leaf"}, "Springs.Spring");
convertElement({"Springs.Coil", "Springs.Leaf"}, {"c"}, {"stiffness"});
convertMessage("Springs.Gas", "Not converted.");
"""
MODEL = """model M "Springs.SIunits"
  import SI = Springs.SIunits;
  import Springs.SIunits;
  import Springs.SIunits.Conversions.NonSIunits;
  import Springs.SIunits.Conversions.*;
  SI.Stiffness a = 3; // Springs.Coil
  SI.Conversions.NonSIunits.Stiffness_cm b;
  SIunits.Stiffness d;
  NonSIunits.Stiffness_cm e;
  Springs.Coil coil(
    each c = 4, c2(c = 3));
  Other.Coil other(c = 1);
equation
  b = coil.c + other.c + x.coil.c;
  annotation (uses(Springs(version = "1.1")));
end M;
"""
CONVERTED = """model M "Springs.SIunits"
  import SI = Springs.Units;
  import SIunits = Springs.Units;
  import NonSIunits = Springs.Units.NonSI;
  import Springs.Units.Conversions.*;
  SI.Stiffness a = 3; // Springs.Coil
  Springs.Units.NonSI.Stiffness_cm b;
  SIunits.Stiffness d;
  NonSIunits.Stiffness_cm e;
  Springs.Spring coil(
    each stiffness = 4, c2(c = 3));
  Other.Coil other(c = 1);
equation
  b = coil.stiffness + other.c + x.coil.c;
  annotation (uses(Springs(version = "1.1")));
end M;
"""
OLD_LIBRARY = """package Plant
  import SI = Springs.SIunits;
  model Car
    parameter SI.Stiffness c = 9;
    extends Springs.Leaf(c = c);
  end Car;
  annotation (uses(Springs(version = "1.0")));
end Plant;
"""


@pytest.fixture
def libraries(tmp_path: Path) -> Path:
    """Return a folder with a library that has a script, and another one for its older version."""
    for place, text in {
        "Springs/package.mo": PACKAGE,
        "Springs/Scripts/from_1.mos": SCRIPT,
        "Plant.mo": OLD_LIBRARY,
    }.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text)
    return tmp_path


def test_names_become_those_that_the_script_says(libraries):
    converter = find_conversions([str(libraries / "Springs")], MODEL)
    assert converter.convert_text(MODEL) == CONVERTED
    (note,) = converter.describe()
    assert note.startswith("Written for Springs 1.1, read with Springs 2.1: Springs.SIunits is Springs.Units, ")
    assert "Springs.Coil is Springs.Spring, Springs.Coil.c is stiffness." in note


def test_texts_for_versions_without_a_script_stay(libraries):
    roots = [str(libraries / "Springs")]
    for version in ("2.1", "2.0", "0.9"):
        text = MODEL.replace('"1.1"', f'"{version}"')
        assert find_conversions(roots, text).convert_text(text) == text


def test_a_text_without_a_version_is_converted_where_it_names_what_is_not_there(libraries):
    roots = [str(libraries / "Springs")]
    text = MODEL.partition("  annotation")[0]
    assert find_conversions(roots, text).convert_text(text) == CONVERTED.partition("  annotation")[0]
    text = "model M Springs.Spring s; end M;"
    assert find_conversions(roots, text).convert_text(text) == text


def test_the_standard_library_is_converted_without_its_scripts(tmp_path):
    (tmp_path / "package.mo").write_text(
        'package Modelica annotation (version = "4.0.0", conversion(from(version = {"3.2.2", "3.2.3"},'
        ' script = "modelica://Modelica/Resources/Scripts/Conversion/from_3.mos"))); end Modelica;'
    )
    text = (
        "model M\n  Modelica.SIunits.Conversions.NonSIunits.Angle_deg a;\n"
        "  Modelica.Blocks.Sources.Sine s(freqHz = 1);\n"
        '  annotation (uses(Modelica(version = "3.2.3")));\nend M;\n'
    )
    written = find_conversions([str(tmp_path)], text).convert_text(text)
    assert "Modelica.Units.NonSI.Angle_deg a;" in written
    assert "Sine s(f = 1);" in written


def test_a_model_of_an_older_library_is_linearized_with_a_note(libraries, fresh_environment):
    pytest.importorskip("rumoca", reason="the Modelica compiler rumoca has no wheel for this platform")
    model = fl.load("modelica:Plant.Car", options={"library": [libraries]})
    np.testing.assert_allclose(sorted(fl.linearize(model).eigenvalues().imag), [-3.0, 3.0], rtol=1e-12)
    (note,) = (note for note in model.notes if note.startswith("Written for"))
    assert "Springs 1.0, read with Springs 2.1: Springs.SIunits is Springs.Units" in note
