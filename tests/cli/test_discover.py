"""``fmilin discover``, and linearize with what it finds."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import fmpy
import pytest

from fmilin import Discovery
from fmilin.codegen.compiler import library_suffix
from fmilin.discovery.discovery_result import Finding, KeptOut
from fmilin.fmi.platforms import fmi2_folders
from fmilin.report.result_tables import show_discovery
from fmilin.report.terminal import print_to_stream
from tests.cli.conftest import Run
from tests.fmus import make

CRASHES_MIDWAY = """
static int asked;
#define ON_GET_DERIVATIVES if (++asked > 300) *(volatile int *)0 = 1;
#include "pendulum.c"
"""


def test_a_file_that_linearize_takes(run: Run) -> None:
    done = run("discover", "pendulum.fmu", "-o", "found.toml")
    assert (done.status, done.out) == (0, "")
    assert "order 2 instead of 4" in done.err
    assert 'expression = "x^2 + y^2 - 4"' in Path("found.toml").read_text()
    assert run("linearize", "pendulum.fmu", "--constraints", "found.toml", "-o", "file.json").status == 0
    assert run("linearize", "pendulum.fmu", "--discover", "-o", "once.json").status == 0
    assert run("linearize", "pendulum.fmu", "--constraint", "x^2 + y^2 - 4", "-o", "declared.json").status == 0
    file, once, declared = (json.loads(Path(f"{n}.json").read_text()) for n in ("file", "once", "declared"))
    for name in ("A", "B", "C", "D", "T", "states"):
        assert file[name] == once[name] == declared[name]


def test_a_table_with_residuals(run: Run) -> None:
    done = run("discover", "pendulum.fmu")
    assert done.status == 0
    assert "2 independent states of 4" in done.out
    assert "x^2 + y^2 - 4" in done.out
    assert "H f_u" in done.out


def test_json(run: Run) -> None:
    found = json.loads(run("discover", "pendulum.fmu", "--json").out)
    assert found["format"] == "fmilin-discovery/1"
    assert (found["order"], found["full_order"]) == (2, 4)
    assert [c["expression"] for c in found["constraints"]] == ["x^2 + y^2 - 4"]
    assert found["visits"] < 1000


def test_states_that_are_set_are_held_and_the_others_follow(run: Run) -> None:
    assert run("linearize", "pendulum.fmu", "--discover", "--set", "x=1.2", "-o", "there.json").status == 0
    assert json.loads(Path("there.json").read_text())["point"]["states"]["y"] == pytest.approx(-1.6)


def test_without_a_formula(run: Run) -> None:
    done = run("linearize", "pendulum.fmu", "--tangent-only", "-o", "tangent.json")
    assert done.status == 0
    assert "No constraint is known" in done.err
    assert run("linearize", "pendulum.fmu", "--constraint", "x^2 + y^2 - 4", "-o", "declared.json").status == 0
    tangent, declared = (json.loads(Path(f"{n}.json").read_text()) for n in ("tangent", "declared"))
    for (re, im), (true_re, true_im) in zip(tangent["eigenvalues"], declared["eigenvalues"], strict=True):
        assert (re, im) == pytest.approx((true_re, true_im), abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["linearize", "pendulum.fmu", "--discover", "--tangent-only"], "--tangent-only and --discover exclude"),
        (["linearize", "pendulum.fmu", "--discover", "--constraint", "x"], "--discover and --constraint exclude"),
        (["discover", "pendulum.fmu", "--excite", "0"], "give a factor more than 0"),
        (["discover", "pendulum.fmu", "-o", "found.txt"], "has to end in .toml"),
    ],
)
def test_misuse(run: Run, arguments: list[str], said: str) -> None:
    done = run(*arguments)
    assert done.status == 2
    assert said in done.err


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the FMU is compiled for POSIX")
def test_what_was_found_before_a_crash_is_shown(tmp_path: Path) -> None:
    source, library = tmp_path / "pendulum.c", tmp_path / "pendulum.so"
    source.write_text(CRASHES_MIDWAY.replace('"pendulum.c"', f'"{make.HERE / "pendulum.c"}"'))
    headers = Path(str(fmpy.__file__)).parent / "c-code"
    command = ["cc", "-shared", "-fPIC", "-O1", "-w", f"-I{headers}", f"-I{make.HERE}", str(source)]
    subprocess.run([*command, "-o", str(library), "-lm"], check=True)
    members: dict[str, bytes | str] = {
        "modelDescription.xml": make.description_of("pendulum"),
        f"binaries/{fmi2_folders()[0]}/pendulum{library_suffix()}": library.read_bytes(),
    }
    path = make.pack(tmp_path / "pendulum.fmu", members)
    done = subprocess.run(
        [sys.executable, "-m", "fmilin", "discover", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 6
    assert "Found: pin.x^2 + pin.y^2 - 1 = 0" in done.stderr
    assert done.stdout == ""


def test_long_tables_end_and_say_what_they_leave_out() -> None:
    findings = tuple(Finding(f"x{i} - y{i}", "position", (f"x{i}", f"y{i}"), 0.0, 0.0, 0.0) for i in range(45))
    kept_out = tuple(KeptOut(f"v{i}", "as momentum is") for i in range(41))
    stream = io.StringIO()
    print_to_stream(stream, show_discovery, Discovery(findings, kept_out, 45, 90))
    shown = stream.getvalue()
    assert "x39 - y39" in shown
    assert "x40 - y40" not in shown
    assert "5 more constraints" in shown
    assert "1 more kept out" in shown
