"""Reference mechanisms of the literature, each at a consistent point when it starts.

Takes: parameters of each mechanism.
Returns: native models.
Does not depend on: FMUs.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
