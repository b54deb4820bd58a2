"""The road from a model at a point to its linear model, and identification where a model only answers in time.

Enters: a model, a point or a stack of points, a request.
Leaves: :class:`~fmilin.LinearModel` with accuracy and remarks, or a refusal.
Does not know: how points are searched for, files, families.
"""
