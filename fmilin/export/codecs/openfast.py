"""The linearization files of OpenFAST."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.formats import Codec, register

if TYPE_CHECKING:
    from fmilin.linear_model.model import LinearModel


@register
class LinearModelOpenfast(Codec["LinearModel"]):
    holds = "linear model"
    suffix = ".lin"
    audience = "OpenFAST"
    content = (
        "its linearization files, read: `fmilin convert turbine.*.lin -o family.nc` has azimuths and "
        "wind speeds as axes"
    )
    position = 110
    is_writable = False
    is_readable = True

    def loads(self, content: bytes, origin: str) -> LinearModel:
        from fmilin.export.foreign import loads_lin

        return loads_lin(content, origin)
