"""Derivatives by differences, with steps that fit the function and an error estimate for every entry."""
