"""Names for authors of adapters: models whose numbers an engine computes."""

from fmilin.diagnostics import Remark
from fmilin.model.capabilities import (
    HasContacts,
    HasDirectionalDerivatives,
    HasDiscreteStates,
    HasEvents,
    HasExactJacobian,
    HasGraph,
)
from fmilin.model.interface import ExactSlopes, ModelInfo
from fmilin.models.contacts import Contact, Foot, contact_signals, unknown_foot
from fmilin.models.engine import AdjustableEngine, Engine, GivenSlopes, InterfaceChoice, limit_remarks, side_of
from fmilin.models.native_model import EngineModel, NativeModel
from fmilin.numerics.factors import DenseFactors, Factors, require_regular
from fmilin.numerics.null_space import NullSpaceFactors
from fmilin.tolerances import RANK

__all__ = [
    "RANK",
    "AdjustableEngine",
    "Contact",
    "DenseFactors",
    "Engine",
    "EngineModel",
    "ExactSlopes",
    "Factors",
    "Foot",
    "GivenSlopes",
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
    "Remark",
    "contact_signals",
    "limit_remarks",
    "require_regular",
    "side_of",
    "unknown_foot",
]
