"""Does a model keep what :class:`~fmilin.Model` promises? For tests of adapters, and of our own models.

>>> from fmilin.systems import four_bar
>>> from fmilin.testing import check_model
>>> check_model(four_bar())[:3]
['shapes', 'arguments', 'memory']
"""

from fmilin.loading.testing.checking import ModelCheckError, check_model

__all__ = ["ModelCheckError", "check_model"]
