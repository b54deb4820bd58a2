"""What FMUs cannot reach, sentence by sentence of SECURITY.md, and how they get what they honestly need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import fmilin as fl
from fmilin.errors import UsageError
from fmilin.options import FmuOptions
from tests.attacks import Attacks, hostile_fmu, sandbox_holds
from tests.cli.conftest import shell
from tests.fmus.make import HERE, description_of, pack

pytestmark = pytest.mark.skipif(not sandbox_holds(), reason="this system does not offer all protections")
Zoo = Callable[[str], Path]


@pytest.fixture(scope="module")
def attacks(tmp_path_factory: pytest.TempPathFactory) -> Attacks:
    return Attacks(tmp_path_factory.mktemp("attacks")).run()


def test_every_attempt_of_a_hostile_fmu_is_refused(attacks: Attacks) -> None:
    assert attacks.status == 0, attacks.said
    assert len(attacks.outcomes) >= 65
    assert attacks.succeeded == []


def test_every_attempt_is_refused_while_the_library_is_loaded(tmp_path: Path) -> None:
    attacks = Attacks(tmp_path).run(at_load=True)
    assert attacks.status == 0, attacks.said
    assert len(attacks.outcomes) >= 65
    assert attacks.succeeded == []


def test_files_that_a_hostile_fmu_was_after_are_as_before(attacks: Attacks) -> None:
    assert len((attacks.folder / "home" / "secret.txt").read_text()) == 32
    assert {p.name for p in (attacks.folder / "home").iterdir()} - {".cache"} == {
        "secret.txt",
        "shortcut",
        "library.so",
    }
    assert (attacks.folder / "other" / "result").read_text() == "a result"


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        (
            ("--allow-env", "FMILIN_SECRET"),
            {
                "read a secret from the environment",
                "read it from /proc/self/environ",
                "find the secret in its own memory",
            },
        ),
        (
            ("--allow-read", "home"),
            {
                "read a file at home",
                "list the files at home",
                "ask whether a file at home is there",
                "ask whether it may read a file at home",
                "read where a link at home leads",
                "load a library at home",
            },
        ),
        (
            ("--allow-network",),
            {"open a TCP connection", "send a UDP message", "connect to an abstract unix socket"},
        ),
        (("--allow-processes",), {"start a process"}),
    ],
    ids=["environment", "files", "network", "processes"],
)
def test_what_is_allowed_by_name_and_nothing_else_is_possible(
    options: tuple[str, ...], allowed: set[str], tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    attacks = Attacks(tmp_path).run(*options)
    assert attacks.status == 0, attacks.said
    assert set(attacks.succeeded) == allowed


def test_without_restrictions_the_hostile_fmu_tries_nothing(tmp_path: Path) -> None:
    attacks = Attacks(tmp_path).run("--no-isolation")
    assert attacks.succeeded == ["none outside the sandbox"]


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


def test_python_has_the_same_sandbox_and_the_same_exceptions_to_it(tmp_path: Path) -> None:
    fmu, weather = reader(tmp_path)
    compiled = FmuOptions(compile_sources=True)
    with pytest.raises(fl.ModelError, match=r"Limits\(read="):
        fl.load(fmu, fmu=compiled)
    with fl.load(fmu, fmu=compiled, limits=fl.Limits(read=[weather])) as model:
        assert fl.linearize(model).A.tolist() == [[0.0, 1.0], [-1.0, 0.0]]
    with pytest.warns(DeprecationWarning, match="no longer needed"):
        linear = fl.isolated(lambda: fl.load(fmu, fmu=compiled), fl.linearize, fl.Limits(read=[weather]))
    assert linear.A.tolist() == [[0.0, 1.0], [-1.0, 0.0]]


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_a_sweep_loads_is_in_the_sandbox(jobs: str, tmp_path: Path) -> None:
    fmu = hostile_fmu("attacks", tmp_path)
    command = ["sweep", fmu, "--vary", "x=[0,1]", "-o", "family.json", "--jobs", jobs]
    variable = {"FMILIN_ATTACKS": f"1 1 1 {tmp_path} {tmp_path} {tmp_path}/s none abcdefgh"}
    done = shell(command, tmp_path, **variable)
    assert done.status == 0, done.err
    assert "attempt: none outside the sandbox" in done.err  # it may not see FMILIN_ATTACKS
    done = shell([*command, "--allow-env", "FMILIN_ATTACKS"], tmp_path, **variable)
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
    with pytest.raises(UsageError, match="must be sequences"):
        fl.Limits(read="weather.csv")
    with pytest.raises(UsageError, match="must be sequences"):
        fl.Limits(environment="HOME")
