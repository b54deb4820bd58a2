"""``fmilin linearize`` on real FMUs and native models: what it prints and what it writes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fmilin as fl
from fmilin import LinearModel
from fmilin.systems import four_bar
from fmilin.systems.four_bar_linkage import equilibrium_angle
from tests.cli.conftest import Run, shell
from tests.hand_made import differences
from tests.systems.linkages import FILE

PAIR = 2.147676638502278
"""rad/s, of the four-bar linkage at its upper equilibrium."""


def test_table_for_a_person(run: Run) -> None:
    done = run("linearize", "four_bar.fmu")
    assert done.status == 0
    assert "2 independent states out of 10" in done.out
    assert "±2.1476766 i" in done.out
    assert "[rad/s]" in done.out
    assert "0.34181335" in done.out
    assert "phi = 2.234331 rad" in done.out
    assert "No warnings." in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert "\x1b" not in done.out


def test_json_is_the_only_thing_on_standard_output(run: Run) -> None:
    done = run("linearize", "four_bar.fmu", "--json")
    document = json.loads(done.out, parse_constant=pytest.fail)
    assert document["format"] == "fmilin-linear/1"
    assert document["states"] == ["phi", "w"]
    assert len(document["full_states"]) == 10
    assert np.allclose(document["eigenvalues"], [[0, -PAIR], [0, PAIR]], atol=1e-12)
    assert document["model"]["fmi_version"] == "2.0"
    assert document["accuracy"]["A"] <= 1e-10
    assert done.err == ""


def test_files_of_all_formats_agree(run: Run, tmp_path: Path) -> None:
    done = run("linearize", "four_bar.fmu", "-o", "a.mat", "--output", "a.npz", "-o", "a.json")
    assert done.status == 0
    assert done.out == ""
    assert "a.npz: 2 independent states out of 10" in done.err
    a, b, c = (LinearModel.load(tmp_path / f"a{suffix}") for suffix in (".mat", ".npz", ".json"))
    assert differences(a, b) == []
    assert differences(a, c) == []
    assert np.allclose(a.eigenvalues(), [-PAIR * 1j, PAIR * 1j], atol=1e-12)


def test_the_same_model_native_and_as_fmu(run: Run) -> None:
    fmu = json.loads(run("linearize", "four_bar.fmu", "--json", "--outputs", "phi,der(w),coupler.y").out)
    native = json.loads(run("linearize", "fmilin.systems:four_bar(loops=1)", "--json").out)
    assert np.allclose(fmu["A"], native["A"], rtol=1e-12, atol=1e-12)
    assert fmu["outputs"] == ["phi", "der(w)", "coupler.y"]
    assert np.allclose(fmu["C"][1], fmu["A"][1], rtol=1e-12)
    assert np.allclose(fmu["D"][1], fmu["B"][1], rtol=1e-12)


def test_constraints_from_the_command_line(run: Run) -> None:
    done = run("linearize", "pendulum.fmu", "--constraint", "x^2 + y^2 - L^2", "--json")
    document = json.loads(done.out)
    assert document["states"] == ["x", "vx"]
    assert np.allclose(document["eigenvalues"], [[0, -((9.81 / 2) ** 0.5)], [0, (9.81 / 2) ** 0.5]])


def test_constraints_from_a_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rod.toml").write_text(
        '[[constraint]]\nexpression = "x^2 + y^2 - L^2"\nname = "rod"\n[coordinates]\nindependent = ["x", "vx"]\n'
    )
    done = run("linearize", "pendulum.fmu", "--constraints", tmp_path / "rod.toml", "--json")
    assert json.loads(done.out)["states"] == ["x", "vx"]


def test_coordinates_that_a_file_recommends_are_refused_where_they_are_singular(run: Run, tmp_path: Path) -> None:
    """The pendulum hangs: y has an extremum there. The four-bar's phi is known to no digit at 9e9 rad."""
    (tmp_path / "rod.toml").write_text(
        '[[constraint]]\nexpression = "x^2 + y^2 - L^2"\n[coordinates]\nindependent = ["y", "vy"]\n'
    )
    beside = run("linearize", "pendulum.fmu", "--constraints", tmp_path / "rod.toml")
    inside = run("linearize", "four_bar.fmu", "--set", "phi=9e9")
    for done, wanted, better in ((beside, "y, vy", "x, vx"), (inside, "phi, w", "x0, vx0")):
        assert done.status == 5
        assert done.is_one_paragraph()
        assert f"{wanted} do not determine the other states at this point" in done.err
        assert f"{better} (condition number" in done.err
    assert run("linearize", "four_bar.fmu", "--set", "phi=9e9", "--coordinates", "tangent").status == 0


@pytest.mark.parametrize("source", ["four_bar.fmu", "fmilin.systems:four_bar"])
def test_no_constraints_gives_all_states_and_a_warning(run: Run, source: str) -> None:
    done = run("linearize", source, "--no-constraints", "--json")
    document = json.loads(done.out)
    assert len(document["states"]) == 10
    assert "dependent-states" in [w["kind"] for w in document["warnings"]]


def test_an_fmu_that_hides_its_constraints_is_warned_about(run: Run) -> None:
    done = run("linearize", "pendulum.fmu", "-o", "a.json")
    assert done.status == 0
    assert "Warning: All 4 states were treated as independent, but" in done.err


def test_set_a_state_an_input_and_a_parameter(run: Run) -> None:
    document = json.loads(
        run("linearize", "four_bar.fmu", "--json", "--set", "phi=2", "--set", "torque=0.5", "--set", "c=1").out
    )
    point = document["point"]
    assert point["states"]["phi"] == 2.0
    assert point["states"]["x0"] == pytest.approx(np.cos(2.0), abs=1e-12)
    assert point["inputs"] == {"torque": 0.5}
    assert point["parameters"] == {"c": 1.0}
    assert "off-equilibrium" in [w["kind"] for w in document["warnings"]]


def test_set_a_parameter_of_a_native_model(run: Run) -> None:
    document = json.loads(run("linearize", "fmilin.systems:cartesian_pendulum", "--json", "--set", "g=4").out)
    assert np.allclose(document["eigenvalues"], [[0, -2], [0, 2]])


def test_options_reach_the_linearizer(run: Run) -> None:
    def linear(*options: object) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(run("linearize", "four_bar.fmu", "--json", *options).out)
        return document

    assert linear("--independent", "x0")["states"] == ["x0", "vx0"]
    assert linear("--inputs", "")["inputs"] == []
    assert linear("--outputs", "w,phi")["outputs"] == ["w", "phi"]
    assert linear("--time", "1.5")["point"]["time"] == 1.5
    assert linear("--derivatives", "differences")["method"]["derivatives"] == "differences"
    assert linear("--derivatives", "exact")["method"]["derivatives"] == "exact"
    tangent = linear("--coordinates", "tangent")
    assert tangent["method"]["coordinates"] == "tangent"
    assert np.allclose(tangent["eigenvalues"], [[0, -PAIR], [0, PAIR]], atol=1e-9)


def test_project_accepts_inconsistent_start_values(run: Run) -> None:
    wrong = ("linearize", "pendulum.fmu", "--constraint", "x^2 + y^2 - 2.1^2", "--json")
    assert run(*wrong).status == 4
    document = json.loads(run(*wrong, "--project").out)
    assert document["point"]["states"]["y"] == pytest.approx(-2.1)


def test_a_restricted_run_prints_the_same_as_one_without_restrictions(run: Run, fmus: Path, tmp_path: Path) -> None:
    here = run("linearize", "four_bar.fmu", "--json")
    isolated = shell(["linearize", fmus / "four_bar.fmu", "--json"], tmp_path, TMPDIR=str(tmp_path))
    assert isolated.status == 0
    assert isolated.out == here.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("isolation", [[], ["--no-isolation"]])
def test_a_talkative_fmu_does_not_spoil_the_results(
    zoo: Callable[[str], Path], tmp_path: Path, isolation: list[str]
) -> None:
    done = shell(["linearize", zoo("bad_guest"), "--json", "-o", "a.json", *isolation], tmp_path)
    assert done.status == 0
    assert json.loads(done.out)["model"]["name"] == "bad_guest"
    assert "hello from the model" in done.err
    assert (tmp_path / "a.json").read_text() == done.out


@pytest.mark.parametrize(
    ("name", "said"),
    [("crashes", "SIGSEGV: segmentation fault) in fmi2GetDerivatives"), ("exits", "exit status 0) in fmi2")],
)
def test_a_crash_is_status_6_and_leaves_the_old_file(
    zoo: Callable[[str], Path], tmp_path: Path, name: str, said: str
) -> None:
    (tmp_path / "a.mat").write_bytes(b"old")
    (tmp_path / "scratch").mkdir()
    done = shell(["linearize", zoo(name), "-o", "a.mat"], tmp_path, TMPDIR=str(tmp_path / "scratch"))
    assert done.status == 6
    assert done.is_one_paragraph()
    assert said in done.err
    assert (tmp_path / "a.mat").read_bytes() == b"old"
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_crash_at_the_end_does_not_take_the_results_away(zoo: Callable[[str], Path], tmp_path: Path) -> None:
    done = shell(["linearize", zoo("crashes_when_freed"), "--json"], tmp_path)
    assert done.status == 0
    assert json.loads(done.out)["states"] == ["x", "v"]
    assert "crashed (SIGABRT: aborted) in fmi2FreeInstance" in done.err


@pytest.mark.parametrize("options", [["--set", "phi=2.4"], ["--set", "phi=2.4", "--trim"]])
def test_a_large_model_starts_where_it_is_set(run: Run, options: list[str]) -> None:
    """Of 65 loops, by sparse matrices: phi is held at 2.4, or where the search begins."""
    loops, k, l0, g = 65, 25.0, 2**0.5, 9.81
    done = run("linearize", f"fmilin.systems:four_bar(loops={loops})", *options, "--json")
    assert done.status == 0
    document = json.loads(done.out)
    states = document["point"]["states"]
    assert document["states"] == ["phi", "w"]
    phi = equilibrium_angle(loops, "upper") if "--trim" in options else 2.4
    assert states["phi"] == pytest.approx(phi, abs=1e-12)
    assert [states["x40"] - 40, states["y40"]] == pytest.approx([np.cos(phi), np.sin(phi)], abs=1e-12)
    moment = g * (3 * loops + 1) / 2 * np.sin(phi) + k * loops * (np.cos(phi) - l0 / 2 * np.cos(phi / 2))
    np.testing.assert_allclose(document["A"], [[0, 1], [moment / ((4 * loops + 1) / 3), 0]], rtol=1e-9, atol=1e-9)
    assert bool(document["warnings"]) == ("--trim" not in options)


@pytest.mark.parametrize("angle", [2.4, 1.7, 0.3])
@pytest.mark.parametrize("source", ["four_bar.fmu", "fmilin.systems:four_bar", f"{FILE}:four_bar_mechanism"])
def test_set_an_angle_of_a_closed_loop(run: Run, source: str, angle: float) -> None:
    """Rods of a parallelogram stay parallel: its points, and the same A from every source."""
    document = json.loads(run("linearize", source, "--set", f"phi={angle}", "--independent", "phi,w", "--json").out)
    states = document["point"]["states"]
    assert states["phi"] == angle
    if "x0" in states:
        found = [states[name] for name in ("x0", "y0", "x1", "y1")]
        expected = [np.cos(angle), np.sin(angle), 1 + np.cos(angle), np.sin(angle)]
    else:
        found, expected = [states["rod0.q"], states["coupler1.q"]], [angle, -angle]
    np.testing.assert_allclose(found, expected, atol=1e-10)
    reference = fl.linearize(four_bar(), fl.operating_point(four_bar(), {"phi": angle}), independent=["phi", "w"])
    np.testing.assert_allclose(document["A"], reference.A, atol=1e-8)


@pytest.mark.parametrize("angle", [-1.4, -1.2, -1.0])
def test_set_the_crank_of_a_slider(run: Run, angle: float) -> None:
    """Crank of 0.1 m, rod of 0.3 m."""
    document = json.loads(run("linearize", "fmilin.systems:slider_crank", "--set", f"phi={angle}", "--json").out)
    states = document["point"]["states"]
    assert states["phi"] == angle
    away = 0.1 * np.cos(angle) + np.sqrt(0.09 - (0.1 * np.sin(angle)) ** 2)
    assert states["slider.q"] == pytest.approx(away, abs=1e-9)


@pytest.mark.parametrize(
    ("source", "position"), [("four_bar.fmu", "x0=3"), ("fmilin.systems:cartesian_pendulum", "x=3")]
)
def test_a_position_that_nothing_reaches_is_refused(run: Run, source: str, position: str) -> None:
    done = run("linearize", source, "--set", position, "--json")
    assert done.status == 4
    assert done.is_one_paragraph()
    assert f"cannot be satisfied with {position.split('=', maxsplit=1)[0]} held" in done.err
