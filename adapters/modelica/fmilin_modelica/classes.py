"""The models that a Modelica text defines, by their full names."""

from __future__ import annotations

import re

from fmilin_modelica.libraries import SKIPPED

__all__ = ["list_models"]

_BEGIN_OR_END = re.compile(
    r"\b(partial\s+)?(?:(?:encapsulated|final|inner|outer|replaceable|redeclare|expandable|pure|impure|operator)\s+)*"
    r"(model|package|block|function|record|connector|class|type)\s+(?:extends\s+)?([A-Za-z_]\w*)\b(?!\s*[=(])"
    r"|(?<![\w.])end\s+([A-Za-z_]\w*)\s*;"
)
_MODELS = ("model", "block", "class")


def list_models(text: str) -> list[str]:
    """Return the models and blocks in a text that are not partial, ``Package.Model``, in its order."""
    names: list[str] = []
    around: list[str] = []
    for found in _BEGIN_OR_END.finditer(SKIPPED.sub(" ", text)):
        if found[4] is None:
            around.append(found[3])
            if found[2] in _MODELS and not found[1]:
                names.append(".".join(around))
        elif found[4] in around:
            del around[len(around) - 1 - around[::-1].index(found[4]) :]
    return names
