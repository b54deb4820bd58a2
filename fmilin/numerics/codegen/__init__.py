"""From expressions and recursions to functions, exact derivatives and C: a thin layer over CasADi."""
