"""Linear models, families and periodic models as files that other tools accept; systems as SSP files.

Takes: results.
Returns: bytes in each format, and results read back.
Does not depend on: the command line.
"""

import lazy_loader

import fmilin.export.codecs  # noqa: F401 - registers the formats of files

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
