"""Random constrained systems whose linear model is known.

Reduced dynamics y' = a(y, u), linear but for a few quadratic terms, are hidden behind a random smooth change of
coordinates and redundant quantities w:

    z = (y, w),  w = phi(t, y),  x = D Gamma^-1(z)

with D a diagonal of sizes. On the manifold f = D DGamma^-1 (y', phi'); beside it f is something else: the gaps
w - phi drive all states. In second-order systems y are positions, the states are q and their rates v, or speeds s that
mix several rates. The model computes from x through Gamma; the known answer is computed from y without it, and
differentiated by complex steps.
"""

from tests.random_systems.answer import Chosen, Reference, relative_error
from tests.random_systems.model import HiddenModel, hidden_system
from tests.random_systems.recipe import Family, Level, Recipe
from tests.random_systems.system import HiddenSystem

__all__ = [
    "Chosen",
    "Family",
    "HiddenModel",
    "HiddenSystem",
    "Level",
    "Recipe",
    "Reference",
    "hidden_system",
    "relative_error",
]
