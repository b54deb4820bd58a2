"""Which model of which file, and the libraries that it may use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fmilin.errors import ModelError, UsageError
from fmilin_modelica.libraries import SKIPPED, library_name, library_roots, versions_used
from fmilin_modelica.modes import read_held_modes

__all__ = ["Source", "source_of"]

_NAME = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*"
_WITHIN = re.compile(rf"^\s*within\s+({_NAME})\s*;")
_LIBRARY = re.compile(r"\b(?:Modelica|ModelicaServices|Complex)\b[\w.]*")
SIGNALS = ("RealInput", "RealOutput")
STANDARD = ("Modelica", "ModelicaServices", "Complex")


@dataclass(frozen=True)
class Source:
    """The source that the front end flattens.

    Attributes
    ----------
    file : Path or None
        None for a model of a library.
    model : str or None
        Its full name; None for the only one in the file.
    roots : tuple of str
        Folders and files of libraries.
    modes : tuple of (str, str)
        Friction elements, each with the mode in which it is held.
    """

    file: Path | None
    model: str | None
    roots: tuple[str, ...]
    modes: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """The content of the file; empty for a model of a library."""
        if self.file is None:
            return ""
        try:
            return self.file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"'{self.file}' cannot be read: {error}. Check the path and its permissions.") from None

    def uses_signals_alone(self) -> bool:
        """Whether the text uses nothing of the Modelica Standard Library but the signals of blocks."""
        used = set(_LIBRARY.findall(SKIPPED.sub(" ", self.text)))
        return bool(used) and used <= {f"Modelica.Blocks.Interfaces.{name}" for name in SIGNALS}

    def without_standard_library(self) -> Source:
        """Return the same without the Modelica Standard Library."""
        return replace(self, roots=tuple(root for root in self.roots if library_name(Path(root)) not in STANDARD))

    @property
    def shown(self) -> str:
        """How messages name it."""
        named = [] if self.model is None else [self.model]
        return ":".join([*([] if self.file is None else [str(self.file)]), *named])

    def of_package(self) -> Source:
        """Return the same for a file inside a package: the package is a library then, and the model one of it."""
        within = _WITHIN.match(SKIPPED.sub(" ", self.text))
        if self.file is None or within is None:
            return self
        inner = self.file.parent if self.file.name == "package.mo" else self.file
        top = inner if inner.is_dir() else self.file.parent
        for _ in within[1].split(".")[1:]:
            top = top.parent
        top = top.parent if self.file.name == "package.mo" else top
        if not (top / "package.mo").is_file():
            raise ModelError(
                f"'{self.file}' is within {within[1]}, but no package.mo stands in '{top}'. Keep the file in its "
                "package, or take the 'within' out."
            )
        model = self.model or inner.stem
        name = model if model.startswith(f"{within[1]}.") else f"{within[1]}.{model}"
        others = [root for root in self.roots if library_name(Path(root)) != library_name(top)]
        return replace(self, file=None, model=name, roots=(str(top), *others))


def source_of(path: Path | None, model: str | None, options: Mapping[str, Any]) -> Source:
    """Return the source behind a file, or a name in a library, and the options of :func:`fmilin.load`.

    Raises
    ------
    UsageError
        When a library is not there, or a mode in which an element is held is unknown.
    """
    given = options.get("library", ())
    if isinstance(given, (str, Path)):
        raise UsageError(f"'library' must be a sequence: write library=['{given}'] even for a single folder.")
    source = Source(path, model, (), read_held_modes(options.get("friction_modes", ())))
    return replace(source, roots=library_roots(given, versions_used(source.text))).of_package()
