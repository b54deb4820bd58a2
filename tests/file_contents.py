"""Contents of files of results, as bytes."""

from __future__ import annotations

import io
from typing import Any

import h5py
import numpy as np

from fmilin.export import mat5
from fmilin.export.files import dumps
from fmilin.formats import Holds, require_codec


def written(result: Any, suffix: str) -> bytes:
    """Return the content of a file with this suffix."""
    return dumps(result, f"plant{suffix}")


def read(content: bytes, suffix: str, origin: str = "file", holds: Holds = "linear model") -> Any:
    """Return the result from the content of a file with this suffix; ``origin`` names it in messages."""
    return require_codec(f"plant{suffix}", holds, "read").loads(content, origin)


def without_checksum(content: bytes, suffix: str) -> bytes:
    """Return the content of a file as versions before checksums wrote it."""
    if suffix == ".mat":
        variables = mat5.read(content)
        del variables["fmilin"]["checksum"]
        return mat5.write({name: value for name, value in variables.items() if name != "fmilin" or value})
    if suffix == ".npz":
        arrays = dict(np.load(io.BytesIO(content)))
        del arrays["checksum"]
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        return buffer.getvalue()
    if suffix == ".json":
        lines = content.splitlines()
        assert lines[-2].startswith(b'"checksum": "sha256:')
        return b"\n".join([*lines[:-3], lines[-3].removesuffix(b","), b"}", b""])
    buffer = io.BytesIO(content[: content.rindex(b"\nfmilin bytes sha256:")])
    with h5py.File(buffer, "r+") as file:
        del file.attrs["checksum"]
    return buffer.getvalue()
