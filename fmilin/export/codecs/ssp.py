"""Systems of connected FMUs: System Structure and Parameterization."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.formats import Codec, Writing, register

if TYPE_CHECKING:
    from fmilin.export.ssp_file import WiredSystem


@register
class SystemSsp(Codec["WiredSystem"]):
    holds = "system"
    suffix = ".ssp"
    audience = "tools that connect FMUs"
    content = "FMUs with their wires, SSP 1.0: `fl.export.ssp`"
    position = 10

    def dumps(self, result: WiredSystem, writing: Writing) -> bytes:
        from fmilin.export.ssp_file import dumps_ssp

        return dumps_ssp(result)
