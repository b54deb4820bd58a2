"""Tiny models that a student meets first, through every source that can express them, against closed forms."""
