"""Names that an FMU is known by: a C identifier, and a token that is a fingerprint of its content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from fmilin.ground.version import __version__

__all__ = ["identifier_like", "token_of"]


def token_of(parts: Iterable[bytes]) -> str:
    """Return a GUID that is a fingerprint of the content.

    >>> token_of([b"A", b"B"]) == token_of([b"AB"])
    False
    """
    digest = hashlib.sha256(__version__.encode())
    for part in parts:
        digest.update(f"{len(part)}:".encode() + part)
    h = digest.hexdigest()
    return f"{{{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:32]}}}"


def identifier_like(name: str) -> str:
    """Return a C identifier that looks like ``name``.

    >>> identifier_like("2 masses")
    'model_2_masses'
    """
    text = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "model"
    return f"model_{text}" if text[0].isdigit() else text
