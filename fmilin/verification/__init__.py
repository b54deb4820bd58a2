"""The linear model against the nonlinear one on the manifold.

Takes: a model, its linear model.
Returns: `Verification`: pass or fail for each channel, the range of validity.
Does not depend on: files and pictures.
"""
