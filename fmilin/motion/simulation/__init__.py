"""Integration on the manifold: one file per way to stay on it, over the integrators of scipy."""

from fmilin.motion.simulation.inputs import InputTable
from fmilin.motion.simulation.method import Method
from fmilin.motion.simulation.run import simulate, snapshots
from fmilin.motion.simulation.stabilizations import Baumgarte, LocalForm, Projection, Underlying
from fmilin.motion.simulation.trajectory import Switch, Trajectory

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
