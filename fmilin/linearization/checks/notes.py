"""Notes of the model on a point, and of a method on its result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fmilin.diagnostics import Remark, discrete_states_remarks, model_remarks
from fmilin.linearization.batch_derivatives import choose_samples
from fmilin.linearization.checks.check import LinearizationCheck, ResultCheck
from fmilin.linearization.linearization_context import AssembledPoint, LinearizedBatch, LinearizedPoint, Mask
from fmilin.manifold.checks.batch_remarks import ListedRemarks, PointRemarks, SharedRemarks
from fmilin.model.capabilities import read_discrete_states, read_point_remarks
from fmilin.model.interface import OperatingPoint


class InputsDoNotPrescribeMotion(LinearizationCheck):
    """Where an input stands in a constraint, dependent states follow it at once."""

    verifies = "No input occurs in a constraint."
    needs = "Nothing."
    runs = "at every point"
    kinds = ("prescribed-motion",)
    describes_computation = True

    def examine(self, at: LinearizedPoint) -> Sequence[Remark]:
        invariants = at.manifold.invariants
        if not invariants.prescribing:
            return ()
        names = at.model.inputs.names
        driven = ", ".join(f"'{names[j]}'" for j in invariants.prescribing)
        rates = ", ".join(f"'{names[j]}'" for j in invariants.chain.values()) or "none"
        text = (
            f"The inputs {driven} prescribe a motion: dependent states follow them at once (T_u), their derivatives "
            f"({rates}) are inputs of their own. with_prescribed_states() makes states of all but the highest."
        )
        return (Remark("prescribed-motion", text),)

    def find_doubt(self, at: LinearizedBatch) -> None:
        """Return no doubt: a model with such inputs has no batches."""


class MethodApplies(ResultCheck):
    """Eigenvalues of a formulation, or over the enlarged set of velocities, mean something else at some points."""

    verifies = "The point is an equilibrium, one branch of motion passes, penalties keep the constraints."
    needs = "Nothing."
    runs = "at every point"
    kinds = ("singular", "off-equilibrium", "penalty-approximation")
    describes_computation = True

    def examine(self, at: AssembledPoint) -> Sequence[Remark]:
        return at.peculiarities

    def find_doubt(self, at: LinearizedBatch) -> None:
        """Return no doubt: points of a batch are linearized by the general algorithm."""


class ModelHasNoNotes(ResultCheck):
    """Discrete states, notes of the file, and how held feet stand."""

    verifies = "The model has no peculiarities, nor have its discrete states or the point."
    needs = "Contact forces of held feet; the discrete states at one of 32 points of a sweep."
    runs = "at every point"
    kinds = ("held", "model", "standing", "contact")
    describes_computation = True

    def examine(self, at: AssembledPoint) -> Sequence[Remark]:
        discrete = discrete_states_remarks(read_discrete_states(at.model))
        return (*discrete, *model_remarks(at.model.notes), *read_point_remarks(at.model, at.point))

    def find_doubt(self, at: LinearizedBatch) -> Mask | None:
        """Return a doubt of all points where discrete states are not at some of them what they were at the reference.

        No event happens in a batch, but a simulation between two calls may have passed one, and some FMUs change
        discrete variables without an event.
        """
        mode, model, points = at.facts.mode, at.reference.model, at.points
        if not mode:
            return None
        for k in choose_samples(len(points)).tolist():
            model.evaluate(float(points.time[k]), points.states[k], points.inputs[k])
            if read_discrete_states(model) != mode:
                return np.ones(len(points), dtype=bool)
        return None

    def describe_batch(self, at: LinearizedBatch, is_doubtful: Mask) -> PointRemarks:
        model, points = at.reference.model, at.points
        notes = (*discrete_states_remarks(at.facts.mode), *model_remarks(model.notes))
        if not at.reference.has_point_notes:
            return SharedRemarks(notes, len(at))
        each = zip(points.time.tolist(), points.states, points.inputs, strict=True)
        return ListedRemarks([(*notes, *read_point_remarks(model, OperatingPoint(*point))) for point in each])
