"""Tests of Kane's equations."""
