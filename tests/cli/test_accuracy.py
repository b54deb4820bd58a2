"""FMUs whose slopes depend on the scale of the steps: what is told, what is refused, and with which status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Run

Zoo = Callable[[str], Path]


def test_friction_that_is_narrower_than_any_step_is_told(run: Run, zoo: Zoo) -> None:
    done = run("linearize", zoo("rubs"), "--json")
    assert done.status == 0
    linear = json.loads(done.out)
    np.testing.assert_allclose(linear["A"], [[0.0, 1.0], [-1.0, -1e7]], rtol=1e-6, atol=1e-9)
    assert any("is valid near the point only" in str(warning) for warning in linear["warnings"])


def test_digits_that_cancel_inside_are_reckoned_with(run: Run, zoo: Zoo) -> None:
    done = run("linearize", zoo("loses_digits"), "--json")
    assert done.status == 0
    linear = json.loads(done.out)
    wrong = abs(linear["A"][1][0] + np.cos(1.0))
    assert wrong <= 10 * linear["accuracy"]["A"] * np.max(np.abs(linear["A"]))
    assert linear["accuracy"]["A"] < 1e-3


def test_an_encoder_too_coarse_to_be_told_is_refused_unless_it_is_wanted(run: Run, zoo: Zoo, tmp_path: Path) -> None:
    done = run("linearize", zoo("counts_coarsely"), "-o", "plant.json")
    assert done.status == 5
    assert "d y / d x cannot be determined" in done.err
    assert "--keep-inaccurate" in done.err
    assert not (tmp_path / "plant.json").exists()
    kept = run("linearize", zoo("counts_coarsely"), "--keep-inaccurate", "--json")
    assert kept.status == 0
    assert any("d y / d x" in str(warning) for warning in json.loads(kept.out)["warnings"])


@pytest.mark.parametrize("options", [(), ("--keep-inaccurate",)])
def test_memory_is_named(run: Run, zoo: Zoo, options: tuple[str, ...]) -> None:
    done = run("linearize", zoo("alternates"), *options)
    assert done.status == (0 if options else 5)
    assert "keeps memory" in " ".join((done.out + done.err).split())
