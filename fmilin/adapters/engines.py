"""Names for authors of adapters: models computed by an engine."""

from fmilin.diagnostics import Remark
from fmilin.model.capabilities import (
    DescribesDeclarations,
    HasContacts,
    HasDirectionalDerivatives,
    HasDiscreteStates,
    HasEvents,
    HasExactJacobian,
    HasGraph,
    ReportsStart,
    StartValue,
)
from fmilin.model.interface import ExactSlopes, ModelInfo
from fmilin.models.contacts import Contact, Foot, contact_signals, unknown_foot_error
from fmilin.models.native_engine import (
    AdjustableEngine,
    Engine,
    InterfaceChoice,
    PointDerivatives,
    classify_side,
    limit_remarks,
)
from fmilin.models.native_model import EngineModel, NativeModel
from fmilin.numerics.factors import DenseFactors, Factors, require_regular
from fmilin.numerics.null_space import NullSpaceFactors
from fmilin.tolerances import RANK

__all__ = [
    "RANK",
    "AdjustableEngine",
    "Contact",
    "DenseFactors",
    "DescribesDeclarations",
    "Engine",
    "EngineModel",
    "ExactSlopes",
    "Factors",
    "Foot",
    "HasContacts",
    "HasDirectionalDerivatives",
    "HasDiscreteStates",
    "HasEvents",
    "HasExactJacobian",
    "HasGraph",
    "InterfaceChoice",
    "ModelInfo",
    "NativeModel",
    "NullSpaceFactors",
    "PointDerivatives",
    "Remark",
    "ReportsStart",
    "StartValue",
    "classify_side",
    "contact_signals",
    "limit_remarks",
    "require_regular",
    "unknown_foot_error",
]
