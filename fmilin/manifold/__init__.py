"""The manifold at a point: invariants, rank, independent coordinates, x = Psi(y), derivatives (Spencer, ch. 2).

Takes: a model with constraints, points.
Returns: points projected on the manifold, frames (R, T), derivatives along T with errors.
Does not depend on: the search for equilibria, linear models.
"""
