"""Coverage of what runs in forked processes, at a bearable price: a plug-in of coverage.py.

coverage.py's own ``patch = ["fork"]`` measures anew in a child, in a child of a child twice, in its child four times;
each writes all that the parent has reached, and each then enters every file of fmilin: three seconds for one
:func:`fmilin.isolated`. Here a process writes before it splits, so that its child begins with nothing, and the files to
measure are named by a pattern, not by a package whose files are looked up. coverage.py gives a child its own file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import coverage
from coverage.plugin import CoveragePlugin
from coverage.plugin_support import Plugins
from coverage.types import TConfigurable

__all__ = ["coverage_init"]

MEASURED = Path(__file__).parents[1] / "fmilin"
_hooks: list[object] = []  # set once in a process and those that it starts


class _Forks(CoveragePlugin):
    def configure(self, config: TConfigurable) -> None:
        """Name what is measured, wherever a process works."""
        config.set_option("run:include", [f"{MEASURED}/*"])


def coverage_init(registry: Plugins, _: object) -> None:
    """Say what is measured, and have a process write before it forks."""
    registry.add_configurer(_Forks())
    if hasattr(os, "register_at_fork") and not _hooks:
        _hooks.append(_write)
        os.register_at_fork(before=_write)


def _write() -> None:
    measured = coverage.Coverage.current()
    if measured is not None:
        with suppress(OSError, coverage.CoverageException):  # else Python tells of it in what the process says
            measured.save()
