"""fmilin on systems that lack functions of Linux: each test removes them in a fresh Python process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fmilin as fl
from fmilin.cli.command import list_model_files
from fmilin.fmi.write import build_fmu
from fmilin.support.encodings import replace_unencodable
from fmilin.support.files import write_atomically

MISSING_ON_WINDOWS_AND_MACOS = ("memfd_create",)
MISSING_ON_WINDOWS = (*MISSING_ON_WINDOWS_AND_MACOS, "pread", "pwrite", "preadv", "pwritev", "getuid", "geteuid")
MECHANISM = """\
name = "pendulum"
gravity = [0, -9.81, 0]

[[body]]
name = "rod"
mass = 2.0
center = [0, -0.5, 0]
inertia = [0.1667, 0, 0.1667]

[[joint]]
name = "swing"
type = "revolute"
parent = "ground"
child = "rod"
"""
RESULTS = """
point = fl.operating_point(fl.systems.four_bar())
lin = fl.linearize(fl.systems.four_bar())
family = fl.sweep(fl.systems.four_bar(), {"phi": [1.0, 2.0]})
for result in (point, lin, family, lin.modes(), fl.systems.four_bar(), lin.states):
    print(result)
"""


def run_python(code: str, folder: Path, *, missing: tuple[str, ...] = (), encoding: str = "utf-8") -> str:
    """Run code in a new process in which names of `os` are missing, and return what it prints."""
    removal = "".join(f"del os.{name}\n" for name in missing if hasattr(os, name))
    program = f"import os\n{removal}import fmilin as fl\n{code}"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode(encoding, "replace")
    return done.stdout.decode(encoding)


@pytest.mark.parametrize("missing", [MISSING_ON_WINDOWS_AND_MACOS, MISSING_ON_WINDOWS])
def test_the_first_fmu_of_a_process_is_linearized(missing: tuple[str, ...], tmp_path: Path) -> None:
    build_fmu(fl.systems.four_bar(), tmp_path / "four_bar.fmu")
    printed = run_python(
        "print(fl.linearize(fl.load('four_bar.fmu')).eigenvalues().imag.max())", tmp_path, missing=missing
    )
    assert float(printed) == pytest.approx(2.147676638502278, rel=1e-8)


def test_a_sweep_is_stored_without_positioned_reads_and_writes(tmp_path: Path) -> None:
    sweep = ["sweep", "fmilin.systems:four_bar", "--vary", "phi=1:2:3", "-o", "family.npz"]
    run_python(f"from fmilin.cli.main import main\nassert main({sweep}) == 0", tmp_path, missing=MISSING_ON_WINDOWS)
    stored = fl.LinearFamily.load(tmp_path / "family.npz")
    direct = fl.sweep(fl.systems.four_bar(), {"phi": [1.0, 1.5, 2.0]})
    assert stored.ok.all()
    assert abs(stored.A - direct.A).max() == 0.0


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "cp437", "utf-8"])
def test_results_print_in_the_encoding_of_the_console(encoding: str, tmp_path: Path) -> None:
    printed = run_python(RESULTS, tmp_path, encoding=encoding)
    assert "Eigenvalue [1/s]" in printed
    assert "?" not in printed
    sign = "+-" if encoding == "ascii" else "±"
    assert f"{sign}2.1476766 i" in printed


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_table_of_the_command_line_has_lines_in_the_encoding_of_its_stream(encoding: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fmilin", "linearize", "fmilin.systems:four_bar"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    printed = done.stdout.decode(encoding)
    assert "-----" in printed
    assert "?" not in printed


def test_files_are_written_where_the_system_does_not_tell_where_a_path_leads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, strict: bool = False) -> Path:
        raise OSError(234, "More data available", str(path))

    monkeypatch.setattr(Path, "resolve", fail)
    target = tmp_path / "linear.json"
    for content in (b"old", b"new"):
        write_atomically(target, content)
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("model", "file"),
    [
        (r"C:\models\plant.py:make", r"C:\models\plant.py"),
        (r"mujoco:D:/scenes/arm.xml", r"D:/scenes/arm.xml"),
        ("plant.py:make", "plant.py"),
        ("a:make", "a"),  # a single letter is a drive, or the name of a file
    ],
)
def test_the_file_of_a_model_is_found_on_drives_of_windows(model: str, file: str) -> None:
    assert Path(file) in list_model_files(model, constraints=False)


def test_a_mechanism_with_line_ends_of_windows_is_that_with_line_ends_of_unix(tmp_path: Path) -> None:
    matrices = []
    for name, ends in (("unix", "\n"), ("windows", "\r\n")):
        file = tmp_path / f"{name}.toml"
        file.write_bytes(MECHANISM.replace("\n", ends).encode())
        with fl.load(file) as model:
            matrices.append(fl.linearize(model, fl.operating_point(model)).A)
    assert abs(matrices[1] - matrices[0]).max() == 0.0
    assert abs(matrices[0]).max() > 1.0


def test_characters_without_a_lookalike_become_question_marks() -> None:
    assert replace_unencodable("größe φ", "cp1252") == "größe ?"
    assert replace_unencodable("→ ∞ …", "cp1252") == "-> inf …"
    assert replace_unencodable("→", "no such encoding") == "->"
