"""A family of linear models as a function file of MATLAB and Octave: an array of models with its sampling grid."""

from __future__ import annotations

from fmilin.families.family import LinearFamily
from fmilin.ground.errors import UsageError
from fmilin.output.export import m_file
from fmilin.output.export.model_array import gathered
from fmilin.output.export.writing import Writing

__all__ = ["dumps"]


def dumps(family: LinearFamily, name: str) -> bytes:
    """Return the content of a function called ``name``; points without a linear model are left out."""
    good = list(family.good())
    if not good:
        raise UsageError("No point of the family has a linear model: there is nothing to write into a .m file.")
    values = {axis: [family.grid.values(k)[axis] for k, _ in good] for axis in family.axes}
    if len(good) == 1:
        return m_file.dumps(good[0][1], Writing(name=name))
    return m_file.dumps_array(gathered([linear for _, linear in good], values), Writing(name=name))
