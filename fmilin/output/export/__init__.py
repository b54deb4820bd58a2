"""A LinearModel as a file that other tools accept: one module per format, one registry; systems as SSP files."""

from typing import TYPE_CHECKING

from fmilin.ground.import_paths import lazily

if TYPE_CHECKING:
    from fmilin.output.export.ssp_file import ssp as ssp

__getattr__, _, __all__ = lazily(__name__, {"ssp_file": ("ssp",)})
