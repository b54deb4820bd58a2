"""FMUs with C sources and no binary for this platform: compiled when asked to be, and never otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import ModelError
from fmilin.options import FmuOptions
from fmilin.signals import FloatArray
from tests.fmus.make import HERE, description_of, pack

COMPILE = FmuOptions(compile_sources=True)
HEADERS = {f"sources/{name}": (HERE / name).read_text() for name in ("spring.h", "fmi2_zoo.h", "fmi3_zoo.h")}
SPRING, SPRING_XML = (HERE / "zero_nominals.c").read_text(), description_of("zero_nominals")
NAMED = SPRING_XML.replace(
    'providesDirectionalDerivative="false"/>', '><SourceFiles><File name="code/all.c"/></SourceFiles></ModelExchange>'
)


def fmu_of(folder: Path, xml: str, sources: Mapping[str, str]) -> Path:
    return pack(folder / "m.fmu", {"modelDescription.xml": xml, **HEADERS, **sources})


def spring_matrix(path: Path) -> FloatArray:
    with fl.load(path, fmu=COMPILE) as model:
        assert any("C source file(s) were compiled with" in note for note in model.notes)
        return fl.linearize(model).A


def test_nothing_is_compiled_unasked(tmp_path: Path, scratch: Path) -> None:
    path = fmu_of(tmp_path, SPRING_XML, {"sources/all.c": SPRING})
    with pytest.raises(
        ModelError, match=r"inside are: C sources. .* say so with fmu=FmuOptions\(compile_sources=True\)"
    ):
        fl.load(path)
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("xml", "sources"),
    [
        (SPRING_XML, {"sources/all.c": SPRING}),
        (NAMED, {"sources/code/all.c": SPRING, "sources/unused.c": "#error not to be compiled"}),
        (SPRING_XML, {"sources/all.c": "#define FMI2_FUNCTION_PREFIX zero_nominals_\n" + SPRING}),
    ],
    ids=["all files", "named file", "prefixed functions"],
)
def test_sources_are_compiled_when_asked(xml: str, sources: Mapping[str, str], tmp_path: Path, scratch: Path) -> None:
    np.testing.assert_allclose(
        spring_matrix(fmu_of(tmp_path, xml, sources)), np.array([[0.0, 1.0], [-1.0, 0.0]]), atol=1e-9
    )
    assert list(scratch.iterdir()) == []


def test_fmi_1_sources(tmp_path: Path) -> None:
    headers = {f"sources/{name}": (HERE / name).read_text() for name in ("spring1.h", "fmi1_zoo.h")}
    source = (HERE / "spring1.c").read_text()
    path = fmu_of(tmp_path, description_of("spring1"), {**headers, "sources/spring1.c": source})
    np.testing.assert_allclose(spring_matrix(path), np.array([[0.0, 1.0], [-4.0, -0.25]]), atol=1e-9)


BUILD = """<?xml version="1.0" encoding="UTF-8"?>
<fmiBuildDescription fmiVersion="3.0">
  <BuildConfiguration modelIdentifier="other">
    <SourceFileSet><SourceFile name="no.c"/></SourceFileSet>
  </BuildConfiguration>
  <BuildConfiguration modelIdentifier="singles3">
    <SourceFileSet language="C99">
      <SourceFile name="code/singles.c"/>
      <PreprocessorDefinition name="ANSWER" value="42"/>
      <IncludeDirectory name="code"/>
    </SourceFileSet>
    <Library name="m" external="true"/>
  </BuildConfiguration>
</fmiBuildDescription>
"""


def test_the_build_description_of_fmi_3_is_followed(tmp_path: Path) -> None:
    source = '#if ANSWER != 42\n#error\n#endif\n#include "empty.h"\n' + (HERE / "singles3.c").read_text()
    members = {"sources/code/singles.c": source, "sources/code/empty.h": "", "sources/buildDescription.xml": BUILD}
    path = fmu_of(tmp_path, description_of("singles3"), members)
    with fl.load(path, fmu=COMPILE) as model:
        assert len(fl.linearize(model).full_states) > 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name="code/singles.c"', 'name="../../etc/passwd"', r"names '\.\./\.\./etc/passwd' for compilation"),
        ('name="code/singles.c"', 'name="/etc/passwd"', "names '/etc/passwd' for compilation"),
        ('name="code/singles.c"', 'name="absent.c"', "names 'absent.c' for compilation"),
        ('IncludeDirectory name="code"', 'IncludeDirectory name="../.."', r"names '\.\./\.\.' for compilation"),
        ('name="ANSWER"', 'name="A -o /tmp/evil"', "which is no name in C"),
        ('modelIdentifier="singles3"', 'modelIdentifier="x"', "has no configuration for the library 'singles3'"),
        ("</fmiBuildDescription>", "", "buildDescription.xml in 'm.fmu' is malformed"),
    ],
)
def test_a_build_description_that_is_wrong_is_refused(
    old: str, new: str, message: str, tmp_path: Path, scratch: Path
) -> None:
    assert old in BUILD
    members = {
        "sources/code/singles.c": (HERE / "singles3.c").read_text(),
        "sources/buildDescription.xml": BUILD.replace(old, new),
    }
    with pytest.raises(ModelError, match=message):
        fl.load(fmu_of(tmp_path, description_of("singles3"), members), fmu=COMPILE)
    assert list(scratch.iterdir()) == []


def test_sources_that_do_not_compile_are_refused_with_the_first_error(tmp_path: Path, scratch: Path) -> None:
    path = fmu_of(tmp_path, SPRING_XML, {"sources/all.c": "int broken(\n"})
    with pytest.raises(
        ModelError, match=r"The sources of 'm.fmu' cannot be compiled with 'cc': sources/all.c:1.*error"
    ):
        fl.load(path, fmu=COMPILE)
    assert list(scratch.iterdir()) == []


def test_a_folder_of_headers_alone_is_no_source(tmp_path: Path) -> None:
    path = fmu_of(tmp_path, SPRING_XML, {"sources/deep/all.c": SPRING})
    with pytest.raises(ModelError, match="has no C source files at the top of its folder 'sources'"):
        fl.load(path, fmu=COMPILE)


def test_a_binary_that_is_there_is_used_even_when_compiling_is_allowed(tmp_path: Path) -> None:
    from tests.fmus.make import build

    path = build("zero_nominals", tmp_path, extra={"sources/all.c": "#error not to be compiled"})
    with fl.load(path, fmu=COMPILE) as model:
        assert not any("compiled" in note for note in model.notes)
