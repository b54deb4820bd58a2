"""Undeclared constraints, found from the derivatives of a model, and explanations of zero channels.

Takes: a model that can be evaluated at any state.
Returns: `Discovery`: expressions, conserved quantities, the order; `Explanation`.
Does not depend on: what they are used for.
"""
