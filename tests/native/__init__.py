"""Tests of fmilin.native."""
