"""Finite differences with error estimates, null spaces, factorizations, eigenvalue errors.

Takes: functions of arrays, matrices.
Returns: derivatives with error estimates, solutions with condition numbers.
Does not depend on: models, constraints, manifolds.
"""
