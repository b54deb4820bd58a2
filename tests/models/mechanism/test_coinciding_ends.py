"""Springs and forces along a line whose ends coincide: they have no direction, and it is said which they are."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import fmilin as fl

SLIDER = """
[[body]]
name = "a"
mass = 2.0
[[joint]]
name = "j"
type = "prismatic"
parent = "ground"
child = "a"
axis = [1.0, 0.0, 0.0]
"""
ENDS = 'first = "ground"\nsecond = "a"\n'
SPRING = f'[[spring]]\nname = "s"\n{ENDS}stiffness = 10.0\n'
PARTS = {
    "the spring 's'": (f"{SPRING}length = 0.5\n", f"{SPRING}damping = 1.0\n"),
    "the line force 'f'": (f'[[input]]\nkind = "line_force"\nname = "f"\n{ENDS}',),
}


@pytest.mark.parametrize(("name", "part"), [(name, part) for name, parts in PARTS.items() for part in parts])
def test_the_part_without_a_direction_is_named(name: str, part: str, tmp_path: Path) -> None:
    file = tmp_path / "slider.toml"
    file.write_text(SLIDER + part)
    model = fl.load(file)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(fl.NumericalError, match=f"Both ends of {name} coincide"):
            fl.linearize(model)
        lin = fl.linearize(model, fl.operating_point(model, {"j.q": 0.7}))
    assert np.isfinite(lin.A).all()


def test_a_spring_without_length_and_damping_needs_no_direction(tmp_path: Path) -> None:
    file = tmp_path / "slider.toml"
    file.write_text(SLIDER + SPRING)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lin = fl.linearize(fl.load(file))
    np.testing.assert_allclose(lin.A, [[0.0, 1.0], [-5.0, 0.0]], atol=1e-12)
