"""``--loop-at``, ``--sensitivity-at`` and ``--open`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_margins_on_the_command_line(run: Run) -> None:
    Path("loop.py").write_text("from tests.composition.test_loop_transfer import loop\n", encoding="utf-8")
    done = run("linearize", "loop.py:loop", "--loop-at", "plant.u")
    assert done.status == 0
    assert "Margins of the closed loop, which is stable" in " ".join(done.out.split())
    done = run("linearize", "loop.py:loop", "--loop-at", "plant.u", "--continuous", "--json")
    assert done.status == 0
    done = run("linearize", "loop.py:loop", "--open", "plant.u", "--json")
    assert json.loads(done.out)["inputs"] == ["plant.u"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--loop-at", "plnt.u"], "'plnt.u' is not a wire of 'system'. Did you mean 'plant.u'"),
        (["--loop-at", "plant.u", "--sensitivity-at", "plant.u"], "two different results"),
        (["--continuous"], "--continuous requires --loop-at or --sensitivity-at"),
        (["--loop-at", "plant.u", "--inputs", "plant.u"], "--inputs has no meaning with --loop-at"),
        (["--open", "plant.u", "--snapshots", "1,2"], "--snapshots and --open exclude each other"),
    ],
)
def test_what_cannot_be_asked_on_the_command_line(run: Run, options: list[str], words: str) -> None:
    Path("loop.py").write_text("from tests.composition.test_loop_transfer import loop\n", encoding="utf-8")
    done = run("linearize", "loop.py:loop", *options)
    assert done.status == 2
    assert done.is_one_paragraph()
    assert words in done.err
