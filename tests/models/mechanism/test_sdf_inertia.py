"""Inertia that SDFormat asks to be computed, against integrals over random points and a pendulum's closed form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lxml import etree
from numpy.typing import NDArray

import fmilin as fl
from fmilin.models.mechanism.sdf_inertia import read_solid
from tests.models.mechanism.sdf_text import joint, load_sdf, model

Inside = Callable[[NDArray[np.float64]], NDArray[np.bool_]]


def in_cone(p: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(np.hypot(p[:, 0], p[:, 1]) <= 0.4 * (0.6 - p[:, 2]) / 1.2)


def in_capsule(p: NDArray[np.float64]) -> NDArray[np.bool_]:
    beyond = p[:, 2] - np.clip(p[:, 2], -0.4, 0.4)
    return np.asarray(p[:, 0] ** 2 + p[:, 1] ** 2 + beyond**2 <= 0.3**2)


@pytest.mark.parametrize(
    ("text", "bounds", "is_inside"),
    [
        ("<box><size>0.4 0.6 1</size></box>", (0.2, 0.3, 0.5), lambda p: p[:, 0] < 9),
        ("<sphere><radius>0.5</radius></sphere>", (0.5, 0.5, 0.5), lambda p: (p**2).sum(axis=1) <= 0.25),
        (
            "<ellipsoid><radii>0.2 0.4 0.6</radii></ellipsoid>",
            (0.2, 0.4, 0.6),
            lambda p: ((p / [0.2, 0.4, 0.6]) ** 2).sum(axis=1) <= 1,
        ),
        (
            "<cylinder><radius>0.3</radius><length>1</length></cylinder>",
            (0.3, 0.3, 0.5),
            lambda p: p[:, 0] ** 2 + p[:, 1] ** 2 <= 0.09,
        ),
        ("<cone><radius>0.4</radius><length>1.2</length></cone>", (0.4, 0.4, 0.6), in_cone),
        ("<capsule><radius>0.3</radius><length>0.8</length></capsule>", (0.3, 0.3, 0.7), in_capsule),
    ],
)
def test_a_solid_has_the_moments_of_points_inside_it(
    text: str, bounds: tuple[float, float, float], is_inside: Inside
) -> None:
    """Integrals over a grid of 80^3 points, which are right to a hundredth."""
    element = etree.fromstring(f"<collision name='c'><geometry>{text}</geometry></collision>")
    solid = read_solid(element, Path("robot.sdf"))
    line = (np.arange(80) + 0.5) / 40 - 1
    points = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3) * bounds
    inside = points[is_inside(points)]
    cell = 8 * np.prod(bounds) / len(points)
    np.testing.assert_allclose(solid.volume, cell * len(inside), rtol=1e-2)
    np.testing.assert_allclose(solid.center, inside.mean(axis=0), atol=5e-3)
    squares = ((inside - inside.mean(axis=0)) ** 2).sum(axis=0) * cell
    np.testing.assert_allclose(solid.moments, squares.sum() - squares, rtol=1e-2)


@pytest.mark.parametrize("mass", ["", "<mass>5</mass>"])
def test_a_link_of_two_boxes_swings_as_a_pendulum(tmp_path: Path, mass: str) -> None:
    """A hammer: a handle with its own density, a head that is turned by a quarter; a mass scales both."""
    text = model(
        f"<link name='hammer'><inertial auto='true'>{mass}<density>500</density></inertial>"
        "<collision name='handle'><pose>0 0 -0.5 0 0 0</pose>"
        "<geometry><box><size>0.04 0.04 1</size></box></geometry></collision>"
        "<collision name='head'><pose>0 0 -1 0 1.5707963267948966 0</pose><density>8000</density>"
        "<geometry><cylinder><radius>0.05</radius><length>0.2</length></cylinder></geometry></collision></link>",
        joint("hinge", "revolute", "world", "hammer", "0 1 0"),
        version="1.11",
    )
    handle, head = 500 * 0.04**2, 8000 * np.pi * 0.05**2 * 0.2
    inertia = handle * (1 + 0.04**2) / 12 + handle * 0.25 + head * (3 * 0.05**2 + 0.2**2) / 12 + head
    rate = np.sqrt(9.81 * (0.5 * handle + head) / inertia)
    found = fl.linearize(load_sdf(tmp_path, text)).eigenvalues()
    np.testing.assert_allclose(found.imag.max(), rate, rtol=1e-12)


def test_a_mesh_has_no_closed_form(tmp_path: Path) -> None:
    text = model(
        "<link name='a'><inertial auto='true'/><collision name='c'><geometry><mesh><uri>a.stl</uri></mesh></geometry>"
        "</collision></link>"
    )
    with pytest.raises(fl.ModelError, match="the inertia of the shape <mesh> has no closed form here"):
        load_sdf(tmp_path, text)
