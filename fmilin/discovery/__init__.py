"""Constraints that nobody declared, found from the rates of a model, and why a channel is zero.

Enters: a model that can be evaluated at any state.
Leaves: :class:`~fmilin.Discovery`: expressions, conserved quantities, the order; :class:`~fmilin.Explanation`.
Does not know: why they are wanted.
"""
