"""Modelica files, and models of libraries by name: ``modelica:Modelica.Mechanics.Rotational.Examples.First``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fmilin import Model
from fmilin.adapters import Adapter

__all__ = ["ModelicaAdapter"]


class ModelicaAdapter(Adapter):
    """Reads Modelica: ``crane.mo``, ``crane.mo:Package.Model``, ``modelica:Library.Package.Model``."""

    suffixes = (".mo",)
    description = "Modelica models, by file (crane.mo, crane.mo:Package.Model) or by name in a library"
    package = "rumoca"
    oldest = (0, 10)
    options = ("library", "friction_modes")

    def load(self, path: Path) -> Model:
        """Return the only model in a file."""
        return self.load_as(path, {})

    def load_as(self, path: Path, options: Mapping[str, Any]) -> Model:
        """Return the only model in a file.

        Raises
        ------
        ModelError
            When the front end rejects it, with its words and the line; when a construct is not known.
        UsageError
            When there are several models, or a library is not there.
        """
        return self._opened(path, None, options)

    def load_member(self, path: Path, member: str, options: Mapping[str, Any]) -> Model:
        """Return the model ``member`` of a file."""
        return self._opened(path, member, options)

    def load_named(self, name: Path, options: Mapping[str, Any]) -> Model:
        """Return a model of a library."""
        return self._opened(None, str(name), options)

    def _opened(self, path: Path | None, name: str | None, options: Mapping[str, Any]) -> Model:
        self.engine()
        from fmilin_modelica.delays import delay_model
        from fmilin_modelica.model import ModelicaModel
        from fmilin_modelica.sources import source_of

        model = ModelicaModel.opened(source_of(path, name, options))
        return delay_model(model) if model.engine.equations.delays else model
