"""Pinocchio models for fmilin: URDF files with loops, and Pinocchio's analytic derivatives as exact products."""

from __future__ import annotations

from fmilin_pinocchio.adapter import PinocchioAdapter
from fmilin_pinocchio.closing import Weld, with_loops
from fmilin_pinocchio.engine import PinocchioEngine

__all__ = ["PinocchioAdapter", "PinocchioEngine", "Weld", "with_loops"]
