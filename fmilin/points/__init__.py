"""Trimming: equilibria and steady motions on the manifold.

Enters: a model, what is fixed, free and steady, a first guess.
Leaves: :class:`~fmilin.TrimmedPoint`, or what was tried and what stands in the way.
Does not know: sweeps, files.
"""
