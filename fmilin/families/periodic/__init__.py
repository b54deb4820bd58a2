"""Motions that repeat: orbits on the manifold, linear models along them, and what Floquet's theory says of both."""
