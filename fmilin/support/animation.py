"""Moving pictures that a notebook shows, and that can be saved."""

from __future__ import annotations

import base64
import html
from dataclasses import dataclass
from pathlib import Path

from fmilin.errors import UsageError
from fmilin.support.files import write_atomically


@dataclass(frozen=True, eq=False)
class Animation:
    """A moving picture, as the bytes of a GIF; a notebook shows it."""

    content: bytes
    title: str

    def __repr__(self) -> str:
        return f"Animation of {self.title}: {len(self.content)} bytes. save(path) writes a GIF."

    def _repr_html_(self) -> str:
        encoded = base64.b64encode(self.content).decode("ascii")
        return f'<img alt="{html.escape(self.title)}" src="data:image/gif;base64,{encoded}">'

    def save(self, path: str | Path) -> None:
        """Write the animation to ``path``, which ends in .gif."""
        if Path(path).suffix.lower() != ".gif":
            raise UsageError(f"Cannot write an animation to '{path}': its name must end in .gif.")
        write_atomically(path, self.content)
