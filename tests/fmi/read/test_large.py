"""Large descriptions: scanned, they say the same as when they are read as a whole, and read next to nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

import fmilin as fl
from fmilin.errors import ModelError, UnknownNameError, nearest_names
from fmilin.fmi.read import FmuModel
from fmilin.fmi.read.description import ModelDescription, Variable
from fmilin.fmi.read.large import Scanned, cut
from fmilin.fmi.read.layout import ScalarLayout
from fmilin.fmi.read.xml import parse_description
from tests.fmus.make import build, description_of, names_of

# Descriptions of FMI 1.0 are always read as a whole.
ZOO = [name for name in names_of(fmi1=False) if name != "half_a_library"]
FMI2, FMI3 = description_of("pendulum"), description_of("arrays3")


def whole_and_scanned(xml: str, monkeypatch: pytest.MonkeyPatch) -> tuple[ModelDescription, ModelDescription]:
    whole = parse_description(xml.encode(), "m.fmu")
    monkeypatch.setattr("fmilin.fmi.read.xml.MIN_SCANNED_BYTES", 0)
    return whole, parse_description(xml.encode(), "m.fmu")


def without_line(variable: Variable | None) -> object:
    return variable and repr(variable._replace(line=0))


@pytest.mark.parametrize("name", ZOO)
def test_scanned_descriptions_say_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    xml = description_of(name)
    whole, scanned = whole_and_scanned(xml, monkeypatch)
    assert isinstance(scanned.variables, Scanned)
    assert [without_line(v) for v in scanned.variables] == [without_line(v) for v in whole.variables]
    for a, b in ((whole.derivatives, scanned.derivatives), (whole.outputs, scanned.outputs)):
        assert [without_line(u.variable) for u in a] == [without_line(u.variable) for u in b]
    assert [without_line(v) for v in scanned.states] == [without_line(v) for v in whole.states]
    assert set(scanned.by_name) == set(whole.by_name)
    for name, variable in whole.by_name.items():
        assert without_line(scanned.by_name[name]) == without_line(variable)
    assert dict(scanned.float_names) == dict(whole.float_names)
    for causality in ("input", "output", "parameter", "structuralParameter", "independent"):
        actual = [v.name for v in scanned.variables.with_causality(causality)]
        assert actual == [v.name for v in whole.variables.with_causality(causality)]
        assert scanned.variables.number_with_causality(causality) == len(actual)
    assert [v.name for v in scanned.variables.with_dimensions()] == [v.name for v in whole.variables.with_dimensions()]
    layouts = ScalarLayout(whole), ScalarLayout(scanned)
    for part in ("states", "derivatives", "inputs", "outputs", "notes"):
        names = [[getattr(s, "name", s) for s in getattr(layout, part)] for layout in layouts]
        assert names[0] == names[1]


def many(number: int) -> str:
    extra = "".join(
        f'<ScalarVariable name="pipe[{i}].m" valueReference="{i + 100}" description="a &lt; b > c">'
        "<Real/></ScalarVariable>\n"
        for i in range(number)
    )
    return FMI2.replace("</ModelVariables>", extra + "</ModelVariables>")


def test_only_what_is_needed_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fmilin.fmi.read.xml.MIN_SCANNED_BYTES", 100_000)
    description = parse_description(many(20_000).encode(), "m.fmu")
    layout = ScalarLayout(description)
    assert len(layout.states) == 4
    assert isinstance(description.variables, Scanned)
    assert len(description.variables._cache) < 20
    actual = layout.find("pipe[19999].m")
    assert actual is not None
    assert actual.variable.description == "a < b > c"
    assert layout.find("pipe[20000].m") is None
    assert "pipe[7].m" in description.by_name
    assert len(description.variables._cache) < 25
    assert any("The description is large" in note for note in description.notes)


@pytest.mark.parametrize(
    "name", ["it's", 'quo"te', "a & b", "a < b > c", "größe θ", "two  blanks", "name=&quot;x&quot;", "`tick`", "q[1].x"]
)
@pytest.mark.parametrize("quote", ['"', "'"])
def test_odd_names_are_found(name: str, quote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from xml.sax.saxutils import escape

    written = escape(name, {'"': "&quot;", "'": "&apos;"})
    added = (
        f"<ScalarVariable name={quote}{written}{quote} valueReference='99'><Real/></ScalarVariable></ModelVariables>"
    )
    whole, scanned = whole_and_scanned(FMI2.replace("</ModelVariables>", added), monkeypatch)
    assert whole.by_name[name].reference == 99
    assert [v.name for v in scanned.variables][-1] == name
    assert scanned.by_name[name].reference == 99
    assert dict(scanned.float_names) == dict(whole.float_names)


def test_unusual_writing_of_causality_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    added = (
        "<ScalarVariable causality = 'input' name='odd' valueReference='98'><Real start='0'/></ScalarVariable>"
        '<ScalarVariable name="talk" valueReference="97" description="its causality is unknown">'
        '<Real quantity="causality"/></ScalarVariable></ModelVariables>'
    )
    whole, scanned = whole_and_scanned(FMI2.replace("</ModelVariables>", added), monkeypatch)
    for description in (whole, scanned):
        assert [v.name for v in description.variables.with_causality("input")][-1] == "odd"
        assert "talk" not in [v.name for v in description.variables.with_causality("input", "output")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<ModelVariables>", "<ModelVariables><!-- <ScalarVariable name='ghost'/> -->"),
        ("<ModelVariables>", "<ModelVariables><?tool <ScalarVariable name='ghost'/> ?>"),
        ('encoding="UTF-8"', 'encoding="ISO-8859-1"'),
        ('fmiVersion="2.0"', 'fmiVersion="7"'),
        ("<ModelVariables>", "<ModelVariables >"),
    ],
)
def test_texts_that_cannot_be_scanned_are_read_as_a_whole(old: str, new: str) -> None:
    assert old in FMI2
    assert cut(FMI2.replace(old, new).encode()) is None
    assert cut(FMI2.encode()) is not None


def test_an_element_that_is_malformed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fmilin.fmi.read.xml.MIN_SCANNED_BYTES", 0)
    broken = FMI3.replace('causality="input"', 'causality="input" causality="input"', 1)
    assert broken != FMI3
    with pytest.raises(ModelError, match=r"(?s)malformed in '<Float64 name=.*Attribute causality redefined"):
        ScalarLayout(parse_description(broken.encode(), "m.fmu"))


def test_a_large_model_is_linearized_without_reading_all_its_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmilin.fmi.read.xml.MIN_SCANNED_BYTES", 100_000)
    path = build("pendulum", tmp_path, xml=many(5_000))
    with fl.load(path, constraints=[]) as model:
        assert isinstance(model, FmuModel)
        fl.linearize(model)
        assert isinstance(model.description.variables, Scanned)
        assert len(model.description.variables._cache) < 30
        with pytest.raises(UnknownNameError, match=r"Did you mean 'pipe\[42\]\.m'"):
            model.with_interface(outputs=["pip[42].m"])
        assert len(model.description.variables._cache) < 30


def test_the_nearest_of_very_many_names_is_found() -> None:
    names = [f"plant.pipe[{i}].flow" for i in range(30_000)]
    assert nearest_names("plant.pip[77].flow", names)[0] == "plant.pipe[77].flow"
    assert nearest_names("nothing like it", names) == ()
