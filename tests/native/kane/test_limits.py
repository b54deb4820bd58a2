"""Rates that just do not satisfy Kane's equations any more."""

from __future__ import annotations

import pytest

from fmilin.ground.errors import ConstraintError
from tests.native.kane.examples import leaning


@pytest.mark.parametrize("off", [1e-2, 1e-4, 1e-6])
def test_given_rates_that_are_a_little_wrong_are_refused(off: float) -> None:
    model, point = leaning()
    rates = model.evaluate(point.time, point.states, point.inputs).derivatives
    exact = dict(zip(model.states.names, rates.tolist(), strict=True))
    model.require_consistent(point, exact)
    with pytest.raises(ConstraintError, match="does not satisfy the equations"):
        model.require_consistent(point, exact | {"u2": exact["u2"] + off})
