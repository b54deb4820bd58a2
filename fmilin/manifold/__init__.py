"""The manifold at a point: invariants, rank, independent coordinates, x = Psi(y), slopes along it (Spencer, ch. 2).

Enters: a model with constraints, points.
Leaves: points projected on the manifold, frames (R, T), slopes along T with errors.
Does not know: equilibria that are searched for, linear models as results.
"""
