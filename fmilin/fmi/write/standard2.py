"""FMI 2.0: its model description and its folders."""

from __future__ import annotations

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
from fmilin.fmi.write.platforms import Machine
from fmilin.fmi.write.variables import Variable

__all__ = ["Fmi2"]


class Fmi2(Standard):
    """FMI 2.0.4, https://fmi-standard.org. Variables are referred to by their position, counted from 1."""

    version = "2.0"
    source = "fmi2.c"
    runtime = ("fmi2.c",)
    headers = ("fmi2Functions.h", "fmi2FunctionTypes.h", "fmi2TypesPlatform.h")

    def binary_folder(self, machine: Machine) -> str:
        """Return ``linux64`` and the like."""
        return machine.fmi2_folder

    def root(self, model: Description, token: str) -> Element:
        """Return ``fmiModelDescription`` with ``ModelExchange`` and ``CoSimulation`` in it."""
        root = Element("fmiModelDescription", {"fmiVersion": "2.0", "guid": token, **root_attributes(model)})
        root.set("numberOfEventIndicators", "0")
        common = {
            "modelIdentifier": model.identifier,
            "canNotUseMemoryManagementFunctions": "true",
            "canGetAndSetFMUstate": "true",
            "canSerializeFMUstate": "true",
            "providesDirectionalDerivative": str(model.directional_derivatives).lower(),
        }
        if not model.is_sampled:
            _add_interface(root, model, "ModelExchange", {"completedIntegratorStepNotNeeded": "true"} | common)
        steps = {"canHandleVariableCommunicationStepSize": "true", "canInterpolateInputs": "true"}
        steps["maxOutputDerivativeOrder"] = str(int(model.output_slopes))
        _add_interface(root, model, "CoSimulation", steps | common)
        return root

    def variable(self, parent: Element, v: Variable) -> Element:
        """Add a ``ScalarVariable``."""
        element = SubElement(parent, "ScalarVariable", common_attributes(v))
        real = SubElement(element, "Real", real_attributes(v))
        if v.derivative_of is not None:
            real.set("derivative", str(v.derivative_of + 1))
        return element

    def structure(self, parent: Element, model: Description) -> None:
        """Add ``Outputs``, ``Derivatives`` and ``InitialUnknowns``; the standard wants no empty ones."""
        derivatives = [v.reference for v in model.derivatives]
        for name, references, initial in (
            ("Outputs", model.outputs, False),
            ("Derivatives", derivatives, False),
            ("InitialUnknowns", model.initial_unknowns(), True),
        ):
            if references:
                _add_unknowns(SubElement(parent, name), model, references, initial=initial)


def _add_interface(root: Element, model: Description, name: str, attributes: dict[str, str]) -> None:
    files = SubElement(SubElement(root, name, attributes), "SourceFiles")
    for file in model.sources:
        SubElement(files, "File", name=file)


def _add_unknowns(parent: Element, model: Description, references: Iterable[int], *, initial: bool) -> None:
    for reference in references:
        known = model.dependencies(reference, initial=initial)
        element = SubElement(parent, "Unknown", index=str(reference + 1))
        if known is not None:
            element.set("dependencies", numbers(known, 1))
