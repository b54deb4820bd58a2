"""The linkages of the example ``mechanisms``: reference systems of the tests, too."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

from fmilin.models.mechanism import Mechanism

FILE = Path(__file__).parents[2] / "examples" / "mechanisms" / "linkages.py"
_content = runpy.run_path(str(FILE))
four_bar_mechanism: Callable[..., Mechanism] = _content["four_bar_mechanism"]
five_bar_mechanism: Callable[..., Mechanism] = _content["five_bar_mechanism"]
parallel_robot: Callable[..., Mechanism] = _content["parallel_robot"]
