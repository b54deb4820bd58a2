"""Differential-algebraic equations as they are written, of any index: structure, reduction, Newton, a model.

What differentiation shows to be a constraint becomes an invariant; coordinates are chosen on the manifold afterwards.
"""
