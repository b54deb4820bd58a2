"""A four-bar linkage folded flat: a singular configuration, with one frequency on each of its two branches."""

from __future__ import annotations

from benchmarks.scoreboard.doors import native
from benchmarks.scoreboard.row import Row
from fmilin.formulations import MCS, Formulation, spectrum
from fmilin.model.interface import Model
from fmilin.systems import four_bar

SOURCE = "González, Masarati, Cuadrado, Naya, Assessment of linearization approaches for multibody dynamics (2017)"


def frequency(model: Model, number: int, formulation: Formulation) -> complex:
    """Return a frequency of the linkage over the enlarged set of velocities."""
    found = spectrum(model, None, formulation, at_singularity=isinstance(formulation, MCS)).true
    return sorted((complex(s) for s in found if s.imag > 0), key=lambda s: s.imag)[number]


ROW = Row(
    system="Four-bar linkage, folded flat",
    source=f"{SOURCE}, section 5.1",
    page="https://doi.org/10.1115/1.4035410",
    quantity="first of two pairs, one loop, no spring, gravity along x [1/s]",
    published="3.4310j",
    answer=lambda model: frequency(model, 0, MCS()),
    doors={"native": native(lambda: four_bar(singular=True))},
    remark="By the velocity projection (MCS); the set of velocities has one dimension more here.",
)
