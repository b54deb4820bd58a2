"""The command line in this process: ``main(["linearize", "model.fmu"])`` returns the exit status, as the program does.

Starting the program itself takes a second each time; :mod:`tests.cli.test_at_the_terminal` does.
"""

from __future__ import annotations

from fmilin.cli.main import main

__all__ = ["main"]
