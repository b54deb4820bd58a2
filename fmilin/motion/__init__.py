"""Motions on the manifold: simulation, verification of a linear model against the motion, Lyapunov exponents.

Enters: a model, a point, inputs over time, a linear model to hold against them.
Leaves: :class:`~fmilin.Trajectory`, :class:`~fmilin.Verification`, exponents.
Does not know: where the model or the linear model came from.
"""
