"""SSP files: what stands in them against the same connections in Python; what is wrong said with its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.fmi.write import build_fmu
from fmilin.models import Labels, OdeModel
from tests.command_line import main
from tests.composition.plants import oscillator_fmu
from tests.composition.ssp_files import (
    BINDING,
    FMU,
    IN,
    INVERTED,
    OUT,
    SET,
    SSD,
    component,
    connection,
    connector,
    files,
    oscillator_component,
    parameter,
    ssp,
    system,
    two,
)
from tests.fmus.make import build
from tests.shared import shared


def in_python(wires: list[object], parameters: Mapping[str, Mapping[str, float]] | None = None) -> fl.LinearModel:
    members = {n: fl.load(oscillator_fmu(), parameters=(parameters or {}).get(n)) for n in ("one", "two")}
    with fl.connect(members, wires) as model:  # type: ignore[arg-type]
        return fl.linearize(model)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_factors_and_offsets_of_connections(tmp_path: Path, version: str) -> None:
    change = '<ssc:LinearTransformation factor="-2.5" offset="0.25"/>'
    path = two(tmp_path, [connection("two.F", "one.px", change), connection("two.pv", "one.F")], version=version)
    with fl.load(path) as model:
        linear = fl.linearize(model)
        assert linear.method.derivatives == "exact"
        assert model.outputs.names == ("one.px", "one.pv", "two.px", "two.pv")
    expected = in_python([("one.px", "two.F", -2.5, 0.25), ("two.pv", "one.F")])
    np.testing.assert_array_equal(linear.A, expected.A)
    np.testing.assert_array_equal(linear.f0, expected.f0)
    assert linear.A[3, 0] == -2.5


def test_nested_systems_and_connectors_of_the_whole(tmp_path: Path) -> None:
    inner = system(
        "pair",
        [oscillator_component("one"), oscillator_component("two")],
        [connection("one.px", "two.F"), connection("push", "one.F"), connection("two.px", "place")],
        [connector("push", "input"), connector("place", "output")],
    )
    outer = system(
        "root",
        [inner, oscillator_component("three")],
        [connection("f", "pair.push"), connection("pair.place", "three.F"), connection("three.pv", "v")],
        [connector("f", "input"), connector("v", "output")],
    )
    with fl.load(ssp(tmp_path / "n.ssp", outer, files())) as model:
        assert (model.inputs.names, model.outputs.names) == (("f",), ("v",))
        assert model.states.names == ("pair.one.x", "pair.one.v", "pair.two.x", "pair.two.v", "three.x", "three.v")
        linear = fl.linearize(model)
    assert linear.A[3, 0] == linear.A[5, 2] == 1.0
    np.testing.assert_array_equal(linear.B[:, 0], [0, 1, 0, 0, 0, 0])


def test_units_on_the_way_are_converted_once(tmp_path: Path) -> None:
    source = shared("composition_turns.fmu", lambda p: build_fmu(_turner(), p))
    base = '<ssc:BaseUnit rad="1" factor="0.0628318530717958"/>'
    units = f'<ssd:Units><ssc:Unit name="percent_turn">{base}</ssc:Unit></ssd:Units>'
    inner = system(
        "inner",
        [component("a", "resources/t.fmu", [connector("angle", "output", "rad"), connector("u", "input", "deg")])],
        [connection("a.angle", "out"), connection("in", "a.u")],
        [connector("out", "output", "percent_turn"), connector("in", "input")],
    )
    outer = system("root", [inner], [connection("inner.out", "inner.in")])
    with fl.load(ssp(tmp_path / "u.ssp", outer, {"resources/t.fmu": source}, more=units)) as model:
        assert fl.linearize(model).A[0, 0] == pytest.approx(-1 + 180 / np.pi, rel=1e-12)
    suppressed = system("root", [inner], [connection("inner.out", "inner.in", "", 'suppressUnitConversion="true"')])
    with fl.load(ssp(tmp_path / "k.ssp", suppressed, {"resources/t.fmu": source}, more=units)) as model:
        assert fl.linearize(model).A[0, 0] == pytest.approx(-1 + 100 / (2 * np.pi), rel=1e-12)
    wrong = outer.replace('unit="percent_turn"', 'unit="kg"')
    with pytest.raises(
        fl.ModelError, match=r"SystemStructure\.ssd in 'w\.ssp', line \d+: the units do not fit, 'rad' and 'kg'"
    ):
        fl.load(ssp(tmp_path / "w.ssp", wrong, {"resources/t.fmu": source}))


def _turner() -> OdeModel:
    labels = Labels(units={"a": "rad", "u": "deg", "angle": "rad"})
    return OdeModel("turner", {"a": "u - a"}, inputs=["u"], outputs={"angle": "a"}, labels=labels, start={"a": 0.1})


def test_parameter_sets_and_mappings(tmp_path: Path) -> None:
    """Inline at a component, in a file at the system (which goes before), mapped with a factor."""
    own = BINDING.format(
        "", f"<ssd:ParameterValues>{SET.format(parameter('c', 7) + parameter('d', 0.5))}</ssd:ParameterValues>"
    )
    mapping = (
        "<ssd:ParameterMapping><ssm:ParameterMapping version='1.0'>"
        '<ssm:MappingEntry source="set.stiffness" target="one.c">'
        '<ssc:LinearTransformation factor="2"/></ssm:MappingEntry>'
        "</ssm:ParameterMapping></ssd:ParameterMapping>"
    )
    bound = BINDING.format('source="resources/p.ssv" prefix="set."', mapping)
    ssv = SET.format(parameter("stiffness", 4.5) + parameter("unused", 1)).replace(
        "<ssv:ParameterSet", '<ssv:ParameterSet xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues"'
    )
    elements = [oscillator_component("one", own), oscillator_component("two")]
    content = system("root", elements, [connection("one.px", "two.F")], more=bound)
    path = ssp(tmp_path / "p.ssp", content, files(p__ssv=ssv))
    expected = in_python([("one.px", "two.F")], {"one": {"c": 9.0, "d": 0.5}})
    with fl.load(path) as model:
        np.testing.assert_array_equal(fl.linearize(model).A, expected.A)
    with fl.load(path, parameters={"one.c": 11.0}) as model:
        assert fl.linearize(model).A[1, 0] == -11.0


def test_a_parameter_handed_down_by_a_connector(tmp_path: Path) -> None:
    one = component("one", FMU, [IN, *OUT, connector("c", "parameter")])
    values = f"<ssd:ParameterValues>{SET.format(parameter('stiffness', 3))}</ssd:ParameterValues>"
    content = system(
        "root",
        [one],
        [connection("stiffness", "one.c")],
        [connector("stiffness", "parameter")],
        BINDING.format("", values),
    )
    with fl.load(ssp(tmp_path / "c.ssp", content, files())) as model:
        assert fl.linearize(model).A[1, 0] == -3.0


def test_a_signal_dictionary_joins_what_refers_to_it(tmp_path: Path) -> None:
    dictionary = (
        '<ssd:SignalDictionaries><ssd:SignalDictionary name="bus"><ssb:SignalDictionary version="1.0">'
        '<ssb:DictionaryEntry name="place"><ssc:Real/></ssb:DictionaryEntry>'
        "</ssb:SignalDictionary></ssd:SignalDictionary></ssd:SignalDictionaries>"
    )
    reference = '<ssd:SignalDictionaryReference name="ref" dictionary="bus"/>'
    inner = system("inner", [reference, oscillator_component("two")], [connection("ref.place", "two.F")])
    outer = system(
        "root", [reference, oscillator_component("one"), inner], [connection("one.px", "ref.place")], (), dictionary
    )
    with fl.load(ssp(tmp_path / "d.ssp", outer, files())) as model:
        linear = fl.linearize(model)
    np.testing.assert_array_equal(linear.A, in_python([("one.px", "two.F")]).A)


def test_an_ssd_file_with_fmus_and_systems_beside_it(tmp_path: Path) -> None:
    import shutil

    shutil.copy(oscillator_fmu(), tmp_path / "osc.fmu")
    inner = system(
        "pair",
        [oscillator_component("one", source="osc.fmu"), oscillator_component("two", source="osc.fmu")],
        [connection("one.px", "two.F"), connection("f", "one.F")],
        [connector("f", "input")],
    )
    (tmp_path / "pair.ssd").write_text(SSD.format(version="1.0", name="pair", system=inner, more=""))
    outer = system(
        "root",
        [component("pair", "pair.ssd", [connector("f", "input")], attributes='type="application/x-ssp-definition"')],
        [],
    )
    (tmp_path / "outer.ssd").write_text(SSD.format(version="1.0", name="outer", system=outer, more=""))
    with fl.load(tmp_path / "outer.ssd") as model:
        assert model.states.names == ("pair.one.x", "pair.one.v", "pair.two.x", "pair.two.v")
        assert fl.linearize(model).A[3, 0] == 1.0


def test_an_archive_inside_the_archive(tmp_path: Path) -> None:
    """Two levels of it, against the same connections in one file; and an archive that contains itself."""
    inner = system(
        "pair",
        [oscillator_component("one"), oscillator_component("two")],
        [connection("one.px", "two.F"), connection("f", "one.F")],
        [connector("f", "input")],
    )
    ssp(tmp_path / "pair.ssp", inner, files())
    middle = system("middle", [component("pair", "parts/pair.ssp", [connector("f", "input")])], [])
    ssp(tmp_path / "middle.ssp", middle, {"parts/pair.ssp": tmp_path / "pair.ssp"})
    package = 'type="application/x-ssp-package"'
    outer = system("root", [component("middle", "resources/middle.ssp", [], attributes=package)], [])
    path = ssp(tmp_path / "outer.ssp", outer, {"resources/middle.ssp": tmp_path / "middle.ssp"})
    with fl.load(path) as model:
        assert model.states.names[2:] == ("middle.pair.two.x", "middle.pair.two.v")
        np.testing.assert_array_equal(fl.linearize(model).A, in_python([("one.px", "two.F")]).A)
    out = system("root", [component("one", "../../osc.fmu", [])], [])
    ssp(tmp_path / "out.ssp", out, {})
    around = system("root", [component("inner", "a/out.ssp", [])], [])
    with pytest.raises(fl.ModelError, match="lies outside of the archive"):
        fl.load(ssp(tmp_path / "around.ssp", around, {"a/out.ssp": tmp_path / "out.ssp", "osc.fmu": oscillator_fmu()}))


def test_elements_of_arrays_by_their_indices(tmp_path: Path) -> None:
    """x_i' = -k_i x_i + x_(i+1) + i u_1 and y = [[x_1, x_2], [u_1, u_2]]: y[1,2] of one is u[1] of the other."""
    source = "resources/arrays3.fmu"
    own = [connector("u", "input", kind_of_number="Float64"), connector("y", "output", kind_of_number="Float64")]
    wire = connection("one.y", "two.u", attributes='startIndices="1 2" endIndices="1"')
    content = system("root", [component(n, source, own) for n in ("one", "two")], [wire])
    with fl.load(ssp(tmp_path / "a.ssp", content, {source: build("arrays3", tmp_path)}, version="2.0")) as model:
        linear = fl.linearize(model)
    np.testing.assert_allclose(linear.A[3:, :3], np.outer([1.0, 2.0, 3.0], [0.0, 1.0, 0.0]), atol=1e-12)
    assert "two.u[2]" in linear.inputs.names
    assert "two.u[1]" not in linear.inputs.names


GEARS = """<ssd:Enumerations><ssc:Enumeration name="Gear"><ssc:Item name="low" value="1"/>
    <ssc:Item name="high" value="3"/></ssc:Enumeration></ssd:Enumerations>"""
REVERSED = """<ssc:EnumerationMappingTransformation><ssc:MapEntry source="low" target="high"/>
    <ssc:MapEntry source="high" target="low"/></ssc:EnumerationMappingTransformation>"""


def of_kind(name: str, kind: str, number: str) -> str:
    return connector(name, kind, kind_of_number=number).replace("Enumeration/>", 'Enumeration name="Gear"/>')


@pytest.mark.parametrize(
    ("start", "wires", "slope"),
    [
        (1.0, [], -1.0),
        (1.0, [connection("one.engaged", "two.on")], -1.0),
        (0.0, [connection("one.engaged", "two.on")], 0.0),
        (1.0, [connection("one.engaged", "two.on", INVERTED)], 0.0),
        (3.0, [connection("one.level", "two.gear")], -3.0),
        (3.0, [connection("one.level", "two.gear", REVERSED)], -1.0),
        (1.0, [connection("one.level", "two.gear", REVERSED)], -3.0),
    ],
)
def test_values_that_are_no_real_numbers_are_held(tmp_path: Path, start: float, wires: list[str], slope: float) -> None:
    """x' = u - gear x while engaged: what the other gearbox tells at its start decides about A."""
    fmu = build("gearbox", tmp_path)
    own = [of_kind("on", "input", "Boolean"), of_kind("gear", "input", "Enumeration")]
    own += [of_kind("engaged", "output", "Boolean"), of_kind("level", "output", "Enumeration")]
    bound = BINDING.format("", f"<ssd:ParameterValues>{SET.format(parameter('x', start))}</ssd:ParameterValues>")
    source = "resources/gearbox.fmu"  # the one that is fed stands first in the file
    path = ssp(
        tmp_path / "g.ssp",
        system("root", [component("two", source, own), component("one", source, own, bound)], wires),
        {source: fmu},
        more=GEARS,
    )
    with fl.load(path) as model:
        assert model.states.names == ("two.x", "one.x")
        assert fl.linearize(model).A[0, 0] == pytest.approx(slope, abs=1e-9)
        held = [note for note in model.notes if "no real number" in note]
        assert len(held) == len(wires)
        assert all("is held at" in note for note in held)


def test_held_values_that_nothing_tells(tmp_path: Path) -> None:
    fmu = {"resources/gearbox.fmu": build("gearbox", tmp_path)}
    own = [of_kind("on", "input", "Boolean"), of_kind("gear", "input", "Enumeration")]
    box = component("box", "resources/gearbox.fmu", own)
    outside = [of_kind("gear", "input", "Enumeration")]
    path = ssp(tmp_path / "a.ssp", system("root", [box], [connection("gear", "box.gear")], outside), fmu, more=GEARS)
    with fl.load(path) as model:
        assert any("'box.gear' keeps its start value" in note for note in model.notes)
        assert fl.linearize(model).A[0, 0] == pytest.approx(-1.0, abs=1e-9)
    table = REVERSED.replace("low", "second").replace("high", "third")
    other = component("other", "resources/gearbox.fmu", [of_kind("level", "output", "Enumeration")])
    path = ssp(
        tmp_path / "b.ssp",
        system("root", [box, other], [connection("other.level", "box.gear", table)]),
        fmu,
        more=GEARS,
    )
    with pytest.raises(fl.ModelError, match=r"no entry for 'low'.*It has: second, third"):
        fl.load(path)


def test_commands(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    change = '<ssc:LinearTransformation factor="2"/>'
    path = two(tmp_path, [connection("one.px", "two.F", change)])
    assert main(["info", str(path)]) == 0
    assert "two.F   times 2" in " ".join(capfd.readouterr().out.split()).replace("two.F times", "two.F   times")
    assert main(["info", str(path), "--json"]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert printed["connections"] == [{"source": "one.px", "target": "two.F", "factor": 2.0, "offset": 0.0}]
    assert printed["components"]["one"]["source"] == FMU
    assert main(["linearize", str(path), "--json", "--set", "one.c=4", "--set", "two.x=0.5"]) == 0
    linear = json.loads(capfd.readouterr().out)
    assert linear["A"][1][0] == -4.0
    assert linear["point"]["states"]["two.x"] == 0.5
    assert main(["linearize", str(path), "--set", "three.c=4"]) == 2
    assert "'three.c' is not" in capfd.readouterr().err
    assert main(["linearize", str(path), "--set", "two.F=4"]) == 2
    assert "'two.F' cannot be set: a connection feeds it" in capfd.readouterr().err
    assert main(["linearize", str(tmp_path / "none.ssp")]) == 3
    damaged = two(tmp_path, [connection("one.px", "two.G")])
    assert main(["linearize", str(damaged)]) == 3
    assert "'two' has no connector 'G'" in capfd.readouterr().err


def test_outputs_of_components_are_targets(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A spring c holds F = c x; a parameter that is fixed is set, what comes out is trimmed to."""
    path = two(tmp_path, [connection("one.px", "two.F")])
    fixed = ["--fix", "one.px=0.3,one.c=4", "--free", "one.F"]
    assert main(["trim", str(path), *fixed, "--json"]) == 0
    point = json.loads(capfd.readouterr().out)
    assert point["inputs"]["one.F"] == pytest.approx(1.2, rel=1e-12)
    assert main(["linearize", str(path), "--trim", *fixed, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["A"][1][0] == -4.0
    assert main(["trim", str(path), "--fix", "one.pz=0.3", "--free", "one.F"]) == 2
    assert "Did you mean 'one.px'" in capfd.readouterr().err
