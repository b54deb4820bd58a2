"""Temporary folders belong to a process, and are removed when that process cannot do it any more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fmilin.ground.errors import UsageError
from fmilin.ground.temporary import new_folder, owned_name, remove_leftovers, temporary_folder, temporary_place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def made_by_a_process_that_ended(place: Path) -> Path:
    source = "from fmilin.ground.temporary import new_folder; print(new_folder())"
    done = subprocess.run(
        [sys.executable, "-c", source], env=os.environ | {"TMPDIR": str(place)}, capture_output=True, check=True
    )
    (Path(done.stdout.decode().strip()) / "file").write_text("content")
    return Path(done.stdout.decode().strip())


def test_the_folder_of_an_ended_process_is_removed_by_the_next(place: Path) -> None:
    left = made_by_a_process_that_ended(place)
    own = new_folder()
    assert list(place.iterdir()) == [own]
    assert left.parent == place
    assert own.stat().st_mode & 0o777 == 0o700


def test_own_folders_and_those_of_others_stay(place: Path) -> None:
    own, left = new_folder(), made_by_a_process_that_ended(place)
    elsewhere = place / "-".join(("fmilin", "0" * 8, *left.name.split("-")[2:]))
    left.rename(elsewhere)  # a machine that shares the folder: nothing is known about its processes
    (place / "fmilin-notes").mkdir()
    remove_leftovers(place)
    assert {own, elsewhere, place / "fmilin-notes"} == set(place.iterdir())
    assert (elsewhere / "file").exists()


def test_another_process_of_the_same_number_is_another_one(place: Path) -> None:
    machine, boot, pid, start, word = owned_name().removeprefix("fmilin-").split("-")
    for names in (
        (machine, boot, pid, str(int(start) + 1), word),  # the number was given again
        (machine, f"{int(boot, 16) ^ 1:08x}", pid, start, word),  # the machine has been started anew
    ):
        (place / "-".join(("fmilin", *names))).mkdir()
        (place / f".{'-'.join(('fmilin', *names))}.tmp").write_bytes(b"half a file")
    remove_leftovers(place)
    assert list(place.iterdir()) == []


def test_links_are_not_followed(place: Path) -> None:
    left = made_by_a_process_that_ended(place)
    target = place / "target"
    left.rename(target)
    left.symlink_to(target)
    remove_leftovers(place)
    assert (target / "file").exists()


def test_a_folder_goes_with_its_block(place: Path) -> None:
    def fail() -> None:
        with temporary_folder() as folder:
            (folder / "file").write_text("content")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(place.iterdir()) == []


def test_no_place_for_temporary_files_is_one_sentence(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(place / "absent"))
    with pytest.raises(UsageError, match="TMPDIR"):
        new_folder()


def test_nothing_is_written_to_find_the_place(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's own search leaves a file when it is killed."""
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr("tempfile._get_default_tempdir", lambda: pytest.fail("files are written to try places"))
    assert temporary_place() == place
