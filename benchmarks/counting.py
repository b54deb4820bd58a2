"""Count what a model is asked for while a benchmark runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from math import prod
from typing import Any
from unittest.mock import patch

import fmilin as fl

__all__ = ["count_calls"]


@contextmanager
def count_calls(model: fl.Model) -> Iterator[Counter[str]]:
    """Count the evaluations of models of this class and the directions of their exact derivatives meanwhile."""
    calls: Counter[str] = Counter()
    kind = type(model)
    counted: tuple[tuple[str, str, Callable[..., int]], ...] = (
        ("evaluate", "evaluations", lambda _t, x, _u: prod(x.shape[:-1])),
        ("exact_slopes", "evaluations", lambda *_: 1),
        ("products", "directions", lambda _t, _x, _u, dx, _du: int(dx.shape[1])),
    )
    with ExitStack() as patches:
        for method, name, count in counted:
            if hasattr(kind, method):
                patches.enter_context(patch.object(kind, method, _make_counting(kind, method, calls, name, count)))
        yield calls


def _make_counting(kind: type, method: str, calls: Counter[str], name: str, count: Callable[..., int]) -> Any:
    original = getattr(kind, method)

    def counting(self: Any, *arguments: Any) -> Any:
        calls[name] += count(*arguments)
        return original(self, *arguments)

    return counting
