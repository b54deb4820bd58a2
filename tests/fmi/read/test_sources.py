"""FMUs with C sources and no binary for this platform: compiled when asked to be, and never otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import psutil
import pytest

import fmilin as fl
from fmilin.codegen.compiler import find_compiler
from fmilin.errors import ModelError
from fmilin.fmi.client.restrictions import Limits, apply_limits
from fmilin.fmi.read import library
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
    with pytest.raises(ModelError, match=r"inside are: C sources. .* compiler: fmu=FmuOptions\(compile_sources=True\)"):
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
        ('name="ANSWER"', 'name="A -o /tmp/evil"', "which is not a name in C"),
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


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compiler_with_switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file; while it is there, the compiler answers for its version and compiles nothing."""
    script = tmp_path / "compiler" / "bin" / "cc"
    script.parent.mkdir(parents=True)
    switch = script.with_name("off")
    off = f'[ -e {switch} ] && [ "$1" != --version ] && echo error: off && exit 1'
    script.write_text(f'#!/bin/sh\n{off}\nexec {find_compiler()[0]} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    return switch


@pytest.mark.usefixtures("own_cache")
def test_the_same_sources_are_compiled_once(tmp_path: Path, compiler_with_switch: Path) -> None:
    expected = spring_matrix(fmu_of(tmp_path, SPRING_XML, {"sources/all.c": SPRING}))
    compiler_with_switch.touch()
    again = spring_matrix(fmu_of(tmp_path, SPRING_XML, {"sources/all.c": SPRING, "extra/notes.txt": "of no source"}))
    np.testing.assert_array_equal(again, expected)
    for changed in ({"sources/all.c": SPRING + "\n"}, {"sources/all.c": SPRING, "sources/spring.h": "int other;\n"}):
        with pytest.raises(ModelError, match="error: off"):
            spring_matrix(fmu_of(tmp_path, SPRING_XML, changed))


@pytest.mark.usefixtures("own_cache")
def test_a_library_that_was_changed_in_the_cache_is_compiled_again(tmp_path: Path, own_cache: Path) -> None:
    path = fmu_of(tmp_path, SPRING_XML, {"sources/all.c": SPRING})
    expected = spring_matrix(path)
    (library,) = own_cache.rglob("sources-*.so")
    content = library.read_bytes()
    library.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    np.testing.assert_array_equal(spring_matrix(path), expected)
    assert library.read_bytes() == content


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("name", ["{folder}/secret.h", "../../../../../../../../{folder}/secret.h", "/etc/passwd"])
def test_sources_cannot_include_files_of_the_user(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret.h").write_text("int secret;\n")
    included = name.format(folder=tmp_path)
    path = fmu_of(tmp_path, SPRING_XML, {"sources/all.c": f'#include "{included}"\n{SPRING}'})
    with pytest.raises(ModelError, match=r"fatal error: .*(No such file|Permission denied)"):
        fl.load(path, fmu=COMPILE)


@pytest.mark.usefixtures("own_cache")
def test_without_restrictions_files_outside_are_included_and_nothing_is_cached(tmp_path: Path, own_cache: Path) -> None:
    header = tmp_path / "outside.h"
    path = fmu_of(tmp_path, SPRING_XML, {"sources/all.c": f'#include "{header}"\n{SPRING}'})
    with apply_limits(Limits(unrestricted=True)):
        header.write_text("")
        spring_matrix(path)
        header.write_text("#error changed\n")
        with pytest.raises(ModelError, match="error: #error changed"):
            fl.load(path, fmu=COMPILE)
    assert not list(own_cache.rglob("sources-*"))


def little_memory() -> Limits:
    return Limits(memory=1e6)


DOUBLES = "".join(f"#define M{i + 1} M{i} M{i}\n" for i in range(40))
SELF = "#if __INCLUDE_LEVEL__ < 190\n{}#include __FILE__\n#include __FILE__\n#endif\n"


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize(
    ("source", "limit", "value", "message"),
    [
        (SELF.format(""), "MAX_COMPILE_SECONDS", 2.0, "were not compiled within the limit of 2 s"),
        (SELF.format('#pragma message "and again"\n'), "MAX_COMPILE_SECONDS", 120.0, "printed more than a megabyte"),
        (f"#define M0 int x;\n{DOUBLES}M40\n", "current_restrictions", little_memory, "out of memory|memory exhausted"),
        ("char a[30000000] = {1};\n", "LARGEST_FILE", 1 << 20, "File too large|No space left|file too large"),
    ],
    ids=["endless", "talkative", "memory", "large file"],
)  # fmt: skip
def test_a_compiler_that_takes_too_much_is_stopped_and_the_error_says_why(
    source: str, limit: str, value: object, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scratch: Path
) -> None:
    monkeypatch.setattr(library, limit, value)
    path = fmu_of(tmp_path, SPRING_XML, {"sources/all.c": source})
    before = running_processes()
    with pytest.raises(ModelError, match=message):
        fl.load(path, fmu=COMPILE)
    assert running_processes() <= before
    assert list(scratch.iterdir()) == []


def running_processes() -> set[psutil.Process]:
    return {p for p in psutil.Process().children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE}


def test_a_compiler_that_cannot_be_started_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cc").write_text("#!/nowhere/interpreter\n")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    with pytest.raises(ModelError, match=r"The C compiler '.*/cc' cannot be started: .*No such file"):
        fl.load(fmu_of(tmp_path, SPRING_XML, {"sources/all.c": SPRING}), fmu=COMPILE)


def test_a_folder_of_headers_alone_is_no_source(tmp_path: Path) -> None:
    path = fmu_of(tmp_path, SPRING_XML, {"sources/deep/all.c": SPRING})
    with pytest.raises(ModelError, match="has no C source files at the top of its folder 'sources'"):
        fl.load(path, fmu=COMPILE)


def test_a_binary_that_is_there_is_used_even_when_compiling_is_allowed(tmp_path: Path) -> None:
    from tests.fmus.make import build

    path = build("zero_nominals", tmp_path, extra={"sources/all.c": "#error not to be compiled"})
    with fl.load(path, fmu=COMPILE) as model:
        assert not any("compiled" in note for note in model.notes)
