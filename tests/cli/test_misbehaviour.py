"""FMUs whose code crashes, hangs, ends the process or leaves a mess: each ends in one paragraph, or does no harm."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.cli.conftest import Outcome, Run, shell
from tests.command_line import main
from tests.fmus.make import HERE, description_of, pack
from tests.fmus.stepped import make as stepped

PATIENCE = "60"
"""Seconds for every single call where none hangs: a slow or busy machine must not look like a hanging model."""
IMPATIENCE = "3"
"""Where one hangs: far above what any other call takes on a slow machine."""
Zoo = Callable[[str], Path]


def linearize(fmu: Path, folder: Path, timeout: str = PATIENCE) -> Outcome:
    arguments = ["linearize", fmu, "-o", "plant.json", "--timeout", timeout, "--memory", "0.5"]
    return shell(arguments, folder, TMPDIR=str(folder))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "aborts",
            'SIGABRT: aborted) in fmi2GetDerivatives. Its last message: "the table drag.txt is missing".',
        ),
        ("overflows_the_stack", "crashed (SIGSEGV: segmentation fault) in fmi2GetDerivatives"),
        (
            "hangs",
            "did not return from fmi2ExitInitializationMode within 3 s and was stopped. If it only needs more time, "
            "give it more with --timeout SECONDS.",
        ),
        ("hangs_when_loaded", "did not return from the loading of the library within 3 s and was stopped"),
    ],
)
def test_what_ends_the_model_is_one_paragraph_and_status_6(name: str, said: str, zoo: Zoo, tmp_path: Path) -> None:
    done = linearize(zoo(name), tmp_path, IMPATIENCE if name.startswith("hangs") else PATIENCE)
    assert done.status == 6
    assert done.is_one_paragraph()
    assert said in done.err
    assert list(tmp_path.iterdir()) == []


ALONE = "each instance runs in a process of its own."


def test_code_that_crashes_at_a_second_instance_has_a_process_for_each(zoo: Zoo, tmp_path: Path) -> None:
    done = shell(["linearize", zoo("crashes_twice_instantiated"), "--json"], tmp_path)
    assert done.status == 0
    found = json.loads(done.out)
    assert found["A"] == pytest.approx(np.array([[0.0, 1.0], [-1.0, 0.0]]))
    said = [w["message"] for w in found["warnings"] if "does not support a second instance" in w["message"]]
    assert len(said) == 1
    assert said[0].endswith(ALONE)


@pytest.mark.parametrize("flag", ["-DONLY_ONCE", "-DREFUSES_A_SECOND", "-DEVER_ONCE"])
def test_runs_of_code_that_supports_a_single_instance(flag: str, tmp_path: Path) -> None:
    """It cannot save its state, so every run needs an instance as it was at the start."""
    kind = stepped.Kind(hidden=True, flags=(flag,), attributes='canHandleVariableCommunicationStepSize="true"')
    done = shell(["linearize", stepped.build("motor", tmp_path, kind), "--json"], tmp_path)
    assert done.status == 0
    found = json.loads(done.out)
    np.testing.assert_allclose(
        np.array(found["eigenvalues"])[:, 0], [-4.618033988749895, -2.381966011250105, 0.0], atol=1e-6
    )
    assert sum(ALONE in w["message"] for w in found["warnings"]) == 1


def test_code_that_supports_a_single_instance_and_refuses_states_begins_with_them(tmp_path: Path) -> None:
    """States that are refused between two steps are start values of a fresh instance, in a process of its own."""
    attributes = 'canHandleVariableCommunicationStepSize="true"'
    path = stepped.build("motor", tmp_path, stepped.Kind(flags=("-DEVER_ONCE", "-DSTRICT"), attributes=attributes))
    done = shell(["linearize", path, "--json"], tmp_path)
    assert done.status == 0
    found = json.loads(done.out)
    np.testing.assert_allclose(
        np.array(found["eigenvalues"])[:, 0], [-4.618033988749895, -2.381966011250105, 0.0], atol=1e-5
    )
    assert sum(ALONE in w["message"] for w in found["warnings"]) == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only there is the address space bounded for sure")
def test_runaway_memory_is_stopped(zoo: Zoo, tmp_path: Path) -> None:
    done = linearize(zoo("devours_memory"), tmp_path)
    assert done.status == 6
    assert "in fmi2GetDerivatives. It used nearly all of its memory limit of 0.50 GiB: raise it" in done.err
    assert "raise it with --memory GIB" in done.err


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the C library here has no feenableexcept")
def test_floating_point_traps_in_the_model_are_named(zoo: Zoo, tmp_path: Path) -> None:
    done = linearize(zoo("traps_always"), tmp_path)
    assert done.status == 6
    assert "SIGFPE" in done.err
    assert "switched floating-point traps on" in done.err
    assert "fmi2GetDerivatives" in done.err


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the C library here has no feenableexcept")
def test_floating_point_traps_that_are_left_on_do_not_hit_our_own_arithmetic(zoo: Zoo, tmp_path: Path) -> None:
    done = linearize(zoo("traps_once"), tmp_path)
    assert done.status == 0
    assert json.loads((tmp_path / "plant.json").read_text())["states"] == ["x", "v"]


def processes_of(name: str) -> list[int]:
    """Return the processes that have the library of this FMU in memory, or once had."""
    return [p.pid for p in psutil.process_iter() if any(f"{name}.fmu" in word for word in words_of(p))]


def words_of(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def test_an_interrupt_in_the_model_is_not_the_users(zoo: Zoo, tmp_path: Path) -> None:
    done = linearize(zoo("raises_interrupt"), tmp_path)
    assert done.status == 6
    assert done.is_one_paragraph()
    assert "crashed (SIGINT: interrupt) in fmi2GetDerivatives." in done.err


@pytest.mark.parametrize(
    "name", ["forks_at_start", "doubles_always", "forks_always", "forks_without_end", "leaves_process"]
)
def test_results_come_once_and_whole_although_the_model_tries_to_start_processes(
    name: str, zoo: Zoo, tmp_path: Path
) -> None:
    done = shell(["linearize", zoo(name), "--json", "-o", "plant.json"], tmp_path, TMPDIR=str(tmp_path))
    assert done.status == 0, done.err
    assert json.loads(done.out)["A"] == [[0, 1], [-1, 0]]
    assert (tmp_path / "plant.json").read_text() == done.out
    assert [p.name for p in tmp_path.iterdir()] == ["plant.json"]
    assert "bug" not in done.err
    assert processes_of(name) == []


@pytest.mark.parametrize("name", ["writes_to_descriptors", "closes_descriptors"])
def test_a_model_that_destroys_the_connection_to_its_process_ends_itself_alone(
    name: str, zoo: Zoo, tmp_path: Path
) -> None:
    done = shell(["linearize", zoo(name), "--json", "-o", "plant.json"], tmp_path, TMPDIR=str(tmp_path))
    assert done.status == 6
    assert done.is_one_paragraph()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["forks_always", "forks_without_end", "leaves_process"])
def test_processes_that_are_allowed_end_with_the_model(name: str, zoo: Zoo, tmp_path: Path) -> None:
    done = shell(["linearize", zoo(name), "-o", "plant.json", "--allow-processes"], tmp_path)
    assert done.status == 0, done.err
    assert processes_of(name) == []


@pytest.mark.parametrize("name", ["crashes_at_unload", "crashes_when_freed"])
def test_a_crash_on_the_way_out_spoils_nothing(name: str, zoo: Zoo, tmp_path: Path) -> None:
    done = linearize(zoo(name), tmp_path)
    assert done.status == 0
    assert re.search(r"crashed \(SIG.*\) (while it was unloaded|in fmi2FreeInstance)", done.err)
    assert [p.name for p in tmp_path.iterdir()] == ["plant.json"]


def test_a_model_that_cannot_be_unloaded_is_left_behind(zoo: Zoo, tmp_path: Path) -> None:
    done = linearize(zoo("hangs_when_unloaded"), tmp_path, IMPATIENCE)
    assert done.status == 0
    assert "was not unloaded within 3 s and was stopped" in done.err
    assert [p.name for p in tmp_path.iterdir()] == ["plant.json"]


def test_destroyed_memory_never_passes_for_a_result(zoo: Zoo, tmp_path: Path) -> None:
    done = linearize(zoo("corrupts_memory"), tmp_path)
    assert done.status == 6
    assert "fmi2GetNominalsOfContinuousStates" in done.err


def test_a_model_that_changes_directory_and_prints_garbage_leaves_results_clean(zoo: Zoo, tmp_path: Path) -> None:
    done = linearize(zoo("wanders_off"), tmp_path)
    assert done.status == 0
    assert done.out == ""
    assert "garbage" in done.err
    assert json.loads((tmp_path / "plant.json").read_text())["states"] == ["x", "v"]
    printed = shell(["linearize", zoo("wanders_off"), "--json"], tmp_path)
    assert json.loads(printed.out)["states"] == ["x", "v"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--timeout", "-1"], "--timeout -1.0: give seconds, or 0 for no limit."),
        (["--timeout", "nan"], "--timeout nan: give seconds"),
        (["--memory", "0"], "--memory 0.0: give GiB, more than 0."),
        (["--memory", "inf"], "--memory inf: give GiB"),
    ],
)
def test_limits_that_are_none(options: list[str], said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for command in ("linearize", "trim"):
        assert main([command, str(tmp_path / "absent.fmu"), *options]) == 2
        assert capfd.readouterr().err.startswith(f"fmilin: {said}")


def test_sources_are_compiled_in_the_child_when_asked_for(tmp_path: Path) -> None:
    members: dict[str, bytes | str] = {f"sources/{n}": (HERE / n).read_text() for n in ("spring.h", "fmi2_zoo.h")}
    members |= {"modelDescription.xml": description_of("crashes"), "sources/c.c": (HERE / "crashes.c").read_text()}
    path = pack(tmp_path / "m.fmu", members)
    unasked = shell(["linearize", path], tmp_path)
    assert unasked.status == 3
    assert "Compile its sources" in unasked.err
    done = shell(["linearize", path, "--compile"], tmp_path, TMPDIR=str(tmp_path))
    assert done.status == 6
    assert "in fmi2GetDerivatives" in done.err
    assert [p.name for p in tmp_path.iterdir()] == ["m.fmu"]


@pytest.mark.parametrize("command", ["info", "linearize"])
def test_the_limit_for_unpacking_can_be_chosen(command: str, zoo: Zoo, run: Run, tmp_path: Path) -> None:
    refused = shell([command, zoo("discards"), "--unpack-limit", "0.000001"], tmp_path)
    assert refused.status == 3
    assert "raise the limit with --unpack-limit" in refused.err
    assert shell([command, zoo("discards"), "--unpack-limit", "1"], tmp_path).status == 0
    wrong = run(command, zoo("discards"), "--unpack-limit", "-1")
    assert wrong.status == 2
    assert wrong.err == "fmilin: --unpack-limit -1.0: give GiB, more than 0.\n"


@pytest.mark.parametrize("limit", [4, 6, 8, 10, 12])
def test_few_descriptors_are_no_bug(limit: int, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("from fmilin.systems import cartesian_pendulum as m\n", encoding="utf-8")
    code = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))"
    run = f"{code}; import sys; from fmilin.cli.main import main; sys.exit(main(['linearize', 'm.py:m']))"
    done = subprocess.run([sys.executable, "-c", run], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "is a bug" not in done.stderr
    assert "open" in done.stderr if done.returncode else done.stdout


def test_a_working_directory_that_was_removed_is_told(tmp_path: Path) -> None:
    code = "import os, sys; os.rmdir(os.getcwd()); from fmilin.cli.main import main; sys.exit(main(sys.argv[1:]))"
    here = tmp_path / "here"
    here.mkdir()
    command = [sys.executable, "-c", code, "linearize", "fmilin.systems:four_bar", "-o", "x.mat"]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "fmilin: the working directory has been removed. Change to one that exists.\n",
    )
