"""Tests of the linear systems for accelerations and multipliers."""
