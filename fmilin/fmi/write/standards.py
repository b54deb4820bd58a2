"""What is particular to FMI 2.0 and to FMI 3.0: the model description, folders, and how sources are built."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from operator import attrgetter
from xml.etree.ElementTree import Element, SubElement

from fmilin.fmi.write.description import (
    FmuDescription,
    Standard,
    common_attributes,
    real_attributes,
    root_attributes,
    to_bytes,
)
from fmilin.fmi.write.variables import FmuVariable
from fmilin.ground.errors import UsageError


def _slopes(model: FmuDescription, *flags: str) -> dict[str, str]:
    return dict.fromkeys(flags, str(model.directional_derivatives).lower())


class Fmi2(Standard):
    """FMI 2.0.4, https://fmi-standard.org. Variables are referred to by their position, counted from 1."""

    version = "2.0"
    source = "fmi2.c"
    runtime = ("fmi2.c", "functions.c")
    headers = ("fmi2Functions.h", "fmi2FunctionTypes.h", "fmi2TypesPlatform.h")
    binary_folder = attrgetter("fmi2_folder")
    entries = (("Outputs", "Unknown"), ("Derivatives", "Unknown"), ("InitialUnknowns", "Unknown"))
    attribute, first = "index", 1

    def root(self, model: FmuDescription, token: str) -> Element:
        """Return ``fmiModelDescription`` with ``ModelExchange`` and ``CoSimulation`` in it."""
        root = Element("fmiModelDescription", {"fmiVersion": "2.0", "guid": token, **root_attributes(model)})
        root.set("numberOfEventIndicators", "0")
        abilities = ("canNotUseMemoryManagementFunctions", "canGetAndSetFMUstate", "canSerializeFMUstate")
        common = {"modelIdentifier": model.identifier} | dict.fromkeys(abilities, "true")
        common |= _slopes(model, "providesDirectionalDerivative")
        if not model.is_sampled:
            _add_interface(root, "ModelExchange", {"completedIntegratorStepNotNeeded": "true"} | common)
        steps = {"canHandleVariableCommunicationStepSize": "true", "canInterpolateInputs": "true"}
        steps["maxOutputDerivativeOrder"] = str(int(model.output_slopes))
        _add_interface(root, "CoSimulation", steps | common)
        return root

    def variable(self, parent: Element, v: FmuVariable) -> Element:
        """Add a ``ScalarVariable``."""
        element = SubElement(parent, "ScalarVariable", common_attributes(v))
        return SubElement(element, "Real", real_attributes(v))


def _add_interface(root: Element, name: str, attributes: dict[str, str]) -> None:
    files = SubElement(SubElement(root, name, attributes), "SourceFiles")
    SubElement(files, "File", name=Fmi2.source)


class Fmi3(Standard):
    """FMI 3.0.2, https://fmi-standard.org. Variables are referred to by their value references."""

    version = "3.0"
    source = "fmi3.c"
    runtime = ("fmi3.c", "functions.c", "fmi3_unused.c")
    headers = ("fmi3Functions.h", "fmi3FunctionTypes.h", "fmi3PlatformTypes.h")
    binary_folder = attrgetter("fmi3_folder")
    entries = (("", "Output"), ("", "ContinuousStateDerivative"), ("", "InitialUnknown"))
    attribute, first = "valueReference", 0

    def root(self, model: FmuDescription, token: str) -> Element:
        """Return ``fmiModelDescription`` with ``ModelExchange`` and ``CoSimulation`` in it."""
        attributes = {"fmiVersion": "3.0", "instantiationToken": token, **root_attributes(model)}
        root = Element("fmiModelDescription", attributes)
        common = {"modelIdentifier": model.identifier, "canGetAndSetFMUState": "true", "canSerializeFMUState": "true"}
        common |= _slopes(model, "providesDirectionalDerivatives", "providesAdjointDerivatives")
        if not model.is_sampled:
            SubElement(root, "ModelExchange", common)
        steps = {"canHandleVariableCommunicationStepSize": "true"} | model.step_size("fixedInternalStepSize")
        if model.output_slopes:
            steps["maxOutputDerivativeOrder"] = "1"
        SubElement(root, "CoSimulation", common | steps)
        return root

    def variable(self, parent: Element, v: FmuVariable) -> Element:
        """Add a ``Float64``."""
        return SubElement(parent, "Float64", {**common_attributes(v), **real_attributes(v)})

    def build_description(self, model: FmuDescription) -> dict[str, bytes]:
        """Return ``buildDescription.xml``."""
        root = Element("fmiBuildDescription", fmiVersion="3.0")
        configuration = SubElement(root, "BuildConfiguration", modelIdentifier=model.identifier)
        files = SubElement(configuration, "SourceFileSet", language="C99")
        SubElement(files, "SourceFile", name=self.source)
        if sys.platform != "win32":
            SubElement(configuration, "Library", name="m", external="true")
        return {"buildDescription.xml": to_bytes(root)}


_STANDARDS: Mapping[str, Standard] = {"2.0": Fmi2(), "3.0": Fmi3()}


def standard_of(version: str) -> Standard:
    """Return what is particular to a version."""
    standard = _STANDARDS.get(version)
    if standard is None:
        raise UsageError(f"FMUs are built for FMI {' or '.join(_STANDARDS)}, not for '{version}'.")
    return standard
