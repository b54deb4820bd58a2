"""Periodic motions: orbits on the manifold, linear models along them, Floquet theory.

Takes: a model, a period or a coordinate that turns.
Returns: `PeriodicOrbit`, `PeriodicModel`, `Floquet`.
Does not depend on: files and pictures.
"""
