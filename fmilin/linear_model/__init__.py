"""The result: a linear model as data, its arithmetic, its reduction.

Enters: matrices with names, units, a point, accuracy and remarks.
Leaves: :class:`~fmilin.LinearModel`, modes, Gramians, smaller and sampled models.
Does not know: how it was made; files, pictures and verification are handed in from above.
"""
