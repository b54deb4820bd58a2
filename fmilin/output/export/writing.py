"""What a person may choose about a file beyond its format; each format takes what concerns it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Writing"]


@dataclass(frozen=True, slots=True)
class Writing:
    """How a linear model is written, where a format leaves a choice."""

    name: str = "plant"  # what the thing in the file is called (a function, a model): the stem of the file's name
    # signals in deviations from the operating point instead of absolute values, and without f0, its own motion
    deviation: bool = False
    # connectors of Modelica.Blocks.Interfaces, or plain ``input Real`` and ``output Real``
    modelica: Literal["blocks", "equations"] = "blocks"
    fmi: Literal["2.0", "3.0"] = "2.0"  # the version of the standard that an FMU follows
    platforms: tuple[str, ...] = ()  # what an FMU shall run on (``"linux64"``, ``"win64"``, ...); empty: this machine
