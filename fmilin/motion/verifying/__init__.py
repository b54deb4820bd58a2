"""The linear model against the nonlinear one on the manifold."""
