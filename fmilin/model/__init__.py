"""The one interface that every source answers, and the constraints that a user declares.

Enters: time, states, inputs; expressions of a user.
Leaves: :class:`~fmilin.Model`, :class:`~fmilin.OperatingPoint`, :class:`~fmilin.Constraint`.
Does not know: where a model came from, and what is done with it.
"""

from typing import TYPE_CHECKING

from fmilin.ground.import_paths import lazily

if TYPE_CHECKING:
    from fmilin.model.constraints.declared import Constraint as Constraint
    from fmilin.model.constraints.declared import Constraints as Constraints
    from fmilin.model.constraints.declared import Level as Level
    from fmilin.model.constraints.expressions import Expression as Expression
    from fmilin.model.constraints.expressions import ExpressionError as ExpressionError
    from fmilin.model.constraints.expressions import driven_by as driven_by
    from fmilin.model.constraints.expressions import parse as parse
    from fmilin.model.equations import Laws as Laws
    from fmilin.model.equations import SparseEquations as SparseEquations
    from fmilin.model.equations import SymbolicSystem as SymbolicSystem
    from fmilin.model.interface import Evaluation as Evaluation
    from fmilin.model.interface import Model as Model
    from fmilin.model.interface import ModelInfo as ModelInfo
    from fmilin.model.interface import OperatingPoint as OperatingPoint
    from fmilin.model.interface import SecondOrderForm as SecondOrderForm
    from fmilin.model.stepping import Cadence as Cadence
    from fmilin.model.stepping import Hybrid as Hybrid
    from fmilin.model.stepping import Passage as Passage
    from fmilin.model.stepping import Response as Response
    from fmilin.model.stepping import Stepped as Stepped
    from fmilin.model.stepping import Stepping as Stepping
    from fmilin.model.visits import CountedModel as CountedModel
    from fmilin.model.visits import RememberingModel as RememberingModel
    from fmilin.model.visits import one_at_a_time as one_at_a_time

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "constraints.declared": ("Constraint", "Constraints", "Level"),
        "constraints.expressions": ("Expression", "ExpressionError", "driven_by", "parse"),
        "equations": ("Laws", "SparseEquations", "SymbolicSystem"),
        "interface": ("Evaluation", "Model", "ModelInfo", "OperatingPoint", "SecondOrderForm"),
        "stepping": ("Cadence", "Hybrid", "Passage", "Response", "Stepped", "Stepping"),
        "visits": ("CountedModel", "RememberingModel", "one_at_a_time"),
    },
)
