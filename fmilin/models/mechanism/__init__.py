"""Bodies, joints and loops: closed-chain mechanisms with an exact recursive linearization.

Spencer (thesis), chapter 4 and appendices A and B.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
