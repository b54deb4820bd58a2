"""Tests of Lyapunov exponents."""
