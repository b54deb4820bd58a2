"""How numbers are had: differences, the saddle-point solver, code that is generated and compiled.

Enters: functions of arrays, matrices, graphs of expressions.
Leaves: derivatives with error estimates, solutions with condition numbers, compiled functions.
Does not know: models, constraints, manifolds.
"""
