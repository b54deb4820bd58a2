"""Tests of fmilin.numerics.codegen."""
