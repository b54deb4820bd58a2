"""XML of the SSP files: opened safely, and what is wrong said with its place.

Read here, over lxml: FMPy's ``ssp`` package (0.3.32) drops LinearTransformations, units of connectors and inline
mappings, and knows the schema of 1.x only; pyssp-standard (0.9.1) does not read transformations of connections, and
unpacks without a limit.
"""

import math
from typing import Any

from fmilin.composition.system_declaration import AbsoluteUnit, Affine
from fmilin.errors import ModelError
from fmilin.fmi.read.xml import safe_root
from fmilin.fmi.write.description_writer import BASE_UNITS

_BASE = "{http://ssp-standard.org/SSP1/"
SSC = f"{_BASE}SystemStructureCommon}}"
SSD = f"{_BASE}SystemStructureDescription}}"
SSV = f"{_BASE}SystemStructureParameterValues}}"
SSM = f"{_BASE}SystemStructureParameterMapping}}"
SSB = f"{_BASE}SystemStructureSignalDictionary}}"
_NUMBERS = {"Real", "Float64", "Float32"}
_TABLES = {f"{kind}MappingTransformation" for kind in ("Boolean", "Integer", "Enumeration")}
INTEGERS = {"Integer", *(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))}


class SspReader:
    """One XML file, called ``where`` in messages; ``root`` is the tag that its root must have, in Clark's notation."""

    def __init__(self, xml: bytes, where: str, root: str) -> None:
        self.where = where
        self.root = safe_root(xml, where, "SSP", "system")
        if self.root.tag != root:
            raise self.error(
                f"its root element is '{local_name(self.root)}', not '{root.rpartition('}')[2]}'", self.root
            )

    def error(self, what: str, element: Any) -> ModelError:
        """Return the error about an element: one sentence with its place, and what to do."""
        return ModelError(f"{self.where}, line {element.sourceline}: {what}. Correct the file, or export it again.")

    def require_attribute(self, element: Any, attribute: str) -> str:
        """Return an attribute that must be there."""
        value = element.get(attribute)
        if not value:
            raise self.error(f"the element '{local_name(element)}' has no '{attribute}'", element)
        return str(value)

    def number(self, element: Any, attribute: str, otherwise: float) -> float:
        """Return a finite number."""
        text = element.get(attribute)
        if text is None:
            return otherwise
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self.error(f"{attribute}='{text}' of '{local_name(element)}' is not a finite number", element)
        return value

    def transformation(self, element: Any) -> tuple[Affine, dict[str, str]]:
        """Return the transformation of a connection or a mapping entry: of real numbers, or a table of other values."""
        for child in element:
            name = local_name(child)
            if not name.endswith("Transformation"):
                continue
            if name == "LinearTransformation":
                return Affine(self.number(child, "factor", 1.0), self.number(child, "offset", 0.0)), {}
            if name not in _TABLES:
                raise self.error(f"the element {name} is not known", child)
            entries = child.findall(f"{SSC}MapEntry")
            if not entries:
                raise self.error(f"the {name} has no MapEntry", child)
            plain = _truth if name == "BooleanMappingTransformation" else str
            return Affine(), {
                plain(self.require_attribute(e, "source")): plain(self.require_attribute(e, "target")) for e in entries
            }
        return Affine(), {}

    def find_typed_element(self, element: Any, namespaces: tuple[str, ...]) -> Any:
        """Return the child that says a connector's, entry's or parameter's type, or None."""
        kinds = {*_NUMBERS, *INTEGERS, "Boolean", "String", "Enumeration", "Binary", "Clock"}
        for child in element:
            if isinstance(child.tag, str) and child.tag.startswith(namespaces) and local_name(child) in kinds:
                return child
        return None

    def value(self, element: Any) -> float | int | bool | str:
        """Return the value of a parameter, by its type."""
        kind = local_name(element)
        if kind in _NUMBERS:
            self.require_attribute(element, "value")
            return self.number(element, "value", 0.0)
        text = self.require_attribute(element, "value") if kind != "String" else element.get("value") or ""
        try:
            if kind in INTEGERS:
                return int(text)
        except ValueError:
            raise self.error(f"value='{text}' is not an integer", element) from None
        if kind == "Boolean":
            return _truth(text) == "true"
        if kind in ("Binary", "Clock"):
            raise self.error(f"parameters of type {kind} are not supported", element)
        return text

    def enumerations(self, parent: str) -> dict[str, dict[str, int]]:
        """Return the numbers of the items of all enumerations that the file defines under ``parent``."""
        numbers: dict[str, dict[str, int]] = {}
        for enumeration in self.root.findall(f"{parent}/{SSC}Enumeration"):
            items = numbers.setdefault(self.require_attribute(enumeration, "name"), {})
            for item in enumeration.findall(f"{SSC}Item"):
                items[self.require_attribute(item, "name")] = int(self.number(item, "value", 0.0))
        return numbers

    def units(self, parent: str) -> dict[str, AbsoluteUnit]:
        """Return the units that the file defines under ``parent``."""
        units = {}
        for unit in self.root.findall(f"{parent}/{SSC}Unit"):
            base = unit.find(f"{SSC}BaseUnit")
            if base is None:
                continue
            exponents = tuple(int(self.number(base, name, 0.0)) for name in BASE_UNITS)
            factor = self.number(base, "factor", 1.0)
            if factor == 0.0:
                raise self.error("a unit must not have the factor 0", base)
            units[self.require_attribute(unit, "name")] = AbsoluteUnit(
                exponents, factor, self.number(base, "offset", 0.0)
            )
        return units


def _truth(text: str) -> str:
    return "true" if text.strip() in ("true", "1") else "false"


def local_name(element: Any) -> str:
    """Return an element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]
