"""Tests of fmilin.verification."""
