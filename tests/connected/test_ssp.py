"""SSP files: what stands in them against the same connections in Python; what is wrong said with its place."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.cli.main import main
from fmilin.connected.ssp.opening import open_ssp
from fmilin.fmi.read.archive import FmuOptions
from fmilin.fmi.write import build_fmu
from fmilin.native.declaration import Labels
from fmilin.native.ode import OdeModel
from tests.connected.plants import oscillator_fmu
from tests.connected.ssp_files import SSD, component, connection, connector, ssp, system
from tests.fmus.make import build
from tests.shared import shared

IN, OUT = connector("F", "input"), [connector("px", "output"), connector("pv", "output")]
FMU = "resources/osc.fmu"


def oscillator_component(name: str, more: str = "", source: str = FMU) -> str:
    return component(name, source, [IN, *OUT], more)


def files(**more: Path | str) -> dict[str, Path | str]:
    return {FMU: oscillator_fmu(), **{f"resources/{n.replace('__', '.')}": f for n, f in more.items()}}


def two(tmp_path: Path, connections: list[str], **options: object) -> Path:
    elements = [oscillator_component("one"), oscillator_component("two")]
    return ssp(tmp_path / "two.ssp", system("root", elements, connections), files(), **options)  # type: ignore[arg-type]


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


SET = '<ssv:ParameterSet version="1.0" name="p"><ssv:Parameters>{}</ssv:Parameters></ssv:ParameterSet>'
BINDING = "<ssd:ParameterBindings><ssd:ParameterBinding {}>{}</ssd:ParameterBinding></ssd:ParameterBindings>"


def parameter(name: str, value: object, kind: str = "Real") -> str:
    return f'<ssv:Parameter name="{name}"><ssv:{kind} value="{value}"/></ssv:Parameter>'


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


def test_systems_that_contain_each_other_are_refused(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        content = system("root", [component("inner", f"{other}.ssd", [])], [])
        (tmp_path / f"{name}.ssd").write_text(SSD.format(version="1.0", name=name, system=content, more=""))
    with pytest.raises(fl.ModelError, match=r"component 'inner'.*circle, 'a\.ssd' -> 'b\.ssd' -> 'a\.ssd'"):
        fl.load(tmp_path / "a.ssd")


def test_archives_that_contain_each_other_are_refused(tmp_path: Path) -> None:
    """They lie beside each other: an archive that is named and not inside is looked for there."""
    for name, other in (("a", "b"), ("b", "a"), ("alone", "alone")):
        ssp(tmp_path / f"{name}.ssp", system("root", [component("inner", f"{other}.ssp", [])], []), {})
    with pytest.raises(fl.ModelError, match=r"^'a\.ssp', .*circle, 'a\.ssp' -> 'b\.ssp' -> 'a\.ssp'\. Take one"):
        fl.load(tmp_path / "a.ssp")
    with pytest.raises(fl.ModelError, match=r"^'alone\.ssp', .*circle, 'alone\.ssp' -> 'alone\.ssp'\. Take one"):
        fl.load(tmp_path / "alone.ssp")


INVERTED = """<ssc:BooleanMappingTransformation><ssc:MapEntry source="true" target="false"/>
    <ssc:MapEntry source="false" target="true"/></ssc:BooleanMappingTransformation>"""

CASES = [
    ([connection("one.px", "three.F")], "line 12: there is no element 'three'. There are: one, two"),
    ([connection("one.px", "two.G")], "line 12: 'two' has no connector 'G'. It has: F, px, pv"),
    ([connection("one.px", "two.pv")], r"line 12: the connection joins two sources, 'one\.px' and 'two\.pv'"),
    (
        [connection("one.px", "two.F"), connection("one.pv", "two.F")],
        r"line 13: 'two\.F' is fed twice, by 'one\.px' and by 'one\.pv'",
    ),
    (
        [connection("one.px", "two.F", "<ssc:BooleanMappingTransformation/>")],
        "line 12: the BooleanMappingTransformation has no MapEntry",
    ),
    (
        [connection("one.px", "two.F", INVERTED)],
        "line 12: the connection maps values of 'one.px', which is a real number, by a table",
    ),
    ([connection("one.px", "two.F", "<ssc:OddTransformation/>")], "line 12: a OddTransformation is not known"),
    (
        [connection("one.px", "two.F", '<ssc:LinearTransformation factor="big"/>')],
        "line 12: factor='big' of .* is no finite",
    ),
]


@pytest.mark.parametrize(("connections", "words"), CASES)
def test_wrong_connections_are_told_with_their_line(tmp_path: Path, connections: list[str], words: str) -> None:
    with pytest.raises(fl.ModelError, match=words):
        fl.load(two(tmp_path, connections))


def test_damaged_missing_and_unsupported(tmp_path: Path) -> None:
    def refused(content: str, words: str, suppressed: Mapping[str, Path | str] | None = None, **more: str) -> None:
        with pytest.raises(fl.ModelError, match=words):
            fl.load(ssp(tmp_path / "x.ssp", content, files() if suppressed is None else suppressed, **more))

    good = system("root", [oscillator_component("one")], [])
    refused(good, r"component 'one': the file 'resources/osc\.fmu' is missing in 'x\.ssp'", {})
    refused(good, "In the member 'one': .*is no FMU", {FMU: "no zip"})
    refused(good, "SSP version '3.0' is not known", version="3.0")
    refused(system("root", [], []), "contains no component")
    refused("<?xml version='1.0'?><a>", r"SystemStructure\.ssd in 'x\.ssp' is malformed")
    refused("<?xml version='1.0'?><a/>", "line 1: its root element is 'a', not 'SystemStructureDescription'")
    bomb = "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"
    refused(bomb, "document type with definitions of its own")
    refused(system("root", [component("one", "http://example.org/a.fmu", [])], []), "lies outside of the archive")
    refused(system("root", [component("one", "../a.fmu", [])], []), "leads out of the archive")
    refused(
        system("root", [component("one", "a.xyz", [], attributes='type="application/x-other"')], []),
        "its type 'application/x-other'",
    )
    refused(system("root", [component("one", "inner.ssp", [])], []), "component 'one': the file 'inner.ssp' is missing")
    neighbours = {"inner.ssp": "no zip"}
    refused(system("root", [component("one", "inner.ssp", [])], []), "is no SSP file: it is no zip archive", neighbours)
    binding = BINDING.format('source="resources/none.ssv"', "")
    refused(
        system("root", [oscillator_component("one", binding)], []),
        r"line \d+: the file 'resources/none\.ssv' is missing",
    )
    values = f"<ssd:ParameterValues>{SET.format(parameter('c', 'much'))}</ssd:ParameterValues>"
    refused(system("root", [oscillator_component("one", BINDING.format("", values))], []), "value='much'")
    (tmp_path / "y.ssp").write_bytes(b"no zip")
    with pytest.raises(fl.ModelError, match="is no SSP file: it is no zip archive"):
        fl.load(tmp_path / "y.ssp")
    with zipfile.ZipFile(tmp_path / "z.ssp", "w") as archive:
        archive.writestr("a.txt", "")
    with pytest.raises(fl.ModelError, match=r"'z\.ssp' contains no SystemStructure\.ssd"):
        fl.load(tmp_path / "z.ssp")
    with pytest.raises(fl.ModelError, match="There is no file"):
        fl.load(tmp_path / "none.ssp")


def test_an_archive_is_unpacked_as_safely_as_an_fmu(tmp_path: Path) -> None:
    path = ssp(tmp_path / "s.ssp", system("root", [oscillator_component("one")], []), {**files(), "../evil": "x"})
    with pytest.raises(fl.ModelError, match=r"'\.\./evil' leads out of the archive\. An SSP file has no need"):
        fl.load(path)
    from fmilin.fmi.read.archive import FmuOptions

    path = ssp(
        tmp_path / "b.ssp", system("root", [oscillator_component("one")], []), {**files(), "resources/big": "0" * 10**6}
    )
    with pytest.raises(fl.ModelError, match="was not unpacked"):
        fl.load(path, fmu=FmuOptions(most_bytes=1e6))


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
    with pytest.raises(fl.ModelError, match="leads out of the archive"):
        fl.load(ssp(tmp_path / "around.ssp", around, {"a/out.ssp": tmp_path / "out.ssp", "osc.fmu": oscillator_fmu()}))


def test_systems_are_bounded_in_breadth(tmp_path: Path) -> None:
    def ten(source: str) -> str:
        inside = [component(f"e{i}", source, [], attributes='type="application/x-ssp-definition"') for i in range(10)]
        return SSD.format(version="1.0", name="demo", system=system("level", inside, []), more="")

    last = SSD.format(version="1.0", name="demo", system=system("last", [oscillator_component("m")], []), more="")
    levels: dict[str, Path | str] = {f"{i}.ssd": ten(f"{i + 1}.ssd") for i in range(1, 5)}
    path = ssp(tmp_path / "broad.ssp", ten("1.ssd"), {**files(), **levels, "5.ssd": last})
    with pytest.raises(fl.ModelError, match="more than 10000 components and systems when all its files are put in"):
        fl.load(path)


def test_archives_in_each_other_share_one_limit(tmp_path: Path) -> None:
    package = 'type="application/x-ssp-package"'
    inner = ssp(
        tmp_path / "0.ssp", system("root", [oscillator_component("m")], []), files(resources__fill="x" * 90_000)
    )
    for i in range(1, 4):
        elements = [component("e", "resources/in.ssp", [], attributes=package)]
        more: dict[str, Path | str] = {"resources/in.ssp": inner, "resources/fill": "x" * 90_000}
        inner = ssp(tmp_path / f"{i}.ssp", system("root", elements, []), more)
    fmu = zipfile.ZipFile(oscillator_fmu())
    alone = inner.stat().st_size + 90_000 + sum(m.file_size for m in fmu.infolist())
    one, all_of_them = FmuOptions(most_bytes=1.5 * alone), FmuOptions(most_bytes=8 * alone)
    with pytest.raises(fl.ModelError, match=r"with what was unpacked before, would take .* --unpack-limit"):
        open_ssp(inner, lambda path, *_: fl.load(path), options=one)
    open_ssp(inner, lambda path, *_: fl.load(path), options=all_of_them).close()


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
    assert "'two.F' cannot be set: it is fed by a connection" in capfd.readouterr().err
    assert main(["linearize", str(tmp_path / "none.ssp")]) == 3
    damaged = two(tmp_path, [connection("one.px", "two.G")])
    assert main(["linearize", str(damaged)]) == 3
    assert "'two' has no connector 'G'" in capfd.readouterr().err


def test_a_member_that_crashes_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from tests.fmus.make import build

    parts = [oscillator_component("good"), component("bad", "resources/c.fmu", [])]
    path = ssp(tmp_path / "c.ssp", system("root", parts, []), files(c__fmu=build("crashes", tmp_path)))
    assert main(["linearize", str(path)]) == 6
    assert "in fmi2GetDerivatives of the member 'bad'" in capfd.readouterr().err
