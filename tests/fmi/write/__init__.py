"""Tests of fmilin.fmi.write."""
