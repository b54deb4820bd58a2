"""Functions that models declare, with names of their own: the front end confuses those of different models.

Two models call ``position(u, time)``, each with a function ``position`` and its derivative. The front end compares the
arguments of one call with the inputs of the other function.
"""

from __future__ import annotations

import re
from collections import Counter

from fmilin_modelica.class_reader import read_classes
from fmilin_modelica.rewriting import edit_text

__all__ = ["SHAPE_FAULT", "write_names_of_local_functions"]

SHAPE_FAULT = re.compile(r"function shape proof`: `\w+`: axis \d+ requires extent")


def write_names_of_local_functions(text: str) -> str:
    """Return a text in which functions inside of models and blocks have names that contain the name of their class.

    A name stays where the file declares it twice, or has a component of that name: it would be ambiguous.
    """
    if "function" not in text:
        return text
    tokens, tops = read_classes(text)
    classes = [inner for top in tops for inner in top.list_all()]
    counts = Counter(found.name[-1] for found in classes)
    components = {name for found in classes for name in found.components}
    names = {
        found.name[-1]: f"{found.name[-1]}_of_{found.parent.name[-1]}"
        for found in classes
        if found.kind == "function" and found.parent is not None and found.parent.kind in {"model", "block"}
    }
    names = {name: new for name, new in names.items() if counts[name] == 1 and name not in components}
    edits = []
    for place, token in enumerate(tokens):
        before = tokens[place - 1].text if place else ""
        after = tokens[place + 1].text if place + 1 < len(tokens) else ""
        is_argument = after == "=" and before in {"(", ","}
        if token.kind == "name" and token.text in names and before != "." and not is_argument:
            edits.append((token.begin, token.end, names[token.text]))
    return edit_text(text, edits)
