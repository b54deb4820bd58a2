"""``info``, ``build``, ``convert``, ``demo`` and the program itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fmilin
from fmilin import LinearModel
from tests.cli.conftest import Run, shell
from tests.fmus.make import description_of, pack
from tests.hand_made import differences, pendulum


def test_help_names_every_command_and_the_exit_statuses(run: Run) -> None:
    done = run("--help")
    assert done.status == 0
    for word in ("linearize", "info", "build", "convert", "demo", "Exit status", "6 the model crashed"):
        assert word in " ".join(done.out.split())


@pytest.mark.parametrize("command", ["linearize", "info", "build", "convert", "demo"])
def test_every_command_has_help(run: Run, command: str) -> None:
    done = run(command, "--help")
    assert done.status == 0
    assert f"Usage: fmilin {command}" in done.out


def test_version(run: Run) -> None:
    assert run("--version").out == f"fmilin {fmilin.__version__}\n"


def test_no_arguments_show_the_help_as_an_error(tmp_path: Path) -> None:
    done = shell([], tmp_path)
    assert done.status == 2
    assert done.out == ""
    assert "Usage: fmilin" in done.err


HELP = "from fmilin.cli.main import main; main(['--help'])"
REQUEST = """
import fmilin.cli.linearize
from fmilin.cli.request import CommandRequest, Loading, PointRequest, TrimRequest
CommandRequest("model.fmu", Loading(), PointRequest(trim=TrimRequest()))
"""


@pytest.mark.parametrize("program", [HELP, REQUEST], ids=["help", "request"])
def test_nothing_heavy_is_imported_before_the_work_begins(program: str, tmp_path: Path) -> None:
    listed = f"{program}\nimport sys; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True, cwd=tmp_path)
    for heavy in ("numpy", "scipy", "sympy", "control", "matplotlib", "pydantic", "rich", "fmpy", "lxml"):
        assert f"'{heavy}'" not in done.stdout


def test_info_of_an_fmu(run: Run) -> None:
    done = run("info", "four_bar.fmu")
    assert done.status == 0
    for text in ("FMI 2.0", "model exchange", "States (10)", "2.234331 rad", "torque", "N.m", "coupler.y", "rod A0B0"):
        assert text in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_info_as_json(run: Run) -> None:
    document = json.loads(run("info", "four_bar.fmu", "--json").out)
    assert document["fmi_version"] == "2.0"
    assert document["interfaces"] == ["ModelExchange", "CoSimulation"]
    assert [s["name"] for s in document["states"]][-1] == "w"
    assert {"name": "torque", "unit": "N.m"}.items() <= document["inputs"][0].items()
    assert document["directional_derivatives"] is True
    assert len(document["constraints"]) == 4
    assert document["independent"] == ["phi", "w"]
    assert any("linux64" in p or "win64" in p or "darwin" in p or "-" in p for p in document["platforms"])


def test_info_of_a_native_model_and_of_one_without_constraints(run: Run) -> None:
    native = json.loads(run("info", "fmilin.systems:cartesian_pendulum", "--json").out)
    assert native["constraints"][0]["name"] == "rod length"
    assert native["constraints_from"] == "the model itself"
    assert "No constraints come with the model" in run("info", "pendulum.fmu").out


def test_info_checks_a_description_when_asked(run: Run, tmp_path: Path) -> None:
    by_hand = pack(tmp_path / "by_hand.fmu", {"modelDescription.xml": description_of("pendulum")})
    sound, flawed = run("info", "four_bar.fmu", "--check"), run("info", by_hand, "--check")
    assert "FMPy finds nothing wrong in its description" in sound.out
    assert "Problem      ModelStructure/InitialUnknowns does not contain" in flawed.out
    assert "Problem" not in run("info", by_hand).out
    assert json.loads(run("info", "four_bar.fmu", "--check", "--json").out)["problems"] == []
    assert "problems" not in json.loads(run("info", "four_bar.fmu", "--json").out)


def test_info_checks_fmus_only(run: Run) -> None:
    refused = run("info", "fmilin.systems:cartesian_pendulum", "--check")
    assert refused.status == 2
    assert "--check reads the description of an FMU" in refused.err


def test_info_runs_no_code_of_the_fmu(run: Run, tmp_path: Path, fmus: Path) -> None:
    import zipfile

    with zipfile.ZipFile(fmus / "four_bar.fmu") as whole, zipfile.ZipFile(tmp_path / "bare.fmu", "w") as bare:
        bare.writestr("modelDescription.xml", whole.read("modelDescription.xml"))
    assert "States (10)" in run("info", tmp_path / "bare.fmu").out


def test_build_and_linearize(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from fmilin.systems import cartesian_pendulum\ndef crane(length=1.0): return cartesian_pendulum(length)\n"
    )
    done = run(
        "build", "mine.py:crane(length=4.905)", "-o", "crane.fmu", "--fmi", "3.0", "--no-directional-derivatives"
    )
    assert done.status == 0, done.err
    assert done.out == ""
    document = json.loads(run("linearize", tmp_path / "crane.fmu", "--json").out)
    assert document["model"]["fmi_version"] == "3.0"
    assert document["method"]["derivatives"] == "differences"
    assert np.allclose(document["eigenvalues"], [[0, -(2**0.5)], [0, 2**0.5]], atol=1e-8)


def test_convert_between_all_formats_loses_nothing(run: Run, tmp_path: Path) -> None:
    pendulum().save(tmp_path / "0.json")
    for i, (old, new) in enumerate([("json", "mat"), ("mat", "npz"), ("npz", "json")]):
        done = run("convert", f"{i}.{old}", "-o", f"{i + 1}.{new}")
        assert done.status == 0, done.err
    assert differences(pendulum(), LinearModel.load(tmp_path / "3.json")) == []
    assert (tmp_path / "3.json").read_bytes() == (tmp_path / "0.json").read_bytes()


def test_demo_leaves_three_files_and_says_what_to_type_next(tmp_path: Path) -> None:
    done = shell(["demo"], tmp_path)
    assert done.status == 0, done.err
    folder = tmp_path / "fmilin-demo"
    assert sorted(p.name for p in folder.iterdir()) == ["eigenvalues.png", "four_bar.fmu", "four_bar.mat"]
    assert (folder / "eigenvalues.png").read_bytes().startswith(b"\x89PNG")
    assert "2 independent states out of 10" in done.out
    assert "±2.1476766 i" in done.out
    assert "Naive: Jacobian of all 10 states" in done.out
    assert "8 of the naive model's 10 eigenvalues are spurious" in done.out
    next_commands = [line.strip() for line in done.out.splitlines() if line.startswith("  fmilin ")]
    assert len(next_commands) == 3
    assert np.allclose(
        LinearModel.load(folder / "four_bar.mat").eigenvalues().imag, [-2.147676638502278, 2.147676638502278]
    )
    by_hand = shell(["linearize", "fmilin-demo/four_bar.fmu", "-o", "again.mat"], tmp_path)
    assert by_hand.status == 0
    assert differences(LinearModel.load(tmp_path / "again.mat"), LinearModel.load(folder / "four_bar.mat")) == []


def test_demo_where_a_file_has_the_folders_name(run: Run, tmp_path: Path) -> None:
    (tmp_path / "fmilin-demo").write_text("")
    done = run("demo")
    assert done.status == 2
    assert done.is_one_paragraph()


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_streams_that_are_closed_do_no_harm(closed: tuple[int, ...], fmus: Path, tmp_path: Path) -> None:
    def close() -> None:
        for descriptor in closed:
            os.close(descriptor)

    command = [sys.executable, "-m", "fmilin", "linearize", str(fmus / "four_bar.fmu"), "-o", "plant.json"]
    done = subprocess.run(command, cwd=tmp_path, preexec_fn=close, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert json.loads((tmp_path / "plant.json").read_text())["states"] == ["phi", "w"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device on this system")
def test_results_that_find_no_space_are_no_bug_of_ours(fmus: Path, tmp_path: Path) -> None:
    for arguments in (["linearize", fmus / "four_bar.fmu"], ["info", fmus / "four_bar.fmu"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "fmilin", *map(str, arguments)],
                cwd=tmp_path,
                stdout=full,
                stderr=subprocess.PIPE,
                check=False,
            )
        assert done.returncode == 2
        said = done.stderr.decode()
        assert said.startswith("fmilin: Cannot write the results: ")
        assert said.count("\n") == 1


def test_a_misspelt_command_is_answered_with_the_nearest_one(run: Run) -> None:
    done = run("linearise", "four_bar.fmu")
    assert (done.status, done.is_one_paragraph()) == (2, True)
    assert "No such command 'linearise'. Did you mean 'linearize'?" in done.err
