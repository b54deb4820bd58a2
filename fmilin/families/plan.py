"""What is asked of every point of a sweep: it travels to whoever computes the points."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fmilin.families.grid import Grid
from fmilin.ground.errors import UsageError
from fmilin.linearization.request import Request
from fmilin.loading.load import LoadRequest
from fmilin.model.interface import Model
from fmilin.points.request import TrimRequest


@dataclass(frozen=True)
class Plan:
    """A sweep, but for who computes it."""

    source: str | Model  # as :func:`fmilin.load` takes it, or a model that is open already
    grid: Grid
    # how the source is loaded; its settings are those of the sweep
    load: LoadRequest = field(default_factory=LoadRequest)
    # states, inputs and parameters that are the same at all points
    settings: Mapping[str, float] = field(default_factory=dict)
    trim: TrimRequest | None = None  # look for an equilibrium or a steady motion at every point; what varies is fixed
    guess: Mapping[str, float] = field(default_factory=dict)  # where the search starts at the first point
    time: float | None = None
    project: bool = False
    how: Request = field(default_factory=Request)  # how each point is linearized

    def __post_init__(self) -> None:
        for other, what in ((self.trim.fixed if self.trim else {}, "fixed"), (self.settings, "set")):
            if both := [name for name in self.grid.axes if name in other]:
                raise UsageError(f"'{both[0]}' is varied and {what} at the same time. Leave one of them out.")
        if self.trim and (both := [name for name in self.grid.axes if name in self.trim.free]):
            raise UsageError(
                f"'{both[0]}' is varied, which holds it, and free at the same time. Leave one of them out."
            )
        if both := [name for name in self.grid.axes if name in self.guess]:
            raise UsageError(f"'{both[0]}' is varied, so there is nothing to guess. Leave one of them out.")
        if self.trim is None and self.guess:
            raise UsageError(f"A guess of '{next(iter(self.guess))}' is for --trim: add it, or set the value (--set).")

    @property
    def is_file(self) -> bool:
        """Whether the source is a file that can be read here."""
        return isinstance(self.source, str) and Path(self.source).suffix != "" and Path(self.source).is_file()

    def identity(self) -> dict[str, Any]:
        """Return what an interrupted sweep must have in common with the one that goes on, as plain data."""
        source = str(self.source) if isinstance(self.source, str) else f"<{self.source.info.name}>"
        path = Path(source.rpartition(":")[0] if ".py:" in source else source)
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        rest = replace(self, source="", grid=Grid({}), load=replace(self.load, settings={}))
        return {
            "source": source,
            "content": content,
            "axes": {name: values.tolist() for name, values in self.grid.axes.items()},
            "zipped": self.grid.zipped,
            "asked": repr(rest),
        }
