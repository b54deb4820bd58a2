"""Equilibria and steady motions on the manifold."""
