"""The one interface that every source answers, and the constraints that a user declares.

Enters: time, states, inputs; expressions of a user.
Leaves: :class:`~fmilin.Model`, :class:`~fmilin.OperatingPoint`, :class:`~fmilin.Constraint`.
Does not know: where a model came from, and what is done with it.
"""
