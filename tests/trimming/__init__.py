"""Tests of fmilin.trimming."""
