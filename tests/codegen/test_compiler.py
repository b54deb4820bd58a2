"""Finding a compiler, what it says when it fails, and the cache of what was built."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from fmilin.adapters import cache_folder
from fmilin.codegen.compiler import Compiler, compile_library, find_compiler, library_suffix
from fmilin.errors import ModelError

VISIBLE = b'__attribute__((visibility("default")))'
SOURCES = {
    "answer.h": b"#define ANSWER 42\n",
    "answer.c": b'#include "answer.h"\n' + VISIBLE + b" int answer(void) { return ANSWER; }\n",
}


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def counting_compiler(folder: Path) -> tuple[str, Path]:
    """Return a compiler that leaves a line in a file each time it compiles."""
    script, log = folder / "counting-cc", folder / "log"
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] || echo run >> "{log}"\nexec cc "$@"\n')
    script.chmod(0o755)
    return str(script), log


def compile_to(path: Path, compiler: Compiler, sources: Mapping[str, bytes] = SOURCES) -> Path:
    path.write_bytes(compile_library(sources, "answer.c", compiler))
    return path


def answer(library: Path) -> int:
    return int(ctypes.CDLL(str(library)).answer())


def test_a_library_is_built_in_a_folder_that_is_gone_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert answer(compile_to(tmp_path / f"a{library_suffix()}", Compiler())) == 42
    assert {p.name for p in tmp_path.iterdir()} == {"cache", f"a{library_suffix()}"}


def test_the_second_build_comes_from_the_cache(tmp_path: Path) -> None:
    command, log = counting_compiler(tmp_path)
    for i in range(2):
        compile_to(tmp_path / f"a{i}.so", Compiler((command,)))
    assert log.read_text().count("run") == 1
    assert (tmp_path / "a0.so").read_bytes() == (tmp_path / "a1.so").read_bytes()


def test_other_sources_flags_and_no_cache_build_anew(tmp_path: Path) -> None:
    command, log = counting_compiler(tmp_path)
    for sources, flags, use_cache in (
        (SOURCES, (), True),
        (SOURCES | {"answer.h": b"#define ANSWER 43\n"}, (), True),
        (SOURCES, ("-O1",), True),
        (SOURCES, (), False),
    ):
        compile_to(tmp_path / "a.so", Compiler((command,), flags, use_cache), sources)
    assert log.read_text().count("run") == 4


def test_an_update_of_the_compiler_builds_anew(tmp_path: Path) -> None:
    command, log = counting_compiler(tmp_path)
    compile_to(tmp_path / "a.so", Compiler((command,)))
    Path(command).write_text(Path(command).read_text().replace("exec cc", '[ "$1" = --version ] && echo 2; exec cc'))
    compile_to(tmp_path / "a.so", Compiler((command,)))
    assert log.read_text().count("run") == 2


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert answer(compile_to(tmp_path / "b.so", Compiler())) == 42


def test_the_cache_is_where_the_user_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == tmp_path / "cache" / "fmilin" / "libraries"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder().is_relative_to(tmp_path)


def test_no_compiler_is_one_clear_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(ModelError, match=r"No C compiler was found.*Install one"):
        compile_to(tmp_path / "a.so", Compiler())
    assert not (tmp_path / "a.so").exists()


def test_cc_comes_first_and_may_have_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "env cc")
    assert find_compiler() == ("env", "cc")
    monkeypatch.delenv("CC")
    assert find_compiler() in (("cc",), ("gcc",), ("clang",))


def test_a_relative_cc_is_meant_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counting_compiler(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CC", f".{os.sep}counting-cc")
    assert answer(compile_to(tmp_path / "c.so", Compiler(use_cache=False))) == 42


def test_a_cc_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    with pytest.raises(ModelError, match="CC names the C compiler 'no-such-compiler'"):
        find_compiler()


def test_the_first_errors_of_the_compiler_are_passed_on() -> None:
    with pytest.raises(ModelError, match=r"failed with exit status 1: broken\.c:1:\d+: error:.*Check that"):
        compile_library({"broken.c": b"int answer(void) { return wrong; }"}, "broken.c", Compiler())


def test_a_compiler_that_fails_in_silence_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'false' failed with exit status 1: without further output"):
        compile_to(tmp_path / "a.so", Compiler(("false",)))


def test_a_compiler_that_cannot_be_started_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'no-such-compiler' cannot be started: No such file"):
        compile_to(tmp_path / "a.so", Compiler(("no-such-compiler",)))


@pytest.mark.parametrize("text", ["'", "cc 'a", 'cc "'])
def test_a_cc_that_is_no_command_is_one_sentence(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", text)
    with pytest.raises(ModelError, match="CC is not a command: no closing quotation"):
        find_compiler()


def test_a_cc_that_is_a_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", str(tmp_path))
    with pytest.raises(ModelError, match="CC names the C compiler"):
        find_compiler()


def test_a_compiler_that_builds_nothing_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'true' ended without an error, but wrote no library"):
        compile_to(tmp_path / "a.so", Compiler(("true",)))
