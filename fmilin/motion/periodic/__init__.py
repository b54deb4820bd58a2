"""Linear systems with periodic coefficients, y' = A(t) y: Floquet's theory, harmonics, multiblade coordinates.

Enters: matrices at equally spaced times of one period.
Leaves: multipliers, exponents and modes, harmonic state space, matrices in the rotor's fixed axes.
Does not know: models, orbits, files.
"""
