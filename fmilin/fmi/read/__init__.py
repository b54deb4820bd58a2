"""An FMU as a Model."""

import lazy_loader

# To read what is in an FMU imports nothing of what runs one.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
