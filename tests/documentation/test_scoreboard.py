"""The scoreboard: every row's first door to the last printed digit, and its page as the rows say it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from benchmarks.scoreboard import command
from benchmarks.scoreboard.command import main
from benchmarks.scoreboard.page import PAGE, page_text
from benchmarks.scoreboard.row import Row
from benchmarks.scoreboard.rows.bicycle_at_5 import ROW as BICYCLE
from benchmarks.scoreboard.rows.rolling_disk import ROW as DISK
from benchmarks.scoreboard.table import ROOT, TABLE, entry, number_of, read, rows

ROWS, TABLE_ROWS = rows(), read()


@pytest.mark.parametrize("name", ROWS)
def test_the_published_number_is_found_and_is_the_one_of_the_table(name: str) -> None:
    row, kept = ROWS[name], TABLE_ROWS[name]
    door = next(iter(row.doors))
    number = row.ask(door)
    assert row.agrees(number)
    assert number == pytest.approx(number_of(kept.fmilin[door]), rel=1e-8, abs=1e-10)


def test_the_table_and_its_page_are_those_of_the_rows() -> None:
    """Else ``python -m benchmarks scoreboard --write`` makes them again."""
    assert list(TABLE_ROWS) == list(ROWS)
    for name, row in ROWS.items():
        kept = TABLE_ROWS[name]
        doors = {door: number_of(number) for door, number in kept.fmilin.items()}
        assert set(doors) == set(row.doors)
        assert all(row.agrees(number) for number in doors.values())
        assert replace(entry(name, row, doors, kept), difference=kept.difference) == kept
        assert kept.agrees
    assert PAGE.read_text("utf-8") == page_text()


def test_the_command_of_a_row_prints_its_number_last() -> None:
    line = {entry["name"]: entry for entry in json.loads(TABLE.read_text("utf-8"))}["squeezer"]
    words = [sys.executable, *line["command"].split()[1:]]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    number = number_of(json.loads(done.stdout.splitlines()[-1]))
    assert number == pytest.approx(number_of(line["published"]), abs=1e-4)


def test_a_door_is_asked_alone_and_an_unknown_one_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["beam_hanging", "--door", "MJCF"]) == 0
    *_, door, number = capsys.readouterr().out.splitlines()
    assert door == "fmilin, MJCF:"
    assert number_of(json.loads(number)) == pytest.approx(ROWS["beam_hanging"].value, rel=1e-9)
    for wrong, told in (
        (["beam_hanging", "--door", "URDF"], "There are: TOML, FMU, MJCF"),
        (["beam"], "no row 'beam'"),
    ):
        with pytest.raises(SystemExit):
            main(wrong)
        assert told in capsys.readouterr().err


def test_several_rows_are_a_table_and_a_wrong_number_is_status_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = replace(ROWS["three_bodies"], published="0.03853")
    monkeypatch.setattr(command, "rows", lambda _: {"reactor_cold": ROWS["reactor_cold"], "wrong": wrong})
    assert main(["--reduced"]) == 1
    assert "2 rows, 1 of them not to their last printed digit" in capsys.readouterr().out


def test_peers_that_are_named_have_answered_in_a_version() -> None:
    for name, row in ROWS.items():
        assert set(TABLE_ROWS[name].peers) == set(TABLE_ROWS[name].peer_versions) == set(row.peers)


@pytest.mark.parametrize(("name", "peer"), [("pendulum_double_fast", "CasADi"), ("reactor_cold", "python-control")])
def test_a_peer_answers_by_its_script(name: str, peer: str) -> None:
    line = TABLE_ROWS[name]
    words = [sys.executable, *line.peer_commands[peer].split()[1:]]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT)
    *_, version, number = done.stdout.splitlines()
    assert version.startswith(f"{peer} ")
    assert number_of(json.loads(number)) == pytest.approx(number_of(line.peers[peer]), rel=1e-6)


def test_one_unit_of_the_last_digit_is_a_difference() -> None:
    number = BICYCLE.value
    assert BICYCLE.agrees(number + 0.4e-14j)
    off = replace(BICYCLE, published="-0.775342+4.464868j")
    assert off.agrees(number)
    assert not off.agrees(number + 1e-6)
    assert not off.agrees(number - 1e-6j)


def test_a_formula_is_met_to_nine_digits_and_a_real_number_is_real() -> None:
    assert DISK.agrees(DISK.value * (1 + 1e-10))
    assert not DISK.agrees(DISK.value * (1 + 1e-8))
    real = Row("", "", "", "", "14222.44", lambda _: 0, {})
    assert real.agrees(14222.4439)
    assert not real.agrees(14222.4439 + 1e-3j)
