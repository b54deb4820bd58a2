"""``fmilin convert``, and the options it shares with ``linearize``: formats, reduction, sampling, arrays."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin import LinearModel
from fmilin.signals import Signals
from tests.cli.conftest import Run
from tests.hand_made import differences, pendulum, sized
from tests.reduction.cases import cart_with_pendulum, masses_and_springs

FOUR_BAR = "fmilin.systems:four_bar(damping=0.3)"


@pytest.fixture
def chain(tmp_path: Path) -> LinearModel:
    linear = masses_and_springs(5, 0.3)
    linear.save(tmp_path / "chain.mat")
    return linear


def test_one_command_writes_every_format(run: Run, chain: LinearModel, tmp_path: Path) -> None:
    files = ["a.npz", "a.json", "a.m", "a.mo", "a.tex", "a.txt", "a.dslin.mat"]
    done = run("convert", "chain.mat", *(argument for file in files for argument in ("-o", file)))
    assert (done.status, done.out, done.err) == (0, "", "")
    assert differences(chain, LinearModel.load(tmp_path / "a.npz")) == []
    assert differences(chain, LinearModel.load(tmp_path / "a.json")) == []
    assert LinearModel.load(tmp_path / "a.dslin.mat").states.names == chain.states.names
    assert (tmp_path / "a.m").read_text().startswith("function [sys, offsets, points] = a()")
    assert "model a " in (tmp_path / "a.mo").read_text()


@pytest.mark.parametrize(("text", "words"), [(None, "No such file"), ('{"a":', "not a JSON document")])
def test_a_file_that_cannot_be_read_is_what_is_wrong_first(run: Run, text: str | None, words: str) -> None:
    """Whether it holds a family, for which .nc would be right, cannot be determined."""
    if text is not None:
        Path("plant.json").write_text(text, encoding="utf-8")
    done = run("convert", "plant.json", "-o", "family.nc")
    assert done.status == 3
    assert words in done.err


def test_modelica_in_equations_and_deviations(run: Run, chain: LinearModel, tmp_path: Path) -> None:
    assert run("convert", "chain.mat", "-o", "P.mo", "--modelica", "equations", "--deviation").status == 0
    text = (tmp_path / "P.mo").read_text()
    assert "Modelica.Blocks" not in text
    assert "input Real" in text
    assert "x0" not in text


def test_a_reduced_model_says_what_it_costs(run: Run, chain: LinearModel, tmp_path: Path) -> None:
    done = run("convert", "chain.mat", "-o", "small.mat", "--reduce", 4)
    assert done.status == 0
    assert done.err.startswith(
        "Warning: Order 4 instead of 10 by balanced truncation: no frequency response differs by"
    )
    small = LinearModel.load(tmp_path / "small.mat")
    assert small.A.shape == (4, 4)
    assert str(small.warnings[-1]) in done.err


def test_steps_in_one_command(run: Run, tmp_path: Path) -> None:
    cart_with_pendulum().save(tmp_path / "cart.json")
    done = run(
        "convert", "cart.json", "-o", "d.mat", "--minimal", "--discretize", "zoh", "--sample-time", 0.05, "--modal"
    )
    assert done.status == 0, done.err
    assert "2 of 4 states were dropped: no output shows the eigenvalues 0, 0" in done.err
    sampled = LinearModel.load(tmp_path / "d.mat")
    assert sampled.sample_time == 0.05
    assert sampled.states.names == ("mode1.re", "mode1.im")
    assert np.allclose(np.abs(sampled.eigenvalues()), np.exp(-0.05 * 0.05), rtol=1e-9)


def test_balancing_and_frequencies(run: Run, chain: LinearModel, tmp_path: Path) -> None:
    assert run("convert", "chain.mat", "-o", "b.mat", "--balance", "norms").status == 0
    done = run("convert", "chain.mat", "-o", "f.mat", "--keep-frequencies", "0:1.2")
    assert "Inside the range no frequency response differs by more than" in done.err
    assert LinearModel.load(tmp_path / "f.mat").A.shape == (4, 4)


def test_several_models_make_an_array(run: Run, tmp_path: Path) -> None:
    base = sized(2, 1, 1, 1)
    for k, time in enumerate([2.0, 1.0]):
        replace(base, point=replace(base.point, time=time)).save(tmp_path / f"{k}.npz")
    done = run("convert", "0.npz", "1.npz", "-o", "plants.m", "--discretize", "tustin", "--sample-time", 0.1)
    assert done.status == 0, done.err
    text = (tmp_path / "plants.m").read_text()
    assert "grid.time = [\n    1.0, 2.0\n];" in text
    assert "sys.SamplingGrid = grid;" in text


def test_the_grid_of_an_array_can_be_named(run: Run, tmp_path: Path) -> None:
    base = sized(2, 1, 1, 1)
    for k, (time, force) in enumerate([(2.0, 5.0), (1.0, 7.0)]):
        replace(base, point=replace(base.point, time=time, inputs={"u[1]": force})).save(tmp_path / f"{k}.npz")
    done = run("convert", "0.npz", "1.npz", "-o", "plants.m", "--grid", "u[1]")
    assert done.status == 0, done.err
    text = (tmp_path / "plants.m").read_text()
    assert "grid.u_1 = [\n    5.0, 7.0\n];" in text
    assert "grid.time" not in text
    for arguments, message in (("--grid", "u1"), "Did you mean 'u[1]'?"), (("--grid", ""), "no varied quantity"):
        done = run("convert", "0.npz", "1.npz", "-o", "plants.m", *arguments)
        assert (done.status, message in done.err) == (2, True), done.err
    done = run("convert", "0.npz", "-o", "plants.m", "--grid", "time")
    assert (done.status, "for several linear models" in done.err) == (2, True), done.err


def test_several_models_on_a_grid_are_a_family_on_it(run: Run, tmp_path: Path) -> None:
    family = fl.sweep(FOUR_BAR, {"phi": [1.0, 1.5, 2.0], "torque": [0.0, 3.0]})
    names = [f"{k}.npz" for k in range(len(family))]
    for k, name in enumerate(names):
        family.linear_model(k).save(tmp_path / name)
    formats = [argument for suffix in ("nc", "mat", "npz", "json", "m") for argument in ("-o", f"all.{suffix}")]
    done = run("convert", *reversed(names), *formats, "--grid", "phi,torque")
    assert (done.status, done.err) == (0, "")
    for suffix in ("nc", "mat", "npz", "json"):
        again = fl.LinearFamily.load(tmp_path / f"all.{suffix}")
        assert {n: v.tolist() for n, v in again.axes.items()} == {n: v.tolist() for n, v in family.axes.items()}
        np.testing.assert_array_equal(again.A, family.A)
        assert again[2, 1].point == family[2, 1].point
    assert "sys.SamplingGrid = grid;" in (tmp_path / "all.m").read_text()


def test_linearize_conditions_before_it_delivers(run: Run) -> None:
    done = run("linearize", FOUR_BAR, "--modal", "--discretize", "zoh", "--sample-time", 0.01, "--json")
    document = json.loads(done.out)
    assert document["states"] == ["mode1.re", "mode1.im"]
    assert document["sample_time"] == 0.01
    assert document["full_states"][:2] == ["x0", "y0"]


BAD = [
    (("--reduce", "-1"), 2, "the order must not be negative"),
    (("--reduce", "x"), 2, "--reduce"),
    (("--keep-frequencies", "5"), 2, "write LOW:HIGH"),
    (("--keep-frequencies", "5:1"), 2, "5 to 1 rad/s is not a range"),
    (("--keep-frequencies", "nan:1"), 2, "is not a range"),
    (("--discretize", "zoh"), 2, "needs a method and a sample time"),
    (("--sample-time", "0.1"), 2, "needs a method and a sample time"),
    (("--discretize", "zoh", "--sample-time", "-1"), 2, "is not possible"),
    (("--discretize", "zoh", "--sample-time", "nan"), 2, "must be finite"),
    (("--discretize", "euler", "--sample-time", "1"), 2, "--discretize"),
    (("--modal", "--balance", "norms"), 2, "leave --modal or --balance out"),
    (("--modal", "--keep-states", "x[1]"), 2, "leave --modal or --keep-states out"),
    (("--keep-states", "x[1],y"), 2, "'y' is not a state of the model"),
    (("--balance", "nominals"), 2, "No state of this linear model has a nominal value"),
    (("--modelica", "graph"), 2, "--modelica"),
    (("-o", "1st.m"), 2, "'1st' is not a valid name of a MATLAB function"),
    (("-o", "end.m"), 2, "'end' is not a valid name of a MATLAB function"),
    (("-o", "x.slx"), 2, "suffix '.slx'"),
]


@pytest.mark.parametrize(("arguments", "status", "text"), BAD)
def test_bad_options_are_one_sentence_and_leave_nothing(
    run: Run, chain: LinearModel, tmp_path: Path, arguments: tuple[str, ...], status: int, text: str
) -> None:
    done = run("convert", "chain.mat", "-o", "new.json", *arguments)
    assert done.status == status
    assert text in done.err
    assert done.is_one_paragraph()
    assert [p.name for p in tmp_path.iterdir()] == ["chain.mat"]


def test_formats_that_cannot_be_read_back_say_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "plant.m").write_text("function plant()\nend\n")
    done = run("convert", "plant.m", "-o", "plant.mat")
    assert done.status == 2
    assert "Cannot read 'plant.m' as a linear model" in done.err


def test_a_sampled_model_does_not_become_a_dslin_file(run: Run, tmp_path: Path) -> None:
    replace(pendulum(), sample_time=0.5).save(tmp_path / "s.mat")
    done = run("convert", "s.mat", "-o", "dslin.mat")
    assert done.status == 2
    assert "cannot store the sample time" in done.err
    assert not (tmp_path / "dslin.mat").exists()


def test_several_models_need_a_format_that_holds_them(run: Run, chain: LinearModel, tmp_path: Path) -> None:
    done = run("convert", "chain.mat", "chain.mat", "-o", "a.fmu")
    assert (done.status, "as a family: it has the suffix '.fmu'" in done.err) == (2, True)
    done = run("convert", "chain.mat", "chain.mat", "-o", "a.m")
    assert (done.status, "belong to the same point" in done.err) == (2, True)
    replace(chain, outputs=Signals(["other"])).save(tmp_path / "other.mat")
    done = run("convert", "chain.mat", "other.mat", "-o", "a.m")
    assert (done.status, "do not have the same outputs: out[1] and other" in done.err) == (2, True)
    later = replace(chain, point=replace(chain.point, time=1.0))
    later.save(tmp_path / "later.mat")
    done = run("convert", "chain.mat", "later.mat", "-o", "a.m", "--modal")
    assert (done.status, "choose coordinates for one model" in done.err) == (2, True)
    assert not (tmp_path / "a.m").exists()


def test_an_unstable_model_that_no_number_can_sample(run: Run, tmp_path: Path) -> None:
    base = sized(1, 0, 1, 1)
    replace(base, A=np.array([[1e6]])).save(tmp_path / "fast.mat")
    done = run("convert", "fast.mat", "-o", "s.mat", "--discretize", "zoh", "--sample-time", 1)
    assert done.status == 5
    assert "a motion overflows" in done.err


@pytest.mark.parametrize("suffix", [".m", ".mo", ".tex", ".txt", ".dslin.mat", ".npz"])
def test_a_full_disk_keeps_the_old_file(
    run: Run, chain: LinearModel, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"old{suffix}").write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    done = run("convert", "chain.mat", "-o", f"old{suffix}")
    assert done.status == 2
    assert "No space left on device" in done.err
    assert (tmp_path / f"old{suffix}").read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["chain.mat", f"old{suffix}"])
