"""A mechanism that moves in its modes."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import fmilin as fl
from fmilin.native.systems import four_bar_mechanism
from fmilin.output.report.mechanism_motion import FRAMES, mechanism_motion


def test_a_gif_swings_there_and_back() -> None:
    model = four_bar_mechanism()
    linear = fl.linearize(model)
    image = Image.open(io.BytesIO(mechanism_motion(model.description, linear)))
    assert image.n_frames == FRAMES  # type: ignore[attr-defined]
    frames = []
    for k in range(FRAMES):
        image.seek(k)
        frames.append(np.asarray(image.convert("L"), float))
    apart = [float(np.abs(f - frames[0]).mean()) for f in frames]
    assert int(np.argmax(apart)) in range(FRAMES // 2 - 3, FRAMES // 2 + 4)  # half a period later it is farthest away
    assert apart[-1] < 0.8 * max(apart)
    assert (frames[0][:3] > 250).all()  # paper is white


def test_modes_that_are_not_there_are_refused() -> None:
    model = four_bar_mechanism()
    linear = fl.linearize(model)
    with pytest.raises(fl.UsageError, match="There is no mode 5: modes 1 to 1 move a joint"):
        mechanism_motion(model.description, linear, numbers=[5])
