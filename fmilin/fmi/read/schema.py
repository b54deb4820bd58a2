"""How far a model description departs from the XML schema of the standard, as FMPy ships it."""

from __future__ import annotations

from typing import Any

from fmilin.fmi.platforms import fmpy_folder

__all__ = ["problems"]


def problems(root: Any, schema: str) -> list[str]:
    """Return one sentence per departure, in the order of the file.

    ``root``: the root of the model description. ``schema``: the schema file, relative to FMPy's folder of schemas.
    """
    from lxml import etree

    folder = fmpy_folder()
    if folder is None:  # pragma: no cover - FMPy is a dependency
        return []
    try:
        checker = etree.XMLSchema(file=str(folder / "schema" / schema))
        if checker.validate(root):
            return []
    except etree.LxmlError as error:  # what the validator itself cannot cope with, such as entities
        return [f"it cannot be checked ({error})."]
    return [f"line {e.line}: {e.message}" for e in checker.error_log]
