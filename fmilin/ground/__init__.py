"""What every other folder stands on: errors, signals, remarks, tolerances, files that are never left half-written.

Enters: names, units, sizes, texts; foreign code and what it may take.
Leaves: errors and remarks in words, :class:`~fmilin.Signals`, files written whole, a process that guards foreign code.
Does not know: what a model is.
"""

from typing import TYPE_CHECKING

from fmilin.ground.import_paths import lazily

if TYPE_CHECKING:
    from fmilin.ground.errors import REFUSALS as REFUSALS
    from fmilin.ground.errors import ConstraintError as ConstraintError
    from fmilin.ground.errors import FmilinError as FmilinError
    from fmilin.ground.errors import ModelError as ModelError
    from fmilin.ground.errors import NumericalError as NumericalError
    from fmilin.ground.errors import UnknownNameError as UnknownNameError
    from fmilin.ground.errors import UsageError as UsageError
    from fmilin.ground.files import check_writable as check_writable
    from fmilin.ground.files import write_atomically as write_atomically
    from fmilin.ground.interrupts import stoppable as stoppable
    from fmilin.ground.remarks import Remark as Remark
    from fmilin.ground.remarks import off_equilibrium as off_equilibrium
    from fmilin.ground.sandbox.other_processes import run_program as run_program
    from fmilin.ground.signals import FloatArray as FloatArray
    from fmilin.ground.signals import Signal as Signal
    from fmilin.ground.signals import Signals as Signals
    from fmilin.ground.signals import as_numbers as as_numbers
    from fmilin.ground.signals import limits_by_name as limits_by_name
    from fmilin.ground.signals import rate_unit as rate_unit
    from fmilin.ground.signals import wrap_differences as wrap_differences
    from fmilin.ground.tolerances import EQUILIBRIUM as EQUILIBRIUM
    from fmilin.ground.tolerances import RANK as RANK
    from fmilin.ground.tolerances import REFUSED as REFUSED
    from fmilin.ground.tolerances import ROUNDING as ROUNDING
    from fmilin.ground.verbs import Shown as Shown
    from fmilin.ground.verbs import perform as perform
    from fmilin.ground.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "errors": (
            "REFUSALS",
            "ConstraintError",
            "FmilinError",
            "ModelError",
            "NumericalError",
            "UnknownNameError",
            "UsageError",
        ),
        "files": ("check_writable", "write_atomically"),
        "interrupts": ("stoppable",),
        "remarks": ("Remark", "off_equilibrium"),
        "sandbox.other_processes": ("run_program",),
        "signals": ("FloatArray", "Signal", "Signals", "as_numbers", "limits_by_name", "rate_unit", "wrap_differences"),
        "tolerances": ("EQUILIBRIUM", "RANK", "REFUSED", "ROUNDING"),
        "verbs": ("Shown", "perform"),
        "version": ("__version__",),
    },
)
