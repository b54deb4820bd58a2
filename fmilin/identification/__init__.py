"""Linear models from time responses, of models that bring their own solver and can only be stepped.

Takes: a stepped model at a point, a budget of time.
Returns: `LinearModel` with accuracy.
Does not depend on: how points are found, files, families.
"""
