"""Tests of the reference systems against closed forms."""
