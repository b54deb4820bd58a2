"""Data retained with a model from one call to the next, never copied or stored with it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from weakref import ref

from fmilin.model.capabilities import has_graph
from fmilin.model.interface import Model

_ATTRIBUTE = "_memory"


class ModelMemory(dict[object, Any]):
    """Values by key, for one model object. They may refer to the model: both are given back together."""

    def __init__(self, owner: Model | None = None) -> None:
        super().__init__()
        self._owner = None if owner is None else ref(owner)

    def matches_model(self, model: Model) -> bool:
        """Whether it is the memory of this model, not of the one that it was copied from."""
        return self._owner is not None and self._owner() is model

    def __reduce__(self) -> tuple[type[ModelMemory], tuple[()]]:
        return ModelMemory, ()  # a stored model remembers nothing


def find_memory(model: Model) -> ModelMemory:
    """Return the memory of a model; an empty one that is not kept where the object takes no attributes."""
    memory = getattr(model, _ATTRIBUTE, None)
    if isinstance(memory, ModelMemory) and memory.matches_model(model):
        return memory
    memory = ModelMemory(model)
    with suppress(AttributeError):
        object.__setattr__(model, _ATTRIBUTE, memory)
    return memory


MAX_VIEWS = 8  # of one model with other outputs


def with_outputs(model: Model, outputs: Sequence[str]) -> Model:
    """Return a model with chosen outputs: of FMUs and equations the same object at every call, with its memory."""
    if not (model.views_are_stable or has_graph(model)):
        return model.with_interface(None, outputs)
    views: dict[tuple[str, ...], Model] = find_memory(model).setdefault("outputs", {})
    key = tuple(outputs)
    if key not in views:
        if len(views) >= MAX_VIEWS:
            views.pop(next(iter(views)))
        views[key] = model.with_interface(None, outputs)
    return views[key]
