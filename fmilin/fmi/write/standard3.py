"""FMI 3.0: its model description, its folders, and how its sources are built."""

from __future__ import annotations

import sys
from xml.etree.ElementTree import Element, SubElement

from fmilin.fmi.write.description import (
    Description,
    Standard,
    common_attributes,
    numbers,
    real_attributes,
    root_attributes,
    to_bytes,
)
from fmilin.fmi.write.platforms import Machine
from fmilin.fmi.write.variables import Variable

__all__ = ["Fmi3"]


class Fmi3(Standard):
    """FMI 3.0.2, https://fmi-standard.org. Variables are referred to by their value references."""

    version = "3.0"
    source = "fmi3.c"
    runtime = ("fmi3.c", "fmi3_unused.c")
    headers = ("fmi3Functions.h", "fmi3FunctionTypes.h", "fmi3PlatformTypes.h")

    def binary_folder(self, machine: Machine) -> str:
        """Return ``x86_64-linux`` and the like."""
        return machine.fmi3_folder

    def root(self, model: Description, token: str) -> Element:
        """Return ``fmiModelDescription`` with ``ModelExchange`` and ``CoSimulation`` in it."""
        attributes = {"fmiVersion": "3.0", "instantiationToken": token, **root_attributes(model)}
        root = Element("fmiModelDescription", attributes)
        provided = str(model.directional_derivatives).lower()
        common = {
            "modelIdentifier": model.identifier,
            "canGetAndSetFMUState": "true",
            "canSerializeFMUState": "true",
            "providesDirectionalDerivatives": provided,
            "providesAdjointDerivatives": provided,
        }
        if not model.is_sampled:
            SubElement(root, "ModelExchange", common)
        steps = {"canHandleVariableCommunicationStepSize": "true"}
        if model.is_sampled:
            steps["fixedInternalStepSize"] = repr(model.sample_time)
        if model.output_slopes:
            steps["maxOutputDerivativeOrder"] = "1"
        SubElement(root, "CoSimulation", common | steps)
        return root

    def variable(self, parent: Element, v: Variable) -> Element:
        """Add a ``Float64``."""
        element = SubElement(parent, "Float64", {**common_attributes(v), **real_attributes(v)})
        if v.derivative_of is not None:
            element.set("derivative", str(v.derivative_of))
        return element

    def structure(self, parent: Element, model: Description) -> None:
        """Add ``Output``, ``ContinuousStateDerivative`` and ``InitialUnknown`` entries."""
        derivatives = [v.reference for v in model.derivatives]
        for name, references, initial in (
            ("Output", model.outputs, False),
            ("ContinuousStateDerivative", derivatives, False),
            ("InitialUnknown", model.initial_unknowns(), True),
        ):
            for reference in references:
                known = model.dependencies(reference, initial=initial)
                element = SubElement(parent, name, valueReference=str(reference))
                if known is not None:
                    element.set("dependencies", numbers(known))

    def extra_sources(self, model: Description) -> dict[str, bytes]:
        """Return ``buildDescription.xml``."""
        root = Element("fmiBuildDescription", fmiVersion="3.0")
        configuration = SubElement(root, "BuildConfiguration", modelIdentifier=model.identifier)
        files = SubElement(configuration, "SourceFileSet", language="C99")
        for name in model.sources:
            SubElement(files, "SourceFile", name=name)
        if sys.platform != "win32":
            SubElement(configuration, "Library", name="m", external="true")
        return {"buildDescription.xml": to_bytes(root)}
