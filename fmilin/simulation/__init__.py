"""Integration on the manifold: one file per way to stay on it, over the integrators of scipy."""

from __future__ import annotations

from fmilin.simulation.inputs import InputTable
from fmilin.simulation.method import Method
from fmilin.simulation.run import simulate, snapshots
from fmilin.simulation.stabilizations import Baumgarte, LocalForm, Projection, Underlying
from fmilin.simulation.trajectory import Switch, Trajectory

__all__ = [
    "Baumgarte",
    "InputTable",
    "LocalForm",
    "Method",
    "Projection",
    "Switch",
    "Trajectory",
    "Underlying",
    "simulate",
    "snapshots",
]
