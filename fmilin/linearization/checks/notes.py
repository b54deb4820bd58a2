"""What the model itself says about a point."""

from __future__ import annotations

from collections.abc import Sequence

from fmilin.diagnostics import Remark, discrete_states_remarks, model_remarks
from fmilin.linearization.checks.check import LinearizationCheck
from fmilin.linearization.context import LinearizedBatch, LinearizedPoint, Mask
from fmilin.manifold.checks.batch_remarks import ListedRemarks, PointRemarks, SharedRemarks
from fmilin.model.capabilities import read_discrete_states, read_remarks_at
from fmilin.model.interface import OperatingPoint


class InputsDoNotPrescribeMotion(LinearizationCheck):
    """Where an input stands in a constraint, dependent states follow it at once."""

    verifies = "No input stands in a constraint."
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


class ModelHasNoNotes(LinearizationCheck):
    """Discrete states, notes of the file, and how held feet stand."""

    verifies = "The model says nothing peculiar about itself, its discrete states, and the point."
    needs = "Nothing; contact forces of held feet."
    runs = "at every point"
    kinds = ("held", "model", "standing", "contact")
    describes_computation = True

    def examine(self, at: LinearizedPoint) -> Sequence[Remark]:
        discrete = discrete_states_remarks(read_discrete_states(at.model))
        return (*discrete, *model_remarks(at.model.notes), *read_remarks_at(at.model, at.point))

    def find_doubt(self, at: LinearizedBatch) -> None:
        """Return no doubt: notes are written for every point."""

    def describe_batch(self, at: LinearizedBatch, is_doubtful: Mask) -> PointRemarks:
        model, points = at.reference.model, at.points
        notes = tuple(model_remarks(model.notes))
        if not at.reference.has_point_notes:
            return SharedRemarks(notes, len(at))
        each = zip(points.time.tolist(), points.states, points.inputs, strict=True)
        return ListedRemarks([(*notes, *read_remarks_at(model, OperatingPoint(*point))) for point in each])
