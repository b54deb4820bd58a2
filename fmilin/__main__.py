"""The program: its script, and ``python -m fmilin`` where that is not on the path."""

import atexit
import os
import sys
from contextlib import suppress
from typing import NoReturn

from fmilin.cli.main import main


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
