"""Tests of fmilin.verifying."""
