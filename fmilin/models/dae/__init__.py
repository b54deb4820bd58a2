"""Differential-algebraic equations as they are written, of any index: structure, reduction, Newton, a model.

Constraints that differentiation reveals become invariants; coordinates are chosen on the manifold afterwards.
"""
