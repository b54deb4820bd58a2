"""Forces that hold a mechanism at rest where it stands."""

from __future__ import annotations

import numpy as np

from fmilin.model.interface import Model

__all__ = ["holding_forces"]


def holding_forces(model: Model) -> tuple[float, ...]:
    """Return values of the inputs with which a model at rest at its start stays there.

    At rest the accelerations are affine in forces, a = a_0 + B u, so that one visit for each input tells B.

    ``model``: with as many inputs as degrees of freedom, and recommended independent states, the speeds last.
    """
    n = len(model.inputs)
    speeds = [model.states.index_of(name) for name in model.independent[-n:]]
    x = model.start.states

    def accelerations(u: np.ndarray) -> np.ndarray:
        return model.evaluate(0.0, x, u).derivatives[speeds]

    at_zero = accelerations(np.zeros(n))
    size = 1e3  # any: affine
    B = np.stack([(accelerations(size * e) - at_zero) / size for e in np.eye(n)], axis=1)
    return tuple(float(u) for u in np.linalg.solve(B, -at_zero))
