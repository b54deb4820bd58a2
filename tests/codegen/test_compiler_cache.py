"""What is kept is used when it is whole, unchanged and the user's own; else things are compiled again."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from fmilin.adapters import cache_folder, cache_library, read_cached_library
from fmilin.codegen.compiler import Compiler, build_program, find_compiler
from fmilin.errors import ModelError
from tests.codegen.test_compiler import answer, compile_to

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="permissions are those of Unix")


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def kept() -> Path:
    cache_library("name", b"content")
    return cache_folder() / "name"


def test_what_was_kept_is_fetched() -> None:
    assert read_cached_library("name") is None
    kept()
    assert read_cached_library("name") == b"content"


def test_every_folder_is_the_users_alone_whatever_the_umask() -> None:
    before = os.umask(0)
    try:
        path = kept()
    finally:
        os.umask(before)
    for folder in (cache_folder(), *cache_folder().parents[:2]):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_folders_that_others_could_write_are_closed() -> None:
    cache_folder().mkdir(parents=True)
    cache_folder().chmod(0o777)
    cache_folder().parent.chmod(0o777)
    kept()
    assert stat.S_IMODE(cache_folder().stat().st_mode) == stat.S_IMODE(cache_folder().parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes()[:-1] + b"!"),
        lambda path: path.write_bytes(b"content"),
        lambda path: path.chmod(0o666),
        lambda path: (path.rename(path.with_name("other")), path.symlink_to("other")),
        lambda path: (path.unlink(), path.mkdir()),
    ],
    ids=["emptied", "cut", "changed", "without digest", "everybody's", "a link", "a folder"],
)
def test_what_is_damaged_or_not_sure_to_be_ours_is_not_used(damage: object) -> None:
    damage(kept())  # type: ignore[operator]
    assert read_cached_library("name") is None


def test_a_file_under_another_name_is_not_used() -> None:
    kept().rename(cache_folder() / "other")
    assert read_cached_library("other") is None


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give files away")
def test_what_belongs_to_somebody_else_is_not_used() -> None:
    os.chown(kept(), 12345, -1)
    assert read_cached_library("name") is None
    os.chown(cache_folder(), 12345, -1)
    cache_library("new", b"content")
    assert not (cache_folder() / "new").exists()


def test_a_folder_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    cache_folder().parent.mkdir(parents=True)
    cache_folder().symlink_to(tmp_path / "elsewhere")
    cache_library("name", b"content")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_library_that_was_emptied_is_compiled_again(tmp_path: Path) -> None:
    compile_to(tmp_path / "a.so", Compiler())
    (library,) = cache_folder().iterdir()
    whole = library.read_bytes()
    for content in (b"", whole[: len(whole) // 2]):
        library.write_bytes(content)
        assert answer(compile_to(tmp_path / f"b{len(content)}.so", Compiler())) == 42
        assert library.read_bytes() == whole


def test_a_compiler_that_makes_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'true' ended without an error, but wrote no library"):
        compile_to(tmp_path / "a.so", Compiler(("true",)))


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HOME"])
def test_where_nothing_can_be_kept_a_program_is_built_for_this_process(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv(variable, os.devnull)
    sources = {"main.c": b"int main(void) { return 7; }"}
    program = build_program(find_compiler(), sources, ["main.c"], [], [], "program")
    assert subprocess.run([program], check=False).returncode == 7
    assert not program.is_relative_to(cache_folder())


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    cache_library("name", b"content")
    assert read_cached_library("name") is None
    assert cache_folder().is_relative_to(os.devnull)
