"""How well the equations of a DAE determine its unknowns at the start values of the states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fmilin.models.dae.dae_rows import Rows
from fmilin.models.dae.reduction import Reduced
from fmilin.numerics.balanced import TERMS_ROUNDED, equilibrate_jacobian
from fmilin.numerics.certificate import Certificate
from fmilin.numerics.certification import UnboundedUnknowns, certify_zero
from fmilin.signals import FloatArray
from fmilin.tolerances import EXACT_BALANCE_TOLERANCE

MAX_CERTIFIED_UNKNOWNS = 400
"""The certificate needs a dense singular value decomposition, which takes longer than reducing a larger model."""


class StartEquations:
    """The rows that determine the unknowns w = ``sizes`` z of a model at its start."""

    moving = False
    measures_noise = True

    def __init__(self, reduced: Reduced, states: FloatArray, w: FloatArray) -> None:
        self.rows = Rows(reduced.form, reduced.motion, [row.value for row in reduced.solved], reduced.keys)
        self.states, self.column_sizes = states, reduced.sizes
        lengths = np.linalg.norm(np.nan_to_num(self.rows.gradients(states, w)[1]) * reduced.sizes, axis=1)
        self.row_sizes = np.where(lengths > 0, lengths, 1.0)
        self.unknowns = UnboundedUnknowns(len(w))
        self.first_order = np.ones(len(w), dtype=bool)

    def values(self, z: FloatArray) -> FloatArray:
        """Return the residuals of the rows, each in the length of its gradient, (n,)."""
        return np.asarray(self.rows.values(self.states, z * self.column_sizes) / self.row_sizes)

    def jacobian(self, z: FloatArray, *, exact: bool = True, quick: bool = False) -> tuple[FloatArray, bool]:
        """Return the derivatives of :meth:`values`, which are exact."""
        slopes = self.rows.gradients(self.states, z * self.column_sizes)[1]
        return np.asarray(slopes * self.column_sizes / self.row_sizes[:, None]), True

    def values_each(self, z: FloatArray) -> FloatArray:
        """Return the residuals (k, m) at several z (k, n)."""
        return np.array([self.values(row) for row in z])

    def entry_sizes(self, z: FloatArray) -> FloatArray:
        """Return how large the entries of the derivatives are near z."""
        return np.abs(self.jacobian(z)[0])


def certify_start(reduced: Reduced) -> Certificate | None:
    """Return how well rates and algebraic variables are determined at the start; None for very large models."""
    if len(reduced.solved) > MAX_CERTIFIED_UNKNOWNS:
        return None
    states, w = reduced.find_start()
    equations = StartEquations(reduced, states, w)
    z = w / equations.column_sizes
    J = np.nan_to_num(equations.jacobian(z)[0])
    residual = equations.values(z)
    allowed = np.maximum(EXACT_BALANCE_TOLERANCE, TERMS_ROUNDED * np.abs(J) @ np.maximum(np.abs(z), 1.0))
    zero = certify_zero(equations, z, J, allowed, exact=True)
    # The search has gone on to the zero that it certifies: the start is as far from the solution as that, and more.
    way = zero.z - z
    zero = replace(zero, step=way + zero.step, distance=np.abs(way) + zero.distance)
    # A single slope is compared with what it is nearby: by itself, it is all of the Jacobian.
    regularity = equilibrate_jacobian(J).regularity if len(z) != 1 else float(np.abs(J[0, 0]) / zero.entry_sizes[0, 0])
    certificate = Certificate.from_zero(
        zero,
        reduced.names,
        equations.column_sizes,
        dict(zip(reduced.names, equations.column_sizes.tolist(), strict=True)),
        residual=float(np.max(np.abs(residual), initial=0.0)),
        regularity=regularity,
    )
    return replace(certificate, residual_measure="in lengths of the gradients of the equations")
