"""Constraints that nobody declared, found from the rates of a model.

Enters: a model that can be evaluated at any state.
Leaves: :class:`~fmilin.Discovery`: expressions, conserved quantities, the order.
Does not know: why they are wanted.
"""
