"""Correct linear models of constrained dynamic systems."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fmilin.version import __version__

if TYPE_CHECKING:
    from fmilin.constraints.declared import Constraint
    from fmilin.derivatives.differences import Differences
    from fmilin.discovery.procedure import discover
    from fmilin.discovery.result import Discovery
    from fmilin.errors import (
        ConstraintError,
        FmilinError,
        ModelCrashError,
        ModelError,
        NumericalError,
        UnknownNameError,
        UsageError,
    )
    from fmilin.formulations.descriptor import descriptor
    from fmilin.linear_model.model import LinearModel
    from fmilin.linearization.procedure import linearize, linearize_along
    from fmilin.loading import load
    from fmilin.manifold.operating_points import operating_point
    from fmilin.model.interface import Evaluation, Model, OperatingPoint
    from fmilin.model.stepping import Stepping
    from fmilin.models.to_casadi import to_casadi
    from fmilin.sandbox.isolated_use import isolated
    from fmilin.signals import Signal, Signals
    from fmilin.simulation.run import simulate, snapshots
    from fmilin.simulation.trajectory import Trajectory
    from fmilin.trimming.procedure import trim, trim_each
    from fmilin.trimming.result import TrimmedPoint
    from fmilin.verifying.procedure import verify
    from fmilin.verifying.result import Verification

_HOMES = {
    "Constraint": "constraints.declared",
    "ConstraintError": "errors",
    "Differences": "derivatives.differences",
    "Discovery": "discovery.result",
    "Evaluation": "model.interface",
    "FmilinError": "errors",
    "LinearModel": "linear_model.model",
    "Model": "model.interface",
    "ModelCrashError": "errors",
    "ModelError": "errors",
    "NumericalError": "errors",
    "OperatingPoint": "model.interface",
    "Signal": "signals",
    "Signals": "signals",
    "Stepping": "model.stepping",
    "Trajectory": "simulation.trajectory",
    "TrimmedPoint": "trimming.result",
    "UnknownNameError": "errors",
    "UsageError": "errors",
    "Verification": "verifying.result",
    "descriptor": "formulations.descriptor",
    "discover": "discovery.procedure",
    "isolated": "sandbox.isolated_use",
    "linearize": "linearization.procedure",
    "linearize_along": "linearization.procedure",
    "load": "loading",
    "operating_point": "manifold.operating_points",
    "simulate": "simulation.run",
    "snapshots": "simulation.run",
    "to_casadi": "models.to_casadi",
    "trim": "trimming.procedure",
    "trim_each": "trimming.procedure",
    "verify": "verifying.procedure",
}

__all__ = [
    "Constraint",
    "ConstraintError",
    "Differences",
    "Discovery",
    "Evaluation",
    "FmilinError",
    "LinearModel",
    "Model",
    "ModelCrashError",
    "ModelError",
    "NumericalError",
    "OperatingPoint",
    "Signal",
    "Signals",
    "Stepping",
    "Trajectory",
    "TrimmedPoint",
    "UnknownNameError",
    "UsageError",
    "Verification",
    "__version__",
    "descriptor",
    "discover",
    "isolated",
    "linearize",
    "linearize_along",
    "load",
    "operating_point",
    "simulate",
    "snapshots",
    "to_casadi",
    "trim",
    "trim_each",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import fmilin`` stays quick."""
    if name not in _HOMES:
        raise AttributeError(f"module 'fmilin' has no attribute '{name}'")
    return getattr(import_module(f"fmilin.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
