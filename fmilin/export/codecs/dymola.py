"""The file that Dymola writes when it linearizes a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.formats import Codec, Writing, register

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel


@register
class LinearModelDymola(Codec["LinearModel"]):
    holds = "linear model"
    suffix = "dslin.mat"
    audience = "Dymola"
    content = "`ABCD`, `nx`, `xuyName`; any name that ends like this"
    position = 100
    is_readable = True

    def dumps(self, result: LinearModel, writing: Writing) -> bytes:
        from fmilin.export.foreign import dumps_dslin

        return dumps_dslin(result)

    def loads(self, content: bytes, origin: str) -> LinearModel:
        from fmilin.export.foreign import loads_dslin

        return loads_dslin(content, origin)
