"""SSP files that are wrong, too large, or nested without end: refused, and said with their place."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

import fmilin as fl
from fmilin.options import FmuOptions
from tests.command_line import main
from tests.composition.plants import oscillator_fmu
from tests.composition.ssp_files import (
    BINDING,
    FMU,
    INVERTED,
    SET,
    SSD,
    component,
    connection,
    files,
    oscillator_component,
    parameter,
    ssp,
    system,
    two,
)
from tests.fmus.make import build


def test_systems_that_contain_each_other_are_refused(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        content = system("root", [component("inner", f"{other}.ssd", [])], [])
        (tmp_path / f"{name}.ssd").write_text(SSD.format(version="1.0", name=name, system=content, more=""))
    with pytest.raises(fl.ModelError, match=r"component 'inner'.*cycle, 'a\.ssd' -> 'b\.ssd' -> 'a\.ssd'"):
        fl.load(tmp_path / "a.ssd")


def test_archives_that_contain_each_other_are_refused(tmp_path: Path) -> None:
    """They lie beside each other: an archive that is named and not inside is looked for there."""
    for name, other in (("a", "b"), ("b", "a"), ("alone", "alone")):
        ssp(tmp_path / f"{name}.ssp", system("root", [component("inner", f"{other}.ssp", [])], []), {})
    with pytest.raises(fl.ModelError, match=r"^'a\.ssp', .*cycle, 'a\.ssp' -> 'b\.ssp' -> 'a\.ssp'\. Remove one"):
        fl.load(tmp_path / "a.ssp")
    with pytest.raises(fl.ModelError, match=r"^'alone\.ssp', .*cycle, 'alone\.ssp' -> 'alone\.ssp'\. Remove one"):
        fl.load(tmp_path / "alone.ssp")


CASES = [
    (
        [connection("one.px", "three.F")],
        "line 12: the connection refers to a missing element 'three'. The elements are: one, two",
    ),
    ([connection("one.px", "two.G")], "line 12: 'two' has no connector 'G'. The connectors that it has are F, px, pv"),
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
    (
        [connection("one.px", "two.F", "<ssc:OddTransformation/>")],
        "line 12: the element OddTransformation is not known",
    ),
    (
        [connection("one.px", "two.F", '<ssc:LinearTransformation factor="big"/>')],
        "line 12: factor='big' of .* is not a finite",
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
    refused(good, "In the member 'one': .*is not an FMU", {FMU: "no zip"})
    refused(good, "SSP version '3.0' is not supported", version="3.0")
    refused(system("root", [], []), "contains no component")
    refused("<?xml version='1.0'?><a>", r"SystemStructure\.ssd in 'x\.ssp' is malformed")
    refused("<?xml version='1.0'?><a/>", "line 1: its root element is 'a', not 'SystemStructureDescription'")
    bomb = "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"
    refused(bomb, "document type of its own")
    refused(system("root", [component("one", "http://example.org/a.fmu", [])], []), "lies outside of the archive")
    refused(system("root", [component("one", "../a.fmu", [])], []), "lies outside of the archive")
    refused(
        system("root", [component("one", "a.xyz", [], attributes='type="application/x-other"')], []),
        "its type 'application/x-other'",
    )
    refused(system("root", [component("one", "inner.ssp", [])], []), "component 'one': the file 'inner.ssp' is missing")
    neighbours = {"inner.ssp": "no zip"}
    refused(
        system("root", [component("one", "inner.ssp", [])], []),
        "is not an SSP file: the zip archive is missing or incomplete",
        neighbours,
    )
    binding = BINDING.format('source="resources/none.ssv"', "")
    refused(
        system("root", [oscillator_component("one", binding)], []),
        r"line \d+: the file 'resources/none\.ssv' is missing",
    )
    values = f"<ssd:ParameterValues>{SET.format(parameter('c', 'much'))}</ssd:ParameterValues>"
    refused(system("root", [oscillator_component("one", BINDING.format("", values))], []), "value='much'")
    (tmp_path / "y.ssp").write_bytes(b"no zip")
    with pytest.raises(fl.ModelError, match="is not an SSP file: the zip archive is missing or incomplete"):
        fl.load(tmp_path / "y.ssp")
    with zipfile.ZipFile(tmp_path / "z.ssp", "w") as archive:
        archive.writestr("a.txt", "")
    with pytest.raises(fl.ModelError, match=r"'z\.ssp' contains no SystemStructure\.ssd"):
        fl.load(tmp_path / "z.ssp")
    with pytest.raises(fl.ModelError, match="There is no file"):
        fl.load(tmp_path / "none.ssp")


def test_an_archive_is_unpacked_as_safely_as_an_fmu(tmp_path: Path) -> None:
    path = ssp(tmp_path / "s.ssp", system("root", [oscillator_component("one")], []), {**files(), "../evil": "x"})
    with pytest.raises(fl.ModelError, match=r"'\.\./evil' lies outside of the archive\. An SSP file does not need"):
        fl.load(path)
    from fmilin.options import FmuOptions

    path = ssp(
        tmp_path / "b.ssp", system("root", [oscillator_component("one")], []), {**files(), "resources/big": "0" * 10**6}
    )
    with pytest.raises(fl.ModelError, match="was not unpacked"):
        fl.load(path, fmu=FmuOptions(most_bytes=1e6))


def test_systems_are_bounded_in_breadth(tmp_path: Path) -> None:
    def ten(source: str) -> str:
        inside = [component(f"e{i}", source, [], attributes='type="application/x-ssp-definition"') for i in range(10)]
        return SSD.format(version="1.0", name="demo", system=system("level", inside, []), more="")

    last = SSD.format(version="1.0", name="demo", system=system("last", [oscillator_component("m")], []), more="")
    levels: dict[str, Path | str] = {f"{i}.ssd": ten(f"{i + 1}.ssd") for i in range(1, 5)}
    path = ssp(tmp_path / "broad.ssp", ten("1.ssd"), {**files(), **levels, "5.ssd": last})
    with pytest.raises(fl.ModelError, match="more than 10000 components and systems with all its files, which is"):
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
    with pytest.raises(
        fl.ModelError, match=r"with what was unpacked before, would take .* fmu=FmuOptions\(most_bytes="
    ):
        fl.load(inner, fmu=one)
    fl.load(inner, fmu=all_of_them).close()


def test_a_member_that_crashes_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:

    parts = [oscillator_component("good"), component("bad", "resources/c.fmu", [])]
    path = ssp(tmp_path / "c.ssp", system("root", parts, []), files(c__fmu=build("crashes", tmp_path)))
    assert main(["linearize", str(path)]) == 6
    message = capfd.readouterr().err
    assert "In the member 'bad': The model 'c.fmu' crashed" in message
    assert "in fmi2GetDerivatives" in message
