"""Models of other engines: registered adapters, and everything that the author of an adapter needs.

Takes: files of other engines; an engine's rates, quantities and derivatives.
Returns: models.
Does not depend on: any engine.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
