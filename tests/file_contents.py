"""Contents of files of results, as bytes."""

from __future__ import annotations

from typing import Any

from fmilin.export.files import dumps
from fmilin.formats import Holds, require_codec


def written(result: Any, suffix: str) -> bytes:
    """Return the content of a file with this suffix."""
    return dumps(result, f"plant{suffix}")


def read(content: bytes, suffix: str, origin: str = "file", holds: Holds = "linear model") -> Any:
    """Return the result from the content of a file with this suffix; ``origin`` names it in messages."""
    return require_codec(f"plant{suffix}", holds, "read").loads(content, origin)
