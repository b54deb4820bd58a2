"""The URDF files of the package ``example-robot-data``, where it is installed; Pinocchio is the oracle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fmilin as fl
from fmilin.errors import FmilinError
from fmilin.models.mechanism import Mechanism
from tests.models.mechanism.example_robots import FILES, slopes_of_both

REFUSED = {
    "icub.urdf": "leaves der(neck_yaw.v), der(neck_roll.v) undetermined",  # a head without inertia, at zero positions
    "romeo.urdf": "no mass or inertia",
    "romeo_laas_small.urdf": "negative principal moment",
    "ur3.urdf": "there is no <link> in it",
}

pytestmark = pytest.mark.skipif(not FILES, reason="example-robot-data is not installed")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_robot_is_linearized_or_refused_for_a_reason(path: Path) -> None:
    if path.name in REFUSED:
        with pytest.raises(FmilinError) as caught:
            fl.linearize(fl.load(path))
        assert REFUSED[path.name] in str(caught.value)
        return
    model = fl.load(path)
    assert isinstance(model, Mechanism)
    if len(model.states):
        pin = pytest.importorskip("pinocchio")
        found, expected = slopes_of_both(model, pin, pin.buildModelFromUrdf(str(path)))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    else:
        assert fl.linearize(model).A.shape == (0, 0)


def test_the_icub_is_singular_at_its_zero_and_linearized_elsewhere() -> None:
    """Its head is a point on the axis of its neck: Pinocchio's own mass matrix is singular there.

    Beside it, the smallest inertia is 1e-7 of the largest, and the last bits of Pinocchio's positions move its A by
    1e-11. Ours counts inertias from the ground, half a metre below, and is 5e-10 off.
    """
    pin = pytest.importorskip("pinocchio")
    (path,) = (file for file in FILES if file.name == "icub.urdf")
    robot = pin.buildModelFromUrdf(str(path))
    M = np.triu(pin.crba(robot, robot.createData(), pin.neutral(robot)))
    least, *_, largest = np.linalg.eigvalsh(M + np.triu(M, 1).T)
    assert least < 1e-15 * largest
    model = fl.load(path)
    assert isinstance(model, Mechanism)
    found, expected = slopes_of_both(model, pin, robot)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
