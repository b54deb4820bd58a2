"""From a model at an operating point to its linear model.

Takes: a model, a point or a batch of points, options.
Returns: `LinearModel` with accuracy and warnings, or an error.
Does not depend on: how points are found, files, families.
"""
