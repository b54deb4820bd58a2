"""Trimming: equilibria and steady motions on the manifold.

Takes: a model, what is fixed, free and steady, a first guess.
Returns: :class:`~fmilin.TrimmedPoint`, or what was tried and what stands in the way.
Does not depend on: sweeps, files.
"""
