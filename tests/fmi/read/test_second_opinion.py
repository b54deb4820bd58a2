"""What FMPy says against model descriptions, and that it reads from them what fmilin reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fmilin.errors import ModelError
from fmilin.fmi.read.archive import FmuFile, problems, read_otherwise
from tests.fmus.make import description_of, names_of, pack

SOUND = "".join(f'<Unknown index="{i}"/>' for i in (6, 7, 8, 9, 14, 15, 17, 19))
"""What the pendulum's description leaves out: the unknowns of its initialization."""


def described(folder: Path, xml: str, **more: str) -> FmuFile:
    return FmuFile(pack(folder / "described.fmu", {"modelDescription.xml": xml} | more))


def with_change(name: str, old: str, new: str) -> str:
    xml = description_of(name)
    assert old in xml
    return xml.replace(old, new)


@pytest.mark.parametrize("name", [*names_of(fmi1=False), *names_of(fmi1=True)])
def test_fmpy_reads_the_same_states_inputs_and_outputs(name: str, tmp_path: Path) -> None:
    fmu = described(tmp_path, description_of(name))
    (tmp_path / "modelDescription.xml").write_text(description_of(name))
    assert list(read_otherwise(fmu.description, tmp_path)) == []


def test_what_is_read_otherwise_is_named_with_its_number_and_reference(tmp_path: Path) -> None:
    ours = described(tmp_path, description_of("pendulum")).description
    (tmp_path / "modelDescription.xml").write_text(description_of("pendulum"))
    swapped = replace(ours, token="{another}", states=(ours.states[1], ours.states[0]))
    identity, states = read_otherwise(swapped, tmp_path)
    assert identity == "FMPy reads the identity '{pendulum}', fmilin '{another}'."
    assert states == (
        "FMPy reads 4 states: pin.x (0), pin.y (1), pin.vx (2) and 1 more, fmilin 2 states: pin.y (1), pin.x (0)."
    )


def sound(old: str = "", new: str = "") -> str:
    xml = with_change("pendulum", "</Derivatives>", f"</Derivatives><InitialUnknowns>{SOUND}</InitialUnknowns>")
    assert old in xml
    return xml.replace(old, new) if old else xml


def test_what_breaks_no_rule_has_no_problems(tmp_path: Path) -> None:
    assert problems(described(tmp_path, sound())) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('nominal="10" start="0"', 'nominal="10"', 'Variable "F" (line 26) has no start value.'),
        ('unit="N" nominal', 'unit="kN" nominal', 'The unit "kN" of variable "F" (line 26) is not defined.'),
        ('name="mass"', 'name="L"', 'The variable name "L" (line 30) is not unique.'),
        ('<Unknown index="14"/><Unknown index="15" dependencies=""/>', '<Unknown index="14"/>',
         'ModelStructure/Outputs must have exactly one entry for each variable with causality="output".'),
    ],
)  # fmt: skip
def test_a_broken_rule_is_one_sentence(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert problems(described(tmp_path, sound(old, new))) == [problem]


def test_what_fmpy_cannot_read_is_said_once(tmp_path: Path) -> None:
    undefined = with_change("pendulum", 'declaredType="', 'declaredType="no.')
    actual = problems(described(tmp_path, undefined))
    assert len(actual) == 1
    assert "has not been defined" in actual[0]


def test_sources_of_fmi_3_are_checked_too(tmp_path: Path) -> None:
    build = '<fmiBuildDescription fmiVersion="3.0"><Nonsense/></fmiBuildDescription>'
    fmu = described(tmp_path, description_of("arrays3"), **{"sources/buildDescription.xml": build})
    assert "Failed to validate buildDescription.xml" in problems(fmu)[0]


def test_fmpy_never_sees_what_is_refused(tmp_path: Path) -> None:
    hostile = with_change("pendulum", "<fmiModelDescription", '<!DOCTYPE a [<!ENTITY e "e">]><fmiModelDescription')
    with pytest.raises(ModelError, match="can be used for attacks"):
        problems(described(tmp_path, hostile))
