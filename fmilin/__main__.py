"""The program: its script, and ``python -m fmilin`` where that is not on the path."""

import atexit
import gc
import os
import sys
from contextlib import suppress
from typing import NoReturn

# Imports make 100,000 objects that live to the end. To search for garbage after each 700 of them, which is Python's
# default, takes a tenth of a short command, and finds none.
gc.set_threshold(50_000, 20, 20)

# Read when NumPy is imported. The matrices of a command are small as a rule: on many threads OpenBLAS takes two to four
# times the processor time for a linear model of 260 states, and no less time by the clock. Who sets it, has it so.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from fmilin.cli.main import main  # noqa: E402 - it imports most of what is imported


def run() -> NoReturn:
    """Run the program, and end as soon as all is delivered: an interrupt while Python is taken down has no one line."""
    status = main()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        status = status or 2
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    run()
