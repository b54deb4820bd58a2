"""Tests of fmilin.models."""
