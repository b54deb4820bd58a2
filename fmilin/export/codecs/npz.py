"""Archives of NumPy, without pickles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.export.container import Container, Content, register_container

if TYPE_CHECKING:
    from fmilin.export.record import Record, Stored


@register_container
class Npz(Container):
    suffix = ".npz"
    contents = (
        Content("linear model", 20, "NumPy", "arrays under their names, the rest as JSON text in `fmilin`"),
        Content("delayed linear model", 20, "NumPy", "the delays and the model between them"),
        Content("family", 30, "NumPy", "arrays with the grid axes first, the rest as JSON text in `fmilin`"),
        Content("descriptor system", 20, "NumPy", "arrays under their names"),
        Content("periodic model", 30, "NumPy", "the same; the phase is the first axis"),
    )

    def encode(self, record: Record) -> bytes:
        from fmilin.export.npz_file import encode

        return encode(record)

    def decode(self, content: bytes) -> Stored:
        from fmilin.export.npz_file import decode

        return decode(content)
