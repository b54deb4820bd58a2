"""Tests of fmilin.motion.verifying."""
