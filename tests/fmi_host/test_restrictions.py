"""What an FMU may take and reach, as options and environment of its host."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fmilin.errors import UsageError
from fmilin.fmi.client.arena import DEFAULT_SIZE, Arena
from fmilin.fmi.client.process import HostProcess
from fmilin.fmi.client.restrictions import Limits, apply_limits, current_restrictions
from fmilin.fmi.sandbox_protections import HostSandbox, read_sandbox_report


def start(limits: Limits) -> HostSandbox:
    """Return what a host reports that was started under restrictions."""
    host = HostProcess(
        Arena(),
        "test",
        lambda *_: None,
        options=limits.to_options(),
        environment=limits.to_environment(),
        seconds=limits.seconds,
    )
    try:
        return read_sandbox_report(host.sandbox_report)
    finally:
        host.close()


def values_of(option: str, options: list[str]) -> list[str]:
    return [options[i + 1] for i, text in enumerate(options) if text == option]


def test_a_host_starts_under_the_default_restrictions() -> None:
    report = start(Limits())
    assert not [p for p in report.protections if p.state == "off"]


def test_a_host_starts_with_everything_allowed(tmp_path: Path) -> None:
    report = start(Limits(read=[tmp_path], network=True, processes=3, environment=["HOME"], memory=1e9, seconds=None))
    assert {p.name for p in report.protections if p.state == "off"} >= {"network", "no-new-processes"}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names of protections that Linux has")
def test_without_restrictions_files_are_open_and_memory_is_still_bounded() -> None:
    report = start(Limits(unrestricted=True))
    assert not report.is_active("landlock-files")
    assert report.is_active("memory")


def test_memory_is_added_to_the_arena_which_takes_addresses_of_its_own() -> None:
    assert values_of("--memory", Limits(memory=1000.0).to_options()) == [str(1000 + DEFAULT_SIZE)]


def test_a_host_may_take_nine_tenths_of_free_memory_by_default() -> None:
    import psutil

    (memory,) = values_of("--memory", Limits().to_options())
    assert (int(memory) - DEFAULT_SIZE) / psutil.virtual_memory().available == pytest.approx(0.9, rel=0.2)


def test_paths_are_absolute_and_each_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paths = values_of("--read", Limits(read=["weather.csv", tmp_path / "weather.csv", "."]).to_options())
    assert paths[:2] == [str(tmp_path / "weather.csv"), str(tmp_path)]
    assert len(paths) == len(set(paths))


def test_the_home_folder_is_not_readable_even_where_it_holds_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(sys, "prefix", str(home))
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}:{home}/lib::relative")
    paths = values_of("--read", Limits().to_options())
    assert str(home) not in paths
    assert str(tmp_path) not in paths
    assert "relative" not in paths
    assert f"{home}/lib" in paths


def test_an_fmu_sees_few_variables_and_those_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "1")
    monkeypatch.setenv("LICENCE_SERVER", "2")
    monkeypatch.setenv("LC_NUMERIC", "C")
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    variables = Limits(environment=["LICENCE_SERVER"]).to_environment()
    assert "SECRET" not in variables
    assert (variables["LICENCE_SERVER"], variables["LC_NUMERIC"], variables["OMP_NUM_THREADS"]) == ("2", "C", "4")
    assert Limits(unrestricted=True).to_environment()["SECRET"] == "1"


def test_restrictions_hold_inside_a_block_and_in_its_thread() -> None:
    strict = Limits(seconds=3.0)
    with apply_limits(strict):
        assert current_restrictions() is strict
        with apply_limits(None):
            assert current_restrictions() is strict
        with ThreadPoolExecutor() as pool:
            assert pool.submit(current_restrictions).result() == Limits()
    assert current_restrictions() == Limits()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"seconds": 0.0}, "seconds for a call must be positive"),
        ({"memory": -1.0}, "bytes of memory must be positive"),
        ({"processes": -1}, "must not be negative"),
        ({"read": "weather"}, "must be sequences"),
        ({"environment": "NAME"}, "must be sequences"),
        ({"network": "yes"}, "network"),
    ],
)
def test_values_without_a_meaning_are_rejected(given: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Limits(**given)  # type: ignore[arg-type]


def test_the_former_name_of_unrestricted_is_understood() -> None:
    with pytest.warns(DeprecationWarning, match="unrestricted"):
        limits = Limits(caged=False)
    assert limits.unrestricted
