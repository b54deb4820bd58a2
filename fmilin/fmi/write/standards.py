"""What is particular to FMI 2.0 and to FMI 3.0: the model description, folders, and how sources are built."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from xml.etree.ElementTree import Element, SubElement

from fmilin.fmi.platforms import Machine
from fmilin.fmi.write.description import (
    Description,
    Standard,
    common_attributes,
    numbers,
    real_attributes,
    root_attributes,
    to_bytes,
)
from fmilin.fmi.write.variables import Variable
from fmilin.ground.errors import UsageError

__all__ = ["Fmi2", "Fmi3", "standard_of"]


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


_STANDARDS: Mapping[str, Standard] = {"2.0": Fmi2(), "3.0": Fmi3()}


def standard_of(version: str) -> Standard:
    """Return what is particular to a version."""
    standard = _STANDARDS.get(version)
    if standard is None:
        raise UsageError(f"FMUs are built for FMI {' or '.join(_STANDARDS)}, not for '{version}'.")
    return standard
