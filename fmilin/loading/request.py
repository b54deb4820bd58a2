"""What is asked of a model when it is opened: before anything heavy is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fmilin.constraints.declared import Constraint
    from fmilin.fmi.read.archive import FmuOptions

Value = float | int | bool | str | Sequence[float]


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """How a model is opened: the options of :func:`fmilin.load`, where they are explained, but for the point's time."""

    constraints: Sequence[str | Constraint] | None = None
    constraints_file: str | Path | None = None
    parameters: Mapping[str, Value] = field(default_factory=dict)
    interface: str | None = None
    fmu: FmuOptions | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def is_fmu(source: str) -> bool:
    """Whether ``source`` names an FMU: foreign code that should not run in this process."""
    return source.lower().endswith(".fmu")


def is_system(source: str) -> bool:
    """Whether ``source`` names FMUs that are connected: an SSP or SSD file."""
    return source.lower().endswith((".ssp", ".ssd"))
