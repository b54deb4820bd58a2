"""Tests of fmilin.points."""
