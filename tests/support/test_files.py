"""Writing is all or nothing.

Temporary folders belong to a process, and are removed when that process cannot do it any more.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from fmilin.errors import UsageError
from fmilin.export.files import check_output
from fmilin.support.files import (
    check_writable,
    make_owned_name,
    new_folder,
    remove_leftovers,
    temporary_folder,
    temporary_place,
    write_atomically,
)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_new_file_gets_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "ordinary").write_bytes(b"")
    write_atomically(tmp_path / "new", b"content")
    assert (tmp_path / "new").read_bytes() == b"content"
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "ordinary").stat().st_mode
    assert names(tmp_path) == ["new", "ordinary"]


def test_an_existing_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_a_failure_half_way_leaves_the_old_file_and_nothing_else(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(step, fail)
    with pytest.raises(UsageError, match="No space left on device"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    for action in (check_writable, check_output):
        with pytest.raises(UsageError, match=r"there is no folder '.*absent'"):
            action(tmp_path / "absent" / "plant.mat")


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "plant.mat").mkdir()
    with pytest.raises(UsageError, match="this is a folder"):
        check_output(tmp_path / "plant.mat")


def test_something_that_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plant.mat")
    with pytest.raises(UsageError, match="exists and is not writable"):
        check_output(tmp_path / "plant.mat")


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError, match="there is no folder"):
        check_output(tmp_path / "file" / "plant.mat")


def test_a_name_that_the_system_cannot_have(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Cannot write"):
        check_output(tmp_path / ("x" * 300 + ".mat"))
    with pytest.raises(UsageError, match="Cannot write"):
        check_output("nul\0.mat")


def test_the_check_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "old.mat").write_bytes(b"old")
    check_output(tmp_path / "old.mat")
    check_output(tmp_path / "new.mat")
    assert names(tmp_path) == ["old.mat"]
    assert (tmp_path / "old.mat").read_bytes() == b"old"


def test_a_folder_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # tests may run as root, whom no folder refuses
    with pytest.raises(UsageError, match="Permission denied"):
        check_output(tmp_path / "plant.mat")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def made_by_a_process_that_ended(folder: Path) -> Path:
    source = "from fmilin.support.files import new_folder; print(new_folder())"
    done = subprocess.run(
        [sys.executable, "-c", source], env=os.environ | {"TMPDIR": str(folder)}, capture_output=True, check=True
    )
    (Path(done.stdout.decode().strip()) / "file").write_text("content")
    return Path(done.stdout.decode().strip())


def test_the_folder_of_an_ended_process_is_removed_by_the_next(folder: Path) -> None:
    left = made_by_a_process_that_ended(folder)
    own = new_folder()
    assert list(folder.iterdir()) == [own]
    assert left.parent == folder
    assert own.stat().st_mode & 0o777 == 0o700


def test_own_folders_and_those_of_others_stay(folder: Path) -> None:
    own, left = new_folder(), made_by_a_process_that_ended(folder)
    elsewhere = folder / "-".join(("fmilin", "0" * 8, *left.name.split("-")[2:]))
    left.rename(elsewhere)  # a machine that shares the folder: nothing is known about its processes
    (folder / "fmilin-notes").mkdir()
    remove_leftovers(folder)
    assert {own, elsewhere, folder / "fmilin-notes"} == set(folder.iterdir())
    assert (elsewhere / "file").exists()


def test_another_process_of_the_same_number_is_another_one(folder: Path) -> None:
    machine, boot, pid, start, word = make_owned_name().removeprefix("fmilin-").split("-")
    for names in (
        (machine, boot, pid, str(int(start) + 1), word),  # the number was given again
        (machine, f"{int(boot, 16) ^ 1:08x}", pid, start, word),  # the machine has been started anew
    ):
        (folder / "-".join(("fmilin", *names))).mkdir()
        (folder / f".{'-'.join(('fmilin', *names))}.tmp").write_bytes(b"half a file")
    remove_leftovers(folder)
    assert list(folder.iterdir()) == []


def test_where_processes_cannot_be_seen_their_folders_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, boot, pid, start, word = make_owned_name().removeprefix("fmilin-").split("-")
    (folder / "-".join(("fmilin", machine, boot, str(int(pid) + 1), start, word))).mkdir()
    monkeypatch.setattr("fmilin.support.files._machine", lambda: (machine, f"{zlib.crc32(b''):08x}"))  # without /proc
    remove_leftovers(folder)
    assert len(list(folder.iterdir())) == (1 if sys.platform == "linux" else 0)


def test_links_are_not_followed(folder: Path) -> None:
    left = made_by_a_process_that_ended(folder)
    target = folder / "target"
    left.rename(target)
    left.symlink_to(target)
    remove_leftovers(folder)
    assert (target / "file").exists()


def test_a_folder_goes_with_its_block(folder: Path) -> None:
    def fail() -> None:
        with temporary_folder() as folder:
            (folder / "file").write_text("content")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(folder.iterdir()) == []


def test_no_place_for_temporary_files_is_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(folder / "absent"))
    with pytest.raises(UsageError, match="TMPDIR"):
        new_folder()


def test_nothing_is_written_to_find_the_place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own search leaves a file when it is killed."""
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile._get_default_tempdir", lambda: pytest.fail("files are written to try places"))
    assert temporary_place() == folder
