"""Multibody systems of Exudyn for fmilin: linearized in independent coordinates, with all their constraints."""

from __future__ import annotations

from fmilin_exudyn.adapter import ExudynAdapter, from_system

__all__ = ["ExudynAdapter", "from_system"]
