"""From expressions and recursions to functions, exact derivatives and C: a thin layer over CasADi, and the compiler.

Takes: graphs of expressions.
Returns: functions of arrays, exact derivatives, C99 code, compiled functions.
Does not depend on: models and manifolds.
"""
