"""Constraints that nobody wrote down: found by asking a model for its rates at states of our choice."""
