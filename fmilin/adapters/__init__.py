"""Models of other engines: registered adapters, and everything that the author of an adapter needs.

Takes: files of other engines; an engine's rates, quantities and derivatives.
Returns: models.
Does not depend on: any engine.
"""

from typing import Any

import lazy_loader

from fmilin.adapters.old_names import NEW_NAMES
from fmilin.support.deprecation import resolve_old_name

_get_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    return _get_attribute(resolve_old_name(__name__, name, NEW_NAMES) if name in NEW_NAMES else name)
