"""Differential-algebraic equations as they are written, of any index: structure, reduction, Newton, a model.

No state is dropped and none is chosen beforehand: what differentiation shows to be a constraint becomes an invariant,
and coordinates are chosen on the manifold as in every other model.
"""
