"""Tests of fmilin.codegen."""
