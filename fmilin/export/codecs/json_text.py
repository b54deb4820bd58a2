"""Strict JSON, for any language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.export.container import Container, Content, register_container

if TYPE_CHECKING:
    from fmilin.export.record import Record, Stored

AUDIENCE = "any language"


@register_container
class Json(Container):
    suffix = ".json"
    contents = (
        Content("linear model", 30, AUDIENCE, "strict JSON, format `fmilin-linear/1`"),
        Content(
            "delayed linear model",
            30,
            AUDIENCE,
            "strict JSON, format `fmilin-delayed/1`: the delays and the model between them",
        ),
        Content("family", 40, AUDIENCE, "strict JSON, format `fmilin-family/1`: one object per point"),
        Content("periodic model", 40, AUDIENCE, "the same, strict JSON, format `fmilin-floquet/1`"),
    )

    def encode(self, record: Record) -> bytes:
        from fmilin.export.strict_json import encode

        return "".join(encode(record)).encode("ascii")

    def decode(self, content: bytes) -> Stored:
        from fmilin.export.strict_json import decode

        return decode(content)
