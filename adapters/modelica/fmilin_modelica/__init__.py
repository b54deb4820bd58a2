"""Modelica models for fmilin: flattened by rumoca, their index left as it is, linearized on their manifold."""

from __future__ import annotations

from fmilin_modelica.adapter import ModelicaAdapter
from fmilin_modelica.model import ModelicaModel

__all__ = ["ModelicaAdapter", "ModelicaModel"]
