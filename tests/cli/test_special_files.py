"""Files that are no files, names as long as the system allows, and a umask that takes the owner's rights."""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from tests.cli.conftest import Run, shell

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")

LONGEST = 255  # bytes of a name
FOUR_BAR = "fmilin.systems:four_bar"
READERS = [
    ("info", "special.toml"),
    ("info", "special.urdf"),
    ("linearize", FOUR_BAR, "--point", "special.toml"),
    ("linearize", FOUR_BAR, "--point", "special.json"),
    ("linearize", FOUR_BAR, "--constraints", "special.toml"),
    ("simulate", FOUR_BAR, "--stop-time", "0.1", "--input", "special.csv"),
    ("convert", "special.mat", "-o", "plant.json"),
    ("convert", "special.npz", "-o", "plant.json"),
    ("convert", "special.json", "-o", "plant.mat"),
    ("convert", "special.lin", "-o", "plant.mat"),
    ("convert", "special.fmu", "-o", "plant.mat"),
    ("report", "special.nc", "-o", "page.html"),
    ("report", "special.json", "-o", "page.html"),
    ("verify", FOUR_BAR, "special.json"),
    ("audit", "special.json"),
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("special", ["device", "named pipe"])
@pytest.mark.parametrize("arguments", READERS, ids=lambda arguments: f"{arguments[0]} {arguments[-1]}")
def test_a_device_or_a_pipe_in_place_of_a_file_is_rejected(
    special: str, arguments: tuple[str, ...], run: Run, tmp_path: Path
) -> None:
    name = next(word for word in arguments if word.startswith("special."))
    if special == "device":
        (tmp_path / name).symlink_to("/dev/zero")
    else:
        os.mkfifo(tmp_path / name)
    done = run(*arguments)
    assert done.status in (2, 3, 4)
    assert "it is a device, a named pipe or a socket, and not a regular file" in done.err


@pytest.mark.timeout(60)
def test_a_model_file_that_is_a_device_is_rejected_in_python(tmp_path: Path) -> None:
    (tmp_path / "plant.toml").symlink_to("/dev/zero")
    with pytest.raises(fl.errors.ModelError, match="a device, a named pipe or a socket"):
        fl.load(tmp_path / "plant.toml")


def long_name(suffix: str, letter: str = "a") -> str:
    return letter * (LONGEST - 1 - len(suffix)) + suffix


@pytest.mark.parametrize("suffix", [".mat", ".npz", ".json", ".mo", ".fmu"])
def test_a_linear_model_gets_a_name_of_254_bytes(suffix: str, run: Run, tmp_path: Path) -> None:
    assert run("linearize", FOUR_BAR, "-o", long_name(suffix)).status == 0
    assert [path.name for path in tmp_path.iterdir()] == [long_name(suffix)]


@pytest.mark.parametrize("suffix", [".nc", ".json"])
def test_a_family_gets_a_name_of_254_bytes(suffix: str, run: Run, tmp_path: Path) -> None:
    from fmilin.families.store import get_store_folder

    path = tmp_path / long_name(suffix)
    assert run("sweep", FOUR_BAR, "--vary", "k=20:30:3", "-o", path.name).status == 0
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    np.testing.assert_array_equal(fl.LinearFamily.load(path).axes["k"], [20.0, 25.0, 30.0])
    folders = {get_store_folder(tmp_path / long_name(suffix, letter)) for letter in ("a", "ä", "b")}
    assert len(folders) == 3
    assert all(len(os.fsencode(folder.name)) <= LONGEST for folder in folders)


def test_a_robot_gets_a_name_of_254_bytes(run: Run, tmp_path: Path) -> None:
    text = '<robot name="r"><link name="base"/></robot>'
    (tmp_path / long_name(".urdf")).write_text(text)
    (tmp_path / "short.urdf").write_text(text)
    assert (
        run("info", long_name(".urdf")).err.replace(long_name(".urdf"), "short.urdf") == run("info", "short.urdf").err
    )


DROP_FROM_BOUNDING_SET, OVERRIDE_RIGHTS, SEARCH_ALL = 24, 1, 2  # linux/prctl.h, linux/capability.h


def take_rights_of_new_files() -> None:
    """Set a umask that takes all rights, and let the administrator's rights not hide that."""
    os.umask(0o777)
    with suppress(AttributeError, OSError):
        for capability in (OVERRIDE_RIGHTS, SEARCH_ALL):
            ctypes.CDLL(None).prctl(DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        (("linearize", "four_bar.fmu", "--set", "phi=1", "--project", "-o", "plant.mat"), "plant.mat"),
        (("sweep", "four_bar.fmu", "--vary", "phi=0.9:1.1:3", "--project", "--jobs", "2", "-o", "line.nc"), "line.nc"),
        (("demo", "folder"), "folder"),
    ],
)
def test_a_umask_that_takes_all_rights_leaves_the_owner_those_of_new_files(
    arguments: tuple[str, ...], made: str, fmus: Path, tmp_path: Path
) -> None:
    given = [str(fmus / "four_bar.fmu") if word == "four_bar.fmu" else word for word in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "fmilin", *given],
        cwd=tmp_path,
        preexec_fn=take_rights_of_new_files,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    files = [tmp_path / made, *(tmp_path / made).rglob("*")]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} <= {0o600, 0o700}
    if made == "plant.mat":
        assert shell(["convert", made, "-o", "again.json"], tmp_path).status == 0


def test_python_reads_what_it_has_saved_under_such_a_umask(tmp_path: Path) -> None:
    linear = fl.linearize(fl.systems.cartesian_pendulum())
    before = os.umask(0o777)
    try:
        linear.save(tmp_path / "plant.mat")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "plant.mat").stat().st_mode) == 0o600
