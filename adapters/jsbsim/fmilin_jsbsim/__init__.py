"""Aircraft of JSBSim for fmilin: trimmed on the manifold, and linearized in independent coordinates."""

from __future__ import annotations

from fmilin_jsbsim.adapter import JsbsimAdapter
from fmilin_jsbsim.engine import JsbsimEngine
from fmilin_jsbsim.flight import Flight, trim_flight

__all__ = ["Flight", "JsbsimAdapter", "JsbsimEngine", "trim_flight"]
