"""Expressions of a user, and the constraints that they declare.

Takes: texts, constraints.toml.
Returns: `Constraint`, residuals with exact derivatives.
Does not depend on: models.
"""
