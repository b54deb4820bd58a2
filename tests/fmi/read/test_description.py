from __future__ import annotations

import re
from pathlib import Path

import pytest

from fmilin.errors import ModelError, UsageError
from fmilin.fmi.read.description import ModelDescription
from fmilin.fmi.read.layout import ScalarLayout
from fmilin.fmi.read.xml import departures, parse_description
from tests.fmus.make import description_of, names_of


def described(name: str, *changes: tuple[str, str]) -> ModelDescription:
    xml = description_of(name)
    for old, new in changes:
        assert old in xml
        xml = xml.replace(old, new)
    return parse_description(xml.encode(), f"{name}.fmu")


def test_identity_and_start_time_are_read() -> None:
    description = described("pendulum")
    assert (description.model_name, description.token, description.tool) == ("Pendulum", "{pendulum}", "by hand")
    assert (description.fmi_version, description.start_time) == ("2.0", 0.25)
    assert description.interfaces == ("ModelExchange",)
    assert description.notes == ()


def test_states_follow_the_order_of_the_derivatives_not_of_the_variables() -> None:
    assert [v.name for v in described("pendulum").states] == ["pin.x", "pin.y", "pin.vx", "pin.vy"]


def test_unit_and_nominal_come_from_the_declared_type_where_the_variable_has_none() -> None:
    x = described("pendulum").by_name["pin.x"]
    assert (x.unit, x.nominal, x.description) == ("m", 0.5, "to the right")


def test_absent_dependencies_mean_everything_and_empty_ones_nothing() -> None:
    description = described("pendulum")
    assert description.outputs[0].dependencies is None
    assert description.outputs[1].dependencies == ()
    assert [v.name for v in description.derivatives[0].dependencies or ()] == ["pin.vx"]


def test_aliases_share_the_value_reference_among_reals_only() -> None:
    assert described("pendulum").float_names[0] == ("pin.x", "right")


@pytest.mark.parametrize(
    ("name", "flag", "expected"),
    [("pendulum", "providesDirectionalDerivative", True), ("arrays3", "providesDirectionalDerivatives", True),
     ("singular_flag3", "providesDirectionalDerivative", False), ("discards", "", False)],
)  # fmt: skip
def test_capability_flag_is_plural_in_fmi_3_only(name: str, flag: str, expected: bool) -> None:
    assert flag in description_of(name)
    assert described(name).directional_derivatives is expected


def test_flag_may_be_written_as_a_digit() -> None:
    assert described("pendulum", ('Derivative="true"', 'Derivative="1"')).directional_derivatives


def test_unusable_nominals_are_missing_and_noted_once() -> None:
    description = described("rate_is_state")
    assert [v.nominal for v in description.states] == [None, None]
    assert description.notes == ("'x', 'v', 'force': a nominal value that is not positive was treated as missing.",)


def test_alias_elements_are_names_of_the_same_variable() -> None:
    description = described("arrays3")
    assert description.by_name["position"] is description.by_name["x"]
    assert [v.name for v in description.variables].count("position") == 0


def test_dependencies_in_fmi_3_are_value_references() -> None:
    assert [v.name for v in described("arrays3").outputs[0].dependencies or ()] == ["x", "u"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('<Real start="2"/>', '<Real start="2" declaredType="NoSuchType"/>'),
        ('dependencies="3"', 'dependencies="300"'),
        ('dependencies="3"', 'dependencies="three"'),
    ],
)
def test_flaws_that_touch_no_state_are_tolerated_with_a_note(old: str, new: str) -> None:
    description = described("pendulum", (old, new))
    assert [v.name for v in description.states] == ["pin.x", "pin.y", "pin.vx", "pin.vy"]
    assert description.notes


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('<SimpleType name="Length">', '<SimpleType name="Length" vendor="x">'),
        ('guid="{pendulum}"', ""),
        ('<Real start="1"/>', '<Real start="1,0"/>'),
    ],
)
def test_departures_from_the_schema_that_touch_nothing_are_told_to_who_asks(old: str, new: str) -> None:
    text = description_of("pendulum").replace(old, new)
    assert text != description_of("pendulum")
    description = described("pendulum", (old, new))
    assert [v.name for v in description.states] == ["pin.x", "pin.y", "pin.vx", "pin.vy"]
    assert not description.notes
    assert departures(text.encode(), "pendulum.fmu")


def test_an_illegal_combination_of_causality_and_variability_is_tolerated() -> None:
    description = described(
        "pendulum", ('name="lambda" valueReference="11"', 'name="lambda" valueReference="11" causality="parameter"')
    )
    assert len(description.states) == 4


def test_a_variable_without_type_is_left_out_and_the_indices_stay_right() -> None:
    broken = 'name="time" valueReference="14" causality="independent" variability="continuous"><Real/>'
    description = described("pendulum", (broken, 'name="time" valueReference="14">'))
    assert [v.name for v in description.states] == ["pin.x", "pin.y", "pin.vx", "pin.vy"]
    assert any("'time': left out" in note for note in description.notes)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("pendulum", '<Unknown index="7"/>', '<Unknown index="70"/>', "lists variable no. 70, which does not exist"),
        ("pendulum", 'derivative="5"', "", r"'der\(pin.x\)' is listed as the derivative of no state"),
        ("pendulum", 'derivative="5"', 'derivative="18"', "which is not a Real"),
        ("pendulum", 'name="F" valueReference="8"', 'name="F"', "the input 'F' has no name, no type or no value"),
        ("arrays3", 'derivative="0"', "", "'rates' is listed as the derivative of no state"),
        ("arrays3", 'derivative="0"', 'derivative="9"', "which is not a float"),
        ("arrays3", 'Derivative valueReference="1"', 'Derivative valueReference="77"', "77, which does not exist"),
        ("arrays3", '<Dimension valueReference="9"/>', '<Dimension valueReference="8"/>', "a dimension of 'x'"),
        ("arrays3", 'name="u" valueReference="2"', 'name="u"', "the input 'u' has no name or no value reference"),
    ],
)
def test_flaws_that_touch_states_inputs_or_outputs_are_refused(name: str, old: str, new: str, message: str) -> None:
    with pytest.raises(ModelError, match=rf"line \d+: .*{message}") as caught:
        described(name, (old, new))
    assert caught.value.exit_status == 3


def test_states_and_derivatives_of_different_size_are_refused() -> None:
    rates = '<Float64 name="rates" valueReference="1" derivative="0"><Dimension valueReference="9"/>'
    description = described("arrays3", (rates, rates.replace('valueReference="9"/>', 'start="2"/>')))
    with pytest.raises(ModelError, match="has 3 states but 2 derivatives of states"):
        ScalarLayout(description)


def test_names_that_are_no_elements_of_an_array() -> None:
    layout = ScalarLayout(described("arrays3"))
    assert [layout.find(name) for name in ("x", "x[0]", "x[4]", "x[1,1]", "y[1]", "total[1]", "der(u[1])")] == [
        None
    ] * 7


def test_every_element_of_an_array_starts_at_its_own_value() -> None:
    layout = ScalarLayout(described("arrays3"))
    assert [layout.start(s) for s in layout.states] == [1.0, 2.0, 3.0]
    assert [layout.start(s) for s in layout.inputs] == [0.5, 0.25]
    assert layout.signals(layout.states).starts.tolist() == [1.0, 2.0, 3.0]


def test_one_start_value_serves_a_whole_array_and_a_missing_one_is_zero() -> None:
    one = ScalarLayout(described("arrays3", ('start="1 2 3"', 'start="7"')))
    assert [one.start(s) for s in one.states] == [7.0, 7.0, 7.0]
    few = ScalarLayout(described("arrays3", ('start="1 2 3"', 'start="7 8"')))
    assert [few.start(s) for s in few.states] == [7.0, 8.0, 0.0]


def test_malformed_xml_is_refused_with_the_place() -> None:
    with pytest.raises(ModelError, match=r"modelDescription.xml in 'm.fmu' is malformed: .*line 1"):
        parse_description(b"<fmiModelDescription><ModelVariables>", "m.fmu")


def test_xml_that_is_no_model_description_is_refused() -> None:
    with pytest.raises(ModelError, match="its root element is 'html'"):
        parse_description(b"<html/>", "m.fmu")


def test_external_entities_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    xml = with_doctype(f'<!DOCTYPE d [<!ENTITY e SYSTEM "{secret.as_uri()}">]>')
    xml = xml.replace('<Category name="logStatusError"/>', '<Category name="logStatusError"/>&e;')
    with pytest.raises(ModelError, match="defines a document type of its own") as caught:
        parse_description(xml.encode(), "m.fmu")
    assert "secret" not in str(caught.value).replace(str(secret), "")


def with_doctype(doctype: str) -> str:
    return description_of("pendulum").replace("<fmiModelDescription", f"{doctype}\n<fmiModelDescription", 1)


_LAUGHS = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))


@pytest.mark.parametrize(
    ("doctype", "name"),
    [
        (f'<!DOCTYPE d [<!ENTITY e0 "ha">{_LAUGHS}]>', "&e9;"),
        (f'<!DOCTYPE d [<!ENTITY e "{"a" * 100_000}">]>', "&e;" * 10_000),
        ('<!DOCTYPE d [<!ENTITY e "inner">]>', "&e;"),
        ('<!DOCTYPE d SYSTEM "http://127.0.0.1:9/evil.dtd">', "m"),
        ('<!DOCTYPE fmiModelDescription [<!ATTLIST fmiModelDescription generationTool CDATA "evil">]>', "m"),
    ],
)
def test_entities_and_document_types_are_refused(doctype: str, name: str) -> None:
    xml = with_doctype(doctype).replace('modelName="Pendulum"', f'modelName="{name}"')
    assert name in xml
    with pytest.raises(ModelError, match=r"defines a document type|is malformed: Maximum entity amplification"):
        parse_description(xml.encode(), "m.fmu")


def test_nesting_without_end_is_refused() -> None:
    inner = "<a>" * 10_000 + "</a>" * 10_000
    xml = description_of("pendulum").replace("<ModelVariables>", f"<VendorAnnotations>{inner}</VendorAnnotations>", 1)
    with pytest.raises(ModelError, match="is malformed: Excessive depth"):
        parse_description(xml.encode(), "m.fmu")


@pytest.mark.parametrize("encoding", ["UTF-16", "ISO-8859-1", "UTF-8", "US-ASCII"])
def test_encodings_that_are_declared_are_read(encoding: str) -> None:
    xml = description_of("pendulum").replace("UTF-8", encoding)
    assert parse_description(xml.encode(encoding), "m.fmu").states[0].name == "pin.x"


def test_bytes_that_are_no_utf_8_are_replaced_and_noted() -> None:
    xml = description_of("pendulum").encode().replace(b'modelName="Pendulum"', b'modelName="Pr\xfcfstand"')
    description = parse_description(xml, "m.fmu")
    assert description.model_name == "Pr\ufffdfstand"
    assert any("bytes that are not UTF-8" in note for note in description.notes)


@pytest.mark.parametrize("content", [b"", b" \n", bytes(100), b"\xff\xfe", b"\xef\xbb\xbf", b"<", b"<?xml?>"])
def test_what_is_no_text_at_all_is_malformed(content: bytes) -> None:
    with pytest.raises(ModelError, match="is malformed") as caught:
        parse_description(content, "m.fmu")
    assert "\n" not in str(caught.value)


def test_arrays_of_absurd_size_are_refused() -> None:
    xml = description_of("arrays3")
    huge = re.sub(r'<Dimension start="\d+"/>', '<Dimension start="50000000000"/>', xml)
    assert huge != xml
    with pytest.raises(ModelError, match="is an array of 50000000000 numbers; the limit is 100000"):
        ScalarLayout(parse_description(huge.encode(), "m.fmu"))


def test_arrays_of_negative_sizes_are_refused_also_where_the_product_is_positive() -> None:
    xml = description_of("arrays3")
    odd = xml.replace('<Dimension start="2"/>', '<Dimension start="-2"/>')
    assert odd != xml
    with pytest.raises(ModelError, match="is an array of the negative size -2"):
        ScalarLayout(parse_description(odd.encode(), "m.fmu"))


def test_unknown_version_is_named() -> None:
    with pytest.raises(ModelError, match=r"has the FMI version '4\.0', which fmilin does not support"):
        parse_description(b'<fmiModelDescription fmiVersion="4.0"/>', "m.fmu")


def test_a_description_is_seen_through_either_interface() -> None:
    other = '<CoSimulation modelIdentifier="other" canGetAndSetFMUstate="true"/>'
    both = parse_description(re.sub(r"(<ModelExchange[^>]*>)", rf"\1{other}", description_of("pendulum")).encode(), "m")
    assert (both.interface, both.model_identifier, both.directional_derivatives) == ("ModelExchange", "pendulum", True)
    stepped = both.through("CoSimulation")
    assert (stepped.interface, stepped.model_identifier, stepped.directional_derivatives) == (
        "CoSimulation",
        "other",
        False,
    )
    assert stepped.capabilities["canGetAndSetFMUstate"] == "true"
    assert both.through("ModelExchange") is both


def test_an_interface_that_is_not_there_is_refused() -> None:
    xml = re.sub(r"<ModelExchange([^>]*)>", r"<CoSimulation\1>", description_of("pendulum"))
    only = parse_description(xml.encode(), "m.fmu")
    assert only.interface == "CoSimulation"
    with pytest.raises(
        UsageError, match=r"'m\.fmu' has no interface 'ModelExchange'. Choose one of its interfaces: CoSimulation\."
    ):
        only.through("ModelExchange")


def test_scheduled_execution_alone_is_refused() -> None:
    xml = re.sub(r"<ModelExchange([^>]*)>", r"<ScheduledExecution\1>", description_of("pendulum"))
    with pytest.raises(ModelError, match=r"no interface for model exchange or co-simulation.*ScheduledExecution"):
        parse_description(xml.encode(), "m.fmu")


def test_missing_model_identifier_is_refused() -> None:
    with pytest.raises(ModelError, match="attribute modelIdentifier is missing"):
        described("pendulum", ('modelIdentifier="pendulum" ', ""))


@pytest.mark.parametrize("name", names_of(fmi1=True))
def test_fmpy_reads_the_same_variables_of_fmi_1(name: str, tmp_path: Path) -> None:
    import fmpy

    path = tmp_path / "modelDescription.xml"
    path.write_text(description_of(name))
    theirs, ours = fmpy.read_model_description(str(path), validate=False), described(name)
    expected = [v for v in theirs.modelVariables if v.name != "minus_x"]
    negatives = [v.name for v in theirs.modelVariables if v.name == "minus_x"]  # a negated alias
    assert list(ours.variables.negatives) == negatives
    assert [v.name for v in ours.variables] == [v.name for v in expected]
    assert [v.reference for v in ours.variables] == [v.valueReference for v in expected]
    assert len(ours.states) == (0 if theirs.coSimulation else theirs.numberOfContinuousStates)
    assert ours.token == theirs.guid
    assert ours.model_identifier == (theirs.modelExchange or theirs.coSimulation).modelIdentifier


@pytest.mark.parametrize("name", names_of(fmi1=False))
def test_fmpy_reads_the_same_states_and_outputs(name: str, tmp_path: Path) -> None:
    import fmpy

    path = tmp_path / "modelDescription.xml"
    path.write_text(description_of(name))
    theirs, ours = fmpy.read_model_description(str(path), validate=False), described(name)
    assert [u.variable.name for u in ours.derivatives] == [u.variable.name for u in theirs.derivatives]
    assert [v.name for v in ours.states] == [u.variable.derivative.name for u in theirs.derivatives]
    assert [u.variable.valueReference for u in theirs.outputs] == [u.variable.reference for u in ours.outputs]
    assert ours.token == theirs.guid
    aliases = sum(len(v.aliases) for v in ours.variables)
    assert len(ours.variables) + aliases == len(theirs.modelVariables)


def test_a_state_that_is_listed_twice_is_refused() -> None:
    xml = description_of("pendulum")
    actual = re.search(r'<Derivatives>\s*(<Unknown index="\d+"[^>]*/>)', xml)
    assert actual is not None
    with pytest.raises(ModelError, match=r"lists 'pin\.x' among its states more than once"):
        ScalarLayout(parse_description(xml.replace(actual[1], actual[1] * 2, 1).encode(), "m.fmu"))


@pytest.mark.parametrize("value", ["-3", "4294967296", "9" * 30])
@pytest.mark.parametrize("name", ["pendulum", "spring1", "arrays3"])
@pytest.mark.parametrize("place", [0, 2])
def test_a_value_reference_that_no_fmu_can_know_is_refused(name: str, place: int, value: str) -> None:
    xml = description_of(name)
    actual = list(re.finditer(r'valueReference="\d+"', xml))[place]
    xml = f'{xml[: actual.start()]}valueReference="{value}"{xml[actual.end() :]}'
    with pytest.raises(ModelError, match=rf"the value reference of '.*' is {value[:10]}.*between 0 and 4294967295"):
        parse_description(xml.encode(), "m.fmu")


def test_the_largest_value_reference_is_one() -> None:
    xml = description_of("pendulum").replace('valueReference="14"', 'valueReference="4294967295"', 1)
    assert parse_description(xml.encode(), "m.fmu").variables[0].reference == 2**32 - 1


@pytest.mark.parametrize("number", [-1, 1_000_001, 2_000_000_000])
@pytest.mark.parametrize("name", ["pendulum", "spring1"])
def test_more_event_indicators_than_a_model_can_have_are_refused(name: str, number: int) -> None:
    xml = re.sub(r'\s*numberOfEventIndicators="\d*"', "", description_of(name))
    xml = xml.replace("<fmiModelDescription", f'<fmiModelDescription numberOfEventIndicators="{number}"', 1)
    with pytest.raises(
        ModelError, match=f"numberOfEventIndicators is {number}. The number must lie between 0 and 1000000"
    ):
        parse_description(xml.encode(), "m.fmu")
