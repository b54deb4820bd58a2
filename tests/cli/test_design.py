"""``fmilin design --lqg``: the numbers of :func:`fmilin.design.lqg`, files, and messages that name options."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.systems import four_bar
from tests.cli.conftest import Run

MODEL = "fmilin.systems:four_bar"
WEIGHTS = (
    "--state-weight", "phi=100,w=1", "--input-weight", "torque=1", "--process", "torque=0.1", "--measured", "phi=1e-6",
    "--sample-time", 0.01,
)  # fmt: skip


def test_the_command_designs_what_the_function_does(run: Run) -> None:
    design = fl.design.lqg(
        fl.linearize(four_bar()), states={"phi": 100.0, "w": 1.0}, inputs={"torque": 1.0}, process={"torque": 0.1},
        measured={"phi": 1e-6}, sample_time=0.01, track=["phi"],
    )  # fmt: skip
    done = run("design", MODEL, "--lqg", *WEIGHTS, "--track", "phi", "--json")
    assert done.status == 0, done.err
    document = json.loads(done.out)
    np.testing.assert_allclose(document["gain"], design.gain, rtol=1e-12)
    np.testing.assert_allclose(document["integral_gain"], design.integral_gain, rtol=1e-12)
    np.testing.assert_allclose(document["filter_gain"], design.filter.gain, rtol=1e-12)
    assert document["margins"]["torque"]["disk"] == pytest.approx(design.margins["torque"].disk, rel=1e-12)
    assert document["verification"]["stable"] is True


def test_files_and_a_table_are_written(run: Run) -> None:
    limit = ("--limit", "torque=-5:5")
    done = run("design", MODEL, "--lqg", *WEIGHTS, *limit, "-o", "r.c", "-o", "r.html", "--no-verify")
    assert done.status == 0, done.err
    assert "-5.0" in Path("r.c").read_text(encoding="utf-8")
    assert "|S| peak" in Path("r.html").read_text(encoding="utf-8")
    table = run("design", MODEL, "--lqg", *WEIGHTS)
    assert "Nonlinear closed loop stable" in table.out
    assert max(map(len, table.out.splitlines())) <= 80


def test_a_linear_model_in_a_file_is_designed_for(run: Run) -> None:
    fl.linearize(four_bar()).save("plant.mat")
    done = run("design", "plant.mat", "--lqg", *WEIGHTS, "--json")
    assert done.status == 0, done.err
    assert "verification" not in json.loads(done.out)
    done = run("design", "plant.mat", "--lqg", *WEIGHTS, "--against", MODEL, "-o", "r.c")
    assert done.status == 0, done.err
    margins = fl.design.lqg(
        fl.linearize(four_bar()), states={"phi": 100.0, "w": 1.0}, inputs={"torque": 1.0}, process={"torque": 0.1},
        measured={"phi": 1e-6}, sample_time=0.01,
    ).margins  # fmt: skip
    assert f"disk {min(m.disk for m in margins.values()):.3g}\nNonlinear closed loop: stable" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((MODEL,), "No method of design is named. Add --lqg"),
        ((MODEL, "--lqg", *WEIGHTS[:4], "--sample-time", 0.01), "missing: --process NAME=DENSITY"),
        ((MODEL, "--lqg", *WEIGHTS, "--limit", "w=-1:1"), "give it a weight in --input-weight"),
        ((MODEL, "--lqg", *WEIGHTS, "--track", "coupler.y"), "coupler.y"),
        ((MODEL, "--lqg", *WEIGHTS, "--against", MODEL), "is a model itself"),
        ((MODEL, "--lqg", *WEIGHTS, "--measured", "x0=1e-6"), "linearize with --outputs x0"),
        ((MODEL, "--model", "plant.fmu"), "No such option '--model'. See"),
        ((MODEL, "--lqgg"), "Did you mean '--lqg'?"),
    ],
)
def test_messages_name_options(run: Run, arguments: tuple[object, ...], message: str) -> None:
    done = run("design", *arguments)
    assert done.status == 2
    assert done.is_one_paragraph()
    assert message in done.err


def test_a_loop_is_shaped_as_by_the_function(run: Run) -> None:
    shaped = fl.design.loop_shaping(
        fl.linearize(four_bar()), inputs={"torque": 1.0}, measured={"phi": 0.1}, crossover=5.0, sample_time=0.02
    )
    words = ("--loop-shaping", "--input-size", "torque=1", "--output-size", "phi=0.1", "--sample-time", 0.02)
    done = run("design", MODEL, *words, "--crossover", 5, "--json", "--no-verify")
    assert done.status == 0, done.err
    document = json.loads(done.out)
    assert document["method"] == "loop-shaping"
    assert document["stability_margin"] == pytest.approx(shaped.stability_margin, rel=1e-12)
    missing = run("design", MODEL, *words)
    assert missing.status == 2
    assert "missing: --crossover RAD/S" in missing.err
    both = run("design", MODEL, "--lqg", *words)
    assert "More than one method of design is named" in both.err


def test_a_filter_alone_is_that_of_the_function(run: Run) -> None:
    noise = ("--process", "torque=0.1", "--measured", "phi=1e-6", "--sample-time", 0.01)
    done = run("design", MODEL, "--kalman", *noise, "--json")
    assert done.status == 0, done.err
    kalman = fl.design.kalman_filter(
        fl.linearize(four_bar(), outputs=["phi"]), 0.01, process={"torque": 0.1}, measured={"phi": 1e-6}
    )
    np.testing.assert_allclose(json.loads(done.out)["gain"], kalman.gain, rtol=1e-12)
    done = run("design", MODEL, "--kalman", *noise, "-o", "filter.c")
    assert "filter.c: the filter, every 0.01 s" in done.err
    assert Path("filter.c").read_text(encoding="utf-8").count("{") > 1
    assert "Add the option that is missing: --measured" in run("design", MODEL, "--kalman", *noise[:2]).err
    assert "closes no loop" in run("design", MODEL, "--kalman", *noise, "--plot", "s.png").err
