"""Filters on nonlinear constrained models: the error lives in the tangent space of the manifold."""
