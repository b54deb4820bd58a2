"""Integration on the manifold: one module for each method of stabilization, over the integrators of SciPy.

Takes: a model, a point, inputs over time.
Returns: `Trajectory`, snapshots.
Does not depend on: linear models.
"""

from fmilin.simulation.inputs import InputTable
from fmilin.simulation.method import Method
from fmilin.simulation.run import simulate, snapshots
from fmilin.simulation.stabilization import Stabilization
from fmilin.simulation.stabilizations import Baumgarte, LocalForm, Projection, Underlying
from fmilin.simulation.trajectory import Switch, Trajectory

__all__ = [
    "Baumgarte",
    "InputTable",
    "LocalForm",
    "Method",
    "Projection",
    "Stabilization",
    "Switch",
    "Trajectory",
    "Underlying",
    "simulate",
    "snapshots",
]
