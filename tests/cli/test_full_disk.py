"""A disk that fills, a folder that cannot be written: one paragraph, old files whole, nothing beside them."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fmilin.errors import UsageError
from fmilin.support.files import write_all
from tests.cli.conftest import Outcome, Run, shell
from tests.shared import unmeasured

SMALL = 48 * 1024
"""Bytes of a disk with room for a linear model, and not for an FMU."""


def mounted(place: Path, options: str) -> bool:
    """Whether a file system in memory lies there now; only root may do that, and not everywhere."""
    if not sys.platform.startswith("linux") or os.getuid() != 0:
        return False
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount a small disk with options, or skip."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(options: str) -> Path:
        if not mounted(place, options):
            pytest.skip("no file system can be mounted here")
        return place

    yield mount
    subprocess.run(["umount", str(place)], capture_output=True, check=False)


def limited(arguments: list[object], folder: Path, size: int) -> Outcome:
    """Run a command that may write no file larger than ``size`` bytes."""
    done = subprocess.run(
        [sys.executable, "-m", "fmilin", *map(str, arguments)],
        cwd=folder,
        env=unmeasured() | {"TMPDIR": str(folder), "XDG_CACHE_HOME": str(folder)},
        capture_output=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))


def test_results_on_a_full_disk(disk: Callable[[str], Path], fmus: Path) -> None:
    place = disk(f"size={SMALL}")
    (place / "old.json").write_bytes(b"yesterday")
    (place / "filler").write_bytes(bytes(SMALL - 2 * 4096))
    done = shell(["linearize", fmus / "four_bar.fmu", "-o", "old.json", "-o", "new.npz"], place)
    assert done.status == 2
    assert done.is_one_paragraph(), done.err
    assert "No space left on device" in done.err
    assert (place / "old.json").read_bytes() == b"yesterday"
    assert sorted(p.name for p in place.iterdir()) == ["filler", "old.json"]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["linearize", "four_bar.fmu", "--json"], 3), (["build", "fmilin.systems:four_bar", "-o", "new.fmu"], 3)],
    ids=["unpacking", "compiling"],
)
def test_temporary_files_on_a_full_disk(
    arguments: list[object], status: int, disk: Callable[[str], Path], fmus: Path, tmp_path: Path
) -> None:
    place = disk(f"size={SMALL}")
    given = [fmus / a if a == "four_bar.fmu" else a for a in arguments]
    done = shell(given, tmp_path, TMPDIR=str(place), XDG_CACHE_HOME=str(place))
    assert done.status == status, done.err
    assert done.is_one_paragraph(), done.err
    assert "No space left on device" in done.err
    assert list(place.rglob("fmilin-*")) == []
    assert not (tmp_path / "new.fmu").exists()


def test_a_disk_that_is_read_only(disk: Callable[[str], Path], fmus: Path) -> None:
    place = disk("ro")
    for arguments in (
        ["linearize", fmus / "four_bar.fmu", "-o", "new.json"],
        ["simulate", fmus / "four_bar.fmu", "--stop-time", "1", "-o", "new.csv"],
        ["build", "fmilin.systems:four_bar", "-o", "new.fmu"],
    ):
        done = shell(arguments, place)
        assert done.status == 2
        assert done.is_one_paragraph(), done.err
        assert "Read-only file system" in done.err


@pytest.mark.parametrize(
    ("arguments", "statuses"),
    [
        (["linearize", "four_bar.fmu", "-o", "old.json"], (2, 3)),
        (["convert", "plant.json", "-o", "old.json"], (2,)),
        (["build", "fmilin.systems:four_bar", "-o", "old.fmu"], (2, 3)),
    ],
    ids=["linearize", "convert", "build"],
)
def test_a_limit_on_the_size_of_files(
    arguments: list[object], statuses: tuple[int, ...], run: Run, fmus: Path, tmp_path: Path
) -> None:
    assert run("linearize", "four_bar.fmu", "-o", "plant.json").status == 0
    old = tmp_path / str(arguments[-1])
    old.write_bytes(b"yesterday")
    before = sorted(p.name for p in tmp_path.iterdir())
    done = limited([fmus / a if a == "four_bar.fmu" else a for a in arguments], tmp_path, 600)
    assert done.status in statuses, done.err
    assert done.is_one_paragraph(), done.err
    assert "bug" not in done.err
    assert old.read_bytes() == b"yesterday"
    assert [name for name in sorted(p.name for p in tmp_path.iterdir()) if name != "fmilin"] == before


def test_of_several_files_none_is_replaced_when_one_finds_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.write_bytes(b"yesterday")
    synced = os.fsync
    left = iter([True, True, False])

    def fill(descriptor: int) -> None:
        if not next(left):
            raise OSError(errno.ENOSPC, "No space left on device")
        synced(descriptor)

    monkeypatch.setattr(os, "fsync", fill)
    with pytest.raises(UsageError, match="No space left on device"):
        write_all(dict.fromkeys(paths, b"today"))
    assert [path.read_bytes() for path in paths] == [b"yesterday"] * 3
    assert sorted(tmp_path.iterdir()) == paths


@pytest.mark.parametrize("name", ["linearize", "simulate", "trim", "build"])
def test_a_folder_in_place_of_a_file(name: str, run: Run, tmp_path: Path) -> None:
    suffix = {"linearize": ".mat", "simulate": ".csv", "trim": ".toml", "build": ".fmu"}[name]
    (tmp_path / f"out{suffix}").mkdir()
    model = "fmilin.systems:four_bar" if name == "build" else "four_bar.fmu"
    more = ["--stop-time", "1"] if name == "simulate" else []
    done = run(name, model, *more, "-o", f"out{suffix}")
    assert done.status == 2
    assert "this is a folder" in done.err
