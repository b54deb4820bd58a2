"""Aircraft of JSBSim for fmilin: trimmed on the manifold, and linearized in independent coordinates."""

from __future__ import annotations

from fmilin_jsbsim.adapter import JsbsimAdapter
from fmilin_jsbsim.engine import JsbsimEngine

__all__ = ["JsbsimAdapter", "JsbsimEngine"]
