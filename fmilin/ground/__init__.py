"""What every other folder stands on: errors, signals, remarks, tolerances, files that are never left half-written.

Enters: names, units, sizes, texts; foreign code and what it may take.
Leaves: errors and remarks in words, :class:`~fmilin.Signals`, files written whole, a process that guards foreign code.
Does not know: what a model is.
"""

from typing import TYPE_CHECKING

from fmilin.ground.import_paths import lazily

if TYPE_CHECKING:
    from fmilin.ground.errors import ConstraintError as ConstraintError
    from fmilin.ground.errors import FmilinError as FmilinError
    from fmilin.ground.errors import ModelError as ModelError
    from fmilin.ground.errors import NumericalError as NumericalError
    from fmilin.ground.errors import UnknownNameError as UnknownNameError
    from fmilin.ground.errors import UsageError as UsageError
    from fmilin.ground.remarks import Remark as Remark
    from fmilin.ground.signals import FloatArray as FloatArray
    from fmilin.ground.signals import Signal as Signal
    from fmilin.ground.signals import Signals as Signals
    from fmilin.ground.signals import as_numbers as as_numbers
    from fmilin.ground.signals import rate_unit as rate_unit
    from fmilin.ground.verbs import Shown as Shown
    from fmilin.ground.verbs import perform as perform

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "errors": ("ConstraintError", "FmilinError", "ModelError", "NumericalError", "UnknownNameError", "UsageError"),
        "remarks": ("Remark",),
        "signals": ("FloatArray", "Signal", "Signals", "as_numbers", "rate_unit"),
        "verbs": ("Shown", "perform"),
    },
)
