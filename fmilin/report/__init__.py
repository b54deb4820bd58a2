"""Tables, pictures and pages: what people read of results.

Takes: linear models, families, points, motions, verifications.
Returns: text, figures, HTML.
Does not depend on: the command line.
"""

import lazy_loader

import fmilin.report.codecs  # noqa: F401 - registers the formats of pictures and pages

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
