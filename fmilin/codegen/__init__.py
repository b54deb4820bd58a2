"""Symbolic systems and how they become numbers: NumPy functions in this process, or C99 code."""
