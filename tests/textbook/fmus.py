"""The textbook's models as FMUs: one compiled FMU for each model and version of the standard, for all its cells."""

from __future__ import annotations

from pathlib import Path

import fmilin as fl
from fmilin.fmi.write import build_fmu
from tests.shared import shared
from tests.textbook.cells import Cell, Source
from tests.textbook.native import ode_model

__all__ = ["fmu_source"]


def fmu_source(version: str, interface: str) -> Source:
    """Return the source of FMUs of a version of the standard, through one of their two interfaces."""

    def load(name: str) -> Cell:
        def build(path: Path) -> None:
            build_fmu(ode_model(name).model, path, fmi_version=version)

        path = shared(f"textbook-{name}-{version}.fmu", build)
        return Cell(fl.load(path, interface=interface))

    return load
