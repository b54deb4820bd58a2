"""FMI 2.0: its model description and its folders."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement

from fmilin.fmi.write.description import (
    Description,
    Standard,
    common_attributes,
    numbers,
    real_attributes,
    root_attributes,
)
from fmilin.fmi.write.variables import Variable

__all__ = ["Fmi2"]


class Fmi2(Standard):
    """FMI 2.0.4, https://fmi-standard.org. Variables are referred to by their position, counted from 1."""

    version = "2.0"
    source = "fmi2.c"
    headers = ("fmi2Functions.h", "fmi2FunctionTypes.h", "fmi2TypesPlatform.h")

    def binary_folder(self) -> str:
        """Return ``linux64`` and the like; the standard has no names for ARM, where tools use the same."""
        system = {"win32": "win", "darwin": "darwin"}.get(sys.platform, "linux")
        return f"{system}{64 if sys.maxsize > 2**32 else 32}"

    def root(self, model: Description, token: str) -> Element:
        """Return ``fmiModelDescription`` with ``ModelExchange`` in it."""
        root = Element("fmiModelDescription", {"fmiVersion": "2.0", "guid": token, **root_attributes(model)})
        root.set("numberOfEventIndicators", "0")
        interface = SubElement(
            root,
            "ModelExchange",
            modelIdentifier=model.identifier,
            completedIntegratorStepNotNeeded="true",
            canNotUseMemoryManagementFunctions="true",
            canGetAndSetFMUstate="true",
            canSerializeFMUstate="true",
            providesDirectionalDerivative=str(model.directional_derivatives).lower(),
        )
        files = SubElement(interface, "SourceFiles")
        for name in model.sources:
            SubElement(files, "File", name=name)
        return root

    def variable(self, parent: Element, v: Variable) -> None:
        """Add a ``ScalarVariable``."""
        real = SubElement(SubElement(parent, "ScalarVariable", common_attributes(v)), "Real", real_attributes(v))
        if v.derivative_of is not None:
            real.set("derivative", str(v.derivative_of + 1))

    def structure(self, parent: Element, model: Description) -> None:
        """Add ``Outputs``, ``Derivatives`` and ``InitialUnknowns``; the standard wants no empty ones."""
        derivatives = [v.reference for v in model.derivatives]
        for name, references, initial in (
            ("Outputs", model.interface.outputs, False),
            ("Derivatives", derivatives, False),
            ("InitialUnknowns", model.initial_unknowns(), True),
        ):
            if references:
                _add_unknowns(SubElement(parent, name), model, references, initial=initial)


def _add_unknowns(parent: Element, model: Description, references: Iterable[int], *, initial: bool) -> None:
    for reference in references:
        known = model.dependencies(reference, initial=initial)
        SubElement(parent, "Unknown", index=str(reference + 1), dependencies=numbers(known, 1))
