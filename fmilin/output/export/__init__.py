"""A LinearModel as a file that other tools accept: one module per format, one registry; systems as SSP files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fmilin.ground.import_paths import lazily

if TYPE_CHECKING:
    from fmilin.output.export.ssp_file import ssp

__all__ = ["ssp"]
__getattr__, _ = lazily(__name__, {"ssp": "ssp_file"})
