"""Scenes of many free bodies: they share nothing, and each is treated as if it were alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import NumericalError
from fmilin.linearization import suitability


def scene(path: Path, count: int, distance: float = 0.0) -> Path:
    """Write boxes of 20 cm in rows on a floor, the first one at a distance from the origin."""
    places = [(distance + 0.3 * (i % 20), 0.3 * (i // 20)) for i in range(count)]
    bodies = "".join(
        f'<body name="b{i}" pos="{x} {y} 0.1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
        for i, (x, y) in enumerate(places)
    )
    path.write_text(f'<mujoco><worldbody><geom type="plane" size="9 9 1"/>{bodies}</worldbody></mujoco>')
    return path


def test_free_boxes_far_from_the_origin_have_no_kink(tmp_path: Path) -> None:
    """Weights and their moments about the origin cancel, and leave rounding in the rates of speeds of rotation."""
    path = scene(tmp_path / "boxes.xml", 4, distance=1.8)
    linear = fl.linearize(fl.load(f"mujoco:{path}", options={"way": "mechanism"}))
    assert len(linear.states) == 48
    np.testing.assert_allclose(linear.A @ linear.A, 0.0, atol=1e-9)  # each floats: position, speed, nothing behind it
    assert np.linalg.matrix_rank(linear.A) == 24


def test_many_free_bodies_are_decomposed_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    eigh = np.linalg.eigh

    def count(matrix: np.ndarray) -> object:
        sizes.append(len(matrix))
        return eigh(matrix)

    monkeypatch.setattr(np.linalg, "eigh", count)
    model = fl.load(str(scene(tmp_path / "boxes.xml", 50)))
    assert len(model.states) == 50 * 13
    assert max(sizes) == 6


def test_a_scene_that_is_too_large_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suitability, "MAX_DENSE_STATES", 25)
    model = fl.load(str(scene(tmp_path / "boxes.xml", 2)))
    with pytest.raises(NumericalError, match="'boxes' is too large for a linear model of dense matrices: 26 states"):
        fl.linearize(model)
