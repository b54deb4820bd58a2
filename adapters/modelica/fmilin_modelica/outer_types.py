"""The classes of outer components: those of their inner ones, where the front end rejects a more general one.

``outer PartialRoad road`` may stand for ``inner FlatRoad road`` in Modelica. The front end takes the outer component
for an instance of the partial class, or demands the same class of both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from fmilin_modelica.class_table import ClassTable
from fmilin_modelica.rewriting import edit_text, mask_comments_and_strings
from fmilin_modelica.used_classes import list_classes_of_model

__all__ = ["TYPE_FAULT", "write_types_of_inner_components"]

TYPE_FAULT = re.compile(r"inner/outer type mismatch|component '\w+' instantiates partial model")


def write_types_of_inner_components(
    files: Mapping[str, str], text: str, model: str | None
) -> Callable[[str], str] | None:
    """Return the function that writes them into a text; None where no outer component has another class.

    Parameters
    ----------
    files : mapping of str to str
        Texts of the libraries that the model needs, by their places.
    text : str
        The text with the model, or with a part of it.
    model : str or None
        The name of the model; None for the one in the text.
    """
    table = ClassTable(files, text)
    inner: dict[str, set[str]] = {}
    outer: dict[str, set[str]] = {}
    for found in list_classes_of_model(table, text, model):
        for component in found.components.values():
            kind = table.find_type(component.type_name, found)
            for prefix, names in (("inner", inner), ("outer", outer)):
                if kind is not None and prefix in component.prefixes:
                    names.setdefault(component.name, set()).add(".".join(kind.name))
    types = {name: kinds.pop() for name, kinds in inner.items() if len(kinds) == 1}
    types = {name: kind for name, kind in types.items() if outer.get(name, set()) - {kind}}
    if not types:
        return None
    pattern = re.compile(rf"(?<=\bouter)\s+(?!inner\b|parameter\b)([\w.]+)\s+({'|'.join(types)})\b")

    def write(code: str) -> str:
        found = pattern.finditer(mask_comments_and_strings(code))
        return edit_text(code, [(*match.span(1), f".{types[match[2]]}") for match in found])

    return write
