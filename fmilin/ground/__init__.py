"""What every other folder stands on: errors, signals, remarks, tolerances, files that are never left half-written.

Enters: names, units, sizes, texts; foreign code and what it may take.
Leaves: errors and remarks in words, :class:`~fmilin.Signals`, files written whole, a process that guards foreign code.
Does not know: what a model is.
"""
