"""The result: a linear model as data and its arithmetic.

Takes: matrices with names, units, a point, accuracy and warnings.
Returns: `LinearModel`, modes, descriptor form.
Does not depend on: how it was made; files and pictures.
"""
