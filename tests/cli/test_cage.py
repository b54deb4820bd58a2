"""What FMUs cannot reach, sentence by sentence of SECURITY.md, and how they get what they honestly need."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import fmilin as fl
from fmilin.errors import UsageError
from tests.attacks import Attacks, cage_holds, hostile_fmu
from tests.cli.conftest import shell
from tests.fmus.make import HERE, description_of, pack

pytestmark = pytest.mark.skipif(not cage_holds(), reason="this system does not offer all that the cage is made of")
Zoo = Callable[[str], Path]


@pytest.fixture(scope="module")
def attacks(tmp_path_factory: pytest.TempPathFactory) -> Attacks:
    return Attacks(tmp_path_factory.mktemp("attacks")).run()


def test_every_attempt_of_a_hostile_fmu_is_refused(attacks: Attacks) -> None:
    assert attacks.status == 0, attacks.said
    assert len(attacks.outcomes) >= 50
    assert attacks.succeeded == []


def test_files_that_a_hostile_fmu_was_after_are_as_before(attacks: Attacks) -> None:
    assert len((attacks.folder / "home" / "secret.txt").read_text()) == 32
    assert [p.name for p in (attacks.folder / "home").iterdir()] == ["secret.txt"]
    assert (attacks.folder / "other" / "result").read_text() == "a result"


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        (
            ("--allow-env", "FMILIN_SECRET"),
            {"read a secret from the environment", "find the secret in its own memory"},
        ),
        (("--allow-read", "home"), {"read a file at home", "list the files at home"}),
        (
            ("--allow-network",),
            {"open a TCP connection", "send a UDP message", "connect to a unix socket"}
            | {"connect to an abstract unix socket"},
        ),
    ],
    ids=["environment", "files", "network"],
)
def test_what_is_allowed_by_name_and_nothing_else_is_possible(
    options: tuple[str, ...], allowed: set[str], tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    attacks = Attacks(tmp_path).run(*options)
    assert attacks.status == 0, attacks.said
    assert set(attacks.succeeded) == allowed


def test_no_isolation_is_no_cage_and_the_hostile_fmu_then_tries_nothing(tmp_path: Path) -> None:
    attacks = Attacks(tmp_path).run("--no-isolation")
    assert attacks.succeeded == ["none outside a cage"]


READER = """
#include <stdio.h>
#include <stdlib.h>
static int there(const char *file) { FILE *f = fopen(file, "r"); if (f) fclose(f); return f != 0; }
#define ON_INSTANTIATE if (!there("WEATHER")) return 0;
#include "spring.h"
"""


def reader(folder: Path) -> tuple[Path, Path]:
    """Return an FMU that needs a file, and that file."""
    weather = folder / "weather.csv"
    weather.write_text("time,sun\n")
    source = READER.replace("WEATHER", str(weather))
    members = {f"sources/{name}": (HERE / name).read_text() for name in ("spring.h", "fmi2_zoo.h")}
    members |= {"sources/c.c": source, "modelDescription.xml": description_of("crashes")}
    return pack(folder / "crashes.fmu", members), weather


def test_a_model_that_needs_a_file_says_which_option_to_add_and_runs_with_it(tmp_path: Path) -> None:
    fmu, weather = reader(tmp_path)
    refused = shell(["linearize", fmu, "--json", "--compile"], tmp_path)
    assert refused.status == 3
    assert "could not be instantiated" in refused.err
    assert "--allow-read PATH --allow-env NAME --allow-network" in refused.err
    allowed = shell(["linearize", fmu, "--json", "--compile", "--allow-read", weather], tmp_path)
    assert allowed.status == 0, allowed.err


def test_a_path_to_allow_that_is_not_there_is_refused(tmp_path: Path, zoo: Zoo) -> None:
    done = shell(["linearize", zoo("rubs"), "--allow-read", tmp_path / "nowhere"], tmp_path)
    assert done.status == 2
    assert f"--allow-read '{tmp_path / 'nowhere'}': there is no such file or folder." in done.err


def test_info_says_what_holds(zoo: Zoo, tmp_path: Path) -> None:
    done = shell(["info", zoo("rubs"), "--verbose"], tmp_path)
    assert "reads no files of yours" in done.err
    assert "NOT HELD" not in done.err


def test_python_has_the_same_cage_and_the_same_exceptions_to_it(tmp_path: Path) -> None:
    _, weather = reader(tmp_path)
    options = "fl.load('crashes.fmu', fmu=FmuOptions(compile_sources=True))"
    program = f"""
    import fmilin as fl
    from fmilin.options import FmuOptions
    try:
        fl.isolated(lambda: {options}, fl.linearize)
    except fl.ModelError as error:
        assert "Limits(read=" in str(error), error
        print(fl.isolated(lambda: {options}, fl.linearize, fl.Limits(read=[{str(weather)!r}])).A.tolist())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60,
    )  # fmt: skip
    assert done.stdout == "[[0.0, 1.0], [-1.0, 0.0]]\n", done.stderr


def test_what_a_sweep_starts_is_in_the_cage(tmp_path: Path) -> None:
    fmu = hostile_fmu("attacks", tmp_path)
    done = shell(["sweep", fmu, "--vary", "x=[0,1]", "-o", "family.json"], tmp_path, FMILIN_ATTACKS="1 1 1 a b c d e")
    assert done.status == 0, done.err
    assert "attempt: none outside a cage" in done.err  # it may not see FMILIN_ATTACKS
    done = shell(
        ["sweep", fmu, "--vary", "x=[0,1]", "-o", "family.json", "--allow-env", "FMILIN_ATTACKS"],
        tmp_path,
        FMILIN_ATTACKS=f"{os.getpid()} 1 1 {tmp_path} {tmp_path} {tmp_path}/s none {os.urandom(16).hex()}",
    )
    assert done.status == 0, done.err
    assert "attempt: read a secret from the environment: nothing is there" in done.err
    assert "SUCCEEDED" not in done.err


def test_the_first_picture_of_a_user_keeps_its_list_of_fonts(zoo: Zoo, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    places = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": "", "MPLCONFIGDIR": ""}
    done = shell(["plot", zoo("rubs"), "--kind", "step", "-o", "step.png"], tmp_path, **places)
    assert done.status == 0, done.err
    assert "matplotlib" not in done.err.lower()
    assert list((tmp_path / "home").rglob("fontlist*.json"))


def test_limits_take_sequences() -> None:
    with pytest.raises(UsageError, match="are sequences"):
        fl.Limits(read="weather.csv")
    with pytest.raises(UsageError, match="are sequences"):
        fl.Limits(environment="HOME")
