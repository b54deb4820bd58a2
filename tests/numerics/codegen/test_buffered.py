"""Functions on buffers: at one point, at many, and at none."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from fmilin.numerics.codegen.buffered import Buffered

X = ca.SX.sym("x", 3)


@pytest.mark.parametrize("points", [0, 1, 5])
def test_many_points_are_rows_of_one_array(points: int) -> None:
    many = Buffered(ca.Function("f", [X], [ca.vertcat(X[0] * X[1], X[2])]))
    at = np.arange(3.0 * points).reshape(points, 3)
    found = many.at_points(at)
    assert found.shape == (points, 2)
    np.testing.assert_array_equal(found, np.column_stack((at[:, 0] * at[:, 1], at[:, 2])))
