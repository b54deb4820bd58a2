"""What docs/mechanism.md and examples/mechanisms say is true."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import fmilin as fl
from fmilin.models.mechanism import Mechanism, assemble
from fmilin.models.mechanism.mechanism_elements import Quantity
from fmilin.models.mechanism.mechanism_model import read_mechanism_file
from fmilin.models.mechanism.parts import COORDINATES, SPEEDS, LoopType
from fmilin.systems import loader
from tests.documentation.blocks import blocks_of
from tests.systems.linkages import parallel_robot

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "mechanism.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "mechanisms"


def test_the_pendulum_of_the_page(tmp_path: Path) -> None:
    path = tmp_path / "pendulum.toml"
    path.write_text(next(block.body for block in blocks_of(PAGE) if block.caption == path.name))
    linear = fl.linearize(Mechanism.from_toml(path))
    assert linear.eigenvalues()[0].imag ** 2 == pytest.approx(2 * 9.81 * 0.5 / (0.1667 + 2 * 0.25), rel=1e-12)
    assert linear.outputs.names == ("height",)


def test_the_page_knows_every_joint_loop_and_quantity() -> None:
    table = PAGE[PAGE.index("| joint | coordinates") : PAGE.index("The states are called")].strip().splitlines()
    for kind, names in COORDINATES.items():
        (row,) = [line for line in table if f"`{kind}`" in line.split("|")[1]]
        assert all(f"`{name}`" in row for name in (*names, *SPEEDS[kind]))
    reference = PAGE.index("## All keys")
    for word in (*get_args(LoopType), *get_args(Quantity)):
        assert f"`{word}`" in PAGE[:reference], word


def test_the_loader_of_the_example_is_that_of_the_package() -> None:
    from_file, built = (fl.linearize(model) for model in (Mechanism.from_toml(EXAMPLE / "loader.toml"), loader()))
    for name in "ABCD":
        np.testing.assert_allclose(getattr(from_file, name), getattr(built, name), rtol=1e-12, atol=1e-12)


def test_the_robot_of_the_example_is_that_of_the_package() -> None:
    path = EXAMPLE / "robot.urdf"
    (gap,) = assemble(read_mechanism_file(path)[0]).before
    assert gap.distance == pytest.approx(0.03, abs=0.005)
    robot = fl.load(path)
    at = dict(zip(robot.states.names, robot.start.states, strict=True))
    assert (at["q1"], at["q2"]) == (3.49, 1.13)
    same = parallel_robot(crank=3.49, arm=1.13)
    held = fl.operating_point(robot, dict(zip(("torque1", "torque2"), same.start.inputs, strict=True)))
    one, other = fl.linearize(robot, held), fl.linearize(same)
    for name in "ABCD":
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-10, atol=1e-10)
